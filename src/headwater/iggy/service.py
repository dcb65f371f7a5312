"""The server's state, shared by all transports: the catalog, the open topics, the connected clients and their
permissions.

Changes of the catalog are made one at a time, and each is on disk before it is answered; one that cannot be written is
undone. Sends and polls do not wait for changes. The commands are implemented in *_commands.py (`dispatch`).
"""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar, get_args

from headwater.errors import ConfigError, IggyError, StorageError
from headwater.group_commit.kept_files import KeepingFiles
from headwater.group_commit.writers import Writers
from headwater.iggy import credentials
from headwater.iggy.catalog import Catalog, StreamEntry, TopicEntry, UserEntry, decode
from headwater.iggy.foreign import ForeignStreams, ForeignTopics
from headwater.iggy.machine import Machine
from headwater.iggy.partition import Partition
from headwater.iggy.permissions import ALL, NONE, check
from headwater.iggy.store import Offsets, Store
from headwater.iggy.topics import OffsetSaver, Topic
from headwater.iggy.unique_ids import UniqueIds
from headwater.iggy.upkeep import Housekeeper
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Command, Permissions
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.identifiers import Identifier
from headwater.streams import meta
from headwater.streams.files import Files
from headwater.streams.finding import Finding, finding_of, findings_of, report
from headwater.streams.log import Log
from headwater.streams.options import LogOptions, SyncPolicy

logger = logging.getLogger(__name__)

T = TypeVar("T")
AT_ONCE: Final = 16  # partitions opened or closed in parallel
WRITERS: Final = 4  # threads; each partition writes in one at a time
CACHE_BYTES: Final = 16 << 20  # newest batches of a partition in memory: a batch of a thousand is a megabyte
SMALLEST_SEGMENT: Final = 1 << 20
SEGMENT_BYTES: Final = 64 << 20
NOBODY: Final = 0xFFFFFFFF  # an id that no user gets

TCP, QUIC, HTTP, WEBSOCKET = 1, 2, 3, 4


@dataclass(eq=False)
class Client:
    """A connected client."""

    id: int
    transport: int
    address: str
    era: Era
    user: UserEntry | None = None
    login: int = 0
    memberships: set[tuple[int, int]] = field(default_factory=set)  # (uid of the topic, id of the group)


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """`sync`: when a send is acknowledged (LogOptions.sync); None: as in the broker's streams, "always" without a
    broker. `verify`: recompute the checksum of every message that comes in. `root_password`: of the first user, created
    if there is none. `housekeeping`: seconds between two checks of the limits of age and size. `unique_ids_seconds`:
    how long duplicates of a message id are dropped; 0: never. Raises ConfigError for invalid values."""

    sync: SyncPolicy | None = None
    verify: bool = False
    root_user: str = credentials.ROOT
    root_password: str = field(default=credentials.ROOT, repr=False)
    housekeeping: float = 5.0
    unique_ids_seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.sync is not None and self.sync not in get_args(SyncPolicy):
            policies = get_args(SyncPolicy)
            raise ConfigError(f"sync is {self.sync!r}", value=self.sync, limit=policies)
        if self.housekeeping <= 0:
            raise ConfigError("housekeeping must be above 0 seconds", value=self.housekeeping, limit=0)
        if self.unique_ids_seconds < 0:
            raise ConfigError("unique_ids_seconds must be 0 or more", value=self.unique_ids_seconds, limit=0)


