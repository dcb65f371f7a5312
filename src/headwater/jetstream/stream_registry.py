"""Recovers, creates, changes and deletes the streams of one account; each change is durable on return.

Everything that blocks runs in the clerk's thread, in the order of the calls, so changes to a document happen in the order
of their requests. A stream that cannot be recovered is put aside and reported, and the others start.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from headwater.durable_files.files import File, Files, OsFiles
from headwater.errors import JetStreamError, StorageError
from headwater.exchange.router import Router
from headwater.group_commit.reserve import Reserve
from headwater.group_commit.write_stats import WriteStats
from headwater.group_commit.writers import Writers
from headwater.jetstream.consumer_registry import ConsumerRegistry
from headwater.jetstream.domain import Domain
from headwater.jetstream.ending import end_streams, remove_journal
from headwater.jetstream.stream import Stream, limit_log
from headwater.jetstream.view import ViewStream
from headwater.jetstream_advisories.advisories import Advisories
from headwater.jetstream_documents.account import AccountLimits
from headwater.jetstream_documents.api_errors import api_error
from headwater.jetstream_documents.pull_requests import CONSUMER_DELETED, SERVER_SHUTDOWN
from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_room.captured_subjects import CapturedSubjects
from headwater.jetstream_room.server_caps import ServerCaps
from headwater.jetstream_state.atomic_batch import BatchRoom
from headwater.jetstream_state.consumer_journal import Journal
from headwater.jetstream_state.items import Published
from headwater.jetstream_state.memory_files import MemoryFiles
from headwater.jetstream_state.store import (
    ConsumerRecord,
    Store,
    StreamDirectory,
    StreamRecord,
    copy_kind,
    file_stem,
    first_offset,
    known_end,
)
from headwater.model.stream_limits import ServerLimits
from headwater.streams.finding import Finding, report
from headwater.streams.log import Log, begin_log
from headwater.streams.options import LogOptions

if TYPE_CHECKING:
    from headwater.jetstream_backup.building import ArchiveFile
    from headwater.jetstream_room.whole import Elsewhere, Others

logger = logging.getLogger(__name__)

IN_MEMORY = LogOptions(sync="never", preallocate_bytes=0, cache_bytes=0)

T = TypeVar("T")


class StreamSettings(NamedTuple):
    """Settings shared by the streams of one account. `directory`: of the account's store. `clock_ns`: the time of day,
    `ticks_ns`: a monotonic clock. `others`: the workers that have the account's other streams; None: there are none."""

    files: Files
    directory: str
    clock_ns: Callable[[], int]
    ticks_ns: Callable[[], int]
    log_options: LogOptions
    limits: AccountLimits
    domain: Domain
    caps: ServerCaps | None = None
    server: ServerLimits = ServerLimits()
    others: "Others | None" = None

    @property
    def max_ack_pending(self) -> int:
        """The largest max_ack_pending of a consumer that the account and the server allow; 0: any."""
        return min(
            (limit for limit in (self.limits.max_ack_pending, self.server.max_ack_pending) if limit > 0), default=0
        )


class Reports:
    """The callbacks for reports of streams. `on_finding` is called for each finding after the start,
    `on_refused(stream, error)` as in `PublishAnswers`; None: not reported."""

    def __init__(self) -> None:
        self.stats = WriteStats()
        self.on_finding: Callable[[Finding], None] | None = None
        self.on_refused: Callable[[str, JetStreamError], None] | None = None

    def connect(self, stream: Stream, *, counted: bool) -> None:
        """Connect a stream, before `Stream.attach`; `counted`: its writes count in the statistics."""
        stream.report_to(self._finding, self._refused, self.stats if counted else None)

    def _finding(self, finding: Finding) -> None:
        if self.on_finding is not None:
            self.on_finding(finding)

    def _refused(self, stream: str, error: JetStreamError) -> None:
        if self.on_refused is not None:
            self.on_refused(stream, error)


class _Recovered(NamedTuple):
    stream: Stream
    consumers: list[ConsumerRecord]
    journal: Journal


