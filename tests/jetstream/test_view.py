"""A stream that another part writes: read under one subject, counted, followed, and never closed from here."""

from pathlib import Path

from headwater.durable_files.files import OsFiles
from headwater.jetstream.view import SubjectedLog, ViewStream
from headwater.jetstream_state.store import StreamDirectory
from headwater.jetstream_state.subject_table import SubjectFilter
from headwater.streams.iggy_batch import BATCH_HEADER, BATCH_HEADER_SIZE, FRAME, stamp
from headwater.streams.log import Log, LogOptions

SECOND = 1_000_000_000
WHOLE = 1 << 20


def store(log: Log, *payloads: bytes) -> None:
    """One batch in the Iggy dialect, readable."""
    body = bytearray(BATCH_HEADER_SIZE)
    for delta, payload in enumerate(payloads):
        body += FRAME.pack(0, (5).to_bytes(16, "little"), delta, 0, 0, len(payload), 0) + payload
    BATCH_HEADER.pack_into(body, 0, 0, 0, 0, 0, len(body), 0, len(payloads))
    stamp(body, 0, 0, log.next_offset, SECOND // 1000)
    log.stage_iggy(bytes(body), len(payloads), SECOND)
    batch = log.seal()
    assert batch is not None
    log.write(batch)
    log.publish(batch)


def open_log(folder: Path) -> Log:
    return Log.open(OsFiles(), str(folder / "log"), LogOptions(), SECOND)


def view_of(log: Log, folder: Path) -> ViewStream:
    return ViewStream("V", "v.all", log, StreamDirectory(OsFiles(), str(folder / "view")), 1, lambda: SECOND)


def test_records_are_read_under_the_one_subject_up_to_what_was_asked(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    store(log, b"one", b"two", b"three")
    view = SubjectedLog(log, b"v.all")
    assert [(r.offset, r.subject, r.payload) for r in view.read(1, 10, WHOLE)] == [
        (1, b"v.all", b"two"),
        (2, b"v.all", b"three"),
    ]
    assert [r.offset for r in view.read(0, 2, WHOLE)] == [0, 1]
    assert [r.offset for r in view.read(0, 10, 1)] == [0]  # one is always given
    assert view.read(0, 0, WHOLE) == []
    some, after = view.read_matching(0, lambda subject: subject == b"v.all", 2, WHOLE, 1)
    assert ([r.offset for r in some], after) == ([0, 1], 2)
    assert view.read_matching(0, lambda subject: False, 2, WHOLE, 1) == ([], 3)
    log.discard(1)
    assert [r.offset for r in view.read(0, 10, WHOLE)] == [0, 2]
    log.close()


def test_closing_the_view_leaves_the_log_to_its_owner(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    SubjectedLog(log, b"v.all").close()
    store(log, b"still open")
    assert log.record_count == 1
    log.close()


def test_a_view_is_sealed_and_counts_what_the_other_has_stored(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    store(log, b"one", b"two")
    stream = view_of(log, tmp_path)
    assert stream.config.sealed
    state = stream.state()
    assert (state.messages, state.first_seq, state.last_seq, state.num_subjects) == (2, 1, 2, 1)
    assert stream.contents.count_from(2, SubjectFilter([b"v.*"])) == 1
    assert stream.contents.count_from(1, SubjectFilter([b"other"])) == 0
    log.close()
