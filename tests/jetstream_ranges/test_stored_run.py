"""Records delivered from where they lie in a batch: byte by byte what a sender of single records makes of them."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fake_link import FakeLink, make_outlet

import headwater
from headwater.errors import StorageError
from headwater.exchange.router import Router
from headwater.exchange.sublist import Subscription
from headwater.jetstream_ranges.outgoing import RecordSender
from headwater.jetstream_ranges.stored_run import LEAST, find_run, only_reader
from headwater.jetstream_state.memory_files import MemoryFiles
from headwater.streams.log import Log
from headwater.streams.options import LogOptions

pytestmark = pytest.mark.skipif(not headwater.__compiled__, reason="interpreted, each record is an object")

HEAD = b"$JS.ACK.S.C."
SECOND = 1_000_000_000
Row = tuple[bytes, bytes, bytes, int]
rows = st.tuples(
    st.sampled_from([b"a", b"orders.new"]),
    st.sampled_from([b"", b"", b"NATS/1.0\r\nA: 1\r\n\r\n"]),
    st.sampled_from([b"", b"x", b"\r\n", b"y" * 9, b"y" * 120]),
    st.sampled_from([0, 0, 1, 7, SECOND, -3]),
)


def filled(given_rows: list[Row], cache_bytes: int = 0, first_stamp: int = SECOND) -> Log:
    """A log with one batch; the last value of a row is how much later than the one before it was stored."""
    log = Log.open(MemoryFiles(os.urandom), "log", LogOptions(cache_bytes=cache_bytes), 1)
    stamp = first_stamp
    for subject, block, payload, later in given_rows:
        stamp += later
        log.stage(subject, block, payload, stamp)
    batch = log.seal()
    assert batch is not None
    log.write(batch)
    log.publish(batch)
    return log


def listening(headers: bool = True) -> tuple[Router, FakeLink, Subscription]:
    router = Router(lambda function: None, seed=1)
    link, outlet = make_outlet()
    outlet.headers = headers
    subscription = Subscription(b"inbox", b"", b"7", outlet)
    router.subscribe(subscription)
    return router, link, subscription


@given(
    st.lists(rows, min_size=LEAST, max_size=60),
    st.integers(0, 2**40),
    st.integers(0, 1200),
    st.integers(0, 40),
    st.lists(st.tuples(st.integers(1, 30), st.sampled_from([-1, -1, 50, 400])), min_size=1, max_size=4),
    st.sampled_from([0, SECOND - 5, 1_700_000_000 * SECOND - 3, -2 * SECOND]),
    st.sampled_from([0, 1 << 20]),
)
def test_a_run_is_what_single_records_are(
    given_rows: list[Row],
    given_before: int,
    behind: int,
    start: int,
    turns: list[tuple[int, int]],
    first_stamp: int,
    cache_bytes: int,
) -> None:
    log = filled(given_rows, cache_bytes, first_stamp)
    start = min(start, len(given_rows) - LEAST)
    run = find_run(log, start)
    assert run is not None and (run.offset, run.end) == (start, len(given_rows))
    (mine, link, reader), (theirs, other, _) = listening(), listening()
    assert only_reader(mine, b"inbox") is reader
    pending, given_now = len(given_rows) - start + behind, given_before
    for most, room in turns:
        before = run.offset
        size = run.send(mine, reader, HEAD, given_now, pending, most, room)
        records = log.read(before, most, 1 << 20) if before < log.end_offset else []
        delivered: list[int] = []
        assert size == RecordSender(theirs, b"inbox", HEAD, given_now, pending, room).send(records, 0, most, delivered)
        assert list(range(before + 1, run.offset + 1)) == delivered
        given_now, pending = given_now + len(delivered), pending - len(delivered)
    assert link.output.take() == other.output.take()
    mine_outlet, their_outlet = (router.sublist.match(b"inbox").plain[0].outlet for router in (mine, theirs))
    assert mine_outlet is not None and their_outlet is not None
    assert (mine_outlet.out_messages, mine_outlet.out_bytes) == (their_outlet.out_messages, their_outlet.out_bytes)
    assert run.is_over == (run.offset == len(given_rows))


def plain(count: int) -> list[Row]:
    return [(b"s", b"", b"x", 1)] * count


def test_a_batch_of_which_something_was_removed_is_left_to_the_general_way() -> None:
    log = filled(plain(3 * LEAST))
    log.discard(LEAST)
    assert find_run(log, 0) is None
    assert find_run(log, LEAST + 1) is not None, "what is behind it is whole"


def test_few_records_large_ones_and_those_beyond_the_log_are_left_to_the_general_way() -> None:
    log = filled(plain(LEAST))
    assert find_run(log, 0) is not None
    assert find_run(log, 1) is None
    assert find_run(log, LEAST) is None
    assert find_run(filled([(b"s", b"", bytes(1 << 15), 1)] * LEAST), 0) is None


def test_a_damaged_batch_is_left_to_the_general_way_which_reports_it() -> None:
    files = MemoryFiles(os.urandom)
    log = Log.open(files, "log", LogOptions(cache_bytes=0), 1)
    for number in range(LEAST):
        log.stage(b"s", b"", b"needle %d" % number, 1)
    batch = log.seal()
    assert batch is not None
    log.write(batch)
    log.publish(batch)
    path = log.reader.segments[0].path
    file = files.open(path)
    at = file.pread(file.size(), 0).index(b"needle 3")
    file.pwrite([b"N"], at)
    assert find_run(log, 0) is None
    assert not log.reader.damage
    assert len(log.read(0, 100, 1 << 20)) == LEAST - 1
    assert log.reader.damage


@pytest.mark.parametrize("change", ["group", "two", "callback", "limit", "no headers", "nobody"])
def test_any_other_receiver_is_left_to_the_general_way(change: str) -> None:
    router, _, subscription = listening(headers=change != "no headers")
    _, outlet = make_outlet()
    outlet.headers = True
    if change == "group":
        router.subscribe(Subscription(b"inbox", b"queue", b"8", outlet))
    elif change == "two":
        router.subscribe(Subscription(b"inbox", b"", b"8", outlet))
    elif change == "callback":
        router.unsubscribe(subscription)
        router.subscribe_internal(b"inbox", lambda *call: None)
    elif change == "limit":
        router.sublist.limit(subscription, 5)
    elif change == "nobody":
        router.unsubscribe(subscription)
    assert only_reader(router, b"inbox") is None


def test_a_disk_that_cannot_be_read_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    log = filled(plain(LEAST))
    log.reader.segments[0].release()
    monkeypatch.setattr(MemoryFiles, "open", refuse)
    with pytest.raises(StorageError):
        find_run(log, 0)


def refuse(*_: object) -> None:
    raise OSError(5, "the disk is gone")
