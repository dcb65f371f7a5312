"""Converts the state of a consumer to and from its form in an archive. nats-server stores the time of each
unacknowledged delivery, Headwater the deadline: the archive gets the time of the backup, and after a restore every ack
wait starts anew."""

import msgspec

from headwater.jetstream_documents.backups import (
    ArchivedConsumer,
    ArchivedConsumerState,
    ArchivedPair,
    ArchivedPending,
)
from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_state.consumer import ConsumerSnapshot


def archived(config: ConsumerConfig, snapshot: ConsumerSnapshot, now_ns: int) -> bytes:
    """The payload of a consumer's entry."""
    fresh = not snapshot.delivered_consumer and not snapshot.floor_consumer
    state = ArchivedConsumerState(
        delivered=ArchivedPair(snapshot.delivered_consumer, 0 if fresh else snapshot.delivered_stream),
        ack_floor=ArchivedPair(snapshot.floor_consumer, 0 if fresh else snapshot.floor_stream),
        pending={str(at): ArchivedPending(place, now_ns) for at, place in snapshot.unacked.items()} or None,
        redelivered={str(at): count for at, count in snapshot.attempts.items()} or None,
    )
    return msgspec.json.encode(ArchivedConsumer(config, state))


def snapshot_of(state: ArchivedConsumerState) -> ConsumerSnapshot | None:
    """The snapshot for an archived state; None for a consumer that has delivered nothing and starts as its
    configuration says. Raises ValueError for a key that is no sequence."""
    delivered, floor = state.delivered, state.ack_floor
    if not (delivered.consumer_seq or delivered.stream_seq or floor.stream_seq):
        return None
    return ConsumerSnapshot(
        position=delivered.stream_seq + 1,
        selected=[],
        delivered_consumer=delivered.consumer_seq,
        delivered_stream=delivered.stream_seq,
        floor_consumer=floor.consumer_seq,
        floor_stream=floor.stream_seq,
        unacked={int(at): waiting.sequence for at, waiting in (state.pending or {}).items()},
        attempts={int(at): count for at, count in (state.redelivered or {}).items()},
    )
