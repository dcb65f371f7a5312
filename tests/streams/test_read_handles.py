"""The files that many logs read have one limit, whatever each of them might keep open alone."""

import os
from itertools import islice
from pathlib import Path

from headwater.durable_files.files import OsFiles
from headwater.streams.log import Log, LogOptions
from headwater.streams.read_handles import FEWEST, ReadHandles

BIG = 40_000  # bytes of a record: two do not fit into the smallest segment
LOGS, SEGMENTS = 6, 12


def filled(folder: Path, handles: ReadHandles) -> Log:
    """A log of SEGMENTS segments with a record each."""
    options = LogOptions(sync="never", cache_bytes=0, preallocate_bytes=0, segment_bytes=1 << 16)
    log = Log.open(OsFiles(), str(folder), options, 1)
    log.reader.handles = handles
    for number in range(SEGMENTS):
        log.stage(b"s", b"", bytes([number]) * BIG, 1)
        batch = log.seal()
        assert batch is not None
        log.write(batch)
        log.publish(batch)
    return log


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_logs_that_share_a_limit_keep_to_it_together_and_read_everything(tmp_path: Path) -> None:
    handles = ReadHandles(FEWEST)
    logs = [filled(tmp_path / str(number), handles) for number in range(LOGS)]
    before = descriptors()
    for turn in range(2):
        for log in logs:
            for number in range(SEGMENTS):
                if turn:
                    (record,) = log.read(number, 1, 1)
                else:
                    found = log.reader.record(number)
                    assert found is not None
                    record = found
                assert record.payload == bytes([number]) * BIG
                assert len(handles) <= FEWEST
        assert descriptors() - before == len(handles) == FEWEST
    for log in logs:
        log.close()
    assert len(handles) == 0


def test_a_reader_that_has_paused_goes_on_when_its_file_was_closed_meanwhile(tmp_path: Path) -> None:
    handles = ReadHandles(1)
    one, other = (filled(tmp_path / name, handles) for name in ("one", "other"))
    batches = one.batches(0, 1)
    first = next(batches)
    for number in range(SEGMENTS):
        assert other.reader.record(number) is not None
    rest = list(islice(batches, SEGMENTS))
    assert [batch.header.base_offset for batch in (first, *rest)] == list(range(SEGMENTS))
    one.close()
    other.close()


def test_a_segment_that_is_dropped_has_no_place_any_more(tmp_path: Path) -> None:
    handles = ReadHandles(FEWEST)
    log = filled(tmp_path, handles)
    assert log.reader.record(0) is not None and len(handles) == 1
    assert log.discard(0) == [0]
    upkeep = log.plan_upkeep()
    assert upkeep is not None and upkeep.dropped
    log.maintain(upkeep)
    log.settle(upkeep)
    assert len(handles) == 0
    log.close()
