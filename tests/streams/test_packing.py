"""Compressed segments: everything that holds for a log holds for one whose sealed segments were compressed."""

import sys
from random import Random

import pytest
from google_crc32c import value as crc32c
from hypothesis import given, settings
from hypothesis import strategies as st
from support.recording_files import VARIANTS, RecordingFiles, Replay

from headwater.compression.snappy import compressor
from headwater.errors import CorruptLog
from headwater.operations.inspection import repair, survey
from headwater.streams.log import Log, LogOptions
from headwater.streams.log_format import (
    BATCH_HEADER_SIZE,
    DIALECT_NATS,
    FLAG_COMPRESSED,
    BatchBuilder,
    BatchHeader,
    encode_batch_header,
)
from headwater.streams.packing import PACKED_BYTES, Packer, corrected, packed, unpack
from headwater.streams.segment import segment_name
from headwater.streams.walking import walk
from headwater.streams.window import FoundBatch, SpoiledBytes

COMPRESS = compressor()
DIRECTORY = "log"
OPTIONS = LogOptions(segment_bytes=64 << 10, batch_bytes=4000, cache_bytes=1000, preallocate_bytes=0)
IDENTITY = b"identity"
Contents = dict[int, tuple[bytes, bytes]]


def write(log: Log, count: int, random: Random) -> None:
    for number in range(count):
        log.stage(
            b"orders.%d" % (number % 7), b"", b'{"order": %d, "note": "the same again"}' % random.randrange(999), 5
        )
    batch = log.seal()
    assert batch is not None
    log.write(batch)
    log.publish(batch)


def keep_up(log: Log, erase: int | None = None) -> int:
    """All the upkeep there is; returns how many segments were written anew."""
    count = 0
    while (upkeep := log.plan_upkeep(erase) or log.compression.plan()) is not None:
        log.maintain(upkeep)
        log.settle(upkeep)
        count += upkeep.rewritten is not None
    return count


def contents(log: Log) -> Contents:
    return {record.offset: (record.subject, record.payload) for record in log.read(0, 1 << 30, 1 << 40)}


def opened(files: RecordingFiles) -> Log:
    log = Log.open(files, DIRECTORY, OPTIONS, 1)
    log.limit_to(0, COMPRESS)
    return log


def filled(files: RecordingFiles, batches: int = 60, records: int = 60) -> Log:
    log, random = opened(files), Random(1)
    for _ in range(batches):
        write(log, records, random)
    return log


def test_sealed_segments_are_compressed_and_read_as_before() -> None:
    files = RecordingFiles()
    log = filled(files)
    before, size, spans = contents(log), log.size_bytes, log.spans
    assert keep_up(log) == len(spans) - 1 > 2
    assert contents(log) == before
    assert log.read(1234, 1, 1)[0].payload == before[1234][1]
    assert log.size_bytes - spans[-1].size < (size - spans[-1].size) / 3
    assert keep_up(log) == 0
    log.close()
    again = opened(files)
    assert keep_up(again) == 0, "what is compressed stays as it is"
    assert contents(again) == before
    assert again.recovery.damage == ()
    again.close()
    assert survey(files, DIRECTORY).records == len(before)


def test_deleted_records_leave_a_compressed_segment_and_the_rest_stays_compressed() -> None:
    files = RecordingFiles()
    log = filled(files)
    keep_up(log)
    for offset in range(log.spans[1].start, log.spans[1].end):
        if offset % 3:
            log.discard(offset)
    before, size = contents(log), log.spans[1].size
    assert keep_up(log, erase=log.spans[1].start + 1) == 1
    assert contents(log) == before
    assert log.spans[1].size < size
    log.close()
    again = opened(files)
    assert (contents(again), keep_up(again)) == (before, 0)
    again.close()


