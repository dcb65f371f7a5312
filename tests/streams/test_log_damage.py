"""What a failing disk or a careless hand does to files at rest: flipped bits, cut tails, files that are gone.

Nothing beyond the touched record is lost, every loss is reported, no wrong byte is served, no offset is used again.
"""

from random import Random

import pytest
from support.recording_files import Disk, RecordingFiles

from headwater.durable_files import documents
from headwater.errors import CorruptLog
from headwater.operations.inspection import survey
from headwater.streams.clean_index import INDEX_FILE
from headwater.streams.end_file import END_FILE
from headwater.streams.head_page import HEAD_PAGE_SIZE
from headwater.streams.log import Log
from headwater.streams.log_format import BATCH_HEADER_SIZE, RECORD_HEAD_SIZE
from headwater.streams.log_state import RESERVATION
from headwater.streams.options import LogOptions
from headwater.streams.segment import segment_name

DIRECTORY = "log"
OPTIONS = LogOptions(segment_bytes=64 << 10, preallocate_bytes=0)
Contents = dict[int, bytes]


def append(log: Log, payloads: list[bytes]) -> list[int]:
    offsets = [log.stage(b"s", b"", payload, 1) for payload in payloads]
    batch = log.seal()
    assert batch is not None
    log.write(batch)
    log.publish(batch)
    return offsets


def contents(log: Log) -> Contents:
    return {record.offset: record.payload for record in log.read(0, 1 << 30, 1 << 40)}


def small_log(clean: bool = False) -> tuple[Disk, Contents]:
    """A log of five batches of three records. Not closed unless `clean`: as after a kill -9."""
    files = RecordingFiles(seed=3)
    log = Log.open(files, DIRECTORY, OPTIONS, 1)
    for batch in range(5):
        append(log, [b"payload %d %d" % (batch, record) for record in range(3)])
    found = contents(log)
    if clean:
        log.close()
    return files.snapshot(), found


SEGMENT = f"{DIRECTORY}/{segment_name(0)}"


BATCH = BATCH_HEADER_SIZE + 3 * (RECORD_HEAD_SIZE + len(b"s" + b"payload 0 0"))  # bytes of each in `small_log`


def disk_with(disk: Disk, path: str, content: bytes) -> Disk:
    return Disk(disk.names, disk.contents | {disk.names[path]: content}, disk.directories)


def reopen(disk: Disk, path: str = "", content: bytes | None = None) -> tuple[RecordingFiles, Log]:
    files = RecordingFiles(disk, seed=9)
    if path and content is not None:
        files.replace_content(path, content)
    return files, Log.open(files, DIRECTORY, OPTIONS, 1)


def check_after_damage(files: RecordingFiles, log: Log, before: Contents) -> Contents:
    """What must hold after one flipped bit; returns what is still there."""
    found = contents(log)
    assert found.items() <= before.items(), "a wrong payload was served"
    assert log.next_offset >= len(before), "an offset would be used twice"
    lost = sorted(before.keys() - found.keys())
    if lost:
        assert len(lost) == 1, "more than the touched record is lost"
        assert any((damage.start, damage.end) == (lost[0], lost[0] + 1) for damage in log.damage)
    (offset,) = append(log, [b"after"])
    assert contents(log) == found | {offset: b"after"}
    log.close()
    again = Log.open(files, DIRECTORY, OPTIONS, 2)
    assert contents(again) == found | {offset: b"after"}, "the second opening found something else"
    again.close()
    return found


@pytest.mark.parametrize("clean", [False, True], ids=["killed", "closed"])
def test_one_flipped_bit_anywhere_costs_at_most_its_record_and_is_found_by_opening_and_by_verify(clean: bool) -> None:
    disk, before = small_log(clean)
    random = Random(1)
    for path, inode in disk.names.items():
        original = disk.contents[inode]
        for at in range(len(original)):
            if path == SEGMENT and 1536 <= at < HEAD_PAGE_SIZE and at % 64:
                continue  # zeros, all alike
            damaged = bytearray(original)
            damaged[at] ^= 1 << random.randrange(8)
            files, log = reopen(disk, path, bytes(damaged))
            found = contents(log)
            in_a_record = (
                path == SEGMENT and at >= HEAD_PAGE_SIZE and (at - HEAD_PAGE_SIZE) % BATCH >= BATCH_HEADER_SIZE
            )
            assert len(before) - len(found) == in_a_record
            assert log.damage or log.recovery.notes, f"byte {at} of {path}: not reported"
            verified = survey(RecordingFiles(disk_with(disk, path, bytes(damaged))), DIRECTORY)
            assert verified.decision.damage or verified.notes or path.endswith(INDEX_FILE), f"byte {at} of {path}"
            if at % 32 == 0 or (path == SEGMENT and at > HEAD_PAGE_SIZE):
                check_after_damage(files, log, before)
            else:
                log.close()


