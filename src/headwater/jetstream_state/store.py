"""JetStream's store directory: the streams, and the small documents beside each log.

    <store_dir>/lock                            held while a broker uses the directory
    <store_dir>/streams/<name>-<digest>/        one stream: a readable stem of its name, and 16 hex digits of its SHA-256
        stream.a stream.b                       its configuration (JSON, `StreamRecord`), two checked copies
        log/                                    the messages (`headwater.streams`)
        positions.a positions.b                 how far its sources and schedules were (`PositionsRecord`), where messages
                                                left the disk
        consumers/<name>-<digest>.a .b          a durable consumer: configuration and state (`ConsumerRecord`)
        consumers/state.<number>.journal        what happened to consumers since (`consumer_journal.py`)
    <store_dir>/streams/….begun                 a stream that was being made when the process died: removed at start, or
                                                finished if its creation was answered (`begun_streams.py`)
    <store_dir>/streams/….filled.new            a stream that was being restored when the process died: removed
    <store_dir>/streams/….spool.new             a backup that is being received: likewise
    <store_dir>/streams/….deleted               one that was being deleted: likewise

A file name never consists of a client's characters alone: names may contain characters that a file system forbids, and
differ only in case. The real name is in the document. A directory whose document is missing or unreadable is put aside:
reported, not served and left alone, because it may contain messages. A document with one damaged copy is rewritten from
the other.

All of this blocks and belongs in a worker thread, or before the loop has work.
"""

import logging
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

import msgspec

from headwater.durable_files import documents
from headwater.durable_files.files import File, Files, storage_error
from headwater.durable_files.store_directory import remove_tree
from headwater.durable_files.sync_group import SyncGroup
from headwater.errors import EnvironmentProblem, StorageError
from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_documents.strict_reading import decode_stored
from headwater.jetstream_state.begun_streams import BEGUN, DOCUMENT, LOG, finish_begun
from headwater.jetstream_state.consumer import ACKED_ALL, ConsumerSnapshot
from headwater.jetstream_state.consumer_journal import Journal, identity_of
from headwater.jetstream_state.consumer_journal import load as load_journal
from headwater.jetstream_state.schedules import Row
from headwater.jetstream_state.sequence import offset_of
from headwater.jetstream_state.store_lock import STREAMS, take_store
from headwater.streams.finding import Finding, Severity, files_lost, finding_of, findings_of, report
from headwater.streams.log import Log
from headwater.streams.log_state import LogState
from headwater.streams.opening import CopyKind, first_state, write_new_log
from headwater.streams.recovery import Damage

logger = logging.getLogger(__name__)

POSITIONS = "positions"
MOST_SAVED = 10_000  # ids; half a megabyte, and two milliseconds of the loop
NEW = ".new"
FILLED = ".filled"
SPOOL = ".spool"
DELETED = ".deleted"

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_STEM = 48  # characters of the name, kept for readability


class StreamRecord(msgspec.Struct):
    """The stored document of a stream."""

    config: StreamConfig
    created_ns: int


class ConsumerRecord(msgspec.Struct):
    """The stored document of a durable consumer."""

    name: str
    config: ConsumerConfig
    created_ns: int
    snapshot: ConsumerSnapshot
    frame: int = 0  # the last frame of the journal that the snapshot includes


class PositionsRecord(msgspec.Struct):
    """The positions of a stream's sources by index name (sequence and identity of the last copied message), its schedules
    (`Schedules.rows`), and the newest MOST_SAVED message ids (`DuplicateWindow.dump`), as of the log up to offset `end`."""

    end: int
    positions: dict[str, tuple[int, str]]
    schedules: list[Row] = []
    ids: list[tuple[bytes, int, int]] = []


Record = TypeVar("Record", StreamRecord, ConsumerRecord)


def first_offset(record: StreamRecord) -> int:
    """The first offset of a new log of this stream (first_seq)."""
    return offset_of(max(record.config.first_seq, 1))


def copy_kind(config: StreamConfig) -> CopyKind:
    """How the log of this stream is opened: a mirror and a stream with sources fetch again what a power loss took."""
    if config.mirror is not None:
        return "of offsets"
    return "of records" if config.sources else "none"


def file_stem(name: str) -> str:
    """A file name for `name`, the same on every run, and different for every name."""
    import hashlib  # here: see model/short_hash.py

    return f"{_UNSAFE.sub('_', name)[:_STEM]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def known_end(consumers: list[ConsumerRecord], journal: Journal) -> int:
    """A lower bound of the log's end: after the highest sequence that was delivered or acknowledged."""
    highest = 0
    for record in consumers:
        snapshot = record.snapshot
        delivered = snapshot.delivered_stream if snapshot.delivered_consumer else 0
        highest = max(highest, delivered, *snapshot.unacked, *snapshot.attempts)
    for frame in journal.frames:
        for _, events in frame.entries:
            highest = max(highest, *(first if kind == ACKED_ALL else last for kind, first, last in events))
    return highest  # a sequence is one more than its offset


