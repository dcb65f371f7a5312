"""The server behind every transport: state, who is connected, and how a command becomes an answer.

    frame ─▶ command_codec ─▶ `execute` ─▶ permissions ─▶ a handler of *_commands.py ─▶ view ─▶ reply_codec ─▶ frame

A handler answers at once, or is a coroutine where the disk is involved. Changes of the catalog are made one at a time,
and each is on disk before it is answered; one that the disk refuses is undone. Sends and polls do not wait for any of it.
"""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from headwater.errors import HeadwaterError, StorageError
from headwater.iggy import commands as c
from headwater.iggy import credentials, group_commands, message_commands, stream_commands, user_commands
from headwater.iggy.catalog import Catalog, StreamEntry, TopicEntry, UserEntry, decode
from headwater.iggy.commands import Command, Permissions
from headwater.iggy.eras import Era
from headwater.iggy.error_numbers import refusal
from headwater.iggy.foreign import ForeignStreams, ForeignTopics
from headwater.iggy.identifiers import Identifier
from headwater.iggy.partition import Partition
from headwater.iggy.permissions import ALL, NONE, check
from headwater.iggy.store import Store
from headwater.iggy.topics import OffsetSaver, Topic
from headwater.iggy.unique_ids import UniqueIds
from headwater.iggy.upkeep import Housekeeper
from headwater.streams.files import Files, OsFiles
from headwater.streams.log import Log
from headwater.streams.options import LogOptions, SyncPolicy

logger = logging.getLogger(__name__)

T = TypeVar("T")
WRITERS: Final = 4  # threads; each partition writes in one at a time
CACHE_BYTES: Final = 16 << 20  # newest batches of a partition in memory: a batch of a thousand is a megabyte
SMALLEST_SEGMENT: Final = 1 << 20
SEGMENT_BYTES: Final = 64 << 20
NOBODY: Final = 0xFFFFFFFF  # a user id that nobody has

TCP, QUIC, HTTP = 1, 2, 3


@dataclass(eq=False)
class Client:
    """Somebody who is connected."""

    id: int
    transport: int
    address: str
    era: Era
    user: UserEntry | None = None
    login: int = 0
    memberships: set[tuple[int, int]] = field(default_factory=set)  # (uid of the topic, id of the group)


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """`sync`: when a send is acknowledged (LogOptions.sync). `verify`: recompute the checksum of every message that
    comes in. `root_password`: of the first user, made when there is none. `housekeeping`: seconds between two looks at
    what is too old or too much. `unique_ids_seconds`: for how long a message id is stored once; 0: as often as it comes."""

    sync: SyncPolicy = "always"
    verify: bool = False
    root_user: str = credentials.ROOT
    root_password: str = credentials.ROOT
    housekeeping: float = 5.0
    unique_ids_seconds: float = 0.0


Handler = Callable[["Service", Client, Any], Any]
HANDLERS: Final[dict[type[Command], Handler]] = {
    **stream_commands.HANDLERS,
    **user_commands.HANDLERS,
    **group_commands.HANDLERS,
    **message_commands.HANDLERS,
}
_ALTERING: Final = (
    c.UpdateStream,
    c.DeleteStream,
    c.PurgeStream,
    c.CreateTopic,
    c.UpdateTopic,
    c.DeleteTopic,
    c.PurgeTopic,
    c.CreatePartitions,
    c.DeletePartitions,
    c.DeleteSegments,
)
_BEFORE_LOGIN: Final = (c.Ping, c.Login, c.LoginWithToken)
_MISSING_IS_EMPTY: Final = (c.GetStream, c.GetTopic, c.GetGroup)