_BEFORE_LOGIN: Final = (c.Ping, c.Login, c.LoginWithToken)


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
        self.operations = self.started_us  # in modern replies; W compares it across restarts
        self.generation = 0  # how often the catalog has changed (`routes`)
        self.on_changed: Callable[[], None] | None = None  # called soon after each of these changes
        self.machine = Machine()
        self.findings: list[Finding] = []  # faults and losses in this store
        self.on_finding: Callable[[Finding], None] | None = None  # called for each finding after the start
        self.note: Callable[..., None] = _log  # reports an event to operators (`net.journal`): the kind, and fields
        self.saver: OffsetSaver
        self.directory = directory
        self._files = files if files is not None else KeepingFiles()
        self.writers = Writers(WRITERS, "headwater-iggy-write")
        self._clerk = ThreadPoolExecutor(1, "headwater-iggy-clerk")
        self._store: Store | None = None
        self._changes = asyncio.Lock()
        self._next_client = 1
        self._housekeeper = Housekeeper(self.topics, self.options.housekeeping, lambda: self.clock_us())
        self._foreign = ForeignTopics(self, foreign) if foreign is not None else None

    # ── life ──

    async def start(self) -> None:
        """Recover everything."""
        try:
            catalog, recovered = await self.in_thread(self._recover)
        except BaseException:
            self._release()
            raise
        self.catalog = catalog
        self.saver = OffsetSaver(self.store, self.in_thread)
        for entry, logs, offsets, failure in recovered:
            partitions = self._partitions(entry, logs) if not failure else []
            identity = catalog.identities[entry.uid]
            self.topics[entry.uid] = Topic(entry, partitions, offsets, identity, failure)
        for finding in self.findings:
            report(logger, finding)
        self.refresh()
        self._housekeeper.start()

    def _recover(self) -> tuple[Catalog, list[tuple[TopicEntry, list[Log], Offsets, str]]]:
        store = self._store = Store(self._files, str(self.directory), self.entropy)
        catalog = store.load()
        if catalog is None:
            catalog = Catalog()
        store.sweep(catalog)
        root = catalog.user_with(credentials.ROOT_ID)
        before = catalog.user_with(credentials.ROOT_ID_BEFORE)
        if root is None and before is not None:
            before.id = credentials.ROOT_ID
            store.save(catalog.encode())
        if not catalog.users:
            name, password = self.options.root_user, self.options.root_password
            stored = credentials.hash_password(password, self.entropy)
            root = UserEntry(credentials.ROOT_ID, name, stored, self.clock_us(), permissions=ALL)
            catalog.users.append(root)
            catalog.next_user = root.id + 1
            store.save(catalog.encode())
        topics = [entry for stream in catalog.streams if not stream.origin for entry in stream.topics]
        known = set(catalog.identities)
        recovered = [self._recover_topic(catalog, entry) for entry in topics]
        owners = {uid for entry in topics for uid in (entry.uid, *entry.partitions)}
        catalog.identities = {uid: own for uid, own in catalog.identities.items() if uid in owners}
        if set(catalog.identities) - known:
            store.save(catalog.encode())
        self.findings += store.findings
        return catalog, recovered

    def _recover_topic(self, catalog: Catalog, entry: TopicEntry) -> tuple[TopicEntry, list[Log], Offsets, str]:
        """Open its logs and committed offsets; a topic that fails is returned with the reason, and does not stop the
        others."""
        logs: list[Log] = []
        path = f"{self.directory}/logs"
        identities = catalog.identities
        own = identities.get(entry.uid) or self.store.identity_of_offsets(entry.uid)
        if own == meta.NOBODY:
            own = self.entropy(len(meta.NOBODY))
        identities[entry.uid] = own
        try:
            for uid in entry.partitions:
                path = f"{self.directory}/logs/{uid}"
                log = self._open_log(uid, entry, identities.get(uid, meta.NOBODY), len(entry.partitions))
                logs.append(log)
                identities[uid] = log.identity
        except Exception as error:  # noqa: BLE001  (whatever is wrong with one topic, the others start)
            for log in logs:
                log.close()
            what, done = f"could not be recovered: {error}", "put aside: not served, its files left in place"
            self.findings.insert(0, Finding(entry.name, path, what, done, severity="unavailable"))
            return entry, [], Offsets(), str(error)
        return entry, logs, self.store.load_offsets(entry.uid, own, entry.name), ""

    def new_identity(self, uid: int) -> bytes:
        """The identity for the documents of a new topic."""
        return self.catalog.identities.setdefault(uid, self.entropy(len(meta.NOBODY)))

    def _open_log(self, uid: int, entry: TopicEntry, identity: bytes = meta.NOBODY, partitions: int = 1) -> Log:
        log = self.store.open_log(uid, self._log_options(entry), self.clock_us() * 1000, identity)
        log.limit_to(entry.max_size // max(1, partitions))  # segments are what limits drop: a share holds eight
        self.findings += findings_of(log.recovery, entry.name, log.directory)
        log.on_damage = lambda damage: self._on_damage(log, finding_of(damage, entry.name, log.directory))
        return log

    def _on_damage(self, log: Log, finding: Finding) -> None:
        """Reading has found damaged bytes."""
        self.findings.append(finding)
        report(logger, finding)
        for partition in (partition for topic in self.topics.values() for partition in topic.partitions):
            if partition.log is log and partition.on_stored is not None:
                partition.on_stored()  # its readers recount
        if self.on_finding is not None:
            self.on_finding(finding)

    def _log_options(self, entry: TopicEntry) -> LogOptions:
        size = entry.segment_bytes or SEGMENT_BYTES
        return LogOptions(sync=self.options.sync or "always", segment_bytes=size, cache_bytes=CACHE_BYTES)

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
        """Write what is staged, save committed offsets, release the files. Safe to call again."""
        if self._store is None:
            return
        await self._housekeeper.stop()
        for topic in list(self.topics.values()):
            if topic.entry.partitions:
                await self.close_partitions(topic.partitions)
            else:  # the log belongs to another face: wait only for sends of this one
                for partition in topic.partitions:
                    await partition.flush()
        await self.saver.stop()
        self.topics.clear()
        self._release()

    def _release(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
        self.writers.shutdown()
        self._clerk.shutdown(wait=False)

    @property
    def store(self) -> Store:
        assert self._store is not None, "the service is not started"
        return self._store

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run blocking work in the clerk's thread, in the order of the calls."""
        return await asyncio.get_running_loop().run_in_executor(self._clerk, work)

    # ── connected clients ──

    def connect(self, transport: int, address: str, era: Era) -> Client:
        """A new connection, not logged in yet."""
        client = Client(self._next_client, transport, address, era)
        self._next_client = self._next_client % (NOBODY - 1) + 1
        self.clients[client.id] = client
        return client

    def disconnect(self, client: Client) -> None:
        """Remove the client from its groups."""
        self.clients.pop(client.id, None)
        for uid, group_id in client.memberships:
            topic = self.topics.get(uid)
            if topic is not None:
                topic.group(group_id).leave(client.id)
        client.memberships.clear()

    # ── who may do what ──

    def refresh(self) -> None:
        """Update the topics of streams that another face has created or removed."""
        if self._foreign is not None:
            self._foreign.refresh()

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
        if itself:
            return
        try:
            check(command, user.permissions or NONE, stream_id, topic_id)
        except IggyError:
            kind = "publish_refused" if isinstance(command, c.SendMessages) else "request_refused"
            place = "/".join(str(one.value) for one in (about, getattr(command, "topic", None)) if one is not None)
            where = {"user": user.name, "client": client.id, "address": client.address, "subject": place}
            self.note(kind, face="iggy", request=type(command).__name__, **where)
            raise

    def granted(self, client: Client) -> Permissions:
        """The permissions of the client."""
        if client.era is Era.S or (client.user is not None and client.user.id == credentials.ROOT_ID):
            return ALL
        return client.user.permissions or NONE if client.user is not None else NONE

    def topic(self, stream: Identifier, topic: Identifier) -> tuple[StreamEntry, Topic]:
        """Raises IggyError when there is none, and for one that could not be recovered."""
        inside, entry = self.catalog.topic(stream, topic)
        found = self.topics[entry.uid]
        found.check_served()
        return inside, found

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
        """Whether a `change` is in progress, so that nothing found in the catalog now may be kept for later."""
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
        """Create partitions after those of `entry`, and add their uids to it. Raises StorageError."""
        first = len(entry.partitions)
        uids = [self.catalog.new_uid() for _ in range(count)]
        try:
            logs = await self.in_thread(
                lambda: side_by_side(lambda uid: self._open_log(uid, entry, partitions=first + count), uids)
            )
        except StorageError as error:
            raise refusal("io_error", f"the partitions could not be made: {error}") from error
        entry.partitions.extend(uids)
        self.catalog.identities.update({uid: log.identity for uid, log in zip(uids, logs, strict=True)})
        return self._partitions(entry, logs, first)

    async def remove_unserved(self, topic: Topic) -> None:
        """Remove the files of a deleted topic that could not be recovered."""

        def remove() -> None:
            for uid in topic.entry.partitions:
                self.store.remove_log(uid)

        try:
            await self.in_thread(remove)
        except OSError as error:
            logger.error("log_not_removed reason=%s", error)
        self.findings = [
            finding
            for finding in self.findings
            if finding.severity != "unavailable" or finding.stream != topic.entry.name
        ]

    async def close_partitions(self, partitions: list[Partition], remove: bool = False) -> None:
        """Write staged messages and close the files, or remove them."""
        for partition in partitions:
            await partition.committer.flush()
            partition.committer.close()

        def close(partition: Partition) -> None:
            if remove:
                partition.log.close(removing=True)
                self.store.remove_log(partition.uid, sync=False)
                return
            try:
                partition.log.close()
            except StorageError as error:
                logger.error("log_not_closed uid=%d reason=%s", partition.uid, error)

        def close_all() -> None:
            side_by_side(close, partitions)
            if remove:
                self.store.sync_logs()

        try:
            await self.in_thread(close_all)
        except OSError as error:
            logger.error("log_not_removed reason=%s", error)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` in a task of its own."""
        self._housekeeper.spawn(work)


R = TypeVar("R")


def side_by_side(work: Callable[[T], R], each: Sequence[T]) -> list[R]:
    """Run `work` for each in AT_ONCE threads: a topic may have a thousand partitions, each of which costs some syncs.
    Blocks. The first failure is raised when all are done."""
    if len(each) < 2:
        return [work(one) for one in each]
    with ThreadPoolExecutor(min(len(each), AT_ONCE), "headwater-iggy-logs") as pool:
        futures = [pool.submit(work, one) for one in each]
    return [future.result() for future in futures]


def _log(kind: str, *, log: bool = True, **fields: object) -> None:
    """Log an event, for a server without a journal."""
    if log:
        logger.warning("iggy_%s %s", kind, " ".join(f"{name}={value!r}" for name, value in fields.items()))
