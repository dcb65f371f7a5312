"""A partition: what a send leaves there, and what a poll finds, in either dialect of the log."""

import asyncio
import errno
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from support.recording_files import RecordingFiles

from headwater import TypedHeaders
from headwater.durable_files.files import Files, OsFiles
from headwater.errors import DiskFull, IggyError, StorageError
from headwater.group_commit.committer import LONE_BYTES, MAX_STAGED_BYTES
from headwater.group_commit.writers import Writers
from headwater.iggy import partition as partitions
from headwater.iggy.partition import Batch, Partition, part_of
from headwater.iggy.unique_ids import UniqueIds
from headwater.iggy.upkeep import drop
from headwater.iggy_wire.batches import admit, messages, of_messages
from headwater.iggy_wire.commands import Message
from headwater.iggy_wire.identifiers import PollingStrategy
from headwater.model.headers import Headers
from headwater.model.typed_headers import HeaderForm
from headwater.streams import log as log_module
from headwater.streams.log import Log, StoredRecord
from headwater.streams.options import LogOptions
from headwater.streams.segment import LARGE_BATCH, segment_name
from headwater.streams.writer import CHECKPOINT_FILE

MICROSECONDS = 1000


def with_partition(
    work: Callable[[Partition], Awaitable[None]], files: Files | None = None, directory: str = "log"
) -> None:
    async def main() -> None:
        log = Log.open(files or RecordingFiles(), directory, LogOptions(preallocate_bytes=0, cache_bytes=1 << 20), 1)
        writers = Writers(1, "test")
        try:
            async with asyncio.timeout(20):
                await work(Partition(1, 0, 1, log, writers))
        finally:
            writers.shutdown()

    asyncio.run(main())


async def send(partition: Partition, *payloads: bytes, now: int = 5) -> int:
    batch, count = of_messages([Message(payload) for payload in payloads], 1)
    done: asyncio.Future[StorageError | None] = asyncio.get_running_loop().create_future()
    checksums = admit(batch, 0, len(batch), count)
    base = partition.append(Batch(batch, 0, len(batch)), count, checksums, now, 0, done.set_result)
    assert await done is None
    return base


def polled(partition: Partition, offset: int, count: int) -> list[tuple[int, bytes]]:
    found = partition.poll(offset, count, 0)
    shown = [(message.offset, message.payload) for message in messages(b"".join(found.read()))]
    assert len(shown) == found.messages and (not shown or shown[-1][0] == found.last_offset)
    return shown


def test_a_poll_begins_and_ends_in_the_middle_of_batches() -> None:
    async def work(partition: Partition) -> None:
        assert (partition.current_offset, polled(partition, 0, 9)) == (0, [])
        for start in (0, 3, 6):
            assert await send(partition, *[b"%d" % number for number in range(start, start + 3)]) == start
        everything = [(number, b"%d" % number) for number in range(9)]
        for start in range(10):
            for count in (0, 1, 2, 4, 100):
                assert polled(partition, start, count) == everything[start : start + count]
        assert partition.current_offset == 8

    with_partition(work)


def test_large_batches_are_read_at_their_size_from_memory_and_from_the_disk() -> None:
    async def work(partition: Partition) -> None:
        for number in range(40):
            await send(partition, bytes([number]) * LARGE_BATCH * 2)
        for _ in range(2):
            for number in range(40):
                ((offset, payload),) = polled(partition, number, 1)
                assert (offset, payload) == (number, bytes([number]) * LARGE_BATCH * 2)
        assert len(polled(partition, 0, 100)) == 40

    with_partition(work)


def test_an_answer_has_its_bound_and_one_batch_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "MAX_POLL_BYTES", 1000)

    async def work(partition: Partition) -> None:
        for size in (2000, 10, 10, 10):
            await send(partition, bytes(size))
        assert [offset for offset, _ in polled(partition, 0, 100)] == [0]
        assert [offset for offset, _ in polled(partition, 1, 100)] == [1, 2, 3]
        first = len(partition.poll(0, 1, 0).read()[0])
        assert partition.poll(0, 100, first).messages == 1, "the bound is reached"
        nothing = partition.poll(9, 1, 0)
        assert (nothing.messages, nothing.last_offset, nothing.current_offset) == (0, -1, 3)

    with_partition(work)


def test_an_answer_may_be_as_large_as_its_bound() -> None:
    async def work(partition: Partition) -> None:
        await send(partition, b"one")
        await send(partition, b"two")
        size = partition.poll(0, 1, 0).size
        assert partition.poll(0, 10, 0, most=2 * size).messages == 2
        assert partition.poll(0, 10, 0, most=2 * size - 1).messages == 1

    with_partition(work)


