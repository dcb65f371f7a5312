from pathlib import Path

from headwater import HeaderValue, TypedHeaders
from headwater.durable_files.files import OsFiles
from headwater.model.headers import Headers
from headwater.model.typed_headers import HeaderForm
from headwater.streams.iggy_batch import BATCH_HEADER, BATCH_HEADER_SIZE, FRAME, stamp
from headwater.streams.log import Log, LogOptions, StoredRecord
from headwater.streams.log_format import DIALECT_IGGY
from headwater.streams.record_places import RecordPlaces

SECOND = 1_000_000_000
BLOCK = TypedHeaders({"n": HeaderValue.from_uint8(7)}).encode(HeaderForm.TYPED)


def batch_of(*payloads: bytes, headers: bytes = b"") -> bytearray:
    body = bytearray(BATCH_HEADER_SIZE)
    for delta, payload in enumerate(payloads):
        body += FRAME.pack(0, (5).to_bytes(16, "little"), delta, 0, len(headers), len(payload), 0) + payload + headers
    BATCH_HEADER.pack_into(body, 0, 0, 0, 0, 0, len(body), 0, len(payloads))
    return body


def store(log: Log, body: bytearray, count: int, now_ns: int) -> int:
    stamp(body, 0, 0, log.next_offset, now_ns // 1000)
    return log.stage_iggy(bytes(body), count, now_ns)


def commit(log: Log) -> None:
    batch = log.seal()
    assert batch is not None
    log.write(batch)
    log.publish(batch)


def open_log(folder: Path, **options: int) -> Log:
    return Log.open(OsFiles(), str(folder), LogOptions(**options), SECOND)  # type: ignore[arg-type]


def test_both_dialects_share_a_log_and_survive_its_reopening(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert log.stage(b"s", b"", b"zero", SECOND) == 0
    assert store(log, batch_of(b"one", b"two", headers=BLOCK), 2, 2 * SECOND) == 1
    assert log.stage(b"s", b"", b"three", 3 * SECOND) == 3
    commit(log)
    expected = [(0, b"zero"), (1, b"one"), (2, b"two"), (3, b"three")]
    for _ in range(2):
        found = log.read(0, 10, 1 << 20)
        assert [(record.offset, record.payload) for record in found] == expected
        assert Headers.parse(found[2].header_block).multi_items() == [
            ("n", "7"),
            ("Iggy-Typed", "n uint8"),
            ("Iggy-Message-Id", "5"),
        ]
        assert next(batch.header.dialect for batch in log.batches(1)) == DIALECT_IGGY
        assert log.offset_at(2 * SECOND) == 1
        assert log.read(2, 1, 1) == [StoredRecord(2, 2 * SECOND, b"", found[2].header_block, b"two")]
        for end, most in ((4, 4), (3, 4), (4, 2)):
            places = RecordPlaces(0, 0)
            assert log.reader.find_places(places, 0, end, None, most, 10) == min(end, most)
            assert places.offsets == list(range(min(end, most)))
            assert places.sizes[1] == len(found[1].header_block) + len(b"one")
        log.close()
        log = open_log(tmp_path, cache_bytes=0)
    assert log.record_count == 4
    log.close()


def test_a_header_called_like_the_message_id_does_not_hide_the_id(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    named = TypedHeaders({"Iggy-Message-Id": "77", "n": "7"}).encode(HeaderForm.TYPED)
    store(log, batch_of(b"one", headers=named), 1, SECOND)
    commit(log)
    (found,) = log.read(0, 1, 1 << 20)
    assert Headers.parse(found.header_block).multi_items() == [("n", "7"), ("Iggy-Message-Id", "5")]
    log.close()


def test_what_a_log_was_given_is_found_after_a_crash(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    store(log, batch_of(b"a", b"b"), 2, SECOND)
    commit(log)
    log._opened.lock.close()  # what the end of the process does
    again = open_log(tmp_path)
    assert [record.payload for record in again.read(0, 10, 1 << 20)] == [b"a", b"b"]
    assert again.next_offset == 2
    again.close()
    log._writer.abandon()


def test_deleted_messages_of_a_batch_are_not_read_and_a_dead_batch_is_compacted_away(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=64 << 10)
    for number in range(4):
        store(log, batch_of(*[b"x" * 20_000] * 2), 2, SECOND * (number + 1))
        commit(log)
    assert log.discard_range(1, 4) == 3
    assert [record.offset for record in log.read(0, 10, 1 << 20)] == [0, 4, 5, 6, 7]
    commit(log)
    while (upkeep := log.plan_upkeep(erase=2)) is not None:
        before = log.size_bytes
        log.maintain(upkeep)
        log.settle(upkeep)
        if log.size_bytes == before:
            break
    assert [record.offset for record in log.read(0, 10, 1 << 20)] == [0, 4, 5, 6, 7]
    log.close()
