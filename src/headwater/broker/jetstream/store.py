"""Where JetStream keeps its streams, and the small documents beside each log.

    <store_dir>/lock                            held while a broker uses the directory
    <store_dir>/streams/<name>-<digest>/        one stream: a readable stem of its name, and 16 hex digits of its SHA-256
        stream.a stream.b                       its configuration (JSON, `StreamRecord`), two checked copies
        log/                                    the messages (`headwater.streams`)
        consumers/<name>-<digest>.a .b          a durable consumer: configuration and state (`ConsumerRecord`)
    <store_dir>/streams/….new                   a stream that was being made when the process died: removed at start
    <store_dir>/streams/….deleted               one that was being deleted: likewise

A file name is never made of a client's characters alone: names may hold what a file system forbids, and two names may
be one to a file system that ignores case. The true name is in the document. A directory whose document is gone or
unreadable is reported and left alone: there may be messages in it.

All of this blocks and belongs in a worker thread, or before the loop has work.
"""

import hashlib
import logging
import re
from pathlib import Path

import msgspec

from headwater.broker.jetstream.api_types import ConsumerConfig, StreamConfig
from headwater.broker.jetstream.consumer import ConsumerSnapshot
from headwater.errors import EnvironmentProblem
from headwater.streams import meta
from headwater.streams.files import File, Files

logger = logging.getLogger(__name__)

NEW = ".new"
DELETED = ".deleted"

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_STEM = 48  # characters of the name that are kept for people who look into the directory


class StreamRecord(msgspec.Struct):
    """What is stored of a stream beside its messages."""

    config: StreamConfig
    created_ns: int


class ConsumerRecord(msgspec.Struct):
    """What is stored of a durable consumer."""

    name: str
    config: ConsumerConfig
    created_ns: int
    snapshot: ConsumerSnapshot


def file_stem(name: str) -> str:
    """A file name for `name`, the same on every run, and different for every name."""
    return f"{_UNSAFE.sub('_', name)[:_STEM]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


class StreamDirectory:
    """The files of one stream."""

    def __init__(self, files: Files, path: str) -> None:
        self.files = files
        self.path = path
        self.log_path = f"{path}/log"
        self._document = f"{path}/stream"
        self._consumers = f"{path}/consumers"

    def save(self, record: StreamRecord) -> None:
        """Make the configuration durable. Raises OSError."""
        meta.save(self.files, self._document, msgspec.json.encode(record))

    def load(self) -> StreamRecord | None:
        """The configuration, or None when none can be read; either way what is damaged is logged."""
        content = _load(self.files, self._document)
        if content is None:
            return None
        try:
            return msgspec.json.decode(content, type=StreamRecord)
        except msgspec.MsgspecError as error:
            logger.error("stream_unreadable path=%s reason=%s", self.path, error)
            return None

    def save_consumer(self, record: ConsumerRecord) -> None:
        """Make a durable consumer durable. Raises OSError."""
        self.files.mkdir(self._consumers)
        meta.save(self.files, f"{self._consumers}/{file_stem(record.name)}", msgspec.json.encode(record))

    def remove_consumer(self, name: str) -> None:
        """Forget a durable consumer; not an error when it is not there."""
        meta.remove(self.files, f"{self._consumers}/{file_stem(name)}")
        try:
            self.files.sync_directory(self._consumers)
        except FileNotFoundError:
            return

    def load_consumers(self) -> list[ConsumerRecord]:
        """All durable consumers that can be read, in the order of their names."""
        try:
            names = self.files.listdir(self._consumers)
        except FileNotFoundError:
            return []
        records = []
        for stem in sorted({Path(name).stem for name in names if name.endswith(meta.COPIES)}):
            content = _load(self.files, f"{self._consumers}/{stem}")
            if content is None:
                continue
            try:
                records.append(msgspec.json.decode(content, type=ConsumerRecord))
            except msgspec.MsgspecError as error:
                logger.error("consumer_unreadable path=%s/%s reason=%s", self._consumers, stem, error)
        return sorted(records, key=lambda record: record.name)


class Store:
    """The directory of one broker. Raises EnvironmentProblem when it cannot be used."""

    def __init__(self, files: Files, directory: str) -> None:
        self.files = files
        self._streams = f"{directory}/streams"
        try:
            files.mkdir(self._streams)
            self._lock: File = files.lock(f"{directory}/lock")
        except BlockingIOError as error:
            raise EnvironmentProblem(
                f"another broker uses the store directory {directory}", value=directory, hint="give each its own"
            ) from error
        except OSError as error:
            raise EnvironmentProblem(
                f"the store directory {directory} cannot be used: {error}", value=directory
            ) from error

    def close(self) -> None:
        """Let another broker have the directory."""
        self._lock.close()

    def streams(self) -> list[StreamDirectory]:
        """Every complete stream; what is left of unfinished business is removed."""
        found = []
        for name in sorted(self.files.listdir(self._streams)):
            path = f"{self._streams}/{name}"
            if name.endswith((NEW, DELETED)):
                logger.info("unfinished_stream_removed path=%s", path)
                self._remove(path)
            else:
                found.append(StreamDirectory(self.files, path))
        return found

    def create(self, record: StreamRecord) -> StreamDirectory:
        """A directory with the configuration in it, complete or not at all. Raises OSError."""
        path = f"{self._streams}/{file_stem(record.config.name)}"
        self.files.mkdir(path + NEW)
        StreamDirectory(self.files, path + NEW).save(record)
        self.files.rename(path + NEW, path)
        self.files.sync_directory(self._streams)
        return StreamDirectory(self.files, path)

    def remove(self, directory: StreamDirectory) -> None:
        """Remove a stream whose log is closed. Gone for good once this returns. Raises OSError."""
        doomed = directory.path + DELETED
        self.files.rename(directory.path, doomed)
        self.files.sync_directory(self._streams)
        self._remove(doomed)

    def _remove(self, path: str) -> None:
        _remove_tree(self.files, path)
        self.files.sync_directory(self._streams)


def _remove_tree(files: Files, path: str) -> None:
    for name in files.listdir(path):
        inner = f"{path}/{name}"
        try:
            _remove_tree(files, inner)
        except NotADirectoryError:
            files.unlink(inner)
    files.rmdir(path)


def _load(files: Files, document: str) -> bytes | None:
    damage: list[str] = []
    try:
        content = meta.load(files, document, damage)
    except OSError as error:
        damage.append(f"{document}: {error}")
        content = None
    for complaint in damage:
        logger.warning("document_damaged %s", complaint)
    if content is None:
        logger.error("document_unreadable path=%s", document)
    return content
