"""Which bytes of a log are sent as they lie there, which as ranges of files, and which are made anew."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.durable_files.files import OsFiles
from headwater.jetstream_ranges.collecting import Collected, Collecting
from headwater.streams.log import Log
from headwater.streams.options import LogOptions

LARGE = 40_000  # bytes of a payload that makes a large batch


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    opened = Log.open(OsFiles(), str(tmp_path / "log"), LogOptions(sync="never"), 1)
    yield opened
    opened.close()


def fill(log: Log, *batches: list[int]) -> None:
    """Each list is a batch of payloads of so many bytes."""
    for sizes in batches:
        for size in sizes:
            log.stage(b"s", b"", bytes(size), 7)
        batch = log.seal()
        assert batch is not None
        log.write(batch)
        log.publish(batch)


def collected(
    log: Log, start: int, end: int, most: int = 1 << 20, largest: int = 1 << 20, *, ranges: bool = True
) -> Collected:
    return Collecting(log, log, end, most, largest, ranges=ranges).collect(start)


def kinds(found: Collected) -> list[str]:
    return ["bytes" if isinstance(piece, bytes) else "range" for piece in found.pieces[1::2]]


def test_large_batches_that_follow_each_other_go_from_the_file(log: Log) -> None:
    fill(log, [5, 5], [LARGE], [LARGE, LARGE], [5])
    found = collected(log, 0, 6)
    assert (kinds(found), found.batches, found.next) == (["bytes", "bytes", "range", "bytes"], 4, 6)
    read = collected(log, 0, 6, ranges=False)
    assert kinds(read) == ["bytes"] * 4
    assert b"".join(piece if isinstance(piece, bytes) else piece.read() for piece in found.pieces) == b"".join(
        piece for piece in read.pieces if isinstance(piece, bytes)
    )


def test_an_answer_ends_before_what_has_no_room_and_says_so(log: Log) -> None:
    fill(log, [LARGE], [LARGE], [100], [100], [LARGE])
    assert collected(log, 0, 5, 2 * LARGE + 100).next == 2
    assert collected(log, 2, 5, 1000).next == 4
    first_only = collected(log, 0, 5, 1)
    assert (kinds(first_only), first_only.next) == (["range"], 1)
    assert collected(log, 0, 3).next == 3
    assert collected(log, 1, 2).next == 2


def test_a_batch_that_is_not_readable_as_a_whole_is_made_anew_without_the_rest(log: Log) -> None:
    fill(log, [LARGE, LARGE, LARGE], [5, 5, 5])
    log.discard(1)
    log.discard(5)
    found = collected(log, 0, 9)
    assert kinds(found) == ["bytes", "bytes"]
    assert sum(len(piece) for piece in found.pieces) < 3 * LARGE
    assert found.next == 6
    log.discard(3)
    log.discard(4)
    assert (collected(log, 3, 9).batches, collected(log, 3, 9).next) == (0, 6)


def test_a_batch_larger_than_is_sent_as_a_whole_is_cut_between_records(log: Log) -> None:
    fill(log, [1000] * 10)
    found = collected(log, 0, 10, 3500, 3500)
    assert (found.batches, found.next) == (1, 3)
    assert collected(log, 3, 10, 3500, 3500).next == 6
    assert collected(log, 9, 10, 1, 1).next == 10


def test_nothing_is_covered_beyond_the_end(log: Log) -> None:
    fill(log, [5])
    assert collected(log, 1, 9) == Collected([], 0, 1)
    assert collected(log, 4, 9) == Collected([], 0, 4)
