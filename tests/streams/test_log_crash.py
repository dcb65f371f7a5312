"""Power loss at every recorded call, in every shape; lost, torn and kept writes; and what the log promises after it.

The promises, as `_check` asserts them after each crash:
* every acknowledged record is there, at its offset, byte for byte;
* nothing is there that was not written; a batch is there whole or not at all;
* no offset that was ever readable is given out again;
* nothing is reported as certainly lost; opening again finds the same.
"""

import errno
import os
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.recording_files import VARIANTS, RecordingFiles, Replay

from headwater.errors import DiskFull, StorageError, WriteFailed
from headwater.streams.end_file import END_FILE
from headwater.streams.log import Log
from headwater.streams.opening import CopyKind
from headwater.streams.options import LogOptions, SyncPolicy
from headwater.streams.writer import RESERVED

DIRECTORY = "store/orders"
SLICE = 10_000  # crash points of one test
CRASH_POINTS = int(os.environ.get("HEADWATER_CRASH_POINTS", str(SLICE)))
Content = tuple[bytes, bytes, bytes, int]


@dataclass
class History:
    """What a workload did. Times are numbers of recorded calls."""

    written: list[tuple[int, int, int, dict[int, Content]]] = field(default_factory=list)  # begun, acked (-1), end

    def add(self, begun: int, acked: int, end: int, records: dict[int, Content]) -> None:
        self.written.append((begun, acked, end, records))


def options(sync: SyncPolicy = "always") -> LogOptions:
    return LogOptions(
        segment_bytes=64 << 10,
        batch_bytes=600,
        sync=sync,
        sync_interval_ns=50,
        cache_bytes=2000,
        preallocate_bytes=3000,
    )


def work(log: Log, files: RecordingFiles, random: Random, batches: int) -> History:
    """Stage, seal, write, publish or abandon; the next records are staged while a batch is being written."""
    history = History()
    before = contents(log)
    staged: dict[int, Content] = {}
    _stage(log, random, staged)
    for _ in range(batches):
        batch = log.seal()
        writing, staged = staged, {}
        assert batch is not None
        _stage(log, random, staged)
        begun = len(files.calls)
        try:
            log.write(batch)
        except DiskFull:
            log.abandon(batch)
            history.add(begun, -1, batch.end_offset, writing)
            continue
        log.publish(batch)
        history.add(begun, len(files.calls), batch.end_offset, writing)
        if random.random() < 0.1 and (plan := log.plan_checkpoint()) is not None:
            log.maintain(plan)
            log.settle(plan)
        if random.random() < 0.3:
            log.staging.prepare(random.choice((100, 2000, 9000)))
        if random.random() < 0.1:
            assert_holds(log, history, before)
    return history


def _stage(log: Log, random: Random, staged: dict[int, Content]) -> None:
    for _ in range(random.choice((1, 1, 2, 7, 30))):
        block = b"" if random.random() < 0.5 else b"NATS/1.0\r\na: b\r\n\r\n"
        size = random.choice((0, 5, 200, 3000)) if random.random() < 0.2 else 20
        content = (b"orders.%d" % random.randrange(9), block, random.randbytes(size), random.randrange(1 << 60))
        staged[log.stage(*content)] = content


def contents(log: Log) -> dict[int, Content]:
    records = log.read(0, 1 << 40, 1 << 40)
    assert [r.offset for r in records] == sorted({r.offset for r in records})
    return {r.offset: (r.subject, r.header_block, r.payload, r.timestamp_ns) for r in records}


def assert_holds(log: Log, history: History, before: dict[int, Content]) -> None:
    expected = dict(before)
    for _, acked, _, records in history.written:
        if acked >= 0:
            expected |= records
    assert contents(log) == expected
    assert log.record_count == len(expected)


def check_crash(files: RecordingFiles, history: History, calls: int, durable_acks: bool = True) -> None:
    log = Log.open(files, DIRECTORY, options(), 1)
    found = contents(log)
    visible_end = 0
    possible: dict[int, Content] = {}
    for begun, acked, end, records in history.written:
        if acked >= 0 and acked <= calls:
            visible_end = end
            if durable_acks:
                assert records.items() <= found.items(), "an acknowledged record is lost"
        if begun < calls:
            possible |= records
    assert found.items() <= possible.items(), "a record that nobody wrote"
    if durable_acks:
        assert log.recovery.lost == (), "a loss was reported that did not happen"
    assert log.next_offset >= visible_end, "an offset that was readable would be used again"
    if durable_acks:
        begun_end = max([end for begun, _, end, _ in history.written if begun < calls], default=0)
        assert log.next_offset <= begun_end + RESERVED, "a power loss skips no more than a mark reserves"
    assert log.next_offset > max(found, default=-1)
    assert log.record_count == len(found)
    before = log.next_offset
    log.close()
    again = Log.open(files, DIRECTORY, options(), 2)
    assert contents(again) == found
    assert again.next_offset >= before
    again.close()
    assert files.open_files == 0