def test_a_poll_is_shortened_to_whole_messages_and_to_none_only_when_strict() -> None:
    async def work(partition: Partition) -> None:
        await send(partition, b"a", b"b", b"c")
        polled = partition.poll(0, 100, 0)
        one = polled.shortened(1, False)
        assert (one.messages, one.last_offset, one.current_offset) == (1, 0, 2)
        assert polled.shortened(1, True) == ([], 0, -1, 2)
        assert polled.shortened(polled.size, True)[1:] == (3, 2, 2)

    with_partition(work)


def test_each_strategy_has_its_beginning() -> None:
    async def work(partition: Partition) -> None:
        for now in (10, 20, 30):
            await send(partition, b"a", b"b", now=now)
        assert partition.start_of(PollingStrategy.offset(4), 1, None) == 4
        assert [partition.start_of(PollingStrategy.timestamp(at), 1, None) for at in (0, 20, 21, 31)] == [0, 2, 4, 6]
        assert partition.start_of(PollingStrategy.first(), 1, 3) == 0
        assert partition.start_of(PollingStrategy.last(), 2, None) == 4
        assert partition.start_of(PollingStrategy.last(), 100, None) == 0
        assert partition.start_of(PollingStrategy.next(), 1, None) == 0
        assert partition.start_of(PollingStrategy.next(), 1, 3) == 4

    with_partition(work)


def test_readers_learn_of_what_was_stored_and_of_what_was_dropped() -> None:
    async def work(partition: Partition) -> None:
        seen: list[tuple[int, int]] = []
        partition.on_stored = lambda: seen.append((partition.log.start_offset, partition.log.end_offset))
        await send(partition, b"a", b"b")
        assert seen == [(0, 2)]
        await drop(partition, 1)
        assert seen[-1] == (1, 2)

    with_partition(work)


def test_a_write_that_fails_is_answered_to_all_who_wait_and_readers_learn_nothing() -> None:
    files = RecordingFiles()

    async def work(partition: Partition) -> None:
        received: list[StorageError | None] = []
        partition.on_stored = lambda: received.append(None)
        files.faults = dict.fromkeys(range(files.attempts, files.attempts + 20), errno.EIO)
        for _ in range(2):
            batch, count = of_messages([Message(b"x")], 1)
            checksums = admit(batch, 0, len(batch), count)
            partition.append(Batch(batch, 0, len(batch)), count, checksums, 5, 0, received.append)
        await partition.flush()
        assert [isinstance(error, StorageError) for error in received] == [True, True]
        assert partition.log.end_offset == 0

    with_partition(work, files)


def begin(partition: Partition, outcomes: list[StorageError | None], *payloads: bytes) -> None:
    """Send messages with the ids 1, 2 and so on; the outcome comes later."""
    batch, count = of_messages([Message(payload, id=at) for at, payload in enumerate(payloads, 1)], 1)
    checksums = admit(batch, 0, len(batch), count)
    partition.append(Batch(batch, 0, len(batch)), count, checksums, 5, 0, outcomes.append)


def test_a_repeated_send_is_refused_each_time_by_a_log_that_is_read_only() -> None:
    files = RecordingFiles()

    async def work(partition: Partition) -> None:
        partition.unique = UniqueIds(partition.log, 1 << 40, 1)
        await send(partition, b"kept")
        files.faults = {files.attempts: errno.EIO}
        outcomes: list[StorageError | None] = []
        begin(partition, outcomes, b"lost")
        await partition.flush()
        assert outcomes[0] is not None and partition.log.failure is not None
        for _ in range(2):
            with pytest.raises(StorageError):
                begin(partition, outcomes, b"lost")
        assert len(outcomes) == 1

    with_partition(work, files)


def test_a_repeated_send_is_not_confirmed_where_the_disk_refused_the_first() -> None:
    files = RecordingFiles()

    async def work(partition: Partition) -> None:
        partition.unique = UniqueIds(partition.log, 1 << 40, 1)
        await send(partition, b"kept")
        files.capacity = files.used + 1000
        outcomes: list[StorageError | None] = []

        begin(partition, outcomes, bytes(LONE_BYTES))
        begin(partition, outcomes, bytes(LONE_BYTES), b"new")
        await asyncio.sleep(0)
        begin(partition, outcomes, bytes(LONE_BYTES))
        begin(partition, outcomes, bytes(LONE_BYTES), b"new", b"newer")
        assert (len(partition.committer.writing), len(partition.committer.waiting)) == (2, 2)
        await partition.flush()
        assert [isinstance(outcome, DiskFull) for outcome in outcomes] == [True] * 4
        files.capacity = None
        begin(partition, outcomes, b"again", b"new", b"newer")
        await partition.flush()
        assert outcomes[-1] is None
        assert [payload for _, payload in polled(partition, 0, 9)] == [b"kept", b"again", b"new", b"newer"]

    with_partition(work, files)