class StreamDirectory:
    """The files of one stream. `findings`: problems that did not stop `load` and `load_consumers`. `positions`: None if
    none were saved or, with a finding, if they cannot be read. `new_log`: the state of a log that was just created and
    never opened, so that nothing need be read back; else None. `on_demand`: it has no log, and is made for consumers."""

    def __init__(self, files: Files, path: str, *, on_demand: bool = False) -> None:
        self.files = files
        self.path = path
        self.on_demand = on_demand
        own = path.rpartition("/")[2]
        self.name = own.rpartition("-")[0] or own  # an approximation, until `load` has read the real one
        self.findings: list[Finding] = []
        self.positions: PositionsRecord | None = None
        self.new_log: LogState | None = None
        # Of the stream, stored in all its files; this one until `load`, or if none has one.
        self.identity = documents.NO_IDENTITY
        self.log_path = f"{path}/{LOG}"
        self._document = f"{path}/{DOCUMENT}"
        self.consumers_path = self._consumers = f"{path}/consumers"

    def save(self, record: StreamRecord) -> None:
        """Make the configuration durable. Raises OSError."""
        documents.save(self.files, self._document, msgspec.json.encode(record), self.identity)

    def write_first(self, group: SyncGroup, record: StreamRecord) -> None:
        """Write the configuration of a new stream; durable once the group is committed with the directory. Raises
        OSError."""
        documents.write_first(group, self._document, msgspec.json.encode(record), self.identity)

    def load(self) -> StreamRecord:
        """The configuration. Raises StorageError when none can be read."""
        record = self._load(self._document, StreamRecord, "configuration")
        self.name = record.config.name
        return record

    def check_log(self) -> None:
        """Raises StorageError when the directory of the log is gone; an empty one becomes a finding."""
        try:
            names = self.files.listdir(self.log_path)
        except OSError as error:
            raise storage_error("read its log", error) from error
        if not any(name.endswith((".log", *documents.COPIES)) for name in names):
            done = "made anew, empty; whatever was in it is lost"
            self.findings.append(Finding(self.name, self.log_path, "there is nothing in the log's directory", done))

    def save_positions(self, record: PositionsRecord) -> None:
        """Make the positions of the stream's sources durable. Raises OSError."""
        documents.save(self.files, f"{self.path}/{POSITIONS}", msgspec.json.encode(record), self.identity)

    def load_positions(self) -> None:
        """Load the last saved positions into `positions`. Raises StorageError."""
        path, damage = f"{self.path}/{POSITIONS}", list[str]()
        try:
            copy = documents.load_copy(self.files, path, damage, self.identity)
            record = msgspec.json.decode(copy.payload, type=PositionsRecord) if copy is not None else None
        except OSError as error:
            raise storage_error("read where its sources are", error) from error
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            record, damage = None, [*damage, f"it is not one that this program knows: {error}"]
        done = "messages that have left the stream may be copied again" if record is None else "the other copy serves"
        self.findings += [Finding(self.name, path, complaint, done) for complaint in damage]
        self.positions = record

    def make_consumers(self) -> None:
        """Make the folder of the consumers, durably. Raises OSError; FileNotFoundError where the stream's folder was
        removed: nothing is made in its place, for the real one might be put back."""
        if not self.on_demand:
            self.files.listdir(self.path)
        self.files.mkdir(self._consumers)

    def save_consumer(self, record: ConsumerRecord) -> None:
        """Store the document of a durable consumer. Raises OSError."""
        self.make_consumers()
        path = f"{self._consumers}/{file_stem(record.name)}"
        documents.save(self.files, path, msgspec.json.encode(record), self.identity)

    def remove_consumer(self, name: str) -> None:
        """Remove the document of a durable consumer, if there is one."""
        documents.remove(self.files, f"{self._consumers}/{file_stem(name)}")
        try:
            self.files.sync_directory(self._consumers)
        except FileNotFoundError:
            return

    def load_consumers(self) -> list[ConsumerRecord]:
        """All consumers that can be read, in the order of their names. The ephemeral ones are removed: none may come back
        after a kill as it was before. Raises StorageError when the directory cannot be read."""
        try:
            names = self.files.listdir(self._consumers)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise storage_error("read its consumers", error) from error
        records = []
        for stem in sorted({name.rpartition(".")[0] for name in names if name.endswith(documents.COPIES)}):
            path = f"{self._consumers}/{stem}"
            try:
                records.append(self._load(path, ConsumerRecord, f"consumer {stem.rpartition('-')[0]}"))
            except StorageError as error:
                done = "the consumer is gone until its files are mended; they are left in place"
                self.findings.append(Finding(self.name, path, error.message, done, severity="loss"))
        for record in records:
            if not record.config.durable_name:
                try:
                    self.remove_consumer(record.name)
                except OSError as error:
                    raise storage_error("remove an ephemeral consumer", error) from error
        return sorted(records, key=lambda record: record.name)

    def load_journal(self, record: StreamRecord) -> Journal:
        """The consumers' journal since their states were saved; implausible parts become findings. Raises
        StorageError."""
        try:
            journal = load_journal(self.files, self._consumers, identity_of(record.config.name, record.created_ns))
        except OSError as error:
            raise storage_error("read the journal of its consumers", error) from error
        for path, damage in journal.damage:
            done = "what follows is not used: messages acknowledged there may be delivered again"
            self.findings.append(Finding(self.name, path, damage, done, severity="loss"))
        return journal

    def _load(self, path: str, kind: type[Record], what: str) -> Record:
        """Read a document, and repair it if one copy is damaged. Raises StorageError."""
        damage: list[str] = []
        try:
            copy = documents.load_copy(self.files, path, damage, self.identity, partial(self._stranger, kind))
        except OSError as error:
            raise storage_error(f"read its {what}", error) from error
        if copy is None and any("is not of this document" in complaint for complaint in damage):
            raise StorageError(f"its {what} is not its own: {'; '.join(damage)}", value=path)
        if copy is None:
            state = "are damaged" if damage else "are missing"
            raise StorageError(f"both copies of its {what} {state}", value=path)
        try:
            record = decode_stored(copy.payload, kind)
        except msgspec.MsgspecError as error:
            raise StorageError(f"its {what} is not one that this program knows: {error}", value=path) from error
        if self.identity == documents.NO_IDENTITY:
            self.identity = copy.identity
        if damage:
            done = self._mend(path, copy.payload)
            self.findings += [Finding(self.name, path, complaint, done) for complaint in damage]
        return record

    def _stranger(self, kind: type[StreamRecord | ConsumerRecord], copy: documents.Copy) -> str:
        """Why a copy does not belong to this directory; "" if it does."""
        try:
            record = decode_stored(copy.payload, kind)
        except msgspec.MsgspecError:
            return ""
        is_stream = isinstance(record, StreamRecord)
        name = record.config.name if isinstance(record, StreamRecord) else record.name
        own = file_stem(name)
        if own == ((self.path if is_stream else copy.path.rpartition(".")[0]).rpartition("/")[2]):
            return ""
        return f"is of {name!r}, which belongs in {own}"

    def _mend(self, path: str, content: bytes) -> str:
        try:
            documents.save(self.files, path, content, self.identity)
        except OSError as error:
            return f"the other copy serves, and a new one cannot be written: {error.strerror}"
        return "written again from the other copy"


