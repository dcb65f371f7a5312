"""What `SyncClient.jetstream` gives, as type checkers see it; at run time each is a `sync.SyncProxy`.

Written by `docs/sync_types.py` from the asyncio classes of the same names, less `Sync`: change those, and run
`./hw check --fix`.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from types import TracebackType
from typing import BinaryIO, Protocol, Self

from headwater.client.jetstream_types import (
    AccountInfo,
    BatchAck,
    ConsumerConfig,
    ConsumerInfo,
    PubAck,
    StoredMessage,
    StreamConfig,
    StreamInfo,
)
from headwater.client.key_value import BucketConfig, Entry
from headwater.client.object_store import CHUNK_SIZE, ObjectInfo, StoreConfig
from headwater.client.schedules import Schedule
from headwater.client.stream_message import Metadata
from headwater.client.units import Lifetime
from headwater.client_connection.connection_ops import BytesLike
from headwater.client_connection.timeouts import Timeout
from headwater.errors import JetStreamError
from headwater.model.headers import Headers, HeaderSource
from headwater.model.message import Message


class SyncStreamMessage(Protocol):
    """A message of a stream, with the methods to acknowledge it. `message` is the message itself."""

    message: Message

    @property
    def metadata(self) -> Metadata:
        """Its position in the stream and the consumer; parsed from the reply subject at first use."""

    @property
    def headers(self) -> Headers:
        """The headers. Raises HeaderError for a malformed block."""

    @property
    def data(self) -> bytes:
        """The payload."""

    @property
    def subject(self) -> str:
        """The subject it was published on."""

    @property
    def reply(self) -> str:
        """The acknowledgement subject."""

    def ack(self, *, confirm: Timeout | None = None) -> None:
        """Acknowledge the message. With `confirm`, wait up to that many seconds for the server's confirmation."""

    def nak(self, delay: float | timedelta = 0.0) -> None:
        """Have the message delivered again, after `delay` seconds."""

    def term(self, reason: str = "") -> None:
        """Have the message never delivered again; `reason` is shown in the server's advisory."""

    def in_progress(self) -> None:
        """Restart the ack wait, because work on the message goes on."""


class SyncConsumption(Protocol):
    """Messages of one pull consumer, one after the other. Made by `PullConsumer.consume`; use it in `with`."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def stop(self) -> None:
        """End the iteration after the messages already received."""

    def __iter__(self) -> Iterator[SyncStreamMessage]: ...


class SyncPullConsumer(Protocol):
    """Fetches from one consumer, as a member of a priority group if one is given."""

    stream: str

    name: str

    def consume(
        self,
        batch: int = 500,
        *,
        expires: Timeout = 30.0,
        heartbeat: Timeout = 5.0,
        max_bytes: int = 0,
        min_pending: int = 0,
        min_ack_pending: int = 0,
        priority: int = 0,
    ) -> SyncConsumption:
        """Read without end: `with` it, and iterate. Requests `batch` messages, or `max_bytes`, at a time.

        `expires`: seconds after which the server ends a request. `heartbeat`: seconds between the heartbeats of an idle
        server; after two missing ones the request is repeated. `min_pending`, `min_ack_pending` and `priority` are
        those of `fetch`."""

    def fetch(
        self,
        batch: int = 100,
        *,
        timeout: Timeout = 5.0,
        no_wait: bool = False,
        min_pending: int = 0,
        min_ack_pending: int = 0,
        priority: int = 0,
    ) -> list[SyncStreamMessage]:
        """Up to `batch` messages, as many as arrive within `timeout` seconds; with `no_wait` those that are available.

        In a priority group, of a consumer with policy overflow: messages come as long as `min_pending` of them are there, or
        `min_ack_pending` await their acknowledgement. With policy prioritized: requests of a lower `priority`, 0 to 9, are
        served first. With policy pinned_client nothing comes while another client is pinned.

        Raises LocalProtocolError for a `batch` below 1, JetStreamError when the consumer was deleted, NoResponders when
        it does not exist, AuthorizationError when permissions forbid the request, RequestTimeout when the server does
        not answer. After a reconnect the rest is requested again, for the time that is left.
        """


class SyncPushConsumer(Protocol):
    """`info`: the server's description at the start. A consumer without a durable name is deleted at the end."""

    info: ConsumerInfo | None

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def __iter__(self) -> Iterator[SyncStreamMessage]: ...


class SyncOrderedConsumer(Protocol):
    """Iterate over it; `with` ends that at once after a `break`. `pending`: messages left after the last one"""

    pending: int | None

    resets: int

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def __iter__(self) -> Iterator[SyncStreamMessage]: ...