def start(sync: SyncPolicy = "always", seed: int = 1) -> tuple[RecordingFiles, Log]:
    files = RecordingFiles(seed=seed)
    return files, Log.open(files, DIRECTORY, options(sync), 1)


@pytest.mark.parametrize("seed", range(3))
def test_every_acknowledged_record_survives_a_power_loss_at_every_call(seed: int) -> None:
    files, log = start(seed=seed)
    history = work(log, files, Random(seed), 25)
    log.close()
    replay = Replay(files)
    random = Random(seed)
    for calls in range(len(files.calls) + 1):
        replay.advance(calls)
        for variant in VARIANTS:
            check_crash(replay.crash(variant, random), history, calls)


@pytest.mark.parametrize("boot_id", [b"start of a system"[:16], b""])
@pytest.mark.parametrize("seed", range(20))
def test_a_log_equals_a_list_through_kills_at_any_moment(seed: int, boot_id: bytes) -> None:
    """The process is killed, the system goes on: no offset is skipped, but for those of a batch that was being written where
    the start of the system is not known."""
    random = Random(seed)
    files = RecordingFiles(seed=seed, boot_id=boot_id)
    log = Log.open(files, DIRECTORY, options(), 1)
    kept: list[Content] = []
    for _ in range(8):
        assert list(contents(log).values()) == kept
        assert not boot_id or log.next_offset == len(kept)
        assert log.recovery.lost == ()
        noted = f"{DIRECTORY}/{END_FILE}" in files.names and any(files.content(f"{DIRECTORY}/{END_FILE}"))
        began = len(files.calls)
        history = work(log, files, random, random.randrange(1, 12))
        calls = random.randrange(began, len(files.calls) + 1)
        acked = [records for _, acked, _, records in history.written if acked <= calls]
        begun = [records for begun, _, _, records in history.written if begun <= calls]
        if not (acked or noted):
            calls = len(files.calls)  # with `log.end` it begins to know its end
            acked = begun = [records for _, _, _, records in history.written]
        replay = Replay(files)
        replay.advance(calls)
        killed = replay.kill(random)
        log = Log.open(killed, DIRECTORY, options(), 1)
        found = list(contents(log).values())
        least, most = (kept + [one for records in group for one in records.values()] for group in (acked, begun))
        assert found[: len(least)] == least and most[: len(found)] == found, "all that was acknowledged, in order"
        kept = found
        log.close()
        files = RecordingFiles(killed.snapshot(), seed=seed + 1, boot_id=boot_id)
        log = Log.open(files, DIRECTORY, options(), 1)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(max(1, CRASH_POINTS // SLICE)))
def test_ten_thousand_torn_power_losses(part: int) -> None:
    """Ten thousand in CI; a million: HEADWATER_CRASH_POINTS=1_000_000 ./hw test tests/streams/test_log_crash.py -k torn"""
    checked = 0
    for seed in range(100 + 1000 * part, 1000 + 1000 * part):
        files, log = start(seed=seed)
        # Checking a long one costs three times as much.
        history = work(log, files, Random(seed), 12 if part % 8 else 40)
        replay = Replay(files)
        random = Random(seed)
        for calls in range(len(files.calls) + 1):
            replay.advance(calls)
            for _ in range(3):
                check_crash(replay.crash("torn", random), history, calls)
                checked += 1
        if checked >= SLICE:
            return
    raise AssertionError(f"only {checked} crash points")


@pytest.mark.parametrize("copy", ["of offsets", "of records"])
@pytest.mark.parametrize("seed", range(3))
def test_a_copy_has_all_records_of_its_origin_up_to_its_last_one_after_a_power_loss(seed: int, copy: CopyKind) -> None:
    """What comes behind its last record is fetched from the origin, so a write that was torn in the middle must not leave
    the later records of it."""
    files = RecordingFiles(seed=seed)
    random = Random(seed)
    torn = 0
    for _ in range(2 if copy == "of offsets" else 1):
        log = Log.open(files, DIRECTORY, options(), 1, copy=copy)
        began, held = len(files.calls), log.next_offset
        history = work(log, files, random, 25)
        replay = Replay(files)
        for calls in range(began, len(files.calls) + 1):
            replay.advance(calls)
            for variant in VARIANTS:
                crashed = replay.crash(variant, random)
                again = Log.open(crashed, DIRECTORY, options(), 2, copy=copy)
                durable = max([end for _, acked, end, _ in history.written if 0 <= acked <= calls], default=held)
                end = len(contents(again))
                assert list(contents(again)) == list(range(end)), "a record is missing between others"
                assert durable <= end
                assert again.recovery.lost == ()
                assert again.next_offset == end or (copy == "of records" and again.next_offset > end)
                torn += any(damage.kind == "torn" for damage in again.recovery.damage)
                again.close()
        files = replay.crash("torn", random)
    assert torn


@pytest.mark.parametrize("sync", ["interval", "never"])
def test_weaker_policies_lose_records_at_a_power_loss_but_never_use_an_offset_twice(sync: SyncPolicy) -> None:
    files, log = start(sync)
    history = work(log, files, Random(5), 20)
    replay = Replay(files)
    random = Random(5)
    for calls in range(len(files.calls) + 1):
        replay.advance(calls)
        for variant in VARIANTS:
            check_crash(replay.crash(variant, random), history, calls, durable_acks=False)


@example([(6, 0.5, "everything"), (12, 1.0, "everything"), (1, 0.0, "nothing")], 18490758)  # a gap at a clean end
@given(st.lists(st.tuples(st.integers(0, 12), st.floats(0, 1), st.sampled_from(VARIANTS)), max_size=6), st.integers())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_log_equals_a_dict_through_a_life_of_crashes(lives: list[tuple[int, float, str]], seed: int) -> None:
    random = Random(seed)
    files = RecordingFiles(seed=seed)
    survived: dict[int, Content] = {}  # the model
    readable: dict[int, Content] = {}  # everything that was ever readable
    for batches, moment, variant in lives:
        log = Log.open(files, DIRECTORY, options(), 1)
        assert contents(log) == survived
        began = len(files.calls)
        history = work(log, files, random, batches)
        for _, _, _, records in history.written:
            assert not records.keys() & readable.keys(), "an offset was used twice"
        calls = began + int(moment * (len(files.calls) - began))
        replay = Replay(files)
        replay.advance(calls)
        for _, acked, _, records in history.written:
            if acked <= calls:
                readable |= records
                survived |= records
        assert variant in VARIANTS
        crashed = replay.crash(variant, random)
        after = Log.open(crashed, DIRECTORY, options(), 1)
        found = contents(after)
        assert survived.items() <= found.items()
        unacked = found.items() - survived.items()
        assert unacked <= {item for _, _, _, records in history.written for item in records.items()}
        survived = found
        readable |= found
        after.close()
        files = RecordingFiles(crashed.snapshot(), seed=seed + 1, boot_id=crashed.boot_id)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_an_error_at_every_call_never_costs_an_acknowledged_record(number: int) -> None:
    files, log = start()
    work(log, files, Random(9), 12)
    for attempt in range(files.attempts):
        faulty = RecordingFiles(seed=1)
        faulty.faults[attempt] = number
        _work_with_fault(faulty, number)


def _work_with_fault(files: RecordingFiles, number: int) -> None:
    try:
        log = Log.open(files, DIRECTORY, options(), 1)
    except StorageError:
        assert files.open_files == 0
        assert not files.locks
        log = Log.open(files, DIRECTORY, options(), 1)  # a single fault: the second try works, on what the first left
    history = History()
    random = Random(9)
    failed = False
    for _ in range(12):
        staged: dict[int, Content] = {}
        if log.failure:
            with pytest.raises(WriteFailed):
                log.stage(b"a", b"", b"", 1)
            break
        _stage(log, random, staged)
        batch = log.seal()
        assert batch is not None
        begun = len(files.calls)
        try:
            log.write(batch)
        except (DiskFull, WriteFailed) as error:
            assert not failed, "one fault, one refusal"
            failed = True
            assert isinstance(error, WriteFailed) or number == errno.ENOSPC
            log.abandon(batch)
            history.add(begun, -1, batch.end_offset, staged)
            continue
        log.publish(batch)
        history.add(begun, len(files.calls), batch.end_offset, staged)
    assert_holds(log, history, {})
    for variant in VARIANTS:
        replay = Replay(files)
        replay.advance(len(files.calls))
        check_crash(replay.crash(variant, random), history, len(files.calls))