@pytest.mark.parametrize("clean", [False, True], ids=["killed", "closed"])
def test_a_tail_cut_at_every_byte_is_reported_and_its_offsets_are_never_used_again(clean: bool) -> None:
    disk, before = small_log(clean)
    original = disk.contents[disk.names[SEGMENT]]
    for size in range(HEAD_PAGE_SIZE, len(original)):
        files, log = reopen(disk, SEGMENT, original[:size])
        found = contents(log)
        assert list(found.items()) == list(before.items())[: len(found)]
        whole, rest = divmod(size - HEAD_PAGE_SIZE, BATCH)
        record = (BATCH - BATCH_HEADER_SIZE) // 3
        assert len(found) == 3 * whole + max(0, rest - BATCH_HEADER_SIZE) // record, "a cut costs what it cut"
        assert log.next_offset == len(before)
        (damage,) = log.recovery.damage
        assert (damage.start, damage.end) == (len(found), len(before))
        assert damage.certain or (not clean and damage.start >= 12), "only the newest batch may be in doubt"
        assert bool(damage.kept) == bool(damage.size)
        if damage.kept:
            assert files.content(f"{DIRECTORY}/{damage.kept}") == original[damage.position : size].rstrip(b"\0")
        (offset,) = append(log, [b"after"])
        assert offset == len(before)
        log.close()
        again = Log.open(files, DIRECTORY, OPTIONS, 2)
        assert contents(again) == found | {offset: b"after"}
        again.close()


@pytest.mark.parametrize("noted", [False, True])
def test_a_tail_cut_at_every_byte_after_a_power_loss_gives_no_offset_to_another_record(noted: bool) -> None:
    """`log.end` is of an older time then, or lost; the mark reserves what later batches used."""
    disk, before = small_log()
    original = disk.contents[disk.names[SEGMENT]]
    for size in range(HEAD_PAGE_SIZE, len(original)):
        files = RecordingFiles(disk, boot_id=b"a start after it")
        files.replace_content(SEGMENT, original[:size])
        if not noted:
            files.unlink(f"{DIRECTORY}/{END_FILE}")
        log = Log.open(files, DIRECTORY, OPTIONS, 1)
        found = contents(log)
        assert list(found.items()) == list(before.items())[: len(found)]
        assert log.next_offset >= len(before), "an offset would be used twice"
        (damage,) = log.recovery.damage
        assert (damage.start, damage.certain) == (len(found), noted)
        assert damage.end >= len(before)


@pytest.mark.parametrize("size", [0, 10, 511, 512, 1024, 4095])
def test_a_segment_cut_into_its_head_page_is_left_alone_and_numbering_jumps_past_the_reservation(size: int) -> None:
    disk, before = small_log()
    original = disk.contents[disk.names[SEGMENT]]
    files, log = reopen(disk, SEGMENT, original[:size])
    assert contents(log) == {}
    assert log.recovery.lost
    assert log.next_offset == 3 + RESERVATION >= len(before)
    assert files.content(SEGMENT) == original[:size]
    check_after_damage(files, log, {})


def test_a_newest_segment_that_is_gone_is_reported_and_its_offsets_are_not_used_again() -> None:
    files = RecordingFiles()
    log = Log.open(files, DIRECTORY, OPTIONS, 1)
    for _ in range(5):
        append(log, [b"x" * 30_000])
    before = contents(log)
    newest = max(name for name in files.names if name.endswith(".log"))
    files.locks.clear()
    files.unlink(newest)
    log = Log.open(files, DIRECTORY, OPTIONS, 1)
    assert log.next_offset == 1 + RESERVATION
    assert log.recovery.lost[-1].kind == "missing"
    assert contents(log) == {offset: payload for offset, payload in before.items() if offset < 4}
    log.close()
    assert Log.open(files, DIRECTORY, OPTIONS, 1).recovery.damage == ()


@pytest.mark.parametrize("which", [0, 1])
def test_an_older_segment_that_is_gone_costs_its_records_only(which: int) -> None:
    files = RecordingFiles()
    log = Log.open(files, DIRECTORY, OPTIONS, 1)
    for _ in range(6):
        append(log, [b"x" * 30_000])
    before = contents(log)
    log.close()
    names = sorted(name for name in files.names if name.endswith(".log"))
    assert len(names) == 3
    files.unlink(names[which])
    log = Log.open(files, DIRECTORY, OPTIONS, 1)
    lost = range(which * 2, which * 2 + 2)
    assert contents(log) == {offset: payload for offset, payload in before.items() if offset not in lost}
    (damage,) = log.recovery.lost
    assert (damage.kind, damage.start, damage.end) == ("missing", lost.start, lost.stop)


