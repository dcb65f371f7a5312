"""A segment written anew holds what is live and nothing else, and says as before how far it reached."""

from hypothesis import given
from hypothesis import strategies as st
from support.recording_files import RecordingFiles

from headwater.streams.compaction import rewrite, worth_compacting
from headwater.streams.log import Log, LogOptions
from headwater.streams.offset_set import OffsetSet
from headwater.streams.recovery import examine
from headwater.streams.segment import segment_name
from headwater.streams.walking import walk
from headwater.streams.window import FoundBatch

DIRECTORY = "log"
PATH = f"{DIRECTORY}/{segment_name(0)}"


@given(st.lists(st.integers(1, 6), min_size=1, max_size=8), st.sets(st.integers(0, 40)))
def test_what_is_live_stays_with_its_offsets_and_the_end_is_kept(sizes: list[int], gone: set[int]) -> None:
    files = RecordingFiles()
    log = Log.open(files, DIRECTORY, LogOptions(preallocate_bytes=0), 1)
    for size in sizes:
        for number in range(size):
            log.stage(b"s", b"", b"%d" % number, 1)
        batch = log.seal()
        assert batch is not None
        log.write(batch)
        log.publish(batch)
    identity = files.content(PATH)[12:20]
    content = files.content(PATH)
    facts = examine(lambda size, at: content[at : at + size], len(content), segment_name(0), 0, identity, 1 << 40)
    absent = OffsetSet()
    for offset in gone:
        absent.add(offset, offset + 1)
    rewritten = rewrite(files, PATH, facts, identity, absent, [])
    assert rewritten is not None
    fresh = files.content(PATH + ".new")
    found = [
        offset
        for piece in walk(lambda size, at: fresh[at : at + size], 4096, len(fresh), identity, 0, 1 << 40)
        if isinstance(piece, FoundBatch) and piece.header.holds_records
        for offset in _offsets(piece)
    ]
    live = [offset for offset in range(sum(sizes)) if offset not in gone]
    assert found == live
    assert (rewritten.record_count, rewritten.end_offset) == (len(live), facts.end_offset)
    assert rewritten.end_position == len(fresh)


def _offsets(piece: FoundBatch) -> list[int]:
    cursor, offsets = piece.cursor(), []
    while cursor.advance():
        offsets.append(cursor.offset)
    return offsets


def test_half_is_enough_to_be_worth_it() -> None:
    assert worth_compacting(10, 5)
    assert not worth_compacting(10, 4)
    assert not worth_compacting(0, 0)
