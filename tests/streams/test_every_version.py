"""Stores that earlier versions wrote are opened, read, written to, and served alike.

`tests/vectors/stores/version_N.tar.xz` holds what the code of that version left behind: `killed` and `closed`, two logs of
the same contents with deletions in them and a batch of Iggy's at the end, one after a kill -9 and one after a clean stop;
and `stream`, a document.
"""

import tarfile
from pathlib import Path

import pytest

from headwater.durable_files import documents
from headwater.durable_files.files import OsFiles
from headwater.iggy_wire.batches import messages
from headwater.operations.inspection import repair, survey
from headwater.streams.log import Log
from headwater.streams.log_format import DIALECT_IGGY, VERSION, StoredRecord
from headwater.streams.options import LogOptions

STORES = Path(__file__).parents[1] / "vectors" / "stores"
VERSIONS = [1]  # and the present one, which every other test opens
START = 1_700_000_000_000_000_000
DELETED = {5, 10, 11, 12}
RECORDS = 102
MESSAGES = 9


@pytest.fixture(params=[(version, name) for version in VERSIONS for name in ("killed", "closed")])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    version, name = request.param
    with tarfile.open(STORES / f"version_{version}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return str(tmp_path / name)


def expected() -> list[StoredRecord]:
    found = []
    for first, count, size in ((0, 30, 40), (30, 1, 40), (31, 64, 1200), (95, 7, 40)):
        for number in range(count):
            block = b"NATS/1.0\r\na: %d\r\n\r\n" % number if number % 3 == 0 else b""
            payload = (b"payload %d " % (first + number)).ljust(size, b".")
            offset = first + number
            found.append(StoredRecord(offset, START + offset, b"orders.%d" % (number % 5), block, payload))
    return [record for record in found if record.offset not in DELETED]


def nats_records(log: Log) -> list[StoredRecord]:
    return [record for record in log.read(0, 1 << 20, 1 << 30) if not RECORDS <= record.offset < RECORDS + MESSAGES]


def test_there_is_a_store_of_every_earlier_version() -> None:
    assert list(range(1, VERSION)) == VERSIONS


def test_all_is_there_and_can_be_added_to_deleted_from_compacted_and_opened_again(directory: str) -> None:
    log = Log.open(OsFiles(), directory, LogOptions(segment_bytes=64 << 10), 1)
    assert log.recovery.damage == ()
    assert nats_records(log) == expected()
    iggy = [batch for batch in log.batches(0) if batch.header.dialect == DIALECT_IGGY]
    found = [message.payload for batch in iggy for message in messages(batch.body)]
    assert found == [b"iggy %d" % number for number in range(MESSAGES)]
    assert (log.record_count, log.end_offset) == (RECORDS + MESSAGES - len(DELETED), RECORDS + MESSAGES)
    new = log.stage(b"new", b"", b"x" * 70_000, START)
    assert log.discard_range(0, 29) == 25
    batch = log.seal()
    assert batch is not None
    log.write(batch)
    log.publish(batch)
    while (upkeep := log.plan_upkeep()) is not None:
        log.maintain(upkeep)
        log.settle(upkeep)
    kept = [*[record for record in expected() if record.offset >= 29], *log.read(new, 1, 1)]
    assert nats_records(log) == kept
    log.close()
    again = Log.open(OsFiles(), directory, LogOptions(), 1)
    assert again.recovery.notes == ()
    assert nats_records(again) == kept
    again.close()


def test_a_flipped_bit_costs_what_it_cost_then_and_is_reported(directory: str) -> None:
    path = next(Path(directory).glob("*31.log"))
    content = bytearray(path.read_bytes())
    content[30_000] ^= 1
    path.write_bytes(content)
    found = survey(OsFiles(), directory)
    (damage,) = found.decision.damage
    lost = set(range(damage.start, damage.end))
    assert 0 < len(lost) <= 64
    repair(OsFiles(), directory, 1)
    log = Log.open(OsFiles(), directory, LogOptions(), 1)
    assert log.recovery.damage == ()
    assert nats_records(log) == [record for record in expected() if record.offset not in lost]
    log.close()


def test_its_documents_are_read_and_written_anew(directory: str) -> None:
    path = f"{directory}/../stream"
    damage: list[str] = []
    assert documents.load(OsFiles(), path, damage) == b'{"a document":2}'
    documents.save(OsFiles(), path, b"new")
    assert documents.load(OsFiles(), path, damage) == b"new"
    assert damage == []