def test_a_checkpoint_is_made_when_enough_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    files = RecordingFiles()
    monkeypatch.setattr(log_module, "CHECKPOINT_BYTES", 1)

    async def work(partition: Partition) -> None:
        await send(partition, b"a")
        await partition.flush()
        assert CHECKPOINT_FILE in files.listdir("log")

    with_partition(work, files)


def test_a_disk_that_is_far_behind_refuses() -> None:
    async def work(partition: Partition) -> None:
        partition.committer.add(lambda error: None, MAX_STAGED_BYTES + 1)
        with pytest.raises(IggyError) as caught:
            await send(partition, b"x")
        assert caught.value.name == "cannot_append_message"

    with_partition(work)


def test_records_from_nats_are_translated_and_deleted_ones_left_out() -> None:
    async def work(partition: Partition) -> None:
        log = partition.log
        for number in range(6):
            log.stage(b"orders.%d" % number, b"NATS/1.0\r\nA: %d\r\n\r\n" % number, b"p%d" % number, 7000 + number)
        staged = log.seal()
        assert staged is not None
        log.write(staged)
        log.publish(staged)
        log.discard(2)
        assert polled(partition, 1, 3) == [(1, b"p1"), (3, b"p3"), (4, b"p4")]
        await send(partition, b"iggy")
        assert polled(partition, 4, 9) == [(4, b"p4"), (5, b"p5"), (6, b"iggy")]

    with_partition(work)