class SyncPublisher(Protocol):
    """A window of unacknowledged publishes. `timeout`: seconds without any ack after which it gives up."""

    acknowledged: int

    duplicates: int

    last_sequence: int

    @property
    def outstanding(self) -> int:
        """Messages sent and not acknowledged."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def publish(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        headers: HeaderSource | Headers | None = None,
        msg_id: str | None = None,
    ) -> None:
        """Send `data` with `headers` on `subject`; waits while the window is full. `msg_id`: a stream takes a message with
        this id once.

        Raises the first failure of any message before it, and LocalProtocolError outside `with`."""

    def wait_acknowledged(self) -> None:
        """Wait until every message so far is acknowledged. Raises the first failure."""


class SyncAtomicBatch(Protocol):
    """One batch; use it in `with`. `ack`: the acknowledgement with stream and sequence, None until the commit."""

    ack: BatchAck | None

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def publish(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        headers: HeaderSource | Headers | None = None,
        msg_id: str | None = None,
        expect_last_sequence: int | None = None,
        expect_last_subject_sequence: int | None = None,
        ttl: Lifetime | None = None,
    ) -> None:
        """Add a message. Its expectations are checked at the commit; `expect_last_sequence` is for the first message
        only. Raises JetStreamError when the stream refuses the batch."""


class SyncFastPublisher(Protocol):
    """One batch; use it in `with`. `ack`: the acknowledgement of the batch with its count and the sequence of its"""

    ack: BatchAck | None

    acknowledged: int

    lost: int

    refused: int

    refusal: JetStreamError | None

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def publish(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        headers: HeaderSource | Headers | None = None,
        msg_id: str | None = None,
    ) -> None:
        """Send `data` with `headers` on `subject`; waits while too much is unanswered. `msg_id`: a stream takes a message
        with this id once.

        Raises the first failure of any message before it: NoResponders, JetStreamError, TransportError, RequestTimeout;
        and LocalProtocolError outside `with`."""


class SyncCounters(Protocol):
    """The counters of one stream. Made by `JetStream.counters`; requests raise what `JetStreamApi` says."""

    stream: str

    def add(
        self, subject: str, by: int = 1, *, msg_id: str | None = None, headers: HeaderSource | Headers | None = None
    ) -> int:
        """Add `by`, which may be negative or 0, to the counter of `subject`; returns the new sum.

        With a `msg_id` that the stream has stored before, nothing is added, and the present sum is returned. Raises
        NoResponders when no stream captures the subject, JetStreamError when its stream has no counters, and
        LocalProtocolError when another stream than this one has counted it.
        """

    def get(self, subject: str, *, direct: bool = False) -> int | None:
        """The sum of `subject`; None when nothing was counted there, or all of it was purged.

        `direct` reads from any replica, which may be behind the leader; the stream must allow it. Raises
        RemoteProtocolError when the last message of the subject is no sum.
        """

    def sources(self, subject: str) -> dict[str, dict[str, int]]:
        """The parts of the sum of `subject` in a stream with sources: by stream and subject of origin, the last sum
        copied from there. Empty for a counter without sources."""


class SyncWatch(Protocol):
    """Iterate over it; `with` ends that at once after a `break`. `caught_up`: all initial entries have been"""

    caught_up: bool

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def __iter__(self) -> Iterator[Entry]: ...


class SyncKeyValue(Protocol):
    """One bucket. Made by `JetStream.key_value` and `JetStream.create_key_value`."""

    bucket: str

    stream: str

    def status(self) -> StreamInfo:
        """The stream behind the bucket: `state.messages` are the revisions it holds."""

    def get(self, key: str, revision: int = 0) -> Entry:
        """The newest revision of `key`, or the one of that number. Raises KeyNotFound, also for a deleted one."""

    def keys(self, *patterns: str) -> list[str]:
        """All keys, or those that match one of `patterns`."""

    def history(self, key: str = ">") -> list[Entry]:
        """All stored revisions of a key (or of those that match), including markers, oldest first."""

    def watch(
        self, *patterns: str, history: bool = False, updates_only: bool = False, headers_only: bool = False
    ) -> SyncWatch:
        """The present entries and then every change, of all keys or those that match `patterns`: iterate over it.

        It starts with the newest revision of each key, with `history` with all revisions, with `updates_only` with
        none; `headers_only`: without values. Survives reconnects without a gap.
        """

    def put(self, key: str, value: bytes | str, *, ttl: Lifetime | None = None) -> int:
        """Write a value unconditionally; returns its revision."""

    def create(self, key: str, value: bytes | str, *, ttl: Lifetime | None = None) -> int:
        """Write a value if the key does not exist or was deleted; returns its revision. Raises KeyExists."""

    def update(self, key: str, value: bytes | str, last: int, *, ttl: Lifetime | None = None) -> int:
        """Write a value if the newest revision is `last`; returns the new one. Raises KeyExists otherwise."""

    def delete(self, key: str, last: int | None = None) -> None:
        """Mark a key as deleted; its history stays. With `last`, only if that is the newest revision. Raises KeyExists
        otherwise."""

    def purge(self, key: str, last: int | None = None, *, ttl: Lifetime | None = None) -> None:
        """Delete a key and its history; only a marker stays, for `ttl` if given. With `last`, only if that is the newest
        revision. Raises KeyExists otherwise."""

    def purge_deleted(self) -> int:
        """Remove the markers of deleted keys and their history; returns how many messages were removed."""


class SyncObjectWatch(Protocol):
    """Iterate over it; `with` ends that at once after a `break`."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def __iter__(self) -> Iterator[ObjectInfo]: ...


