"""Builds the log of a stream from an archive file. Everything here blocks and belongs in a thread.

The log is new and has no reader yet, so a failure leaves nothing behind; nats-server keeps a stream with the messages
read so far. A status that a message was stored with (older servers did that) is left out, as a publish is stored without it.
"""

from collections.abc import Iterator

import msgspec

from headwater.archive.entries import CONSUMERS, Entry, Order, Reader
from headwater.archive.s2_frames import FrameReader
from headwater.durable_files.files import File
from headwater.errors import RemoteProtocolError
from headwater.jetstream_documents.backups import ArchivedConsumer, ArchivedState
from headwater.jetstream_documents.strict_reading import decode_stored
from headwater.jetstream_state.publish_checks import without_status
from headwater.jetstream_state.sequence import offset_of
from headwater.streams.log import Log

PIECE = 1 << 20  # bytes of the file per read
WRITE = 4 << 20  # bytes of messages in one write and one sync


class ArchiveFile:
    """The archive of `size` bytes in `spool`; `state` is read by the constructor. Raises RemoteProtocolError with
    nats-server's text for a file that is no archive, and OSError."""

    def __init__(self, spool: File, size: int) -> None:
        self._spool = spool
        self._size = size
        self._order = Order()
        self._entries = self._read()
        entry = next(self._entries, None)
        if entry is None:
            raise RemoteProtocolError("expected state.json first")
        self._order.kind(entry)
        self.state = _decode_state(entry.payload)
        self._order.begin(self.state.consumer_count)

    @property
    def first_offset(self) -> int:
        """The first offset of the log."""
        state = self.state
        return offset_of(max(state.first_seq if state.messages else state.last_seq + 1, 1))

    def consumers(self) -> list[tuple[str, ArchivedConsumer]]:
        """The consumers by name; call it once, before `fill`."""
        return [self._consumer() for _ in range(self.state.consumer_count)]

    def fill(self, log: Log) -> int:
        """Write the messages into an empty log that begins at `first_offset`, durably on return; returns how many. Raises
        StorageError too."""
        count = held = 0
        for entry in self._entries:
            self._order.kind(entry)
            offset = offset_of(entry.sequence)
            if offset < log.next_offset:
                raise RemoteProtocolError(f"message sequence {entry.sequence} out of order")
            if offset > log.next_offset:
                log.staging.skip_to(offset)
            log.stage(entry.name, without_status(entry.header_block), entry.payload, entry.time_ns)
            count += 1
            held += len(entry.payload) + len(entry.header_block)
            if held >= WRITE:
                _write(log)
                held = 0
        _write(log)
        if self.state.last_seq > log.end_offset:  # messages at the end were deleted: their sequences are not used again
            log.staging.skip_to(offset_of(self.state.last_seq))
            last = log.stage(b"", b"", b"", log.last_timestamp_ns or 0)
            _write(log)
            log.discard(last)
            _write(log)
        return count

    def _consumer(self) -> tuple[str, ArchivedConsumer]:
        entry = next(self._entries, None)
        if entry is None:
            raise RemoteProtocolError("EOF")
        self._order.kind(entry)
        name = entry.name.removeprefix(CONSUMERS).decode("utf-8", "replace")
        try:
            return name, decode_stored(entry.payload, ArchivedConsumer)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise RemoteProtocolError(f'consumer "{name}": {error}') from error

    def _read(self) -> Iterator[Entry]:
        frames, entries = FrameReader(), Reader()
        for at in range(0, self._size, PIECE):
            yield from entries.feed(frames.feed(self._spool.pread(min(PIECE, self._size - at), at)))
        frames.finish()
        entries.finish()


def _decode_state(payload: bytes) -> ArchivedState:
    try:
        return msgspec.json.decode(payload, type=ArchivedState)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RemoteProtocolError(f"state.json: {error}") from error


def _write(log: Log) -> None:
    batch = log.seal()
    if batch is not None:
        log.write(batch)
        log.publish(batch)