def test_a_sealed_segment_cut_short_is_reported_and_the_next_one_is_whole() -> None:
    files = RecordingFiles()
    log = Log.open(files, DIRECTORY, OPTIONS, 1)
    for _ in range(6):
        append(log, [b"x" * 30_000])
    before = contents(log)
    log.close()
    original = files.content(SEGMENT)
    for size in (len(original) - 1, HEAD_PAGE_SIZE + 30_100, HEAD_PAGE_SIZE, 100):
        damaged = RecordingFiles(files.snapshot())
        damaged.replace_content(SEGMENT, original[:size])
        log = Log.open(damaged, DIRECTORY, OPTIONS, 1)
        found = contents(log)
        assert found.items() <= before.items()
        assert found.keys() >= {2, 3, 4, 5}
        (damage,) = log.recovery.lost
        assert (damage.start, damage.end) == (len(found) - 4, 2)
        assert log.next_offset == 6
        assert damaged.content(SEGMENT) == original[:size], "a sealed segment is evidence: not touched"


def test_a_page_of_zeros_or_of_an_older_self_is_skipped_and_reported() -> None:
    disk, before = small_log()
    original = disk.contents[disk.names[SEGMENT]]
    first_batch = original[HEAD_PAGE_SIZE : HEAD_PAGE_SIZE + (len(original) - HEAD_PAGE_SIZE) // 5]
    for foreign in (bytes(len(first_batch)), first_batch):
        at = HEAD_PAGE_SIZE + 2 * len(first_batch)
        content = original[:at] + foreign + original[at + len(first_batch) :]
        _, log = reopen(disk, SEGMENT, content)
        assert contents(log) == {offset: payload for offset, payload in before.items() if not 6 <= offset < 9}
        (damage,) = log.recovery.damage
        assert (damage.kind, damage.start, damage.end, damage.certain) == ("corrupt", 6, 9, True)


def test_a_published_copy_of_the_log_is_never_taken_for_the_log() -> None:
    files = RecordingFiles()
    log = Log.open(files, DIRECTORY, OPTIONS, 1)
    append(log, [b"one"])
    append(log, [b"before " + files.content(SEGMENT)[HEAD_PAGE_SIZE:]])
    append(log, [b"three"])
    position = files.content(SEGMENT).index(b"before ")
    content = bytearray(files.content(SEGMENT))
    content[position] ^= 1
    _, log = reopen(files.snapshot(), SEGMENT, bytes(content))
    assert contents(log) == {0: b"one", 2: b"three"}


def test_damage_that_appears_while_the_log_is_open_is_skipped_by_readers_and_reported_once() -> None:
    files = RecordingFiles()
    log = Log.open(files, DIRECTORY, LogOptions(cache_bytes=0), 1)
    for number in range(5):
        append(log, [b"payload %d" % number])
    content = bytearray(files.content(SEGMENT))
    content[content.index(b"payload 2")] ^= 1
    files.replace_content(SEGMENT, bytes(content))
    for _ in range(2):
        assert [record.offset for record in log.read(0, 10, 1 << 20)] == [0, 1, 3, 4]
        assert [record.offset for record in log.read(2, 10, 1 << 20)] == [3, 4]
    (damage,) = log.damage
    assert (damage.start, damage.end, damage.kind) == (2, 3, "corrupt")


def test_losing_the_state_document_or_either_copy_costs_nothing() -> None:
    disk, before = small_log()
    for lost in ([".a"], [".b"], [".a", ".b"]):
        files = RecordingFiles(disk)
        for copy in lost:
            files.unlink(f"{DIRECTORY}/log.state{copy}")
        log = Log.open(files, DIRECTORY, OPTIONS, 1)
        assert contents(log) == before
        assert log.recovery.notes
        check_after_damage(files, log, before)


def test_a_log_of_a_newer_version_is_refused_and_not_touched() -> None:
    files = RecordingFiles()
    log = Log.open(files, DIRECTORY, OPTIONS, 1)
    append(log, [b"one"])
    log.close()
    document = documents.load(files, f"{DIRECTORY}/log.state")
    assert document is not None
    documents.save(files, f"{DIRECTORY}/log.state", document.replace(b'"format_version": 2', b'"format_version": 3'))
    before = files.snapshot()
    with pytest.raises(CorruptLog, match="newer Headwater"):
        Log.open(files, DIRECTORY, OPTIONS, 1)
    assert files.snapshot() == before
    assert files.open_files == 0