class SyncObjectStore(Protocol):
    """One store. Made by `JetStream.object_store` and `JetStream.create_object_store`."""

    bucket: str

    stream: str

    def status(self) -> StreamInfo:
        """The stream behind the store."""

    def put(
        self,
        name: str,
        data: BytesLike | BinaryIO,
        *,
        description: str = "",
        metadata: dict[str, str] | None = None,
        headers: dict[str, list[str]] | None = None,
        chunk_size: int = CHUNK_SIZE,
    ) -> ObjectInfo:
        """Store `data` as an object, replacing one of that name; a file is read chunk by chunk (its reads block).

        `headers`: by name, the values; readers get them in `ObjectInfo`. `chunk_size`: bytes of one message; below 1 it
        raises LocalProtocolError.

        The object becomes visible once it is completely stored; the chunks of a failed one are purged.
        """

    def get(self, name: str) -> bytes:
        """A whole object. Raises ObjectNotFound, and DataLossError if it differs from what was stored."""

    def chunks(self, name: str) -> Iterator[bytes]:
        """An object chunk by chunk. Raises ObjectNotFound, and after the last chunk DataLossError if size or digest is
        wrong."""

    def info(self, name: str, *, deleted: bool = False) -> ObjectInfo:
        """The description of an object; with `deleted`, also of a deleted one. Raises ObjectNotFound."""

    def objects(self, *, deleted: bool = False) -> list[ObjectInfo]:
        """All objects, with `deleted` the deleted ones too."""

    def watch(self, *, updates_only: bool = False) -> SyncObjectWatch:
        """The objects that the store holds, unless `updates_only`, and then every change: iterate over it."""

    def update(self, name: str, *, description: str, metadata: dict[str, str] | None = None) -> ObjectInfo:
        """Change the description and metadata of an object. Raises ObjectNotFound."""

    def link(self, name: str, target: ObjectInfo) -> ObjectInfo:
        """Make `name` a link to the object `target`, of this store or another."""

    def delete(self, name: str) -> ObjectInfo:
        """Delete an object; its document stays as a marker. Raises ObjectNotFound."""

    def seal(self) -> None:
        """Seal the store: nothing can be written or deleted afterwards."""


