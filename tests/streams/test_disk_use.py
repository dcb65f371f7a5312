"""What a log takes on the disk follows what is live in it: twice that, and one segment."""

from collections import deque
from pathlib import Path
from random import Random

import pytest

from headwater.durable_files.files import OsFiles
from headwater.streams.head_page import HEAD_PAGE_SIZE
from headwater.streams.log import Log
from headwater.streams.log_format import BATCH_HEADER_SIZE, RECORD_HEAD_SIZE
from headwater.streams.options import LogOptions
from headwater.streams.upkeep import SMALLEST_ROLL

SIZE = 2000
RECORD = BATCH_HEADER_SIZE + RECORD_HEAD_SIZE + 1 + SIZE
TOMBSTONE = BATCH_HEADER_SIZE + 16
MIB = 1 << 20


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log.open(OsFiles(), str(tmp_path / "log"), LogOptions(sync="never", cache_bytes=0), 1)


def append(log: Log) -> int:
    offset = log.stage(b"s", b"", bytes(SIZE), 1)
    write(log)
    return offset


def write(log: Log) -> None:
    batch = log.seal()
    assert batch is not None
    log.write(batch)
    log.publish(batch)


def tidy(log: Log) -> None:
    """What a committer does after removals: one piece of upkeep after the other, as long as there is one."""
    while (upkeep := log.plan_upkeep()) is not None:
        log.maintain(upkeep)
        log.settle(upkeep)


def used(log: Log) -> int:
    return sum(path.stat().st_size for path in Path(log.directory).iterdir())


def test_a_limit_of_one_megabyte_takes_less_than_two_and_a_half(log: Log) -> None:
    log.limit_to(MIB)
    kept: deque[int] = deque()
    peak = 0
    for _ in range(3000):
        kept.append(append(log))
        if len(kept) > MIB // RECORD:
            log.discard(kept.popleft())
        tidy(log)
        peak = max(peak, used(log))
    assert peak < 2.5 * MIB, f"{peak / MIB:.2f} MiB"
    assert log.record_count == len(kept)
    log.close()


@pytest.mark.parametrize("subjects", [1, 100, 1000])
def test_one_message_per_subject_takes_twice_its_bytes_and_a_segment(log: Log, subjects: int) -> None:
    random = Random(subjects)
    newest: dict[int, int] = {}
    peak = excess = 0
    for _ in range(4000):
        subject = random.randrange(subjects)
        if subject in newest:
            log.discard(newest[subject])
        newest[subject] = append(log)
        tidy(log)
        live = len(newest) * (RECORD + TOMBSTONE)
        segments = len(log.spans)
        allowed = (
            2 * live + max(SMALLEST_ROLL, live // 2) + segments * (HEAD_PAGE_SIZE + 2 * BATCH_HEADER_SIZE) + (512 << 10)
        )
        excess = max(excess, used(log) - allowed)
        peak = max(peak, used(log))
    assert excess <= 0, f"{excess} bytes too many, peak {peak / MIB:.2f} MiB for {live / MIB:.2f} MiB live"
    assert sorted(record.offset for record in log.read(0, 1 << 20, 1 << 30)) == sorted(newest.values())
    log.close()


def test_a_limit_that_is_lifted_gives_full_segments_back(log: Log) -> None:
    log.limit_to(MIB)
    for _ in range(200):
        append(log)
    assert len(log.spans) >= 3
    log.limit_to(0)
    before = len(log.spans)
    for _ in range(600):
        append(log)
    assert len(log.spans) == before
    log.close()