class Store:
    """The directory of one broker. `lock`: that of `take_store`, which is called here without. Raises EnvironmentProblem
    when it cannot be used."""

    def __init__(self, files: Files, directory: str, lock: File | None = None) -> None:
        self.files = files
        self.findings: list[Finding] = []
        self._streams = f"{directory}/{STREAMS}"
        self._lock = lock if lock is not None else take_store(files, directory)

    def close(self) -> None:
        """Release the lock on the directory."""
        self._lock.close()

    def streams(self) -> list[StreamDirectory]:
        """Every complete stream; remains of unfinished operations are removed as far as possible. Raises
        EnvironmentProblem."""
        found = []
        try:
            names = sorted(self.files.listdir(self._streams))
        except OSError as error:
            reason = f"the store directory {self._streams} cannot be read: {error.strerror}"
            raise EnvironmentProblem(reason, value=self._streams) from error
        for name in names:
            path = f"{self._streams}/{name}"
            try:
                if name.endswith(BEGUN):
                    final = finish_begun(self.files, self._streams, name, names)
                elif name.endswith((NEW, DELETED)):
                    remove_tree(self.files, path)
                    final = ""
                else:
                    final = name
            except OSError as error:
                what = f"what is left of an unfinished stream cannot be removed: {error.strerror}"
                severity: Severity = "unavailable" if name.endswith(BEGUN) else "warning"  # it may hold messages
                self.findings.append(Finding(name.rpartition("-")[0], path, what, "left in place", severity=severity))
                continue
            if final:
                found.append(StreamDirectory(self.files, f"{self._streams}/{final}"))
            else:
                logger.info("unfinished_stream_removed path=%s", path)
        return found

    def create(
        self,
        record: StreamRecord,
        *,
        synced: bool = True,
        begin: int | None = None,
        fill: Callable[[StreamDirectory], None] | None = None,
    ) -> StreamDirectory:
        """Create a directory with the configuration and an empty log, durably on return; a crash meanwhile leaves all
        of it or nothing. `synced`: see `first_state`. `begin`: the first offset of the log, if not that of the
        configuration. `fill` adds to the directory before it gets its final name. Raises OSError, StorageError if the
        stream exists, and any error of `fill`; then nothing is left.

        One wait for the disk: eight syncs side by side, the last of them for the name that ends in BEGUN. The final one is
        not synced: where a power loss undoes it, the next start gives it again."""
        stem = file_stem(record.config.name)
        path = f"{self._streams}/{stem}"
        self.files.listdir(self._streams)  # raises where it was removed: a new one would not be locked
        if _exists(self.files, path):
            raise StorageError("there is a directory of this name in the store already", value=path)
        ending = BEGUN if fill is None else FILLED + NEW  # not to be removed by another creation
        new = StreamDirectory(self.files, path + ending)
        if _exists(self.files, new.path):  # the remains of a creation that failed
            remove_tree(self.files, new.path)
        self.files.make(new.log_path)  # made durable by the syncs below
        new.identity = self.files.entropy(len(documents.NO_IDENTITY))
        try:
            with SyncGroup(self.files) as group:
                new.write_first(group, record)
                state = first_state(new.identity, first_offset(record) if begin is None else begin, synced=synced)
                write_new_log(group, new.log_path, state, record.created_ns)
                group.commit(new.path, new.log_path, *((self._streams,) if fill is None else ()))
            if fill is not None:
                fill(new)
            self.files.rename(new.path, path)
        except BaseException:
            with suppress(OSError):  # what stays is removed by the next creation
                remove_tree(self.files, new.path)
            raise
        if fill is not None:
            self.files.sync_directory(self._streams)
        directory = StreamDirectory(self.files, path)
        directory.identity = new.identity
        directory.new_log = state if fill is None else None
        return directory

    def spool(self, name: str) -> tuple[str, File]:
        """A new file for an archive being received, and its path for `drop_spool`; a restart removes it. Raises
        OSError."""
        stem = file_stem(name)
        path = f"{self._streams}/{stem}-{self.files.entropy(4).hex()}{SPOOL}{NEW}"
        self.files.make(path)
        return path, self.files.create(f"{path}/archive")

    def drop_spool(self, path: str) -> None:
        """Remove what `spool` made. Raises OSError."""
        remove_tree(self.files, path)

    def remove(self, directory: StreamDirectory) -> None:
        """Remove a stream whose log is closed, durably on return; not an error when it is not there. Raises OSError."""
        doomed = directory.path + DELETED
        try:
            self.files.rename(directory.path, doomed)
        except FileNotFoundError:
            return  # it was removed by other hands, as was reported, and there is nothing left to be found by a start
        self.files.sync_directory(self._streams)
        remove_tree(self.files, doomed)  # where a power loss undoes this, the next start does it again


