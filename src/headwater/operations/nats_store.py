"""A `store_dir` of nats-server, read: its accounts and streams, each as a backup that any server restores.

    <store_dir>/jetstream/<account>/streams/<stream>/meta.inf            configuration (JSON)
                                                    /msgs/<number>.blk   messages, and which of them are deleted
                                                    /obs/<consumer>/meta.inf, o.dat

The server that wrote it must have stopped. Nothing is changed. Each stream is read twice: for deletions, then for
messages, so that a large stream needs only 200 bytes a message in memory. nats-server's index beside the blocks is not
needed. Encrypted streams are refused; unreadable data is reported for each stream.
"""

import json
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from headwater.archive.entries import CONSUMERS, END, MAGIC, STATE, Entry, encode
from headwater.archive.nats_blocks import BlockReader, Deleted, Gap, StoredMessage
from headwater.archive.nats_consumers import decode_state
from headwater.archive.s2_frames import FrameWriter
from headwater.compression.snappy import compressor
from headwater.errors import ConfigError, EnvironmentProblem, RemoteProtocolError
from headwater.operations.backups import ARCHIVE, DOCUMENT

_HELD = 4 << 20  # bytes of entries per write

Progress = Callable[[int], None]


class ForeignStream(NamedTuple):
    """A stream of an account; `path` is its folder."""

    account: str
    name: str
    path: Path


class Converted(NamedTuple):
    """The result of a conversion. `notes`: settings that differ here; `problems`: unreadable data."""

    messages: int
    first: int
    last: int
    consumers: int
    notes: list[str]
    problems: list[str]


class _Alive:
    """The live messages of a stream, in order. Messages removed by a limit have no tombstone, so the limits of the
    configuration are applied. `deleted`: every sequence that is not live."""

    def __init__(self, config: dict[str, Any]) -> None:
        pushes = config.get("discard", "old") == "old"
        self._most = int(config.get("max_msgs") or -1) if pushes else -1
        self._most_bytes = int(config.get("max_bytes") or -1) if pushes else -1
        self._per_subject = (
            -1 if config.get("discard_new_per_subject") else int(config.get("max_msgs_per_subject") or -1)
        )
        self._kept: OrderedDict[int, tuple[int, bytes]] = OrderedDict()  # size and subject by sequence
        self._of_subjects: dict[bytes, OrderedDict[int, None]] = {}
        self.deleted: set[int] = set()
        self.bytes = 0
        self.last = 0

    @property
    def messages(self) -> int:
        """The number of live messages."""
        return len(self._kept)

    @property
    def first(self) -> int:
        """The first live sequence; without any, the sequence after the last."""
        return next(iter(self._kept), self.last + 1)

    def add(self, message: StoredMessage) -> None:
        """Add the next message; one out of order is ignored, as in nats-server."""
        if message.sequence <= self.last and (message.sequence in self._kept or message.sequence in self.deleted):
            return
        self.last = max(self.last, message.sequence)
        self._kept[message.sequence] = (message.stored_size, message.subject)
        self.bytes += message.stored_size
        if self._per_subject > 0:
            own = self._of_subjects.setdefault(message.subject, OrderedDict())
            own[message.sequence] = None
            if len(own) > self._per_subject:
                self.remove(next(iter(own)))
        while 0 < self._most < len(self._kept) or 0 < self._most_bytes < self.bytes:
            self.remove(next(iter(self._kept)))

    def remove(self, sequence: int) -> None:
        """Remove a message, if it has not been removed before."""
        self.deleted.add(sequence)
        self.last = max(self.last, sequence)
        size, subject = self._kept.pop(sequence, (0, b""))
        self.bytes -= size
        if subject in self._of_subjects:
            self._of_subjects[subject].pop(sequence, None)


def find_streams(directory: Path) -> list[ForeignStream]:
    """Every stream under a `store_dir`, or under the `jetstream` folder in it. Raises ConfigError where there is
    none."""
    root = directory / "jetstream" if (directory / "jetstream").is_dir() else directory
    found = [
        ForeignStream(meta.parents[2].name, name_of(meta), meta.parent)
        for meta in sorted(root.glob("*/streams/*/meta.inf"))
    ]
    if not found:
        raise ConfigError(
            f"there is no stream of nats-server under {directory}",
            value=str(directory),
            hint="name the store_dir of its configuration; streams in memory are on no disk",
        )
    return found


def convert(stream: ForeignStream, directory: Path, progress: Progress) -> Converted:
    """Write a stream as a backup into an empty `directory`. `progress(messages)` is called from time to time. Raises
    ConfigError for a stream that cannot be converted, EnvironmentProblem when the disk cannot be written."""
    if (stream.path / "meta.key").exists():
        raise ConfigError(
            "the stream is encrypted, and its key is nats-server's",
            value=stream.name,
            hint="back it up from the running nats-server (`headwater stream backup`), and restore that",
        )
    notes: list[str] = []
    problems: list[str] = []
    try:
        config = _config_of(stream, notes)
        contents = _look_through(stream, config)
        consumers = _consumers(stream, problems)
        state = {
            "messages": contents.messages,
            "bytes": contents.bytes,
            "first_seq": contents.first,
            "last_seq": contents.last,
            "consumer_count": len(consumers),
        }
        with (directory / ARCHIVE).open("wb") as file:
            writer = FrameWriter(compressor())
            head = [Entry(STATE, 0, 0, b"", json.dumps(state).encode())]
            head += [Entry(CONSUMERS + name.encode(), 0, 0, b"", body) for name, body in consumers]
            file.write(writer.feed(MAGIC + b"".join(map(encode, head))))
            for piece in _pieces(stream, contents, problems, progress):
                file.write(writer.feed(piece))
            file.write(writer.feed(encode(END)) + writer.finish())
        (directory / DOCUMENT).write_text(json.dumps({"config": config, "state": state}), encoding="utf-8")
    except OSError as error:
        if isinstance(error, EnvironmentProblem | ConfigError):
            raise
        raise EnvironmentProblem(f"{error.filename or directory}: {error.strerror}", value=stream.name) from error
    return Converted(contents.messages, contents.first, contents.last, len(consumers), notes, problems)


