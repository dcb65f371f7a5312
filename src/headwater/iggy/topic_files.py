"""The files of all topics: recovers them at the start, opens and removes partitions, reports what is damaged.

Blocking work runs in one thread, in the order of the calls; logs of a topic are opened and closed side by side.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from headwater.durable_files import documents
from headwater.durable_files.files import Files, OsFiles
from headwater.errors import DiskFull, StorageError
from headwater.group_commit.folder_watch import FolderWatch
from headwater.group_commit.reserve import Reserve
from headwater.group_commit.shared_reads import share_reads
from headwater.group_commit.writers import Writers
from headwater.iggy import credentials
from headwater.iggy.catalog import Catalog, TopicEntry, UserEntry
from headwater.iggy.partition import Partition
from headwater.iggy.permissions import ALL
from headwater.iggy.service_options import ServiceOptions
from headwater.iggy.store import Offsets, Store
from headwater.iggy.topics import Topic
from headwater.iggy.unique_ids import UniqueIds
from headwater.iggy_wire.error_numbers import refusal
from headwater.streams.finding import Finding, files_lost, finding_of, findings_of, report
from headwater.streams.log import Log
from headwater.streams.options import LogOptions

logger = logging.getLogger("headwater.iggy.service")

T = TypeVar("T")
R = TypeVar("R")
AT_ONCE: Final = 16  # partitions opened or closed in parallel
WRITERS: Final = 4  # threads; each partition writes in one at a time
CACHE_BYTES: Final = 16 << 20  # newest batches of a partition in memory: a batch of a thousand is a megabyte
SMALLEST_SEGMENT: Final = 1 << 20
SEGMENT_BYTES: Final = 64 << 20


class RecoveredTopic(NamedTuple):
    """A topic as the directory holds it. `failure`: why it is not served; it then has no logs."""

    entry: TopicEntry
    logs: list[Log]
    offsets: Offsets
    failure: str


class TopicFiles:
    """`topics`: those that are open, by uid. `clock_us()`: microseconds since 1970. Raises EnvironmentProblem from
    `recover` when the directory cannot be used.
    """

    def __init__(
        self,
        directory: Path,
        options: ServiceOptions,
        topics: Mapping[int, Topic],
        *,
        files: Files,
        clock_us: Callable[[], int],
        entropy: Callable[[int], bytes],
    ) -> None:
        self.directory = directory
        self.writers = Writers(WRITERS, "headwater-iggy-write")
        self.reserve = self.writers.reserve = Reserve(files, str(directory))
        self.findings: list[Finding] = []  # faults and losses in this store
        self.on_finding: Callable[[Finding], None] | None = None  # called for each finding after the start
        self.note: Callable[..., None] = lambda kind, **fields: None  # reports an event to operators
        self._options = options
        self._topics = topics
        self._files = files
        self._clock_us = clock_us
        self._entropy = entropy
        self._thread = ThreadPoolExecutor(1, "headwater-iggy-files")
        self._store: Store | None = None
        self._watch: FolderWatch | None = None
        self._lost: dict[Log, Finding] = {}  # of logs whose files were removed

    @property
    def is_open(self) -> bool:
        """Whether `recover` has been called, and `close` has not."""
        return self._store is not None

    @property
    def store(self) -> Store:
        assert self._store is not None, "the service is not started"
        return self._store

    def watch(self) -> None:
        """Report topics whose files are removed, until `close`."""
        if isinstance(self._files, OsFiles):
            self._watch = FolderWatch(self._logs, self._on_files_lost, self._on_files_back)

    def _logs(self) -> list[Log]:
        return [
            partition.log for topic in self._topics.values() if topic.entry.partitions for partition in topic.partitions
        ]

    def _on_files_lost(self, log: Log) -> None:
        name = next(
            topic.entry.name for topic in self._topics.values() if any(one.log is log for one in topic.partitions)
        )
        self._lost[log] = finding = files_lost(name, log.directory, of="topic")
        self.findings.append(finding)
        report(logger, finding)
        if self.on_finding is not None:
            self.on_finding(finding)

    def _on_files_back(self, log: Log) -> None:
        logger.warning("topic_files_back path=%s", log.directory)
        self._forget(log)

    def _forget(self, log: Log) -> None:
        """Its files are back, or the partition was deleted."""
        lost = self._lost.pop(log, None)
        if lost is not None:
            self.findings.remove(lost)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run blocking work in this object's thread, in the order of the calls."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def save_catalog(self, document: bytes) -> None:
        """Make the catalog durable. Raises OSError."""
        await self.in_thread(lambda: self.store.save(document))

    def close(self) -> None:
        """Release the directory; safe to call again."""
        if self._watch is not None:
            self._watch.stop()
        if self._store is not None:
            self._store.close()
            self._store = None
        self.writers.shutdown()
        self._thread.shutdown(wait=False)

    # ── recovery ──

    def recover(self) -> tuple[Catalog, list[RecoveredTopic]]:
        """Open everything that the directory holds: the catalog, and each topic with its logs, its committed offsets and
        the reason why it is not served, if any. Blocks, and is called in the thread of `in_thread`.
        """
        store = self._store = Store(self._files, str(self.directory), self._entropy)
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
            name, password = self._options.root_user, self._options.root_password
            stored = credentials.hash_password(password, self._entropy)
            root = UserEntry(credentials.ROOT_ID, name, stored, self._clock_us(), permissions=ALL)
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
        self.reserve.keep()
        return catalog, recovered

    def _recover_topic(self, catalog: Catalog, entry: TopicEntry) -> RecoveredTopic:
        """Open its logs and committed offsets; a topic that fails is returned with the reason, and does not stop the
        others."""
        logs: list[Log] = []
        path = f"{self.directory}/logs"
        identities = catalog.identities
        own = identities.get(entry.uid) or self.store.identity_of_offsets(entry.uid)
        if own == documents.NO_IDENTITY:
            own = self._entropy(len(documents.NO_IDENTITY))
        identities[entry.uid] = own
        try:
            for uid in entry.partitions:
                path = f"{self.directory}/logs/{uid}"
                log = self._open_log(uid, entry, identities.get(uid, documents.NO_IDENTITY), len(entry.partitions))
                logs.append(log)
                identities[uid] = log.identity
        except Exception as error:  # noqa: BLE001  (whatever is wrong with one topic, the others start)
            for log in logs:
                log.close()
            what, done = f"could not be recovered: {error}", "put aside: not served, its files left in place"
            self.findings.insert(0, Finding(entry.name, path, what, done, severity="unavailable"))
            return RecoveredTopic(entry, [], Offsets(), str(error))
        offsets = self.store.load_offsets(entry.uid, own, entry.name)
        beyond = offsets.draw_back([log.end_offset for log in logs])
        if beyond:
            what = f"committed offsets are beyond the end of the log: {', '.join(beyond)}"
            self.findings.append(Finding(entry.name, path, what, "they go on with the next message", severity="loss"))
        return RecoveredTopic(entry, logs, offsets, "")

    def _open_log(
        self, uid: int, entry: TopicEntry, identity: bytes = documents.NO_IDENTITY, partitions: int = 1
    ) -> Log:
        log = self.store.open_log(uid, self._log_options(entry), self._clock_us() * 1000, identity)
        log.limit_to(entry.max_size // max(1, partitions))  # segments are what limits drop: a share holds eight
        self.findings += findings_of(log.recovery, entry.name, log.directory)
        log.on_damage = lambda damage: self._on_damage(log, finding_of(damage, entry.name, log.directory))
        return log

    def _on_damage(self, log: Log, finding: Finding) -> None:
        """Reading has found damaged bytes."""
        self.findings.append(finding)
        report(logger, finding)
        for partition in (partition for topic in self._topics.values() for partition in topic.partitions):
            if partition.log is log and partition.on_stored is not None:
                partition.on_stored()  # its readers recount
        if self.on_finding is not None:
            self.on_finding(finding)

    def _log_options(self, entry: TopicEntry) -> LogOptions:
        size, sync = entry.segment_bytes or SEGMENT_BYTES, self._options.sync or "always"
        return LogOptions(sync=sync, segment_bytes=size, cache_bytes=CACHE_BYTES, prepares=True)

    def partitions(self, entry: TopicEntry, logs: list[Log], first: int = 0) -> list[Partition]:
        """Partitions over open logs: those of `entry` from `first` on."""
        made = [
            Partition(uid, first + place, entry.created, log, self.writers)
            for place, (uid, log) in enumerate(zip(entry.partitions[first:], logs, strict=True))
        ]
        for partition in made:
            share_reads(partition.log)
            partition.on_refused = partial(self._refused, entry.name)
        window_ns = int(self._options.unique_ids_seconds * 1e9)
        if window_ns:
            for partition in made:
                partition.unique = UniqueIds(partition.log, window_ns, self._clock_us() * 1000)
        return made

    def _refused(self, topic: str, error: StorageError) -> None:
        reason = "no room on the server's disk" if isinstance(error, DiskFull) else str(error)
        self.note("write_refused", face="iggy", topic=topic, reason=reason)

    # ── partitions come and go ──

    async def open_partitions(self, catalog: Catalog, entry: TopicEntry, count: int) -> list[Partition]:
        """Create partitions after those of `entry`, and add their uids to it and their identities to `catalog`. Raises
        StorageError.
        """
        first = len(entry.partitions)
        uids = [catalog.new_uid() for _ in range(count)]
        try:
            logs = await self.in_thread(
                lambda: side_by_side(lambda uid: self._open_log(uid, entry, partitions=first + count), uids)
            )
        except StorageError as error:
            raise refusal("io_error", f"the partitions could not be made: {error}") from error
        entry.partitions.extend(uids)
        catalog.identities.update({uid: log.identity for uid, log in zip(uids, logs, strict=True)})
        return self.partitions(entry, logs, first)

    async def remove_unserved(self, topic: Topic) -> None:
        """Remove the files of a deleted topic that could not be recovered."""

        def remove() -> None:
            for uid in topic.entry.partitions:
                self.store.remove_log(uid)

        try:
            await self.in_thread(remove)
        except OSError as error:
            logger.error("log_not_removed reason=%s", error)
        paths = {f"{self.directory}/logs/{uid}" for uid in topic.entry.partitions}  # a name is one stream's only
        self.findings = [
            finding for finding in self.findings if finding.severity != "unavailable" or finding.path not in paths
        ]

    async def close_partitions(self, partitions: list[Partition], remove: bool = False) -> None:
        """Write staged messages and close the files, or remove them."""
        await asyncio.gather(*[partition.end() for partition in partitions])

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
        for partition in partitions:
            self._forget(partition.log)


def side_by_side(work: Callable[[T], R], each: Sequence[T]) -> list[R]:
    """Run `work` for each in AT_ONCE threads: a topic may have a thousand partitions, each of which costs some syncs.
    Blocks. The first failure is raised when all are done."""
    if len(each) < 2:
        return [work(one) for one in each]
    with ThreadPoolExecutor(min(len(each), AT_ONCE), "headwater-iggy-logs") as pool:
        futures = [pool.submit(work, one) for one in each]
    return [future.result() for future in futures]
