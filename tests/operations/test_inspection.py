"""Offline tools: they say what an opening would find, change nothing unless asked, and mend what can be mended."""

from support.recording_files import RecordingFiles

from headwater.operations.inspection import DAMAGED_SUFFIX, repair, survey
from headwater.streams.log import Log, LogOptions

DIRECTORY = "log"
OPTIONS = LogOptions(segment_bytes=64 << 10, preallocate_bytes=1000)


def filled(files: RecordingFiles) -> dict[int, bytes]:
    log = Log.open(files, DIRECTORY, OPTIONS, 1)
    for number in range(12):
        log.stage(b"s", b"", b"%d" % number * 10_000, 1)
        batch = log.seal()
        assert batch is not None
        log.write(batch)
        log.publish(batch)
    log.discard_range(0, 2)
    log.close()
    return contents(files)


def contents(files: RecordingFiles) -> dict[int, bytes]:
    log = Log.open(files, DIRECTORY, OPTIONS, 1)
    found = {record.offset: record.payload for record in log.read(0, 1000, 1 << 30)}
    log.close()
    return found


def segments(files: RecordingFiles) -> list[str]:
    return sorted(name for name in files.names if name.endswith(".log"))


def test_a_whole_log_is_described_and_not_touched() -> None:
    files = RecordingFiles()
    filled(files)
    before = files.snapshot()
    found = survey(files, DIRECTORY)
    assert (found.start_offset, found.decision.next_offset, found.records) == (2, 12, 10)
    assert found.decision.damage == []
    assert found.notes == []
    assert files.snapshot() == before


def test_a_flipped_bit_is_found_mended_and_its_bytes_are_kept() -> None:
    files = RecordingFiles()
    before = filled(files)
    path = segments(files)[0]
    content = bytearray(files.content(path))
    content[40_000] ^= 1
    files.replace_content(path, bytes(content))
    (damage,) = survey(files, DIRECTORY).decision.damage
    assert damage.certain
    done = repair(files, DIRECTORY, 1)
    assert any(DAMAGED_SUFFIX in line for line in done)
    assert files.content(path + DAMAGED_SUFFIX) == bytes(content)
    after = survey(files, DIRECTORY)
    assert after.decision.damage == []
    assert contents(files) == {
        offset: payload for offset, payload in before.items() if not damage.start <= offset < damage.end
    }
    assert repair(files, DIRECTORY, 1) == []


def test_a_sealed_segment_cut_short_is_reported_once_more_only_until_it_is_mended() -> None:
    files = RecordingFiles()
    before = filled(files)
    path = segments(files)[0]
    files.replace_content(path, files.content(path)[:-5000])
    assert survey(files, DIRECTORY).decision.damage
    repair(files, DIRECTORY, 1)
    assert survey(files, DIRECTORY).decision.damage == []
    assert contents(files).items() <= before.items()


def test_a_torn_tail_is_cut_and_kept_aside() -> None:
    files = RecordingFiles()
    before = filled(files)
    path = segments(files)[-1]
    written = files.content(path).rstrip(bytes(1))  # without the room reserved ahead
    files.replace_content(path, written[:-200])  # the last tombstones, and a part of the last record
    assert survey(files, DIRECTORY).decision.damage
    repair(files, DIRECTORY, 1)
    assert any(".cut-" in name for name in files.names)
    assert list(contents(files).items()) == list(before.items())[:-1]