class StreamRegistry:
    """`streams` by name, and the subjects that they capture; `put_aside`: those that could not be recovered, by the names of
    their directories."""

    def __init__(self, settings: StreamSettings, router: Router, clerk: Executor, consumers: ConsumerRegistry) -> None:
        self.settings = settings
        self.streams: dict[str, Stream] = {}
        self.captured = CapturedSubjects()
        self.put_aside: dict[str, Finding] = {}
        self.reports = Reports()
        self.writers: Writers | None = None
        self._router = router
        self._clerk = clerk
        self._consumers = consumers
        self._store: Store | None = None
        self._batch_room = BatchRoom(settings.server)
        self._making: set[str] = set()  # names of streams that are being created
        self._findings: list[Finding] = []

    # ── life ──

    async def start(self, writers: Writers) -> None:
        """Recover every stream and its durable consumers. Raises EnvironmentProblem when the directory cannot be used."""
        self.writers = writers
        recovered = await self._in_thread(self._recover)
        writers.reserve = Reserve(self.settings.files, self.settings.directory)
        await self._in_thread(writers.reserve.keep)
        for finding in self.findings():
            report(logger, finding)
        for stream, consumers, journal in recovered:
            self._show(stream)
            stream.attach(self._router, writers)
            self._consumers.keep(stream, writers)
            await self._consumers.restore(stream, consumers, journal)
            if stream.directory is None or not any(found.severity == "loss" for found in stream.directory.findings):
                stream.drop_unneeded()  # otherwise messages that a lost consumer still needs would be removed

    def start_empty(self, writers: Writers, lock: File) -> None:
        """As `start`, for a store that has no streams and is locked by `lock`."""
        self.writers = writers
        writers.reserve = Reserve(self.settings.files, self.settings.directory)
        writers.reserve.keep()  # not with the first write: another one at that moment would be refused
        self._store = Store(self.settings.files, self.settings.directory, lock)

    async def stop(self) -> None:
        """Write and acknowledge staged messages, and store the consumers' states."""
        streams, synced = list(self.streams.values()), self.settings.log_options.sync == "always"
        if self.writers is not None and self.writers.reserve is not None:
            self.writers.reserve.release()
        await end_streams(streams, self._consumers, sync=not synced)
        self.streams.clear()

    def release(self) -> None:
        """Release the store directory and the writing threads. Safe to call again."""
        if self._store is not None:
            self._store.close()
            self._store = None
        if self.writers is not None:
            self.writers.shutdown()

    def _recover(self) -> list[_Recovered]:
        store = self._store = Store(self.settings.files, self.settings.directory)
        recovered = []
        for directory in store.streams():
            try:
                record = directory.load()
                consumers = directory.load_consumers()
                journal = directory.load_journal(record)
                directory.check_log()
                stream = self._open(directory, record, known_end(consumers, journal))
                recovered.append(_Recovered(stream, consumers, journal))
            except Exception as error:  # noqa: BLE001  (whatever is wrong with one stream, the others start)
                self._put_aside(directory, error)
        self._findings += store.findings
        return recovered

    def _put_aside(self, directory: StreamDirectory, error: Exception) -> None:
        if not isinstance(error, StorageError | OSError):
            logger.error("stream_recovery_failed path=%s", directory.path, exc_info=error)
        what = f"could not be recovered: {error}"
        done = "put aside: not served, its files left in place"
        finding = Finding(directory.name, directory.path, what, done, severity="unavailable")
        self.put_aside[os.path.basename(directory.path)] = finding

    def _open(self, directory: StreamDirectory, record: StreamRecord, known_end: int = 0) -> Stream:
        """Open a stream. `known_end`: the end of the log according to its consumers; used where every message is durable
        before its delivery."""
        files, _, clock_ns, ticks_ns, options, _, domain, *_ = self.settings
        known_end = known_end if options.sync == "always" else 0
        begin = first_offset(record)
        path = directory.log_path
        if directory.new_log is not None:
            log = begin_log(files, path, options, directory.new_log)
        else:
            directory.load_positions()
            log = Log.open(
                files, path, options, clock_ns(), begin, directory.identity, known_end, copy_kind(record.config)
            )
        directory.identity = log.identity
        limit_log(log, record.config)
        stream = Stream(directory, record, log, clock_ns, domain, ticks_ns)
        self.reports.connect(stream, counted=True)
        self._limit_room(stream)
        stream.recover()
        return stream

    def logs(self) -> list[Log]:
        """The logs of the streams that are on the system's disk."""
        if not isinstance(self.settings.files, OsFiles):
            return []
        own = [
            one for one in self.streams.values() if not isinstance(one, ViewStream)
        ]  # Iggy looks for those of its topics
        return [one.log for one in own if one.directory is not None]

    def on_files_lost(self, log: Log) -> None:
        """The files of this log were removed while it is served, and it refuses messages."""
        for stream in self.streams.values():
            if stream.log is log:
                if stream.keeper is not None:
                    stream.keeper.lose_files()
                finding = stream.faults.note_lost_files()
                report(logger, finding)
                if self.reports.on_finding is not None:
                    self.reports.on_finding(finding)

    def on_files_back(self, log: Log) -> None:
        """They are there again, and it takes messages."""
        for stream in self.streams.values():
            if stream.log is log:
                stream.faults.forget_lost_files()
                stream.enforce()

    def findings(self) -> list[Finding]:
        """What is wrong or was lost in this store, the streams that could not be recovered first."""
        mine = [*self.put_aside.values(), *self._findings]
        return mine + [finding for stream in self.streams.values() for finding in stream.findings()]

    # ── requests ──

    def stream(self, name: str) -> Stream:
        """The stream of this name. Raises JetStreamError 10059 for none, 10194 for one that could not be recovered."""
        stream = self.streams.get(name)
        if stream is None:
            self.check_not_put_aside(name)
            raise api_error("stream_not_found")
        return stream

    def is_put_aside(self, name: str) -> bool:
        """Whether there are files of a stream of this name that could not be recovered."""
        return file_stem(name) in self.put_aside

    def check_not_put_aside(self, name: str) -> None:
        """Raises JetStreamError 10194 for a stream whose files exist but could not be read."""
        if self.is_put_aside(name):
            raise api_error("stream_offline", reason="could not be recovered, see the log of the server")

    async def create(self, config: StreamConfig) -> Stream:
        """Create a stream, durably on return."""
        from headwater.jetstream_timing.early_publishes import EarlyPublishes  # here: a start creates none

        record = StreamRecord(config, self.settings.clock_ns())

        def make() -> Stream:
            assert self._store is not None
            synced = self.settings.log_options.sync == "always"
            directory = self._store.create(record, synced=synced)
            try:
                return self._open(directory, record)
            except BaseException:
                with suppress(OSError):
                    self._store.remove(directory)
                raise

        with self._reserved(config.name, "stream_name_in_use"):
            if config.storage == "memory":
                stream = self._make_in_memory(record)
                self._begin(stream)
            else:
                with EarlyPublishes(self._router, config.subjects) as early:
                    stream = await self._in_thread(make)
                    self._begin(stream, early.given())
        self._follow(stream)
        return stream

    @contextmanager
    def _reserved(self, name: str, taken: str) -> Iterator[None]:
        """Reserve a name while its stream is created, because restores run beside other requests and each other. Raises
        JetStreamError `taken`."""
        if name in self.streams or name in self._making:
            raise api_error(taken)
        self._making.add(name)
        try:
            yield
        finally:
            self._making.discard(name)

    def _begin(self, stream: Stream, early: Iterable[Published] = ()) -> None:
        in_memory = stream.directory is None
        stream.attach(self._router, None if in_memory else self.writers, early)
        if not in_memory:
            self._consumers.keep(stream, self.writers)
        self._show(stream)

    def _show(self, stream: Stream) -> None:
        self.streams[stream.name] = stream
        self.captured.put(stream.name, stream.config.subjects)

    def _follow(self, stream: Stream) -> None:
        stream.copying.follow(stream.config)
        self.on_stream_made(stream.name)
        if self.settings.others is not None:
            self.settings.others.stream_made(stream.name)
        self._advise(stream.name, "create")

    def on_stream_made(self, name: str) -> None:
        """A stream of this account was created, here or at another worker."""
        for other in self.streams.values():
            other.copying.on_stream_made(name)

    def claimed(
        self, config: StreamConfig, old: StreamConfig | None = None
    ) -> "AbstractAsyncContextManager[Elsewhere]":
        """What the other workers have of the account, while a stream is created or changed: see `Others.claim`."""
        from headwater.jetstream_room.whole import NOTHING  # here: a start without new streams needs it not

        others = self.settings.others
        return nullcontext(NOTHING) if others is None else others.claim(config, old)

    def _advise(self, name: str, action: str) -> None:
        settings = self.settings
        Advisories(self._router, settings.clock_ns, settings.domain).stream(name, action)

    async def restore(self, record: StreamRecord, archive: "ArchiveFile", consumers: list[ConsumerRecord]) -> Stream:
        """Create a stream with the messages of a backup and with these consumers, durably on return; on an error
        nothing is left. Raises JetStreamError, StorageError, OSError, and RemoteProtocolError for an archive that is
        damaged."""

        def fill(directory: StreamDirectory) -> None:
            files, options = self.settings.files, self.settings.log_options
            log = Log.open(files, directory.log_path, options, record.created_ns, 0, directory.identity)
            try:
                archive.fill(log)
            finally:
                log.close()
            for consumer in consumers:
                if consumer.config.durable_name:
                    directory.save_consumer(consumer)

        def make() -> Stream:
            assert self._store is not None
            if record.config.storage == "memory":
                stream = self._make_in_memory(record, archive)
                stream.recover()
                return stream
            synced = self.settings.log_options.sync == "always"
            directory = self._store.create(record, synced=synced, begin=archive.first_offset, fill=fill)
            return self._open(directory, record)

        with self._reserved(record.config.name, "stream_name_in_use_restoring"):
            stream = await asyncio.to_thread(make)
            stream.contents.begins = True  # also where the backup is of an empty one, as in nats-server
            self._begin(stream)
        await self._consumers.bring(stream, consumers)
        self._follow(stream)
        return stream

    async def spool(self, name: str) -> tuple[str, File]:
        """See `Store.spool`."""
        assert self._store is not None
        return await self._in_thread(partial(self._store.spool, name))

    async def drop_spool(self, path: str, file: File) -> None:
        """Close and remove a file that `spool` made; a failure is logged, and the next start removes the file."""

        def drop() -> None:
            file.close()
            if self._store is not None:
                self._store.drop_spool(path)

        try:
            await self._in_thread(drop)
        except OSError as error:
            logger.error("spool_not_removed path=%s reason=%s", path, error)

    def _make_in_memory(self, record: StreamRecord, archive: "ArchiveFile | None" = None) -> Stream:
        clock_ns = self.settings.clock_ns
        first = first_offset(record) if archive is None else archive.first_offset
        log = Log.open(MemoryFiles(os.urandom), "memory", IN_MEMORY, clock_ns(), first)
        if archive is not None:
            archive.fill(log)
        limit_log(log, record.config)
        stream = Stream(None, record, log, clock_ns, self.settings.domain, self.settings.ticks_ns)
        self.reports.connect(stream, counted=False)
        self._limit_room(stream)
        return stream

    def limit(self, limits: AccountLimits) -> None:
        """Apply other limits on what the account stores, to the streams that it has, too."""
        self.settings = self.settings._replace(limits=limits)
        for stream in self.streams.values():
            if not isinstance(stream, ViewStream):
                self._limit_room(stream)

    def _limit_room(self, stream: Stream) -> None:
        """Refuse messages of the stream for which the account has no room, and batches beyond the server's limits."""
        stream.limit_room(None, batches=self._batch_room)
        storage = stream.config.storage
        limit = self.settings.limits.max_memory if storage == "memory" else self.settings.limits.max_storage
        if limit >= 0:

            def has_room(size: int) -> bool:
                here = sum(one.weight for one in self.streams.values() if one.config.storage == storage)
                others = self.settings.others
                return here + size <= limit if others is None else others.has_room(storage, here, size, limit)

            stream.limit_room(has_room)

    async def show(self, view: ViewStream) -> None:
        """Add a stream that another face writes, together with its stored durable consumers. Clients find it once these are
        restored: a consumer created earlier would be restored as well. Raises JetStreamError when its name is taken."""
        directory = view.directory
        assert directory is not None
        view.domain = self.settings.domain
        with self._reserved(view.name, "stream_name_in_use"):
            view.attach(self._router, None)
            self._consumers.keep(view, self.writers)
            record = StreamRecord(view.config, view.created_ns)
            consumers = await self._in_thread(directory.load_consumers)
            journal = await self._in_thread(partial(directory.load_journal, record))
            for finding in directory.findings:
                report(logger, finding)
            await self._consumers.restore(view, consumers, journal)
            self._show(view)

    async def hide(self, view: ViewStream, *, forget: bool) -> None:
        """Remove a stream that `show` added, and stop its consumers. `forget`: also delete the stored ones;
        otherwise the next `show` restores them."""
        self.streams.pop(view.name, None)
        self.captured.drop(view.name)
        await view.detach()
        consumers = list(view.consumers.values())
        for consumer in consumers:
            consumer.close(CONSUMER_DELETED if forget else SERVER_SHUTDOWN)
        directory = view.directory
        if forget and directory is not None and view.keeper is not None:
            await view.keeper.abandon()
            for consumer in consumers:
                await self._in_thread(partial(directory.remove_consumer, consumer.name))
            await self._in_thread(view.keeper.remove_files)
        else:
            saved = await self._consumers.save_all(view, self._clerk)
            await self._in_thread(partial(remove_journal, view, saved))
        view.consumers.clear()

    async def update(self, stream: Stream, config: StreamConfig) -> None:
        """Change a stream's configuration, which is durable before it takes effect."""
        _check_own(stream)
        record = StreamRecord(config, stream.created_ns)
        directory = stream.directory
        if directory is not None:
            await self._in_thread(lambda: directory.save(record))
        stream.reconfigure(config)
        self.captured.put(stream.name, config.subjects)
        self._advise(stream.name, "modify")

    async def delete(self, stream: Stream) -> None:
        """Delete a stream; its files are gone on return."""
        _check_own(stream)
        stream.copying.stop(for_good=True)
        del self.streams[stream.name]
        self.captured.drop(stream.name)
        await stream.detach()
        if stream.keeper is not None:
            await stream.keeper.abandon()
        for consumer in stream.consumers.values():
            consumer.close(CONSUMER_DELETED)
            self._consumers.advise(stream, consumer, "delete")
        stream.consumers.clear()
        self._advise(stream.name, "delete")

        directory = stream.directory
        if directory is None:
            return

        def remove() -> None:
            assert self._store is not None
            stream.log.close(removing=True)
            self._store.remove(directory)

        await self._in_thread(remove)

    async def delete_put_aside(self, name: str) -> None:
        """Remove the files of a stream that could not be recovered, so that its name can be used again. Raises OSError."""
        key = file_stem(name)
        finding = self.put_aside[key]

        def remove() -> None:
            assert self._store is not None
            self._store.remove(StreamDirectory(self.settings.files, finding.path))

        await self._in_thread(remove)
        del self.put_aside[key]
        logger.warning("unrecovered_stream_deleted stream=%s path=%s", name, finding.path)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._clerk, work)


def _check_own(stream: Stream) -> None:
    """Refuse to change a stream that another face writes. Raises JetStreamError."""
    if isinstance(stream, ViewStream):
        raise api_error("sealed")
