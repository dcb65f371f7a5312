"""Documents about consumers: the configuration that client and server share, and a consumer's progress."""

from typing import Literal

from msgspec import field

from headwater.jetstream_documents.document import Document, Int64, Text, Uint64, always
from headwater.model.timestamps import ZERO

DeliverPolicy = Literal["all", "last", "new", "by_start_sequence", "by_start_time", "last_per_subject"]
AckPolicy = Literal["none", "all", "explicit", "flow_control"]
ReplayPolicy = Literal["instant", "original"]


class ConsumerConfig(Document, kw_only=True):
    """A consumer: a reading position on a stream. Without `durable_name` the server deletes it when it is unused.
    Durations are in nanoseconds, `rate_limit_bps` is in bits a second.

    With ack policy `flow_control` an answer to a flow-control request acknowledges all messages before it; `sourcing`:
    another stream copies through this consumer.

    By default each message must be acknowledged (`ack_policy`). With `deliver_subject` the server pushes; without, the
    client pulls.
    """

    durable_name: str = ""
    name: str = ""
    description: str = ""
    deliver_policy: DeliverPolicy = always("all")
    opt_start_seq: Uint64 = 0
    opt_start_time: Text | None = None
    ack_policy: AckPolicy = always("explicit")
    ack_wait: Int64 = 0
    max_deliver: Int64 = 0
    backoff: list[Int64] | None = None
    filter_subject: str = ""
    filter_subjects: list[str] | None = None
    replay_policy: ReplayPolicy = always("instant")
    rate_limit_bps: Uint64 = 0
    sample_freq: str = ""
    max_waiting: Int64 = 0
    max_ack_pending: Int64 = 0
    flow_control: bool = False
    idle_heartbeat: Int64 = 0
    headers_only: bool = False
    max_batch: Int64 = 0
    max_expires: Int64 = 0
    max_bytes: Int64 = 0
    deliver_subject: str = ""
    deliver_group: str = ""
    inactive_threshold: Int64 = 0
    num_replicas: Int64 = always(0)
    mem_storage: bool = False
    direct: bool = False
    sourcing: bool = False
    metadata: dict[str, str] | None = None
    pause_until: Text | None = None
    priority_groups: list[str] | None = None
    priority_policy: Text = ""
    priority_timeout: Int64 = 0

    @property
    def outlives_restart(self) -> bool:
        """Whether the consumer is there after a clean restart, if its stream is on disk. As at nats-server, that includes an
        ephemeral one: its client, which connects again within the inactive threshold, goes on."""
        return bool(self.durable_name) or not (self.mem_storage or self.direct)


class SequencePair(Document, kw_only=True):
    """A position: the consumer's own count, and the stream's sequence. `last_active`: an RFC 3339 text."""

    consumer_seq: int = always(0)
    stream_seq: int = always(0)
    last_active: str | None = None


def _no_position() -> SequencePair:
    return SequencePair()


class PriorityGroupState(Document, kw_only=True):
    """The pinned client of a priority group, and the time of pinning; an empty id and Go's zero time while there is
    none."""

    group: str
    pinned_client_id: str = ""
    pinned_ts: str = always(ZERO)


class ConsumerInfo(Document, kw_only=True):
    """A consumer as the server describes it. `pause_remaining` in nanoseconds; `created` and `ts`, the time of the answer,
    are RFC 3339 texts."""

    stream_name: str
    name: str
    created: str = ""
    config: ConsumerConfig
    delivered: SequencePair = field(default_factory=_no_position)
    ack_floor: SequencePair = field(default_factory=_no_position)
    num_ack_pending: int = always(0)
    num_redelivered: int = always(0)
    num_waiting: int = always(0)
    num_pending: int = always(0)
    push_bound: bool = False
    paused: bool = False
    pause_remaining: int = 0
    priority_groups: list[PriorityGroupState] | None = None
    ts: str = ""
