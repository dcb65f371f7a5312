"""States of consumers on their way into an archive and out of one; the first is a real server's."""

from pathlib import Path

import msgspec
import pytest

from headwater.archive.entries import Reader
from headwater.jetstream_backup.consumer_states import archived, snapshot_of
from headwater.jetstream_documents.backups import ArchivedConsumer, ArchivedConsumerState
from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_state.consumer import Consumer, ConsumerSnapshot

CONTENT = (Path(__file__).parents[1] / "vectors" / "archives" / "stream.natsarc").read_bytes()


def test_a_state_that_nats_server_wrote_is_ours_and_again_its() -> None:
    entry = next(one for one in Reader().feed(CONTENT) if one.name == b"consumers/dur")
    found = msgspec.json.decode(entry.payload, type=ArchivedConsumer)
    snapshot = snapshot_of(found.state)
    assert snapshot == ConsumerSnapshot(
        position=4, selected=[], delivered_consumer=2, delivered_stream=3, floor_consumer=1, floor_stream=2,
        unacked={3: 2}, attempts={},
    )  # fmt: skip
    again = msgspec.json.decode(archived(found.config, snapshot, 1795320024146002304))
    assert again["state"] == msgspec.json.decode(entry.payload)["state"]


def test_a_consumer_that_has_delivered_nothing_has_no_state() -> None:
    config = ConsumerConfig(durable_name="c", deliver_policy="new")
    fresh = Consumer(config, 61).snapshot()
    state = msgspec.json.decode(archived(config, fresh, 1), type=ArchivedConsumer).state
    assert state == ArchivedConsumerState()
    assert snapshot_of(state) is None


def test_redeliveries_come_along_and_a_key_that_is_no_sequence_is_an_error() -> None:
    payload = b'{"delivered":{"consumer_seq":9,"stream_seq":5},"ack_floor":{"consumer_seq":0},"redelivered":%b}'
    state = msgspec.json.decode(payload % b'{"4":2}', type=ArchivedConsumerState)
    found = snapshot_of(state)
    assert found is not None
    assert found.attempts == {4: 2}
    with pytest.raises(ValueError, match="invalid literal"):
        snapshot_of(msgspec.json.decode(payload % b'{"x":2}', type=ArchivedConsumerState))