def test_after_a_kill_what_was_compressed_since_the_checkpoint_is_read_and_nothing_before_it() -> None:
    files = RecordingFiles()
    log = filled(files, 30)
    checkpoint = log.plan_checkpoint(b"what the face knows")
    assert checkpoint is not None
    log.maintain(checkpoint)
    log.settle(checkpoint)
    write(log, 5, Random(2))
    keep_up(log)
    before = contents(log)
    again = Log.open(RecordingFiles(files.snapshot()), DIRECTORY, OPTIONS, 2)
    assert again.document == b"what the face knows"
    assert contents(again) == before
    assert again.recovery.damage == ()
    again.close()


@pytest.mark.parametrize("seed", range(2))
def test_a_power_loss_at_every_call_while_segments_are_compressed_costs_nothing(seed: int) -> None:
    files = RecordingFiles(seed=seed)
    log, random = opened(files), Random(seed)
    acknowledged: list[tuple[int, Contents]] = []
    for _ in range(8):
        write(log, random.choice((200, 500)), random)
        acknowledged.append((len(files.calls), contents(log)))
        keep_up(log)
    replay = Replay(files)
    for calls in range(acknowledged[0][0], len(files.calls) + 1):
        replay.advance(calls)
        crashed = replay.crash(random.choice(VARIANTS), random)
        after = Log.open(crashed, DIRECTORY, OPTIONS, 1)
        durable = [known for moment, known in acknowledged if moment <= calls][-1]
        assert durable.items() <= contents(after).items() <= acknowledged[-1][1].items()
        assert after.recovery.lost == ()
        after.close()


def compressed_log() -> tuple[RecordingFiles, Contents, str]:
    """A closed log, what is in it, and the path of its first segment, which is compressed."""
    files = RecordingFiles()
    log = filled(files, 14, 100)
    assert keep_up(log) == 1
    before = contents(log)
    log.close()
    return files, before, f"{DIRECTORY}/{segment_name(0)}"


def test_a_flipped_bit_anywhere_in_a_compressed_segment_costs_no_message_and_is_reported_and_mended() -> None:
    files, before, path = compressed_log()
    original = files.content(path)
    random = Random(3)
    for at in range(4096, len(original), 97):
        damaged = bytearray(original)
        damaged[at] ^= 1 << random.randrange(8)
        after = RecordingFiles(files.snapshot())
        after.replace_content(path, bytes(damaged))
        log = Log.open(after, DIRECTORY, OPTIONS, 1)
        assert contents(log) == before, f"byte {at}"
        assert log.damage or log.recovery.notes, f"byte {at}: not reported"
        log.close()
    assert repair(after, DIRECTORY, 1)
    found = survey(after, DIRECTORY)
    assert (found.decision.damage, found.records) == ([], len(before))
    assert found.facts[0].head is not None and found.facts[0].head.compressed
    assert found.facts[0].file_size < len(original) + 100


def test_a_lost_sector_costs_at_most_its_batch_from_there_on() -> None:
    files, before, path = compressed_log()
    original = files.content(path)
    identity = original[12:20]
    batches = [
        piece
        for piece in walk(lambda size, at: original[at : at + size], 4096, len(original), identity, 0, 1 << 40)
        if isinstance(piece, FoundBatch) and piece.header.holds_records
    ]
    for at in range(4096, len(original), 512):
        damaged = original[:at] + bytes(512) + original[at + 512 :]
        after = RecordingFiles(files.snapshot())
        after.replace_content(path, damaged)
        log = Log.open(after, DIRECTORY, OPTIONS, 1)
        found = contents(log)
        assert found.items() <= before.items()
        touched = [each.header for each in batches if each.position < at + 512 and at < each.end_position]
        lost = before.keys() - found.keys()
        assert all(any(head.base_offset <= offset < head.end_offset for head in touched) for offset in lost)
        inside = [each for each in batches if each.position + BATCH_HEADER_SIZE + 2048 < at < each.end_position]
        assert all(each.header.base_offset in found for each in inside), "what lies before the damage can be read"
        assert log.damage
        assert sum(item.end - item.start for item in log.damage) >= len(lost)
        log.close()


