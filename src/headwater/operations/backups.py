"""Streams into directories and back, by STREAM.SNAPSHOT and STREAM.RESTORE of any server that has them.

    DIR/backup.json       configuration and state of the stream, as the server answered
    DIR/stream.tar.s2     the archive as the server sent it (the name is the `nats` tool's, which reads and writes the same)

Nothing has its final name before it is whole: the archive is checked as it comes (checksum of every chunk, the entry that
ends it), and backup.json is written last. A directory that holds a backup is not written to again.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from headwater.archive.entries import MAGIC, Reader
from headwater.archive.s2_frames import FrameReader
from headwater.client.client import Client
from headwater.client.jetstream import JetStream
from headwater.client.jetstream_types import StreamInfo, decode_answer
from headwater.errors import ConfigError, EnvironmentProblem, HeadwaterError, RemoteProtocolError, RequestTimeout

DOCUMENT = "backup.json"
ARCHIVE = "stream.tar.s2"
UNFINISHED = ".part"
CHUNK = 128 << 10  # bytes of a chunk that is restored
PATIENCE = 30.0  # seconds without a chunk; the server gives up after 5 s without a confirmation

Progress = Callable[[int, int], None]


class Saved(NamedTuple):
    """`messages` 0 where the archive is one of an older server, which is not looked into."""

    stream: str
    messages: int
    bytes: int


class _Check:
    """Reads an archive as it comes. `messages` counts those that came."""

    def __init__(self) -> None:
        self.messages = 0
        self._frames = FrameReader()
        self._entries: Reader | None = Reader()
        self._begun = b""

    def feed(self, chunk: bytes) -> None:
        content = self._frames.feed(chunk)
        if len(self._begun) < len(MAGIC):
            self._begun += content[: len(MAGIC) - len(self._begun)]
            if not MAGIC.startswith(self._begun):
                self._entries = None  # a tar, as servers before 2.15 send
        if self._entries is not None:
            self.messages += sum(1 for entry in self._entries.feed(content) if entry.sequence)

    def finish(self) -> None:
        self._frames.finish()
        if self._entries is not None:
            self._entries.finish()


async def save_stream(
    client: Client, jetstream: JetStream, name: str, directory: Path, progress: Progress, *, consumers: bool = True
) -> Saved:
    """Back up one stream into a new `directory`. `progress(messages, bytes)` is called for each chunk. Raises ConfigError
    for a directory that holds a backup, JetStreamError, RemoteProtocolError for an archive that is not whole,
    RequestTimeout, EnvironmentProblem when the disk refuses."""
    if (directory / DOCUMENT).exists():
        raise ConfigError(f"{directory} holds a backup already", value=directory, hint="name another directory")
    inbox = client.new_inbox()
    subscription = await client.subscribe(inbox)
    part = directory / (ARCHIVE + UNFINISHED)
    check, size = _Check(), 0
    try:
        os.makedirs(directory, exist_ok=True)
        body = {"deliver_subject": inbox, "no_consumers": not consumers, "chunk_size": CHUNK}
        answer = await jetstream.ask(f"STREAM.SNAPSHOT.{name}", body, dict[str, Any])
        with part.open("wb") as file:
            while True:
                message = await subscription.next(PATIENCE)
                if not message.data:
                    break
                check.feed(bytes(message.data))
                file.write(message.data)
                size += len(message.data)
                if message.reply:
                    await client.publish(message.reply, b"")
                progress(check.messages, size)
            if message.status is not None and message.status.code != 204:
                raise RemoteProtocolError(f"the server ended the backup of {name}: {message.status}")
            check.finish()
            file.flush()
            os.fsync(file.fileno())
        part.rename(directory / ARCHIVE)
        _write_document(directory, {"config": answer["config"], "state": answer["state"]})
    except OSError as error:
        if isinstance(error, HeadwaterError):
            raise
        raise EnvironmentProblem(f"{directory} cannot be written: {error.strerror}", value=directory) from error
    finally:
        await subscription.unsubscribe()
    return Saved(name, check.messages, size)


async def restore_stream(
    client: Client, jetstream: JetStream, directory: Path, progress: Progress, *, name: str = ""
) -> StreamInfo:
    """Make a stream out of a backup, under another `name` if one is given (and with its subjects as they were).
    `progress(bytes, of)` is called for each chunk. Raises ConfigError for what is no backup, JetStreamError."""
    document = _read_document(directory)
    config = document["config"]
    config["name"] = name or config["name"]
    archive = directory / ARCHIVE
    try:
        size = archive.stat().st_size
        file = archive.open("rb")
    except OSError as error:
        raise ConfigError(f"{archive} cannot be read: {error.strerror}", value=archive) from None
    with file:
        body = {"config": config, "state": document["state"]}
        begun = await jetstream.ask(f"STREAM.RESTORE.{config['name']}", body, dict[str, Any])
        subject, sent = begun["deliver_subject"], 0
        while chunk := file.read(CHUNK):
            answer = await client.request(subject, chunk, timeout=PATIENCE)
            if answer.data:  # a refusal, before the end
                return decode_answer(answer.data, StreamInfo, "STREAM.RESTORE")
            sent += len(chunk)
            progress(sent, size)
    try:
        answer = await client.request(subject, b"", timeout=10 * PATIENCE)
    except RequestTimeout as error:
        raise RequestTimeout(f"the server does not say what became of {config['name']}", hint="stream info") from error
    return decode_answer(answer.data, StreamInfo, "STREAM.RESTORE")


def saved_streams(directory: Path) -> list[Path]:
    """The backups in a directory of an account's. Raises ConfigError for none."""
    try:
        found = sorted(path.parent for path in directory.glob(f"*/{DOCUMENT}"))
    except OSError as error:
        raise ConfigError(f"{directory} cannot be read: {error.strerror}", value=directory) from None
    if not found:
        raise ConfigError(f"there is no backup in {directory}", value=directory, hint=f"look for a {DOCUMENT}")
    return found


def _write_document(directory: Path, document: dict[str, Any]) -> None:
    part = directory / (DOCUMENT + UNFINISHED)
    with part.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(document)))
        file.flush()
        os.fsync(file.fileno())
    part.rename(directory / DOCUMENT)
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read_document(directory: Path) -> dict[str, Any]:
    path = directory / DOCUMENT
    try:
        document = msgspec.json.decode(path.read_bytes())
        return {"config": {**document["config"]}, "state": document.get("state") or {}}
    except OSError as error:
        raise ConfigError(f"{directory} is no backup: {DOCUMENT}: {error.strerror}", value=directory) from None
    except (msgspec.MsgspecError, KeyError, TypeError, UnicodeDecodeError):
        raise ConfigError(f"{path} is not what a backup writes", value=path) from None
