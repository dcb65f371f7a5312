"""Files of other logs, of other times and under other names: the original is served, or the loss is reported.

A model knows every record that log A ever held and which of them were deleted. Then one file of A's directory is replaced
(by B's of the same name, by A's own of an earlier moment, by another of A's segments), is lost, or a stranger is added; A
is opened, and whatever is missing must be in what was reported, whatever is there must be A's, and no sequence is new twice.
"""

import os
from dataclasses import dataclass, field
from random import Random

import pytest
from support.recording_files import Disk, RecordingFiles

from headwater.errors import StorageError
from headwater.streams import upkeep as upkeep_module
from headwater.streams.log import Log
from headwater.streams.options import LogOptions
from headwater.streams.segment import base_offset_of

SECTOR = 512
OPTIONS = LogOptions(segment_bytes=64 << 10, preallocate_bytes=2000)
SLICE = 100  # lives of one test, with 25 mix-ups each
CASES = int(os.environ.get("HEADWATER_MIXUPS", "400"))
PARTS = range(max(1, CASES // SLICE))


@pytest.fixture(autouse=True)
def small_segments_are_compacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep_module, "SMALLEST_COMPACTION", 0)
    monkeypatch.setattr(upkeep_module, "SMALLEST_ROLL", 0)


@dataclass
class Life:
    """A log's records, live ones and deleted ones, and what its directory was at some moments."""

    identity: bytes = b""
    live: dict[int, bytes] = field(default_factory=dict)
    deleted: dict[int, bytes] = field(default_factory=dict)
    moments: list[dict[str, bytes]] = field(default_factory=list)
    end: int = 0


def live(files: RecordingFiles, directory: str, random: Random, lives: int) -> Life:
    life = Life()
    for _ in range(lives):
        log = Log.open(files, directory, OPTIONS, 1, identity=life.identity or bytes(8))
        life.identity = log.identity
        assert log.recovery.damage == ()
        for _ in range(random.randrange(1, 8)):
            for _ in range(random.choice((0, 1, 3, 20))):
                payload = b"%s %d " % (directory.encode(), log.next_offset) + random.randbytes(
                    random.choice((10, 3000))
                )
                life.live[log.stage(b"s", b"", payload, 1)] = payload
            if life.live and random.random() < 0.4:
                for offset in random.sample(sorted(life.live), min(len(life.live), 8)):
                    if log.discard(offset):
                        life.deleted[offset] = life.live.pop(offset)
            write(log)
            while random.random() < 0.5 and (upkeep := log.plan_upkeep()) is not None:
                log.maintain(upkeep)
                log.settle(upkeep)
            if random.random() < 0.3 and (plan := log.plan_checkpoint()) is not None:
                log.maintain(plan)
                log.settle(plan)
            if random.random() < 0.3:
                life.moments.append(directory_of(files, directory))
        if random.random() < 0.6:
            log.close()
        files.locks.clear()
        life.end = log.next_offset
        life.moments.append(directory_of(files, directory))
    return life


def write(log: Log) -> None:
    batch = log.seal()
    if batch is not None:
        log.write(batch)
        log.publish(batch)


def directory_of(files: RecordingFiles, directory: str) -> dict[str, bytes]:
    return {name: files.content(f"{directory}/{name}") for name in files.listdir(directory) if name != "lock"}


def mix_up(mine: Life, other: Life, random: Random) -> tuple[dict[str, bytes], str]:
    now = dict(mine.moments[-1])
    name = random.choice(sorted(now))
    what = random.choice(("foreign", "older", "other name", "lost", "added"))
    if what == "foreign":
        theirs = random.choice(other.moments)
        now[name] = theirs[name] if name in theirs else random.choice(sorted(theirs.values()))
    elif what == "older":
        earlier = random.choice(mine.moments)
        if name in earlier:
            now[name] = earlier[name]
    elif what == "other name":
        now[name] = now[random.choice(sorted(now))]
    elif what == "lost":
        del now[name]
    else:
        theirs = random.choice(other.moments)
        segments = [each for each in theirs if base_offset_of(each) is not None and each not in now]
        if segments:
            added = random.choice(segments)
            now[added] = theirs[added]
    return now, f"{what}: {name}"


def spoil(mine: Life, other: Life, random: Random) -> tuple[dict[str, bytes], str]:
    """One place of one file is damaged: a bit, some sectors of 512 bytes, or everything from some byte on."""
    now = dict(mine.moments[-1])
    name = random.choice(sorted(name for name in now if now[name]))
    content = bytearray(now[name])
    what = random.choice(("bit", "zeros", "garbage", "earlier", "elsewhere", "foreign", "cut"))
    at = random.randrange(len(content))
    start = at // SECTOR * SECTOR
    size = len(content[start : start + SECTOR * random.choice((1, 1, 3))])
    if what == "bit":
        content[at] ^= 1 << random.randrange(8)
    elif what == "cut":
        del content[at:]
    else:
        source = {
            "zeros": bytes(start + size),
            "garbage": bytes(start) + random.randbytes(size),
            "earlier": random.choice(mine.moments).get(name, b""),
            "elsewhere": bytes(start) + bytes(content[random.randrange(len(content)) // SECTOR * SECTOR :]),
            "foreign": random.choice(list(random.choice(other.moments).values())),
        }[what]
        piece = source[start : start + size]
        content[start : start + len(piece)] = piece
    now[name] = bytes(content)
    return now, f"{what} at {at}: {name}"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", PARTS)
def test_whatever_sectors_are_dropped_stale_or_foreign_a_loss_is_told_and_nothing_is_made_up(part: int) -> None:
    for seed in range(part * SLICE, (part + 1) * SLICE):
        random = Random(-1 - seed)
        files = RecordingFiles(seed=seed)
        mine, other = live(files, "A", random, random.randrange(1, 4)), live(files, "B", random, 1)
        for _ in range(25):
            now, what = spoil(mine, other, random)
            check(mine, now, f"seed {seed}, {what}")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", PARTS)
def test_whatever_file_is_swapped_stale_or_duplicated_the_original_is_served_or_the_loss_is_told(part: int) -> None:
    for seed in range(part * SLICE, (part + 1) * SLICE):
        swap_files(seed)


def test_deletions_noted_in_a_newest_segment_that_is_lost_are_told() -> None:
    swap_files(39_805)  # found by 890,000 cases


def test_a_file_from_before_a_rewrite_is_told_though_the_machine_died_before_the_state_was_saved() -> None:
    swap_files(34_235)  # found by 900,000 cases


def swap_files(seed: int) -> None:
    random = Random(seed)
    files = RecordingFiles(seed=seed)
    mine, other = live(files, "A", random, random.randrange(1, 4)), live(files, "B", random, random.randrange(1, 4))
    for _ in range(25):
        now, what = mix_up(mine, other, random)
        check(mine, now, f"seed {seed}, {what}")


def check(life: Life, now: dict[str, bytes], what: str) -> None:
    disk = Disk({}, {}, {"", "/", "A"})
    for inode, (name, content) in enumerate(now.items()):
        disk.names[f"A/{name}"] = inode
        disk.contents[inode] = content
    files = RecordingFiles(disk)
    try:
        log = Log.open(files, "A", OPTIONS, 1, identity=life.identity)
    except StorageError as error:
        assert "nothing in A" in str(error), what
        assert files.snapshot().contents.items() >= disk.contents.items(), f"{what}: refused, but changed"
        return
    found = {record.offset: record.payload for record in log.read(0, 1 << 30, 1 << 40)}
    everything = life.live | life.deleted
    assert found.items() <= everything.items(), f"{what}: what was never in this log is served"
    for offset in life.live.keys() - found.keys():
        reported = any(damage.start <= offset < damage.end for damage in log.damage)
        assert reported, f"{what}: {offset} is lost in silence"
    if life.deleted.keys() & found.keys():
        assert log.recovery.damage or log.recovery.notes, f"{what}: deleted records are back in silence"
    assert log.next_offset >= life.end, f"{what}: sequences are used again"
    left = set(directory_of(files, "A").values())
    strange = [name for name, content in now.items() if base_offset_of(name) is not None and content not in left]
    assert all(name in life.moments[-1] for name in strange), f"{what}: {strange} was not kept"
    log.close()
