"""Key-value buckets over JetStream (ADR-8): a stream `KV_<bucket>`, a subject `$KV.<bucket>.<key>` for each key.

The revision of an entry is its sequence in the stream. Deleting writes a marker (header `KV-Operation: DEL`); purging
writes one that also removes the history (`PURGE`, with `Nats-Rollup: sub`). Keys are subjects without wildcards;
patterns with `*` and `>` are allowed in searches and watches.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Literal, NamedTuple, Self

import msgspec

from headwater.client.iteration import Iteration
from headwater.client.jetstream_api import JetStreamApi
from headwater.client.jetstream_types import (
    ConsumerConfig,
    Placement,
    Republish,
    StoredMessage,
    StreamConfig,
    StreamInfo,
)
from headwater.client.nats_py_arguments import KEY_VALUE as KEY_VALUE_ARGUMENTS
from headwater.client.nats_py_arguments import take
from headwater.client.nats_py_names import KEY_VALUE_ADVICE, install
from headwater.client.ordered import OrderedConsumer
from headwater.client.stream_message import StreamMessage
from headwater.client.units import Lifetime, Seconds, check_times, unset
from headwater.errors import HeaderError, JetStreamError, SubjectError
from headwater.model.header_names import NatsHeader
from headwater.model.status import NOT_FOUND
from headwater.model.timestamps import format_time

Operation = Literal["PUT", "DEL", "PURGE"]

WRONG_LAST = (10071, 10164)  # "wrong last sequence"
NO_STREAM = 10059
DUPLICATE_WINDOW = 120.0  # seconds
MAX_HISTORY = 64
DEFAULT_API = "$JS.API"
_BUCKET = re.compile(r"[A-Za-z0-9_-]+")
_KEY = re.compile(r"[-/_=.A-Za-z0-9]+")
_PATTERN = re.compile(r"[-/_=.*>A-Za-z0-9]+")


class KeyNotFound(JetStreamError):
    """There is no such key, or it was deleted; `value` is the key."""

    def __init__(self, bucket: str, key: str, revision: int = 0) -> None:
        at = f" at revision {revision}" if revision else ""
        super().__init__(NOT_FOUND, 10037, f"the bucket {bucket!r} holds no key {key!r}{at}")
        self.value = key


class KeyExists(JetStreamError):
    """The key has another revision than the caller expected; `value` is the key."""

    def __init__(self, bucket: str, key: str, detail: str) -> None:
        super().__init__(400, 10071, f"the key {key!r} of {bucket!r} was written meanwhile: {detail}")
        self.value = key


class BucketConfig(msgspec.Struct, kw_only=True, frozen=True):
    """A bucket. `history` revisions are kept of each key, sizes are in bytes, -1: any. `ttl` and `limit_marker_ttl`
    (how long a marker of a deleted or expired key stays) are in seconds or timedeltas; 0: for ever, and no markers."""

    bucket: str
    description: str = ""
    history: int = 1
    ttl: Seconds = unset(0.0)
    max_bytes: int = -1
    max_value_size: int = -1
    storage: Literal["file", "memory"] = "file"
    replicas: int = 1
    compression: bool = False
    limit_marker_ttl: Seconds = unset(0.0)
    placement: Placement | None = None
    republish: Republish | None = None
    metadata: dict[str, str] | None = None

    def __post_init__(self) -> None:
        check_times(self)


class Entry(NamedTuple):
    """A revision of a key. `delta`: how many newer entries were pending when it was read."""

    bucket: str
    key: str
    value: bytes
    revision: int
    operation: Operation = "PUT"
    created: str = ""  # RFC 3339: when the revision was stored
    delta: int = 0


class KeyValue:
    """One bucket. Made by `JetStream.key_value` and `JetStream.create_key_value`.

    A `key` is tokens of letters, digits, `-/_=` with dots between them; SubjectError refuses others. A `value` is bytes, or
    text that is stored as UTF-8. `ttl`: how long the entry lives, in seconds, as a timedelta or as "5s"; the
    bucket must allow it (`limit_marker_ttl`). Requests raise what `JetStreamApi` says. Source: ADR-8 of the NATS
    architecture.
    """

    def __init__(self, jetstream: JetStreamApi, bucket: str, direct: bool) -> None:
        self.bucket = bucket
        self.stream = f"KV_{bucket}"
        self._jetstream = jetstream
        self._direct = direct
        self._prefix = f"$KV.{bucket}."
        # In a domain or another account keys are written through the API's prefix, because only that is reachable.
        api = jetstream.prefix
        self._written_to = self._prefix if api == DEFAULT_API else f"{api}.{self._prefix}"

    def __repr__(self) -> str:
        return f"<KeyValue {self.bucket!r}>"

    @classmethod
    async def bind(cls, jetstream: JetStreamApi, bucket: str) -> Self:
        """Raises JetStreamError when there is no such bucket."""
        info = await jetstream.stream_info(f"KV_{checked_bucket(bucket)}")
        return cls(jetstream, bucket, info.config.allow_direct)

    @classmethod
    async def create_bucket(cls, jetstream: JetStreamApi, config: BucketConfig) -> Self:
        """Raises JetStreamError when there is one with another configuration."""
        bucket = checked_bucket(config.bucket)
        if not 1 <= config.history <= MAX_HISTORY:
            raise SubjectError("a bucket keeps 1 to 64 revisions of a key", value=config.history, limit=MAX_HISTORY)
        window = DUPLICATE_WINDOW if not config.ttl else min(config.ttl, DUPLICATE_WINDOW)
        await jetstream.create_stream(
            StreamConfig(
                name=f"KV_{bucket}",
                subjects=[f"$KV.{bucket}.>"],
                description=config.description,
                max_msgs_per_subject=config.history,
                max_bytes=config.max_bytes,
                max_age=config.ttl,
                max_msg_size=config.max_value_size,
                storage=config.storage,
                num_replicas=config.replicas,
                compression="s2" if config.compression else "none",
                placement=config.placement,
                republish=config.republish,
                metadata=config.metadata,
                discard="new",
                duplicate_window=window,
                allow_rollup_hdrs=True,
                deny_delete=True,
                allow_direct=True,
                allow_msg_ttl=config.limit_marker_ttl > 0,
                subject_delete_marker_ttl=config.limit_marker_ttl,
            )
        )
        return cls(jetstream, bucket, True)

    async def status(self) -> StreamInfo:
        """The stream behind the bucket: `state.messages` are the revisions it holds."""
        return await self._jetstream.stream_info(self.stream)

    # ── reading ──

    async def get(self, key: str, revision: int = 0) -> Entry:
        """The newest revision of `key`, or the one of that number. Raises KeyNotFound, also for a deleted one."""
        entry = await self._read(key, revision)
        if entry.operation != "PUT":
            raise KeyNotFound(self.bucket, key, revision)
        return entry

    async def keys(self, *patterns: str) -> list[str]:
        """All keys, or those that match one of `patterns`."""
        return [entry.key async for entry in self._now(patterns, "last_per_subject", True) if entry.operation == "PUT"]

    async def history(self, key: str = ">") -> list[Entry]:
        """All stored revisions of a key (or of those that match), including markers, oldest first."""
        return [entry async for entry in self._now((key,), "all", False)]

    def watch(
        self, *patterns: str, history: bool = False, updates_only: bool = False, headers_only: bool = False
    ) -> "Watch":
        """The present entries and then every change, of all keys or those that match `patterns`: iterate over it.

        It starts with the newest revision of each key, with `history` with all revisions, with `updates_only` with
        none; `headers_only`: without values. Survives reconnects without a gap.
        """
        policy: Literal["new", "all", "last_per_subject"]
        policy = "new" if updates_only else "all" if history else "last_per_subject"
        return Watch(self, self._consumer(patterns, policy, headers_only, stop_at_end=False))

    # ── writing ──

    async def put(self, key: str, value: bytes | str, *, ttl: Lifetime | None = None) -> int:
        """Write a value unconditionally; returns its revision."""
        return await self._write(key, value, None, ttl)

    async def create(self, key: str, value: bytes | str, *, ttl: Lifetime | None = None) -> int:
        """Write a value if the key does not exist or was deleted; returns its revision. Raises KeyExists."""
        try:
            return await self._write(key, value, 0, ttl)
        except KeyExists:
            entry = await self._read(key, 0)
            if entry.operation == "PUT":
                raise
            return await self._write(key, value, entry.revision, ttl)

    async def update(self, key: str, value: bytes | str, last: int, *, ttl: Lifetime | None = None) -> int:
        """Write a value if the newest revision is `last`; returns the new one. Raises KeyExists otherwise."""
        return await self._write(key, value, last, ttl)

    async def delete(self, key: str, last: int | None = None) -> None:
        """Mark a key as deleted; its history stays. With `last`, only if that is the newest revision. Raises KeyExists
        otherwise."""
        await self._mark(key, {NatsHeader.KV_OPERATION: "DEL"}, last)

    async def purge(self, key: str, last: int | None = None, *, ttl: Lifetime | None = None) -> None:
        """Delete a key and its history; only a marker stays, for `ttl` if given. With `last`, only if that is the newest
        revision. Raises KeyExists otherwise."""
        await self._mark(key, {NatsHeader.KV_OPERATION: "PURGE", NatsHeader.ROLLUP: "sub"}, last, ttl)

    async def purge_deleted(self) -> int:
        """Remove the markers of deleted keys and their history; returns how many messages were removed."""
        marked = [entry async for entry in self._now((), "last_per_subject", True) if entry.operation != "PUT"]
        gone = 0
        for entry in marked:
            gone += await self._jetstream.purge_stream(self.stream, subject=self._prefix + entry.key)
        return gone

    # ── inside ──

    async def _read(self, key: str, revision: int) -> Entry:
        subject = self._subject(key)
        try:
            if revision:
                stored = await self._jetstream.get_message(self.stream, revision, direct=self._direct)
            else:
                stored = await self._jetstream.get_message(self.stream, last_on=subject, direct=self._direct)
        except JetStreamError as error:
            if error.code == NOT_FOUND and error.err_code != NO_STREAM:
                raise KeyNotFound(self.bucket, key, revision) from error
            raise
        if stored.subject != subject:
            raise KeyNotFound(self.bucket, key, revision)
        return self._entry(stored)

    def _entry(self, stored: StoredMessage) -> Entry:
        operation = operation_of(stored)
        return Entry(self.bucket, self.key_of(stored.subject), stored.data, stored.seq, operation, stored.time)

    def key_of(self, subject: str) -> str:
        """The key of a subject of this bucket."""
        return subject[len(self._prefix) :]

    def _subject(self, key: str) -> str:
        return self._prefix + _checked(key, _KEY)

    def _written(self, key: str) -> str:
        return self._written_to + _checked(key, _KEY)

    async def _write(self, key: str, value: bytes | str, last: int | None, ttl: Lifetime | None) -> int:
        data = value.encode() if isinstance(value, str) else value
        try:
            ack = await self._jetstream.publish(self._written(key), data, expect_last_subject_sequence=last, ttl=ttl)
        except JetStreamError as error:
            if error.err_code in WRONG_LAST:
                raise KeyExists(self.bucket, key, error.description) from error
            raise
        return ack.seq

    async def _mark(
        self, key: str, headers: dict[NatsHeader, str], last: int | None, ttl: Lifetime | None = None
    ) -> None:
        plain = {str(name): value for name, value in headers.items()}
        try:
            await self._jetstream.publish(self._written(key), headers=plain, expect_last_subject_sequence=last, ttl=ttl)
        except JetStreamError as error:
            if error.err_code in WRONG_LAST:
                raise KeyExists(self.bucket, key, error.description) from error
            raise

    async def _now(
        self, patterns: Sequence[str], policy: Literal["all", "last_per_subject"], headers_only: bool
    ) -> AsyncIterator[Entry]:
        consumer = self._consumer(patterns, policy, headers_only, stop_at_end=True)
        async for entry in Watch(self, consumer):
            yield entry

    def _consumer(
        self,
        patterns: Sequence[str],
        policy: Literal["new", "all", "last_per_subject"],
        headers_only: bool,
        *,
        stop_at_end: bool,
    ) -> OrderedConsumer:
        filters = [self._prefix + _checked(pattern, _PATTERN) for pattern in patterns or (">",)]
        config = ConsumerConfig(deliver_policy=policy, headers_only=headers_only)
        if len(filters) == 1:
            config.filter_subject = filters[0]
        else:
            config.filter_subjects = filters
        return OrderedConsumer(self._jetstream, self.stream, config, stop_at_end)


class Watch(Iteration[Entry]):
    """Iterate over it; `async with` ends that at once after a `break`. `caught_up`: all initial entries have been
    received."""

    def __init__(self, bucket: KeyValue, consumer: OrderedConsumer) -> None:
        super().__init__()
        self._bucket = bucket
        self._consumer = consumer
        self.caught_up = False

    async def _items(self) -> AsyncGenerator[Entry, None]:
        bucket = self._bucket
        async with self._consumer as messages:
            async for message in messages:
                where = message.metadata
                self.caught_up = self.caught_up or where.pending == 0
                yield Entry(
                    bucket.bucket,
                    bucket.key_of(message.subject),
                    message.data,
                    where.stream_seq,
                    operation_of(message),
                    format_time(where.timestamp_ns),
                    where.pending,
                )


def operation_of(entry: StoredMessage | StreamMessage) -> Operation:
    """The operation in an entry's headers: the client's, or the reason of a server's marker. One whose header block cannot
    be read is a value: any writer could end every watch of the bucket otherwise."""
    try:
        headers = entry.headers
    except HeaderError:
        return "PUT"
    operation = headers.first(NatsHeader.KV_OPERATION)
    if operation in ("DEL", "PURGE"):
        return "DEL" if operation == "DEL" else "PURGE"
    reason = headers.first(NatsHeader.MARKER_REASON)
    if reason == "Remove":
        return "DEL"
    return "PURGE" if reason in ("MaxAge", "Purge") else "PUT"


def checked_bucket(bucket: str) -> str:
    """Raises SubjectError for an invalid bucket name."""
    if not _BUCKET.fullmatch(bucket):
        allowed = "letters, digits, _ and -"
        raise SubjectError(f"{bucket!r} is no name of a bucket", value=bucket, limit=allowed, hint=allowed)
    return bucket


def _checked(key: str, rule: re.Pattern[str]) -> str:
    if not rule.fullmatch(key) or key.startswith(".") or key.endswith(".") or ".." in key:
        allowed = "letters, digits, - / _ = and . between them"
        raise SubjectError(f"{key!r} is no key", value=key, limit=allowed, hint=allowed)
    return key


install(KeyValue, {}, KEY_VALUE_ADVICE)
take(KeyValue, KEY_VALUE_ARGUMENTS)