def test_records_with_the_times_of_a_copied_stream_are_read_however_far_apart_they_are() -> None:
    hour = 3600 * 10**9

    async def work(partition: Partition) -> None:
        log = partition.log
        for number in range(6):
            log.stage(b"copied", b"", b"p%d" % number, hour * number)
        staged = log.seal()
        assert staged is not None
        log.write(staged)
        log.publish(staged)
        assert polled(partition, 1, 4) == [(number, b"p%d" % number) for number in range(1, 5)]
        found = messages(b"".join(partition.poll(0, 9, 0).read()))
        assert [message.origin_timestamp for message in found] == [hour * number // MICROSECONDS for number in range(6)]

    with_partition(work)


def test_a_message_from_nats_has_typed_headers_its_subject_and_its_id() -> None:
    block = bytes(Headers([("A", "1"), ("Iggy-Message-Id", "7")]))
    part = part_of(StoredRecord(3, 9 * MICROSECONDS, b"orders.eu", block, b"x"), 5)
    assert (int.from_bytes(part.id, "little"), part.payload, part.origin) == (7, b"x", 9)
    assert TypedHeaders.decode(part.headers, HeaderForm.TYPED).to_python() == {"A": "1", "Nats-Subject": "orders.eu"}
    own = bytes(Headers([("A", "1"), ("Nats-Subject", "source.eu")]))
    republished = part_of(StoredRecord(3, 0, b"orders.eu", own, b"x"), 5)
    found = TypedHeaders.decode(republished.headers, HeaderForm.TYPED).to_python()
    assert found == {"Nats-Subject": "orders.eu", "A": "1", "Nats-Subject#2": "source.eu"}
    broken = part_of(StoredRecord(3, 0, b"s", b"no headers at all", b"x"), 5)
    assert "Nats-Header-Error" in TypedHeaders.decode(broken.headers, HeaderForm.TYPED).to_python()
    for digits in (60, 5000):  # int() itself refuses more than 4,300
        huge = part_of(StoredRecord(3, 0, b"s", bytes(Headers([("Iggy-Message-Id", "9" * digits)])), b"x"), 5)
        assert (int.from_bytes(huge.id, "little"), len(huge.id), len(part.id)) == (0, 16, 16)
    for texts in (["007"], ["0"], ["7", "8"]):  # no id reads so: it would come back as another text, or not at all
        named = part_of(
            StoredRecord(3, 0, b"s", bytes(Headers([("Iggy-Message-Id", text) for text in texts])), b"x"), 5
        )
        values = list(TypedHeaders.decode(named.headers, HeaderForm.TYPED).to_python().values())
        assert (int.from_bytes(named.id, "little"), values[:-1]) == (0, texts)
    odd = part_of(StoredRecord(3, 0, b"a.\xff", b"", b"x"), 5)
    assert TypedHeaders.decode(odd.headers, HeaderForm.TYPED).to_python() == {"Nats-Subject": "a.\ufffd"}


def test_a_message_from_nats_names_the_headers_that_had_to_be_left_out() -> None:
    def headers_of(subject: bytes, *items: tuple[str, str]) -> dict[str, object]:
        part = part_of(StoredRecord(3, 0, subject, bytes(Headers(items)), b"x"), 5)
        return dict(TypedHeaders.decode(part.headers, HeaderForm.TYPED).to_python())

    assert headers_of(b"s", ("A", "1"), ("Long", "x" * 256), ("B", "2")) == {
        "A": "1",
        "B": "2",
        "Nats-Subject": "s",
        "Nats-Header-Error": "left out, above 255 bytes: Long",
    }
    assert headers_of(b"s." * 128 + b"s") == {"Nats-Header-Error": "left out, above 255 bytes: Nats-Subject"}
    many = headers_of(b"s", *[(f"{number:03}" + "n" * 300, "") for number in range(9)])["Nats-Header-Error"]
    assert isinstance(many, str)
    assert many.startswith("left out, above 255 bytes: 000nnn") and len(many) == 255


@pytest.mark.skipif(sys.platform != "linux", reason="ranges are for Linux")
def test_whoever_takes_ranges_gets_large_batches_unread_and_the_same_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(partition: Partition) -> None:
        big = bytes(LARGE_BATCH)
        for payloads in ([big], [b"a", b"b"], [big, big], [big], [big, big], [b"c"], [big]):
            await send(partition, *payloads)
        end = partition.log.end_offset
        for _ in range(2):
            for start in range(end + 1):
                for count in (1, 2, 3, 100):
                    found = partition.poll(start, count, 0, ranges=True)
                    plain = partition.poll(start, count, 0)
                    assert found.read() == plain.read() and found[1:] == plain[1:]
        partition.poll(0, 1, 0)
        parts = partition.poll(5, 4, 0, ranges=True).batches
        assert [type(part) is bytes for part in parts] == [False, False, True], "the last one is cut out of a batch"
        monkeypatch.setattr(partitions, "MAX_POLL_BYTES", 3 * LARGE_BATCH)
        assert [partition.poll(5, count, 0, ranges=True).messages for count in (1, 3, 100)] == [1, 1, 1]
        assert partition.poll(5, 0, 0, ranges=True).messages == 0

    with_partition(work, OsFiles(), str(tmp_path))


@pytest.mark.skipif(sys.platform != "linux", reason="ranges are for Linux")
def test_a_range_whose_file_was_cut_meanwhile_cannot_be_read(tmp_path: Path) -> None:
    async def work(partition: Partition) -> None:
        for _ in range(2):
            await send(partition, bytes(LARGE_BATCH))
        partition.poll(0, 1, 0)
        found = partition.poll(1, 1, 0, ranges=True)
        os.truncate(tmp_path / segment_name(0), LARGE_BATCH)
        with pytest.raises(StorageError):
            found.read()

    with_partition(work, OsFiles(), str(tmp_path))


@pytest.mark.skipif(sys.platform != "linux", reason="ranges are for Linux")
def test_a_bit_that_flipped_on_disk_is_found_by_another_process_before_anything_is_sent_from_the_file(
    tmp_path: Path,
) -> None:
    big = bytes(LARGE_BATCH)

    async def write(partition: Partition) -> None:
        for _ in range(3):
            await send(partition, big)
        partition.log.close()

    async def read(partition: Partition) -> None:
        for ranges in (True, False, True):
            sent = b"".join(partition.poll(0, 10, 0, ranges=ranges).read())
            assert [(message.offset, message.payload == big) for message in messages(sent)] == [(0, True), (2, True)]
            sent = b"".join(partition.poll(1, 1, 0, ranges=ranges).read())
            assert [message.offset for message in messages(sent)] == [2]

    with_partition(write, OsFiles(), str(tmp_path))
    path = tmp_path / segment_name(0)
    stored = bytearray(path.read_bytes())
    stored[len(stored) // 2] ^= 1  # in the second of three batches of one size
    path.write_bytes(stored)
    with_partition(read, OsFiles(), str(tmp_path))