def _exists(files: Files, path: str) -> bool:
    try:
        files.listdir(path)
    except FileNotFoundError:
        return False
    except NotADirectoryError:  # a file, which is not of a stream
        return True
    return True


class StreamFindings:
    """Damage and losses in the files of one stream. `on_finding` is called for those found after the start."""

    def __init__(self, name: str, log: Log, directory: StreamDirectory | None) -> None:
        self.all = findings_of(log.recovery, name, log.directory)
        if directory is not None:
            self.all += directory.findings
        self.on_finding: Callable[[Finding], None] | None = None
        self._name = name
        self._log = log
        self._lost_files: Finding | None = None

    def note_lost_files(self) -> Finding:
        """The files were removed while the stream is served; its caller reports it."""
        self._lost_files = finding = files_lost(self._name, self._log.directory, of="stream")
        self.all.append(finding)
        return finding

    def forget_lost_files(self) -> None:
        """They are back."""
        if self._lost_files is not None:
            self.all.remove(self._lost_files)
            logger.warning("stream_files_back stream=%s path=%s", self._name, self._log.directory)
            self._lost_files = None

    def note_damage(self, damage: Damage) -> None:
        """Reading has found bytes that fail their checks: report them once, and exclude them from the counts."""
        finding = finding_of(damage, self._name, self._log.directory)
        self.all.append(finding)
        report(logger, finding)
        if self.on_finding is not None:
            self.on_finding(finding)