def built(count: int, base: int = 0, size: int = 20) -> tuple[BatchHeader, bytes]:
    builder = BatchBuilder(base)
    for number in range(count):
        builder.append(b"s", b"", b"%d" % number * size, number)
    header, _, body = builder.encode(IDENTITY)
    return header, body


def walked(data: bytes) -> list[FoundBatch | SpoiledBytes]:
    return list(walk(lambda size, at: data[at : at + size], 0, len(data), IDENTITY, 0, 1 << 40))


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 300), st.integers(0, 3), st.integers(1, 400)), min_size=1, max_size=12))
def test_joined_and_divided_batches_hold_the_same_records(shapes: list[tuple[int, int, int]]) -> None:
    assert COMPRESS is not None
    pieces: list[bytes] = []
    packer = Packer(lambda header, head, body: pieces.extend((head, body)), COMPRESS, IDENTITY)
    base, expected = 0, []
    for count, gap, size in shapes:
        header, body = built(count, base + gap, size)
        cursor = FoundBatch(0, header, body, 0, 0).cursor()
        while cursor.advance():
            expected.append(cursor.record())
        packer.add(header, body)
        base = header.end_offset
    packer.finish()
    batches = walked(b"".join(pieces))
    found, sizes = [], []
    for batch in batches:
        assert isinstance(batch, FoundBatch) and batch.is_whole
        cursor = batch.cursor()
        while cursor.advance():
            found.append(cursor.record())
        sizes.append(len(batch.body))
        assert crc32c(batch.body) == batch.header.body_crc
    assert found == expected
    assert all(size >= PACKED_BYTES for size in sizes[:-1])
    assert isinstance(batches[-1], FoundBatch) and batches[-1].header.end_offset == base


def test_a_gap_too_wide_for_one_batch_begins_another() -> None:
    assert COMPRESS is not None
    found: list[BatchHeader] = []
    packer = Packer(lambda header, head, body: found.append(header), COMPRESS, IDENTITY)
    packer.add(*built(3))
    packer.add(*built(3, 1 << 40))
    packer.finish()
    assert [(header.base_offset, header.record_count) for header in found] == [(0, 3), (1 << 40, 3)]


def test_what_compression_does_not_make_smaller_is_stored_as_it_is() -> None:
    assert COMPRESS is not None
    builder = BatchBuilder(0)
    builder.append(b"s", b"", Random(1).randbytes(5000), 1)
    header, _, body = builder.encode(IDENTITY)
    assert packed(header, body, COMPRESS) == (header, body)


@given(st.integers(0), st.integers(1, 60))
def test_a_flipped_bit_is_found_and_two_are_refused(place: int, apart: int) -> None:
    assert COMPRESS is not None
    header, body = built(50)
    kept, stored = packed(header, body, COMPRESS)
    assert kept.flags == FLAG_COMPRESSED
    assert unpack(kept, stored) == (header, body)
    bit = place % (len(stored) * 8 - apart)
    number = int.from_bytes(stored, "little") ^ 1 << bit
    assert corrected(kept, number.to_bytes(len(stored), "little")) == (header, body)
    number ^= 1 << bit + apart
    assert corrected(kept, number.to_bytes(len(stored), "little")) is None


def test_without_the_library_what_is_compressed_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    files, before, _ = compressed_log()
    monkeypatch.setitem(sys.modules, "cramjam", None)
    assert compressor() is None
    log = Log.open(files, DIRECTORY, OPTIONS, 1)
    assert contents(log) == before
    log.close()


@pytest.mark.parametrize(("version", "dialect", "flags"), [(2, DIALECT_NATS, 2), (1, DIALECT_NATS, 1), (2, 2, 1)])
def test_a_flag_that_is_not_known_stops_the_reader(version: int, dialect: int, flags: int) -> None:
    header, body = built(1)
    span = 0 if dialect == 2 else 1
    strange = BatchHeader(dialect, flags, 1, span, len(body), 0, 1, 1, header.body_crc, version)
    with pytest.raises(CorruptLog):
        walked(encode_batch_header(strange, IDENTITY) + body)
