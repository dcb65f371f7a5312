"""The index of a clean stop: it says what reading everything would say, and is believed only while that is so."""

from google_crc32c import value as crc32c
from support.recording_files import RecordingFiles

from headwater.durable_files.documents import load
from headwater.streams.clean_index import INDEX_FILE, absences_of, facts_of, load_index
from headwater.streams.index import SparseIndex
from headwater.streams.log import Log
from headwater.streams.log_state import LogState
from headwater.streams.offset_set import OffsetSet
from headwater.streams.opening import segment_bases, write_index
from headwater.streams.options import LogOptions
from headwater.streams.ownership import STATE_DOCUMENT
from headwater.streams.recovery import SegmentFacts, examine
from headwater.streams.segment import segment_name

OPTIONS = LogOptions(segment_bytes=64 << 10, preallocate_bytes=0)


def closed_log() -> tuple[RecordingFiles, bytes]:
    """Three segments with some records deleted, closed cleanly; and the log's identity."""
    files = RecordingFiles()
    log = Log.open(files, "log", OPTIONS, 1)
    for number in range(15):
        log.stage(b"s", b"", b"%02d" % number * 5000, number)
        batch = log.seal()
        assert batch is not None
        log.write(batch)
        log.publish(batch)
    log.discard_range(3, 6)
    log.discard(9)
    log.close(b"document")
    return files, identity(files)


def identity(files: RecordingFiles) -> bytes:
    document = load(files, f"log/{STATE_DOCUMENT}")
    assert document is not None
    state = LogState.decode(document)
    assert state is not None
    return state.identity


def comparable(facts: SegmentFacts) -> tuple[object, ...]:
    index = facts.index
    return (
        *(facts.name, facts.base_offset, facts.end_offset, facts.end_position, facts.record_count),
        *(facts.first_timestamp_ns, facts.last_timestamp_ns, facts.spoiled, facts.head, facts.mark),
        *(list(index.offsets), list(index.positions), list(index.times), index.latest),
    )


def test_it_says_what_reading_every_batch_would() -> None:
    files, owner = closed_log()
    bases = segment_bases(files, "log")
    assert len(bases) >= 2
    read = []
    for base in bases:
        file = files.open(f"log/{segment_name(base)}")
        read.append(examine(file.pread, file.size(), segment_name(base), base, owner, 15))
    crc = write_index(files, "log", read, OffsetSet(), 0, b"")
    index = load_index(files, "log", crc, bases)
    assert index is not None
    found = facts_of(files, "log", index, owner)
    assert found is not None
    assert [comparable(facts) for facts in found] == [comparable(facts) for facts in read]


def test_absences_and_the_document_come_back() -> None:
    files, _ = closed_log()
    log = Log.open(files, "log", OPTIONS, 1)
    assert log.document == b"document"
    assert [offset for offset in range(15) if log.is_absent(offset)] == [3, 4, 5, 9]
    absent = OffsetSet()
    absent.add(2, 5)
    absent.add(100, 101)
    facts = SegmentFacts(segment_name(0), 0, 4096, SparseIndex(4096), end_offset=200)
    crc = write_index(files, "log", [facts], absent, 0, b"x")
    index = load_index(files, "log", crc, [0])
    assert index is not None
    assert index.document == b"x"
    assert list(absences_of(index).ranges(0, 200)) == [(2, 5), (100, 101)]


def test_another_crc_other_segments_or_another_size_and_it_counts_for_nothing() -> None:
    files, owner = closed_log()
    bases = segment_bases(files, "log")
    crc = crc32c(files.content(f"log/{INDEX_FILE}")) or 1
    index = load_index(files, "log", crc, bases)
    assert index is not None
    assert load_index(files, "log", crc ^ 1, bases) is None
    assert load_index(files, "log", crc, bases[1:]) is None
    assert load_index(files, "nowhere", crc, bases) is None
    last = f"log/{segment_name(bases[-1])}"
    whole = files.content(last)
    for content in (whole[:-1], whole + b"\0\1", whole + bytes(300_000) + b"\1"):
        files.replace_content(last, content)
        assert facts_of(files, "log", index, owner) is None


def test_zeros_behind_the_last_message_change_nothing() -> None:
    """Room that was reserved, and given back by a cut that a power loss undid."""
    files, owner = closed_log()
    bases = segment_bases(files, "log")
    index = load_index(files, "log", crc32c(files.content(f"log/{INDEX_FILE}")) or 1, bases)
    assert index is not None
    as_left = facts_of(files, "log", index, owner)
    last = f"log/{segment_name(bases[-1])}"
    files.replace_content(last, files.content(last) + bytes(300_000))
    found = facts_of(files, "log", index, owner)
    assert as_left is not None
    assert found is not None
    assert [comparable(facts) for facts in found] == [comparable(facts) for facts in as_left]
    files.locks.clear()
    log = Log.open(files, "log", OPTIONS, 1)
    assert (log.recovery.damage, log.recovery.notes, log.document) == ((), (), b"document")


def append(log: Log, payload: bytes) -> None:
    log.stage(b"s", b"", payload, 1)
    batch = log.seal()
    assert batch is not None
    log.write(batch)
    log.publish(batch)


def test_a_gap_at_the_end_of_a_log_that_was_closed_is_absent_at_the_next_opening() -> None:
    """Offsets that a crash gave up, with nothing written behind them before the stop."""
    files = RecordingFiles()
    log = Log.open(files, "log", LogOptions(preallocate_bytes=0), 1)
    append(log, b"one")
    files.locks.clear()
    log = Log.open(files, "log", LogOptions(), 1, known_end=5)
    gap = log.end_offset
    log.close()
    log = Log.open(files, "log", LogOptions(), 1)
    assert log.recovery.records == log.record_count == 1
    assert all(log.is_absent(offset) for offset in (1, 4, gap - 1))
    append(log, b"two")
    assert log.count(0, log.end_offset) == log.record_count == 2