def name_of(meta: Path) -> str:
    """The stream's name, which is the key of its checksums; the folder's name is the fallback."""
    try:
        document = json.loads(meta.read_bytes())
    except (OSError, ValueError):
        return meta.parent.name
    return str(document.get("name") or meta.parent.name) if isinstance(document, dict) else meta.parent.name


def _config_of(stream: ForeignStream, notes: list[str]) -> dict[str, Any]:
    config = _of_requests(_read_meta(stream.path / "meta.inf"))
    if config.get("num_replicas", 1) > 1:
        notes.append(f"the stream had {config['num_replicas']} replicas, and has one now")
        config["num_replicas"] = 1
    if config.pop("placement", None):
        notes.append("its placement is left out: it is for clusters")
    return config


def _read_meta(path: Path) -> dict[str, Any]:
    """Raises ConfigError."""
    try:
        document = msgspec.json.decode(path.read_bytes())
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path.name} cannot be read: it is damaged, or encrypted", value=str(path)) from error
    if not isinstance(document, dict):
        raise ConfigError(f"{path.name} is no JSON object", value=str(path))
    return document


def _of_requests(document: dict[str, Any]) -> dict[str, Any]:
    """A configuration as a request has it: the server's own fields beside it begin with a capital letter."""
    return {name: value for name, value in document.items() if name[:1].islower() and name != "created"}


def _blocks(stream: ForeignStream) -> list[tuple[int, Path]]:
    found = [(path.stem, path) for path in (stream.path / "msgs").glob("*.blk")]
    return sorted((int(stem), path) for stem, path in found if stem.isascii() and stem.isdigit())


def _look_through(stream: ForeignStream, config: dict[str, Any]) -> _Alive:
    """The first pass. Damaged records are ignored."""
    reader, alive = BlockReader(stream.name), _Alive(config)
    for number, path in _blocks(stream):
        for record in reader.read(number, path.read_bytes()):
            if isinstance(record, StoredMessage):
                alive.add(record)
            elif isinstance(record, Deleted):
                alive.remove(record.sequence)
    return alive


def _pieces(stream: ForeignStream, contents: _Alive, problems: list[str], progress: Progress) -> Iterator[bytes]:
    """The messages as entries of an archive, in the order of their sequences."""
    reader, last, count = BlockReader(stream.name), 0, 0
    held = bytearray()
    for number, path in _blocks(stream):
        for record in reader.read(number, path.read_bytes()):
            if isinstance(record, Gap):
                problems.append(f"{path.name}: {record.size} bytes at {record.at} are lost: {record.reason}")
                continue
            if not isinstance(record, StoredMessage) or record.sequence in contents.deleted:
                continue
            if record.sequence <= last:
                continue  # written again, or out of order: the first counts, as in nats-server
            last, count = record.sequence, count + 1
            held += encode(Entry(record.subject, record.time_ns, record.sequence, record.header_block, record.payload))
            if len(held) >= _HELD:
                yield bytes(held)
                held.clear()
                progress(count)
    yield bytes(held)


def _consumers(stream: ForeignStream, problems: list[str]) -> list[tuple[str, bytes]]:
    """Name and entry of each consumer."""
    found = []
    folder = stream.path / "obs"
    for name in sorted(os.listdir(folder)) if folder.is_dir() else []:
        try:
            document = _read_meta(folder / name / "meta.inf")
            own = str(document.get("Name") or document.get("durable_name") or name)
            config = {**_of_requests(document), "name": own}
            config.pop("num_replicas", None)
            found.append((own, json.dumps({"config": config, "state": _state(folder / name / "o.dat")}).encode()))
        except (ConfigError, RemoteProtocolError, OSError) as error:
            reason = error.message if isinstance(error, ConfigError | RemoteProtocolError) else error.strerror
            problems.append(f'consumer "{name}" is left out: {reason}')
    return found


def _state(path: Path) -> dict[str, Any]:
    """The document of a consumer's state; one that has delivered nothing has no file, or an empty one."""
    data = path.read_bytes() if path.exists() else b""
    if not data:
        return {"delivered": {}, "ack_floor": {}}
    state = decode_state(data)
    document: dict[str, Any] = {
        "delivered": {"consumer_seq": state.delivered[0], "stream_seq": state.delivered[1]},
        "ack_floor": {"consumer_seq": state.floor[0], "stream_seq": state.floor[1]},
    }
    if state.pending:
        document["pending"] = {
            str(at): {"Sequence": place, "Timestamp": moment} for at, (place, moment) in state.pending.items()
        }
    if state.redelivered:
        document["redelivered"] = {str(at): times for at, times in state.redelivered.items()}
    return document
