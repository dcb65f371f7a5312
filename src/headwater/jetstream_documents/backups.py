"""The documents of backups: STREAM.SNAPSHOT, STREAM.RESTORE, and the JSON inside an archive."""

from msgspec import UNSET, Struct, UnsetType, field

from headwater.jetstream_documents.answers import Answer
from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_documents.document import Document, Int64
from headwater.jetstream_documents.streams import StreamConfig, StreamState

SMALLEST_CHUNK = 1 << 10
LARGEST_CHUNK = 1 << 20
DEFAULT_CHUNK = 128 << 10
LARGEST_WINDOW = 32 << 20
DEFAULT_WINDOW = 8 << 20


class SnapshotRequest(Document, kw_only=True):
    """STREAM.SNAPSHOT. `chunk_size` in bytes; `window_size`: bytes that may be sent without a confirmation. `jsck`:
    nats-server checks its files first; here every batch is checked as it is read."""

    deliver_subject: str = ""
    no_consumers: bool = False
    chunk_size: Int64 = 0
    window_size: Int64 = 0
    jsck: bool = False

    @property
    def chunk(self) -> int:
        """Bytes of a chunk, as nats-server bounds them."""
        return min(max(self.chunk_size, SMALLEST_CHUNK), LARGEST_CHUNK) if self.chunk_size else DEFAULT_CHUNK

    @property
    def window(self) -> int:
        """Bytes of the window, as nats-server bounds them."""
        return min(max(self.window_size, SMALLEST_CHUNK), LARGEST_WINDOW) if self.window_size else DEFAULT_WINDOW


class SnapshotAnswer(Answer, kw_only=True):
    """The answer to STREAM.SNAPSHOT; the chunks are sent to the deliver subject."""

    config: StreamConfig | UnsetType = UNSET
    state: StreamState | UnsetType = UNSET


class RestoreRequest(Document, kw_only=True):
    """STREAM.RESTORE. The state in the request is ignored: the one in the archive counts, as in nats-server."""

    config: StreamConfig = field(default_factory=lambda: StreamConfig(name=""))
    state: StreamState = field(default_factory=StreamState)


class ArchivedState(Struct):
    """The fields of `state.json` that a restore needs."""

    messages: int = 0
    bytes: int = 0
    first_seq: int = 0
    last_seq: int = 0
    consumer_count: int = 0


class ArchivedPair(Struct):
    """A consumer sequence and a stream sequence."""

    consumer_seq: int = 0
    stream_seq: int = 0


class ArchivedPending(Struct, rename={"sequence": "Sequence", "timestamp": "Timestamp"}):
    """An unacknowledged delivery: its consumer sequence, its time in ns."""

    sequence: int = 0
    timestamp: int = 0


class ArchivedConsumerState(Struct, omit_defaults=True):
    """`pending` and `redelivered` by stream sequence."""

    delivered: ArchivedPair = field(default_factory=lambda: ArchivedPair())
    ack_floor: ArchivedPair = field(default_factory=lambda: ArchivedPair())
    pending: dict[str, ArchivedPending] | None = None
    redelivered: dict[str, int] | None = None


class ArchivedConsumer(Struct):
    """`consumers/<name>` of an archive."""

    config: ConsumerConfig
    state: ArchivedConsumerState
