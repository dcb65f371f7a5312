"""Whose a file is: votes, strangers, and a state of an older time."""

from support.recording_files import RecordingFiles

from headwater.durable_files import documents
from headwater.streams.head_page import HEAD_PAGE_SIZE
from headwater.streams.log import Log
from headwater.streams.log_state import LogState
from headwater.streams.options import LogOptions
from headwater.streams.ownership import STATE_DOCUMENT, judge_owner, judge_segments, not_older_than
from headwater.streams.segment import segment_name

OPTIONS = LogOptions(segment_bytes=64 << 10, preallocate_bytes=0)


def filled(files: RecordingFiles, directory: str, batches: int = 5) -> bytes:
    log = Log.open(files, directory, OPTIONS, 1)
    for _ in range(batches):
        log.stage(b"s", b"", bytes(30_000), 1)
        batch = log.seal()
        assert batch is not None
        log.write(batch)
        log.publish(batch)
    log.close()
    return log.identity


def test_a_log_of_its_own_files_has_no_strangers() -> None:
    files = RecordingFiles()
    identity = filled(files, "A")
    notes: list[str] = []
    owner = judge_owner(files, "A", [0, 2, 4], documents.NO_IDENTITY, notes)
    assert (owner.identity, owner.strangers, notes) == (identity, [], [])
    assert owner.state is not None
    assert owner.state.closed
    assert judge_segments(files, "A", [0, 2, 4], identity) == []
    assert not_older_than(files, "A", [0, 2, 4], owner.state, notes) is owner.state


def test_the_segments_outvote_both_copies_of_a_state_and_a_stream_that_knows_outvotes_all() -> None:
    files = RecordingFiles(seed=1)
    mine, theirs = filled(files, "A"), filled(files, "B")
    for copy in documents.COPIES:
        files.replace_content(f"A/{STATE_DOCUMENT}{copy}", files.content(f"B/{STATE_DOCUMENT}{copy}"))
    owner = judge_owner(files, "A", [0, 2, 4], documents.NO_IDENTITY, [])
    assert (owner.identity, owner.state) == (mine, None)
    assert [path for path, _ in owner.strangers] == [f"A/{STATE_DOCUMENT}.a", f"A/{STATE_DOCUMENT}.b"]
    assert judge_owner(files, "A", [], mine, []).identity == mine
    assert judge_owner(files, "A", [0, 2, 4], theirs, []).identity == theirs


def test_a_segment_of_another_log_or_under_another_name_is_a_stranger() -> None:
    files = RecordingFiles(seed=2)
    mine, theirs = filled(files, "A"), filled(files, "B")
    files.replace_content(f"A/{segment_name(0)}", files.content(f"B/{segment_name(0)}"))
    files.replace_content(f"A/{segment_name(4)}", files.content(f"A/{segment_name(2)}"))
    assert judge_segments(files, "A", [0, 2, 4], mine) == [
        (f"A/{segment_name(0)}", f"is of the log {theirs.hex()}"),
        (f"A/{segment_name(4)}", "is the segment that begins at offset 2"),
    ]


def test_a_state_of_an_older_time_never_has_newer_batches_cut_off() -> None:
    files = RecordingFiles(seed=3)
    filled(files, "A", 1)
    old = {copy: files.content(f"A/{STATE_DOCUMENT}{copy}") for copy in documents.COPIES}
    filled(files, "A")
    for copy, content in old.items():
        files.replace_content(f"A/{STATE_DOCUMENT}{copy}", content)
    log = Log.open(files, "A", OPTIONS, 1)
    assert [record.offset for record in log.read(0, 10, 1 << 30)] == [0, 1, 2, 3, 4, 5]
    assert log.recovery.damage == ()
    assert any("older time" in note for note in log.recovery.notes)
    assert log.next_offset == 6


def test_a_state_is_not_older_because_the_stop_s_mark_was_lost() -> None:
    """It is not synced; the one before it reserves offsets that were not used."""
    files = RecordingFiles(seed=5)
    log = Log.open(files, "A", OPTIONS, 1)
    log.stage(b"s", b"", b"one", 1)
    batch = log.seal()
    assert batch is not None
    log.write(batch)
    log.publish(batch)
    path = f"A/{segment_name(0)}"
    page = files.content(path)[:HEAD_PAGE_SIZE]
    log.close()
    batches = files.content(path)[HEAD_PAGE_SIZE:]
    files.replace_content(path, page + batches)
    files.boot_id = b"a start after it"
    log = Log.open(files, "A", OPTIONS, 1)
    assert (log.next_offset, log.recovery.damage, log.recovery.notes) == (1, (), ())
    log.close()
    junk = b"what nobody wrote into a closed log"
    files.replace_content(path, page + batches + junk)
    assert any("older time" in note for note in Log.open(files, "A", OPTIONS, 1).recovery.notes)


def test_equal_generations_that_differ_are_told() -> None:
    files = RecordingFiles(seed=4)
    files.mkdir("A")
    state = LogState(b"identity", 0, 5, 0, marks_are_synced=True)
    for copy, end in ((".b", 7), (".a", 5)):
        documents.save(files, f"A/{STATE_DOCUMENT}", LogState(b"identity", 0, end, 0, marks_are_synced=True).encode())
        kept = files.content(f"A/{STATE_DOCUMENT}{copy}")
        if copy == ".b":
            documents.remove(files, f"A/{STATE_DOCUMENT}")
            other = kept
    files.replace_content(f"A/{STATE_DOCUMENT}.b", other)
    notes: list[str] = []
    owner = judge_owner(files, "A", [], documents.NO_IDENTITY, notes)
    assert owner.state == state
    assert "differs from the other copy of generation 1" in notes[0]
