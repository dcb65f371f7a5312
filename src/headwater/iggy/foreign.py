"""Streams of another face, shown as topics: NATS messages can be polled, and Iggy sends are captured by the stream.

All of them are topics, of one partition each, of the stream `nats`; their names are the streams'. A poll reads the same
log and translates the records; a send is translated message by message, passed to the other face, and answered when
each message is. Committed offsets and groups are stored here. Only the other face creates and removes streams; here
that is refused.

The other face implements `ForeignStreams`; this layer does not depend on anything else of it.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple, Protocol

from headwater.errors import StorageError
from headwater.group_commit.writers import Writers
from headwater.iggy.catalog import Catalog, StreamEntry, TopicEntry
from headwater.iggy.partition import SUBJECT_HEADER, Batch, Done, Partition
from headwater.iggy.store import Offsets, Store
from headwater.iggy.topics import Topic
from headwater.model.header_mapping import typed_to_nats
from headwater.model.headers import Headers
from headwater.model.typed_headers import HeaderForm, TypedHeaders
from headwater.streams.iggy_batch import frames
from headwater.streams.iggy_records import MESSAGE_ID
from headwater.streams.log import Log

logger = logging.getLogger(__name__)

NAME: Final = "nats"
STREAM_ID: Final = 1 << 31  # far above the ids that clients choose


class Foreign(NamedTuple):
    """One message for the other face; `subject` is "" where the sender left it open."""

    subject: str
    headers: Headers
    payload: bytes


class ForeignStream(Protocol):
    """A stream of the other face."""

    name: str
    created_us: int

    @property
    def log(self) -> Log: ...
    def append(self, messages: Sequence[Foreign], done: Done) -> int:
        """Store messages in order; `done` is called later, when all are durable, or with the error. Returns the offset that
        the send is confirmed with. Raises StorageError for messages that cannot be stored, without calling `done`."""

    async def flush(self) -> None:
        """Wait until everything appended so far is answered."""


class ForeignStreams(Protocol):
    """The present streams of the other face."""

    def streams(self) -> Iterable[ForeignStream]: ...


class ForeignPartition(Partition):
    """The log of a foreign stream. It is read as any other; sends go through the other face."""

    def __init__(self, stream: ForeignStream, writers: Writers) -> None:
        super().__init__(0, 0, stream.created_us, stream.log, writers)
        self._stream = stream

    def append(self, batch: Batch, count: int, checksums: bytes, now_us: int, shown_id: int, done: Done) -> int:
        """As `Partition.append`, of records in the other dialect."""
        return self._stream.append(list(translated(bytes(memoryview(batch.buffer)[batch.start : batch.end]))), done)

    async def flush(self) -> None:
        """Wait until the other face has answered everything sent so far."""
        await self._stream.flush()


def translated(body: bytes) -> Iterable[Foreign]:
    """The messages of a checked batch in NATS form."""
    for frame in frames(body):
        block = body[frame.headers_at : frame.end]
        typed = TypedHeaders.decode(block, HeaderForm.TYPED) if block else TypedHeaders()
        headers = typed_to_nats(typed)
        subject, *own = headers.get_all(SUBJECT_HEADER) or [""]
        headers.discard(SUBJECT_HEADER)
        headers.extend(SUBJECT_HEADER, own)  # the original subject of a republished message
        message_id = int.from_bytes(frame.id, "little")
        if message_id:
            headers[MESSAGE_ID] = str(message_id)
        yield Foreign(subject, headers, body[frame.payload_at : frame.headers_at])


class TopicOwner(Protocol):
    """The server that shows these topics (`Service`)."""

    topics: dict[int, Topic]
    clock_us: Callable[[], int]

    @property
    def catalog(self) -> Catalog: ...
    @property
    def store(self) -> Store: ...
    @property
    def writers(self) -> Writers: ...
    def change(self) -> AbstractAsyncContextManager[Catalog]: ...


class ForeignTopics:
    """Keeps the topics of the stream `nats` in step with the other face."""

    def __init__(self, service: TopicOwner, source: ForeignStreams) -> None:
        self._service = service
        self._source = source
        self._added = 0  # topics so far
        self._kept = 0  # of these, in a catalog that is durable

    async def keep(self) -> None:
        """Make the numbers of new topics durable: clients may use them, and offsets are stored under them. Raises IggyError
        when the disk refuses."""
        added = self._added
        if added > self._kept:
            async with self._service.change():
                pass
            self._kept = max(self._kept, added)

    def entry(self) -> StreamEntry:
        """The stream; created if it does not exist."""
        streams = self._service.catalog.streams
        found = next((stream for stream in streams if stream.origin == NAME), None)
        if found is None:
            users = self._service.catalog.users  # the age of the store, so that it is the same after every start
            created = users[0].created if users else self._service.clock_us()
            found = StreamEntry(STREAM_ID, NAME, created, origin=NAME)
            streams.append(found)
        return found

    def refresh(self) -> bool:
        """Add and remove topics to match the foreign streams; whether there are new ones."""
        service, stream = self._service, self.entry()
        there = {foreign.name: foreign for foreign in self._source.streams()}
        for entry in list(stream.topics):
            topic = service.topics.get(entry.uid)
            foreign = there.get(entry.name)
            if foreign is None or foreign.created_us != entry.created:
                stream.topics.remove(entry)
                service.topics.pop(entry.uid, None)
                continue
            del there[entry.name]
            if topic is None or not topic.partitions or topic.partitions[0].log is not foreign.log:
                self._open(entry, foreign, topic.offsets if topic is not None else None)
        for name, foreign in there.items():
            number = max((entry.id for entry in stream.topics), default=-1) + 1
            entry = TopicEntry(number, service.catalog.new_uid(), name, foreign.created_us, [])
            stream.topics.append(entry)
            self._open(entry, foreign, None)
        self._added += len(there)
        return bool(there)

    def _open(self, entry: TopicEntry, foreign: ForeignStream, offsets: Offsets | None) -> None:
        service = self._service
        partition = ForeignPartition(foreign, service.writers)
        stored = offsets if offsets is not None else service.store.load_offsets(entry.uid)
        for beyond in stored.draw_back([foreign.log.end_offset]):
            logger.warning(
                "iggy_offset_beyond_the_end stream=%s %s: it goes on with the next message", entry.name, beyond
            )
        service.topics[entry.uid] = Topic(entry, [partition], stored)


def failure(text: str) -> StorageError:
    """The error of a send when the other face refused a message."""
    return StorageError(text)
