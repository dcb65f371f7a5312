"""Deleting from the log: at once for readers, durable with the next batch, and room given back; against a plain dict.

The dict model lives through appends, deletions, upkeep, clean restarts and crashes. The crash test cuts the power at every
recorded call of such a life: a deletion that was written holds, one that was not may or may not, and no record comes or
goes otherwise.
"""

import os
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.recording_files import VARIANTS, RecordingFiles, Replay

from headwater.errors import StorageError
from headwater.jetstream_state.memory_files import MemoryFiles
from headwater.streams import upkeep
from headwater.streams.log import Log, LogOptions

DIRECTORY = "log"
OPTIONS = LogOptions(segment_bytes=64 << 10, batch_bytes=4000, cache_bytes=5000, preallocate_bytes=2000)
Contents = dict[int, bytes]


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of 64 KiB are worth rolling and compacting here."""
    monkeypatch.setattr(upkeep, "SMALLEST_ROLL", 8192)
    monkeypatch.setattr(upkeep, "SMALLEST_COMPACTION", 0)


def open_log(files: RecordingFiles, options: LogOptions = OPTIONS) -> Log:
    return Log.open(files, DIRECTORY, options, 1)


def contents(log: Log) -> Contents:
    return {record.offset: record.payload for record in log.read(0, 1 << 30, 1 << 40)}


def commit(log: Log) -> None:
    batch = log.seal()
    if batch is not None:
        log.write(batch)
        log.publish(batch)


def append(log: Log, *payloads: bytes, time: int = 1) -> list[int]:
    offsets = [log.stage(b"s", b"", payload, time) for payload in payloads]
    commit(log)
    return offsets


def keep_up(log: Log, erase: int | None = None) -> int:
    """All upkeep that is worth doing; how many pieces of it."""
    done = 0
    while (plan := log.plan_upkeep(erase)) is not None:
        log.maintain(plan)
        log.settle(plan)
        done += 1
        assert done < 100, "upkeep without end"
    return done


def checkpoint(log: Log, document: bytes = b"") -> None:
    plan = log.plan_checkpoint(document)
    assert plan is not None
    log.maintain(plan)
    log.settle(plan)


def check(log: Log, model: Contents) -> None:
    assert contents(log) == model
    assert log.record_count == len(model)
    assert log.start_offset == min(model, default=log.end_offset)


def test_a_deleted_record_is_gone_at_once_and_its_offset_is_not_used_again() -> None:
    files = RecordingFiles()
    log = open_log(files)
    append(log, b"a", b"b", b"c", b"d")
    assert log.discard(1)
    assert not log.discard(1)
    assert not log.discard(77)
    check(log, {0: b"a", 2: b"c", 3: b"d"})
    assert log.discard_range(0, 3) == 2
    check(log, {3: b"d"})
    assert append(log, b"e") == [4]
    log.close()
    check(open_log(files), {3: b"d", 4: b"e"})


def test_a_deletion_that_was_written_survives_a_kill() -> None:
    files = RecordingFiles()
    log = open_log(files)
    append(log, *[b"%d" % n for n in range(10)])
    log.discard_range(3, 6)
    commit(log)
    again = open_log(RecordingFiles(files.snapshot()))
    check(again, {n: b"%d" % n for n in range(10) if not 3 <= n < 6})
    assert again.next_offset == 10


def test_an_emptied_log_goes_on_where_it_was_and_gives_its_room_back() -> None:
    files = RecordingFiles()
    log = open_log(files)
    for _ in range(10):
        append(log, b"x" * 30_000)
    assert log.discard_range(0, 10) == 10
    commit(log)
    assert keep_up(log) >= 2
    assert log.size_bytes < 10_000
    check(log, {})
    assert (log.start_offset, log.end_offset) == (10, 10)
    log.close()
    log = open_log(files)
    assert log.recovery.damage == ()
    assert append(log, b"next") == [10]


def test_half_deleted_segments_are_compacted_and_nothing_is_reported_lost() -> None:
    files = RecordingFiles()
    log = open_log(files)
    model: Contents = {}
    for number in range(60):
        payload = b"%d" % number * 2000
        (offset,) = append(log, payload)
        model[offset] = payload
    before = log.size_bytes
    for offset in [offset for offset in model if offset % 4]:
        log.discard(offset)
        del model[offset]
    commit(log)
    assert keep_up(log)
    assert log.size_bytes < before // 2
    check(log, model)
    killed = open_log(RecordingFiles(files.snapshot()))
    check(killed, model)
    assert killed.recovery.damage == ()
    assert killed.recovery.notes == ()
    log.close()
    closed = open_log(files)
    check(closed, model)
    assert closed.recovery.damage == ()


def test_what_is_to_be_erased_leaves_the_disk() -> None:
    files = RecordingFiles()
    log = open_log(files)
    append(log, b"keep me", b"a secret", b"keep me too")
    log.discard(1)
    commit(log)
    assert any(b"a secret" in content for content in files.live.values())
    assert keep_up(log, erase=1) == 2
    assert not any(b"a secret" in files.content(name) for name in files.names)
    check(log, {0: b"keep me", 2: b"keep me too"})


def test_damaged_segments_are_not_compacted_for_they_are_evidence() -> None:
    files = RecordingFiles()
    log = open_log(files, LogOptions(segment_bytes=64 << 10, cache_bytes=0, preallocate_bytes=0))
    for number in range(9):
        append(log, b"%d" % number * 15_000)
    path = min(name for name in files.names if name.endswith(".log"))
    content = bytearray(files.content(path))
    content[5000] ^= 1
    files.replace_content(path, bytes(content))
    log.discard_range(1, 4)
    commit(log)
    keep_up(log)
    assert files.content(path) == bytes(content)
    assert sorted(contents(log)) == [4, 5, 6, 7, 8]
    assert log.damage


def test_a_clean_stop_leaves_an_index_and_the_next_start_does_not_read_the_data() -> None:
    files = RecordingFiles()
    log = open_log(files)
    for number in range(100):
        append(log, b"%d" % number * 1000, time=number)
    log.discard_range(10, 20)
    model = contents(log)
    log.close(b"a document")
    reads = _count_reads(files)
    log = open_log(files)
    assert log.document == b"a document"
    assert max(reads) <= 4096 or sum(reads) < 40_000, "data was read"
    check(log, model)
    assert log.offset_at(55) == 55
    log.close(b"unchanged")
    assert open_log(RecordingFiles(files.snapshot())).document == b"a document", "nothing was written: nothing changed"


def _count_reads(files: RecordingFiles) -> list[int]:
    sizes: list[int] = []
    original = files.open

    def watched(path: str):  # type: ignore[no-untyped-def]
        file = original(path)
        read = file.pread

        def pread(size: int, position: int) -> bytes:
            data = read(size, position)
            sizes.append(len(data))
            return data

        file.pread = pread  # type: ignore[method-assign]
        return file

    files.open = watched  # type: ignore[method-assign]
    return sizes


def test_the_index_counts_for_nothing_after_a_crash() -> None:
    files = RecordingFiles()
    log = open_log(files)
    append(log, b"one")
    log.close(b"document")
    log = open_log(files)
    append(log, b"two")
    crashed = open_log(RecordingFiles(files.snapshot()))
    assert crashed.document is None
    assert list(contents(crashed).values()) == [b"one", b"two"]


def test_an_index_that_does_not_fit_is_made_again() -> None:
    files = RecordingFiles()
    log = open_log(files)
    append(log, b"one")
    log.close(b"document")
    content = bytearray(files.content(f"{DIRECTORY}/log.index"))
    content[-1] ^= 1
    files.replace_content(f"{DIRECTORY}/log.index", bytes(content))
    log = open_log(files)
    assert log.document is None
    assert log.recovery.notes
    assert list(contents(log).values()) == [b"one"]


def test_time_is_found_by_the_index_also_where_the_clock_stepped_back() -> None:
    log = open_log(RecordingFiles())
    times = [*range(0, 300, 3), *range(100, 400, 3)]
    for time in times:
        append(log, b"x" * 500, time=time)
    for wanted in range(-5, 420, 7):
        expected = next((n for n, time in enumerate(times) if time >= wanted), len(times))
        assert log.offset_at(wanted) == expected


def test_a_log_in_memory_is_a_log() -> None:
    log = Log.open(MemoryFiles(bytes), DIRECTORY, OPTIONS, 1)
    for number in range(100):
        append(log, b"%d" % number * 1000)
    log.discard_range(0, 90)
    commit(log)
    keep_up(log)
    assert list(contents(log)) == list(range(90, 100))
    assert log.size_bytes < 110_000
    log.close()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 12), st.integers(0, 3)),
        st.tuples(st.just("discard"), st.integers(0, 120), st.integers(1, 40)),
        st.tuples(st.just("upkeep"), st.integers(-1, 100), st.just(0)),
        st.tuples(st.just("close"), st.just(0), st.just(0)),
        st.tuples(st.just("crash"), st.integers(0, 2), st.just(0)),
    ),
    max_size=25,
)


@example([("append", 2, 0), ("discard", 0, 1), ("upkeep", 0, 0), ("crash", 0, 0), ("close", 0, 0)], 0)
@example(
    # After a stop a power loss takes the last marks, and leaves the index: what they say is reported once.
    [
        *[("crash", 0, 0)] * 3,
        ("append", 6, 0),
        *[("crash", 0, 0)] * 5,
        ("close", 0, 0),
        ("crash", 2, 0),
        ("close", 0, 0),
    ],
    936,
)
@given(STEPS, st.integers(0, 1 << 30))
@settings(max_examples=60)
def test_the_log_equals_a_dict_through_deletions_upkeep_restarts_and_crashes(
    steps: list[tuple[str, int, int]], seed: int
) -> None:
    random = Random(seed)
    files = RecordingFiles(seed=seed)
    log = open_log(files)
    model: Contents = {}
    used = 0
    for verb, first, second in steps:
        match verb:
            case "append":
                payloads = [random.randbytes(random.choice((3, 3000))) for _ in range(first)]
                offsets = append(log, *payloads)
                assert offsets[0] >= used
                used = offsets[-1] + 1
                model |= dict(zip(offsets, payloads, strict=True))
            case "discard":
                gone = [offset for offset in model if first <= offset < first + second]
                assert log.discard_range(first, first + second) == len(gone)
                for offset in gone:
                    del model[offset]
            case "upkeep":
                commit(log)
                keep_up(log, first if first >= 0 else None)
            case "close":
                log.close(b"document")
                log = open_log(files)
                assert log.recovery.damage == ()
                assert log.recovery.notes == ()
            case "crash":
                commit(log)
                replay = Replay(files)
                replay.advance(len(files.calls))
                files = RecordingFiles(replay.crash(VARIANTS[first], random).snapshot(), seed=seed)
                log = open_log(files)
                assert log.recovery.lost == ()
            case _:
                raise AssertionError(verb)
        check(log, model)


@dataclass
class Life:
    """What happened when: (call number at which it began, at which it was acknowledged, offsets)."""

    written: list[tuple[int, int, Contents]] = field(default_factory=list)
    deleted: list[tuple[int, int, set[int]]] = field(default_factory=list)


def live(log: Log, files: RecordingFiles, random: Random, steps: int) -> Life:
    life = Life()
    for _ in range(steps):
        begun = len(files.calls)
        payloads = [random.randbytes(random.choice((3, 200, 2500))) for _ in range(random.randrange(1, 9))]
        written = {log.stage(b"s", b"", payload, 1): payload for payload in payloads}
        present = list(contents(log))
        doomed = set(random.sample(present, min(len(present), random.choice((0, 1, 6)))))
        if random.random() < 0.1 and present:
            doomed |= set(present[: len(present) // 2])
        for offset in doomed:
            assert log.discard(offset)
        if random.random() < 0.2:
            keep_up(log)  # before the deletions are written: a stream under load has no other time for it
        commit(log)
        life.written.append((begun, len(files.calls), written))
        life.deleted.append((begun, len(files.calls), doomed))
        if random.random() < 0.4:
            keep_up(log, random.choice((None, None, min(doomed, default=None))))
        if random.random() < 0.2:
            checkpoint(log)
    return life


@pytest.mark.parametrize("seed", range(2))
def test_power_loss_at_every_call_keeps_what_was_acknowledged_and_nothing_else(seed: int) -> None:
    files = RecordingFiles(seed=seed)
    log = open_log(files)
    life = live(log, files, Random(seed), 30)
    log.close(b"document")
    check_every_crash(files, life, Random(seed))


def check_every_crash(files: RecordingFiles, life: Life, random: Random) -> int:
    """Cut the power after every call, in every variant; returns how often."""
    replay = Replay(files)
    checked = 0
    for calls in range(len(files.calls) + 1):
        replay.advance(calls)
        must = {o: p for _, acked, written in life.written if acked <= calls for o, p in written.items()}
        may = {o: p for begun, _, written in life.written if begun < calls for o, p in written.items()}
        gone = {o for _, acked, deleted in life.deleted if acked <= calls for o in deleted}
        perhaps_gone = {o for begun, _, deleted in life.deleted if begun <= calls for o in deleted}
        for variant in VARIANTS:
            crashed = replay.crash(variant, random)
            again = open_log(crashed)
            found = contents(again)
            assert again.recovery.lost == ()
            assert found.items() <= may.items()
            assert not found.keys() & gone, "a deletion was undone"
            assert must.keys() - perhaps_gone <= found.keys(), "a record is lost"
            assert again.record_count == len(found)
            assert again.next_offset > max(must, default=-1)
            again.close()
            checked += 1
    return checked


POINTS = int(os.environ.get("HEADWATER_CRASH_POINTS", "10000"))


@pytest.mark.slow
@pytest.mark.timeout(24 * 3600)
def test_ten_thousand_power_losses_in_lives_with_deletions_and_upkeep() -> None:
    """A million: HEADWATER_CRASH_POINTS=1000000 ./hw test tests/streams/test_log_deletion.py -k ten_thousand"""
    checked = 0
    seed = 1000
    while checked < POINTS:
        files = RecordingFiles(seed=seed)
        log = open_log(files)
        life = live(log, files, Random(seed), 12)
        if seed % 2:
            log.close(b"document")
        checked += check_every_crash(files, life, Random(seed))
        seed += 1
    assert checked >= POINTS


def test_an_error_in_upkeep_leaves_the_log_as_it_was() -> None:
    for attempt in range(12):
        files = RecordingFiles()
        log = open_log(files)
        for number in range(12):
            append(log, b"%d" % number * 10_000)
        log.discard_range(0, 6)
        log.discard(7)
        commit(log)
        model = contents(log)
        files.faults[files.attempts + attempt] = 5
        try:
            keep_up(log)
        except StorageError:
            pass
        check(log, model)
        check(open_log(RecordingFiles(files.snapshot())), model)
