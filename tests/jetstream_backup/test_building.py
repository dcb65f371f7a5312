"""From an archive to a log: places, gaps, times, and what is no archive."""

import asyncio
import os

import msgspec
import pytest

from headwater.archive.entries import END, MAGIC, Entry, encode
from headwater.archive.s2_frames import FrameWriter
from headwater.errors import RemoteProtocolError
from headwater.jetstream_backup.building import ArchiveFile
from headwater.jetstream_backup.saving import pieces
from headwater.jetstream_state.memory_files import MemoryFiles
from headwater.streams.log import Log
from headwater.streams.options import LogOptions

OPTIONS = LogOptions(sync="never", preallocate_bytes=0)


def archive_of(state: dict[str, int], *entries: Entry, end: bool = True) -> ArchiveFile:
    writer = FrameWriter(None)
    head = Entry(b"state.json", 1, 0, b"", msgspec.json.encode(state))
    content = MAGIC + b"".join(map(encode, [head, *entries, *([END] if end else [])]))
    return filed(writer.feed(content) + writer.finish())


def filed(data: bytes) -> ArchiveFile:
    spool = MemoryFiles(os.urandom).create("spool")
    spool.pwrite([data], 0)
    return ArchiveFile(spool, len(data))


def built(archive: ArchiveFile) -> Log:
    log = Log.open(MemoryFiles(os.urandom), "log", OPTIONS, 1, archive.first_offset)
    archive.fill(log)
    return log


def message(sequence: int, payload: bytes = b"p") -> Entry:
    return Entry(b"s.%d" % sequence, sequence * 10, sequence, b"", payload)


def test_messages_keep_their_sequences_times_and_gaps() -> None:
    log = built(archive_of({"messages": 2, "first_seq": 5, "last_seq": 9}, message(5), message(8)))
    found = log.read(0, 9, 1 << 20)
    assert [(one.offset, one.timestamp_ns, one.subject) for one in found] == [(4, 50, b"s.5"), (7, 80, b"s.8")]
    assert (log.start_offset, log.end_offset, log.record_count) == (4, 9, 2)
    log.close()


def test_an_emptied_stream_goes_on_where_it_was() -> None:
    log = built(archive_of({"messages": 0, "first_seq": 11, "last_seq": 10}))
    assert (log.start_offset, log.end_offset, log.record_count) == (10, 10, 0)
    log.close()


@pytest.mark.parametrize(
    ("state", "entries", "why"),
    [
        ({"messages": 2, "first_seq": 1}, [message(3), message(3)], "message sequence 3 out of order"),
        ({"messages": 1, "first_seq": 4}, [message(3)], "message sequence 3 out of order"),
        ({"consumer_count": 1}, [message(1)], 'expected consumer, found "s.1"'),
        ({"consumer_count": 1}, [], "EOF"),
        ({"consumer_count": 1}, [Entry(b"consumers/c", 1, 0, b"", b"{")], 'consumer "c"'),
    ],
)
def test_what_is_out_of_place_is_refused(state: dict[str, int], entries: list[Entry], why: str) -> None:
    archive = archive_of(state, *entries)
    with pytest.raises(RemoteProtocolError) as refused:
        archive.consumers()
        built(archive)
    assert refused.value.message.startswith(why)


def test_an_archive_without_its_end_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="EOF"):
        built(archive_of({"messages": 1, "first_seq": 1}, message(1), end=False))


def test_what_is_saved_is_built_again_in_many_pieces() -> None:
    """Saving and building are each other's inverse."""

    async def saved(log: Log) -> bytes:
        return b"".join(
            [piece async for piece in pieces(log, b'{"messages":3000,"first_seq":1,"last_seq":3001}', [], 7)]
        )

    log = built(archive_of({"messages": 3000, "first_seq": 1}, *(message(n, b"x" * 900) for n in range(1, 3001))))
    log.discard(1)
    again = built(filed(asyncio.run(saved(log))))
    assert again.read(0, 4000, 1 << 30) == log.read(0, 4000, 1 << 30)
    assert again.end_offset == 3001
    log.close()
    again.close()


def test_a_status_that_an_older_server_has_stored_is_left_out() -> None:
    """A pull consumer's client would take the message for the end of its request."""
    entry = Entry(b"s", 10, 1, b"NATS/1.0 503 Gone\r\nA: 1\r\n\r\n", b"p")
    log = built(archive_of({"messages": 2, "first_seq": 1, "last_seq": 2}, entry, message(2)))
    assert [one.header_block for one in log.read(0, 9, 1 << 20)] == [b"NATS/1.0\r\nA: 1\r\n\r\n", b""]
    log.close()