class Service:
    """See the head of this module. Times come from `clock_us`, microseconds since 1970.

    Raises EnvironmentProblem from `start` when the directory cannot be used.
    """

    def __init__(
        self,
        directory: Path,
        options: ServiceOptions | None = None,
        *,
        clock_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        files: Files | None = None,
        foreign: ForeignStreams | None = None,
        entropy: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.options = options or ServiceOptions()
        self.catalog = Catalog()
        self.topics: dict[int, Topic] = {}  # by uid
        self.clients: dict[int, Client] = {}
        self.clock_us = clock_us
        self.entropy = entropy
        self.started_us = clock_us()
        self.tcp_address: tuple[str, int] = ("127.0.0.1", 0)
        self.operations = 0  # what replies of generation V count
        self.generation = 0  # how often the catalog has changed (`routes`)
        self.on_changed: Callable[[], None] | None = None  # called soon after each of these changes
        self.saver: OffsetSaver
        self.directory = directory
        self._files = files if files is not None else OsFiles()
        self.writers = ThreadPoolExecutor(WRITERS, "headwater-iggy-write")
        self._clerk = ThreadPoolExecutor(1, "headwater-iggy-clerk")
        self._store: Store | None = None
        self._changes = asyncio.Lock()
        self._next_client = 1
        self._housekeeper = Housekeeper(self)
        self._foreign = ForeignTopics(self, foreign) if foreign is not None else None

    # ── life ──

    async def start(self) -> None:
        """Recover everything."""
        try:
            catalog, logs = await self.in_thread(self._recover)
        except BaseException:
            self._release()
            raise
        self.catalog = catalog
        self.saver = OffsetSaver(self.store, self.in_thread)
        for stream in catalog.streams:
            for entry in stream.topics if not stream.origin else ():
                partitions = self._partitions(entry, [logs[uid] for uid in entry.partitions])
                self.topics[entry.uid] = Topic(
                    entry, partitions, await self.in_thread(partial(self.store.load_offsets, entry.uid))
                )
        self.refresh()
        self._housekeeper.start()

    def _recover(self) -> tuple[Catalog, dict[int, Log]]:
        store = self._store = Store(self._files, str(self.directory))
        catalog = store.load()
        if catalog is None:
            catalog = Catalog()
        store.sweep(catalog)
        if not catalog.users:
            name, password = self.options.root_user, self.options.root_password
            stored = credentials.hash_password(password, self.entropy)
            root = UserEntry(credentials.ROOT_ID, name, stored, self.clock_us(), permissions=ALL)
            catalog.users.append(root)
            catalog.next_user = root.id + 1
            store.save(catalog.encode())
        logs = {}
        for stream in catalog.streams:
            for entry in stream.topics:
                for uid in entry.partitions:
                    logs[uid] = self._open_log(uid, entry)
        return catalog, logs

    def _open_log(self, uid: int, entry: TopicEntry) -> Log:
        log = self.store.open_log(uid, self._log_options(entry), self.clock_us() * 1000)
        for damage in log.damage:
            logger.warning("partition_damaged topic=%s uid=%d %s", entry.name, uid, damage)
        return log

    def _log_options(self, entry: TopicEntry) -> LogOptions:
        """Segments are what limits drop, so a small topic has small ones."""
        size = entry.segment_bytes or SEGMENT_BYTES
        if entry.max_size:
            size = min(size, max(SMALLEST_SEGMENT, entry.max_size // 8))
        return LogOptions(sync=self.options.sync, segment_bytes=size, cache_bytes=CACHE_BYTES)

    def _partitions(self, entry: TopicEntry, logs: list[Log], first: int = 0) -> list[Partition]:
        made = [
            Partition(uid, first + place, entry.created, log, self.writers)
            for place, (uid, log) in enumerate(zip(entry.partitions[first:], logs, strict=True))
        ]
        window_ns = int(self.options.unique_ids_seconds * 1e9)
        if window_ns:
            for partition in made:
                partition.unique = UniqueIds(partition.log, window_ns, self.clock_us() * 1000)
        return made

    async def stop(self) -> None:
        """Write what is staged, save what is committed, release the files. Safe to call again."""
        if self._store is None:
            return
        await self._housekeeper.stop()
        for topic in self.topics.values():
            if topic.entry.partitions:  # else the log is another face's
                await self.close_partitions(topic.partitions)
        await self.saver.stop()
        self.topics.clear()
        self._release()

    def _release(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
        self.writers.shutdown(wait=False)
        self._clerk.shutdown(wait=False)

    @property
    def store(self) -> Store:
        assert self._store is not None, "the service is not started"
        return self._store

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run what blocks, in the order in which it is asked for."""
        return await asyncio.get_running_loop().run_in_executor(self._clerk, work)

    # ── who is connected ──

    def connect(self, transport: int, address: str, era: Era) -> Client:
        """A new connection, nobody yet."""
        client = Client(self._next_client, transport, address, era)
        self._next_client = self._next_client % (NOBODY - 1) + 1
        self.clients[client.id] = client
        return client

    def disconnect(self, client: Client) -> None:
        """Its groups go on without it."""
        self.clients.pop(client.id, None)
        for uid, group_id in client.memberships:
            topic = self.topics.get(uid)
            if topic is not None:
                topic.group(group_id).leave(client.id)
        client.memberships.clear()

    # ── commands ──

    def execute(self, client: Client, command: Command) -> Any:
        """The view of the answer, or a coroutine that gives it. Raises HeadwaterError, now or then."""
        self.refresh()
        self.authorize(client, command)
        if isinstance(command, _ALTERING):
            self._check_own(command.stream)
        try:
            return HANDLERS[type(command)](self, client, command)
        except HeadwaterError as error:
            if (
                isinstance(command, _MISSING_IS_EMPTY)
                and "not_found" in getattr(error, "name", "")
                and client.era > Era.S
            ):
                return None
            raise

    def refresh(self) -> None:
        """What another face has made or removed is seen from now on."""
        if self._foreign is not None:
            self._foreign.refresh()

    def _check_own(self, stream: Identifier) -> None:
        if any(entry.origin and stream.value in (entry.id, entry.name) for entry in self.catalog.streams):
            raise refusal("feature_unavailable", "these streams are made and removed through NATS", stream.value)

    def authorize(self, client: Client, command: Command) -> None:
        """Raises IggyError when the client must log in first, or may not do this."""
        if isinstance(command, _BEFORE_LOGIN) or client.era is Era.S:
            return
        user = client.user
        if user is None:
            raise refusal("unauthenticated", "log in first")
        if user.id == credentials.ROOT_ID:
            return
        stream_id = topic_id = None
        about = getattr(command, "stream", None)
        if isinstance(about, Identifier):
            stream = next((s for s in self.catalog.streams if about.value in (s.id, s.name)), None)
            stream_id = stream.id if stream is not None else None
            inner = getattr(command, "topic", None)
            if stream is not None and isinstance(inner, Identifier):
                topic_id = next((t.id for t in stream.topics if inner.value in (t.id, t.name)), None)
        itself = isinstance(command, c.GetUser | c.ChangePassword) and command.user.value in (user.id, user.name)
        if not itself:
            check(command, user.permissions or NONE, stream_id, topic_id)

    def granted(self, client: Client) -> Permissions:
        """What the client may do."""
        if client.era is Era.S or (client.user is not None and client.user.id == credentials.ROOT_ID):
            return ALL
        return client.user.permissions or NONE if client.user is not None else NONE

    def topic(self, stream: Identifier, topic: Identifier) -> tuple[StreamEntry, Topic]:
        """Raises IggyError when there is none."""
        inside, entry = self.catalog.topic(stream, topic)
        return inside, self.topics[entry.uid]

    # ── changes ──

    @asynccontextmanager
    async def change(self) -> AsyncIterator[Catalog]:
        """Alter the catalog inside; it is durable when the block ends. Undone when the block, or the disk, refuses."""
        async with self._changes:
            before = self.catalog.encode()
            try:
                yield self.catalog
                document = self.catalog.encode()
                await self.in_thread(lambda: self.store.save(document))
            except BaseException as error:
                self._undo(before)
                if isinstance(error, OSError):
                    raise refusal("io_error", f"the change could not be made durable: {error}") from error
                raise
            finally:
                self.generation += 1
                if self.on_changed is not None:
                    asyncio.get_running_loop().call_soon(self.on_changed)

    @property
    def is_changing(self) -> bool:
        """Whether somebody is inside `change`: nothing that is found now may be relied on later."""
        return self._changes.locked()

    def _undo(self, document: bytes) -> None:
        uid, user = self.catalog.next_uid, self.catalog.next_user
        self.catalog = decode(document)
        self.catalog.next_uid, self.catalog.next_user = uid, user
        users = {entry.id: entry for entry in self.catalog.users}
        for client in self.clients.values():
            client.user = users.get(client.user.id) if client.user is not None else None
        for stream in self.catalog.streams:
            for entry in stream.topics:
                if entry.uid in self.topics:
                    self.topics[entry.uid].entry = entry

    async def open_partitions(self, entry: TopicEntry, count: int) -> list[Partition]:
        """New partitions behind those of `entry`, to which their uids are added. Raises StorageError."""
        first = len(entry.partitions)
        uids = [self.catalog.new_uid() for _ in range(count)]
        try:
            logs = await self.in_thread(lambda: [self._open_log(uid, entry) for uid in uids])
        except StorageError as error:
            raise refusal("io_error", f"the partitions could not be made: {error}") from error
        entry.partitions.extend(uids)
        return self._partitions(entry, logs, first)

    async def close_partitions(self, partitions: list[Partition], remove: bool = False) -> None:
        """Write what is staged, and give the files back, or remove them."""
        for partition in partitions:
            await partition.committer.flush()

        def close() -> None:
            for partition in partitions:
                try:
                    partition.log.close()
                except StorageError as error:
                    logger.error("log_not_closed uid=%d reason=%s", partition.uid, error)
                if remove:
                    self.store.remove_log(partition.uid)

        try:
            await self.in_thread(close)
        except OSError as error:
            logger.error("log_not_removed reason=%s", error)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something to its end, beside everything else."""
        self._housekeeper.spawn(work)