class SyncJetStream(Protocol):
    """The JetStream of one connection. Made by `Client.jetstream`."""

    def account_info(self) -> AccountInfo:
        """The usage and limits of this account. Raises EnvironmentProblem when the server has no JetStream for it."""

    def create_stream(self, config: StreamConfig) -> StreamInfo:
        """Create the stream of `config`; one that exists with the same configuration is no error."""

    def update_stream(self, config: StreamConfig) -> StreamInfo:
        """Change a stream's configuration to `config`; the server refuses changes of fixed fields."""

    def stream_info(self, name: str, *, subjects: str = "", deleted: bool = False) -> StreamInfo:
        """Configuration and state of the stream `name`. With `subjects`, a filter, the state also has the number of messages
        of each matching subject; with `deleted` the sequences of deleted messages."""

    def delete_stream(self, name: str) -> bool:
        """Delete the stream `name` with its messages; False when there was none."""

    def purge_stream(self, name: str, *, subject: str = "", sequence: int = 0, keep: int = 0) -> int:
        """Delete messages of the stream `name`: all, those of `subject`, those before `sequence`, or all but the last
        `keep`; returns how many."""

    def stream_names(self, subject: str = "") -> list[str]:
        """The names of all streams, or of those that capture `subject`."""

    def streams(self, subject: str = "") -> list[StreamInfo]:
        """All streams, or those that capture `subject`."""

    def find_stream(self, subject: str) -> str:
        """The name of the stream that captures `subject`. Raises JetStreamError when there is none."""

    def get_message(
        self, stream: str, sequence: int = 0, *, last_on: str = "", next_on: str = "", direct: bool = False
    ) -> StoredMessage:
        """The message `sequence` of a stream, the last one on the subject `last_on`, or the next one on `next_on` from
        `sequence` on.

        `direct` reads from any replica instead of the leader; the stream must allow it. Raises JetStreamError (404)
        when there is none.
        """

    def delete_message(self, stream: str, sequence: int, *, erase: bool = True) -> bool:
        """Delete the message `sequence` of a stream; `erase` overwrites its bytes. Raises JetStreamError when there is
        none."""

    def publish(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        headers: HeaderSource | Headers | None = None,
        msg_id: str | None = None,
        expect_stream: str | None = None,
        expect_last_sequence: int | None = None,
        expect_last_subject_sequence: int | None = None,
        expect_last_msg_id: str | None = None,
        ttl: Lifetime | None = None,
        schedule: Schedule | None = None,
    ) -> PubAck:
        """Publish `data` with `headers` on `subject`, and wait until the stream has stored the message durably.

        `expect_stream`: the name of the stream that must capture it. `expect_last_sequence`,
        `expect_last_subject_sequence` and `expect_last_msg_id`: the sequence, or message id, that the last message of
        the stream or of the subject must have; otherwise the stream refuses. `ttl`: how long the message lives:
        seconds, a timedelta, or a text such as "5s" or "never". `schedule`: the message is a schedule that produces
        others later.

        Raises NoResponders when no stream captures the subject, JetStreamError when it refuses the message. With a
        `msg_id` it is published again when the connection is lost meanwhile: the stream stores it once.
        """

    def create_consumer(self, stream: str, config: ConsumerConfig) -> ConsumerInfo:
        """Create the consumer of `config` on a stream; one that exists with the same configuration is no error. It is
        durable with `durable_name`; otherwise the server deletes it when it is unused."""

    def update_consumer(self, stream: str, config: ConsumerConfig) -> ConsumerInfo:
        """Change the configuration of a consumer of `stream` to `config`; the server refuses changes of fixed fields."""

    def consumer_info(self, stream: str, name: str) -> ConsumerInfo:
        """Configuration and position of the consumer `name` of `stream`."""

    def delete_consumer(self, stream: str, name: str) -> bool:
        """Delete the consumer `name` of `stream`; False when there was none."""

    def consumer_names(self, stream: str) -> list[str]:
        """The names of a stream's consumers."""

    def consumers(self, stream: str) -> list[ConsumerInfo]:
        """All consumers of a stream."""

    def pause_consumer(self, stream: str, name: str, until: str | datetime) -> bool:
        """Pause the consumer `name` of `stream` until `until`, a time in RFC 3339 or an aware datetime; one in the past
        (or "") resumes. Returns whether it is paused."""

    def unpin_consumer(self, stream: str, name: str, group: str) -> None:
        """Unpin the pinned client in the priority `group` of the consumer `name` of `stream`; the next waiting client
        is pinned."""

    def publisher(self, window: int = 1024) -> SyncPublisher:
        """Publish with up to `window` messages unacknowledged; use it in `with`."""

    def atomic_batch(self) -> SyncAtomicBatch:
        """Publish several messages all together or not at all, to a stream with `allow_atomic`; use it in `with`."""

    def fast_publisher(self, flow: int = 100, *, gaps_allowed: bool = False) -> SyncFastPublisher:
        """Publish at full speed to a stream with `allow_batched`, an answer after `flow` messages at most; use it in `async
        with`. `gaps_allowed`: go on where messages are lost or refused."""

    def counters(self, stream: str) -> SyncCounters:
        """The counters of a stream with `allow_msg_counter`, one for each subject."""

    def pull_consumer(self, stream: str, name: str, *, group: str = "") -> SyncPullConsumer:
        """Read from an existing pull consumer, as a member of its priority group `group` if it has groups."""

    def push_consumer(self, stream: str, config: ConsumerConfig | None = None) -> SyncPushConsumer:
        """A push consumer, created with `config`: use it in `with`, and iterate."""

    def ordered_consumer(
        self, stream: str, config: ConsumerConfig | None = None, *, stop_at_end: bool = False
    ) -> SyncOrderedConsumer:
        """An ordered consumer, which survives lost connections and servers: iterate over it to get every message once,
        in order.

        `config` sets the start and the subjects. `stop_at_end`: end with the stream's last message at the start of the
        iteration.
        """

    def create_key_value(self, config: BucketConfig) -> SyncKeyValue:
        """Create the bucket of `config`; one that exists with the same configuration is no error."""

    def create_object_store(self, config: StoreConfig) -> SyncObjectStore:
        """Create the object store of `config`; one that exists with the same configuration is no error."""

    def delete_key_value(self, bucket: str) -> bool:
        """Delete a bucket with all it holds; False when there was none."""

    def delete_object_store(self, bucket: str) -> bool:
        """Delete an object store with all it holds; False when there was none."""

    def key_value(self, bucket: str) -> SyncKeyValue:
        """A bucket that exists. Raises JetStreamError when it does not."""

    def object_store(self, bucket: str) -> SyncObjectStore:
        """An object store that exists. Raises JetStreamError when it does not."""
