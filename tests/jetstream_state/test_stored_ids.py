"""Message ids are found in the files of a log, in its order, whether their messages were removed or not."""

from pathlib import Path

from headwater.durable_files.files import OsFiles
from headwater.jetstream_state.store import PositionsRecord
from headwater.jetstream_state.stored_ids import StoredId, learn_ids, stored_ids
from headwater.model.dedup import DuplicateWindow
from headwater.streams.log import Log
from headwater.streams.options import LogOptions


def block(number: int) -> bytes:
    return b"NATS/1.0\r\nNats-Msg-Id: %d\r\n\r\n" % number if number % 3 else b""


def stored(number: int) -> StoredId:
    return StoredId(b"%d" % number if number % 3 else b"", number, number * 10)


def filled(directory: Path) -> Log:
    """Ten messages with time stamps 0, 10 … 90, each in a batch of its own, two to a segment."""
    log = Log.open(OsFiles(), str(directory), LogOptions(segment_bytes=65536), now_ns=0)
    for number in range(10):
        log.stage(b"s", block(number), bytes(29_000), number * 10)
        batch = log.seal()
        assert batch is not None
        log.write(batch)
        log.publish(batch)
    return log


def test_ids_of_removed_messages_are_found(tmp_path: Path) -> None:
    log = filled(tmp_path)
    try:
        log.discard_range(4, 9)
        assert list(stored_ids(log, 0, -1)) == [stored(number) for number in range(10)]
        assert list(stored_ids(log, 7, -1)) == [stored(number) for number in range(7, 10)]
    finally:
        log.close()


def test_segments_whose_messages_are_too_old_are_not_read(tmp_path: Path) -> None:
    log = filled(tmp_path)
    try:
        assert list(stored_ids(log, 0, 50)) == [stored(number) for number in range(6, 10)]
        assert [one.offset for one in stored_ids(log, 0, 1000)][-1:] == [9]
    finally:
        log.close()


def test_saved_ids_stand_for_what_has_left_the_disk(tmp_path: Path) -> None:
    before = DuplicateWindow(1000)
    for number in range(10):
        before.remember(b"%d" % number, number, number * 10)
    log = filled(tmp_path)
    try:
        log.discard_range(0, 10)
        while (upkeep := log.plan_upkeep(None)) is not None:
            log.maintain(upkeep)
            log.settle(upkeep)
        assert [one.offset for one in stored_ids(log, 0, -1)] == [8, 9]
        window = DuplicateWindow(1000)
        saved = PositionsRecord(9, {}, [], before.dump(7, newest=6)[:-1])
        assert learn_ids(window, log, 0, saved, 107, 7) == b""
        assert window.dump() == [(b"%d" % number, number, number * 10) for number in range(4, 9)]
        assert learn_ids(DuplicateWindow(1000), log, 0, PositionsRecord(11, {}), 107, 7) == b""
    finally:
        log.close()
