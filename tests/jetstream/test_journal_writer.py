"""Frames on their way to the journal: numbered, written together, in a thread while the disk is slow; confirmations."""

import asyncio
import errno

import pytest
from support.recording_files import RecordingFiles

from headwater.errors import StorageError
from headwater.exchange.router import Router
from headwater.group_commit.writers import Writers
from headwater.jetstream.journal_writer import Confirmations, JournalWriter, PendingFrames
from headwater.jetstream_state.consumer_journal import JournalFiles, identity_of, load

IDENTITY = identity_of("S", 1)


def test_frames_are_numbered_one_after_the_other_and_taken_together() -> None:
    frames = PendingFrames(IDENTITY)
    frames.number = 7
    frames.add([])
    assert not frames
    frames.add([("a", [[0, 1, 1]])])
    frames.add([("b", [[0, 2, 2]])])
    written, first = frames.take()
    assert (first, frames.number, bool(frames)) == (8, 9, False)
    frames.drop()
    frames.add([("a", [[0, 3, 3]])])
    assert (frames.number, bool(frames)) == (9, False), "the states will be saved whole"
    assert written.count(b"HWJ1") == 2


@pytest.mark.parametrize("in_threads", [False, True])
def test_what_was_written_is_loaded_and_an_error_reaches_its_caller(in_threads: bool) -> None:
    async def main() -> None:
        files = RecordingFiles()
        writers = Writers(1, "test") if in_threads else None
        writer = JournalWriter(JournalFiles(files, "consumers"), writers, durable=True)
        if in_threads:
            writer._pace.note(1.0)
        frames = PendingFrames(IDENTITY)
        received: list[BaseException | None] = []
        frames.add([("a", [[0, 1, 1]])])
        writer.write(*frames.take(), True, received.append)
        await writer.idle.wait()
        assert (received, writer.unsynced, writer.fresh) == ([None], False, False)
        frames.add([("a", [[1, 1, 1]])])
        writer.write(*frames.take(), False, received.append)
        await writer.idle.wait()
        assert writer.unsynced
        journal = load(files, "consumers", IDENTITY)
        assert [frame.number for frame in journal.frames] == [1, 2]
        if in_threads:
            writer._pace.note(1.0)
        files.faults = dict.fromkeys(range(files.attempts, files.attempts + 9), errno.EIO)
        frames.add([("a", [[0, 2, 2]])])
        writer.write(*frames.take(), True, received.append)
        await writer.idle.wait()
        assert isinstance(received[2], OSError)
        if writers is not None:
            writers.shutdown()

    asyncio.run(main())


def test_confirmations_are_answered_once_with_an_empty_message_or_the_reason() -> None:
    received: list[tuple[bytes, bytes]] = []
    router = Router(lambda callback: None, 1)
    router.subscribe_internal(b"in.*", lambda subject, _reply, block, _payload: received.append((subject, block)))
    confirmations = Confirmations(router)
    confirmations.add(b"in.1")
    confirmations.add(b"in.2")
    replies = confirmations.take()
    assert not confirmations
    confirmations.answer(replies[:1])
    confirmations.refuse(replies[1:], StorageError("the disk is gone"))
    assert received == [(b"in.1", b""), (b"in.2", b"NATS/1.0 503 the disk is gone\r\n\r\n")]
