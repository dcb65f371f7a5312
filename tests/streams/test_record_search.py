"""One record of a batch: the same as a walk over all of it finds, read with few bytes, and never one that is damaged."""

import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.durable_files.files import OsFile, OsFiles
from headwater.streams.log_format import BATCH_HEADER_SIZE, BatchBuilder, BatchHeader, RecordCursor, StoredRecord
from headwater.streams.record_search import READ, find_record, find_records

IDENTITY = b"identity"
BASE = (5 << 32) - 3  # the lower halves of offsets wrap within a batch
AT = 4096  # of the batch in the file

SIZES = st.one_of(st.integers(0, 300), st.integers(0, 20_000))


def batch_of(payloads: list[bytes], base: int = BASE) -> tuple[BatchHeader, bytes]:
    """The batch, and a file that has it at AT."""
    builder = BatchBuilder(base)
    for number, payload in enumerate(payloads):
        builder.append(b"subject.%d" % number, b"", payload, number)
    header, head, body = builder.encode(IDENTITY)
    return header, bytes(AT) + head + body


class Reads:
    """A file that counts what is read of it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.sizes: list[int] = []
        self.wished: list[int] = []

    def pread(self, size: int, position: int) -> bytes:
        found = self.data[position : position + size]
        self.sizes.append(len(found))
        self.wished.append(size)
        return found


def walked(header: BatchHeader, data: bytes) -> dict[int, StoredRecord]:
    cursor = RecordCursor(data, AT + BATCH_HEADER_SIZE, len(data), header.base_offset)
    records = {}
    while cursor.advance():
        records[cursor.offset] = cursor.record()
    return records


@given(st.lists(SIZES, min_size=1, max_size=60), st.data())
def test_what_is_found_is_what_a_walk_finds(sizes: list[int], data: st.DataObject) -> None:
    header, file = batch_of([bytes(size) for size in sizes])
    records = walked(header, file)
    offset = data.draw(st.sampled_from(sorted(records)))
    found = find_record(Reads(file), AT, header, IDENTITY, offset)
    assert found is None or found == records[offset]


@given(
    st.lists(SIZES, min_size=1, max_size=60),
    st.data(),
    st.integers(1, 70),
    st.one_of(st.integers(0, 3000), st.just(1 << 40)),
    st.booleans(),
)
def test_what_follows_is_found_as_a_walk_finds_it(
    sizes: list[int], data: st.DataObject, most: int, room: int, at_least_one: bool
) -> None:
    header, file = batch_of([bytes(size) for size in sizes])
    records = walked(header, file)
    offset = data.draw(st.sampled_from(sorted(records)))
    found = find_records(Reads(file), AT, header, IDENTITY, offset, most, room, at_least_one)
    expected: list[StoredRecord] = []
    for record in [records[at] for at in sorted(records) if at >= offset][:most]:
        room -= len(record.subject) + len(record.payload)
        if room < 0 and (expected or not at_least_one):
            break
        expected.append(record)
    if found or find_record(Reads(file), AT, header, IDENTITY, offset) is not None:
        assert found == expected


@given(st.integers(0, 29), st.integers(0, 7), st.integers(0, 40 * 130 - 1))
def test_what_follows_ends_before_what_is_damaged(wanted: int, bit: int, byte: int) -> None:
    header, file = batch_of([b"p" * 100] * 30)
    records = walked(header, file)
    place = AT + BATCH_HEADER_SIZE + byte % (len(file) - AT - BATCH_HEADER_SIZE)
    spoiled = bytearray(file)
    spoiled[place] ^= 1 << bit
    found = find_records(Reads(bytes(spoiled)), AT, header, IDENTITY, BASE + wanted, 30, 1 << 20, True)
    expected = [records[at] for at in sorted(records) if at >= BASE + wanted]
    assert found == expected[: len(found)]
    assert len(found) < len(expected) or place < len(file) - sum(len(r.subject) + 128 for r in expected)


@given(st.lists(SIZES, min_size=1, max_size=60), st.integers(1, 3))
def test_of_a_file_that_is_read_often_the_same_is_found(sizes: list[int], apart: int) -> None:
    """Such a file is mapped, and searched in another way first."""
    payloads = [bytes(size - size % apart) for size in sizes]
    header, data = batch_of(payloads)
    with tempfile.NamedTemporaryFile() as holder:
        holder.write(data)
        holder.flush()
        file = OsFiles().open(holder.name)
        assert isinstance(file, OsFile)
        for _ in range(70):
            file.look(BATCH_HEADER_SIZE, AT)
        records = walked(header, data)
        for offset, record in records.items():
            otherwise = find_record(Reads(data), AT, header, IDENTITY, offset)
            assert find_record(file, AT, header, IDENTITY, offset) in ([record] if otherwise else [record, None])
        for offset in (header.base_offset - 1, header.end_offset):
            assert find_record(file, AT, header, IDENTITY, offset) is None
        file.close()


@pytest.mark.parametrize("payload", [0, 128, 1000, 100_000])
def test_records_of_one_size_are_each_found_with_one_read(payload: int) -> None:
    header, file = batch_of([bytes(payload)] * 300, base=7)
    for offset, record in walked(header, file).items():
        reads = Reads(file)
        assert find_record(reads, AT, header, IDENTITY, offset) == record
        assert len(reads.sizes) == 1 and reads.sizes[0] <= max(READ, 4 * (payload + 50))


def test_records_of_very_different_sizes_are_found_with_few_reads() -> None:
    header, file = batch_of([bytes(37 * n % 900) for n in range(1000)])
    reads = 0
    for offset, record in walked(header, file).items():
        counted = Reads(file)
        assert find_record(counted, AT, header, IDENTITY, offset) == record
        reads += len(counted.sizes)
    assert reads < 3 * 1000


@given(st.integers(0, 29), st.integers(0, 7), st.integers(0, 40 * 130 - 1))
def test_a_damaged_record_is_not_found_and_the_others_are_as_they_were(wanted: int, bit: int, byte: int) -> None:
    header, file = batch_of([b"p" * 100] * 30)
    records = walked(header, file)
    place = AT + BATCH_HEADER_SIZE + byte % (len(file) - AT - BATCH_HEADER_SIZE)
    spoiled = bytearray(file)
    spoiled[place] ^= 1 << bit
    found = find_record(Reads(bytes(spoiled)), AT, header, IDENTITY, BASE + wanted)
    assert found is None or found == records[BASE + wanted]


@pytest.mark.parametrize("wanted", range(30))
def test_a_damaged_size_has_nothing_read_beyond_the_batch(wanted: int) -> None:
    header, file = batch_of([b"p" * 100] * 30)
    cursor = RecordCursor(file, AT + BATCH_HEADER_SIZE, len(file), header.base_offset)
    while cursor.advance() and cursor.offset < BASE + wanted:
        pass
    spoiled = bytearray(file)
    spoiled[cursor.subject_at - 1] ^= 0x80  # the highest byte of the payload's size
    reads = Reads(bytes(spoiled))
    assert find_record(reads, AT, header, IDENTITY, BASE + wanted) is None
    assert max(reads.wished) <= header.body_size


def test_a_copy_of_a_record_in_a_payload_is_not_taken_for_the_record() -> None:
    _, before = batch_of([b"old %d" % n for n in range(20)], base=100)
    copy = before[AT + BATCH_HEADER_SIZE :]
    header, file = batch_of([copy] * 20, base=120)
    records = walked(header, file)
    for offset in range(100, 140):
        found = find_record(Reads(file), AT, header, IDENTITY, offset)
        assert found is None or found == records.get(offset)
    assert find_record(Reads(file), AT, header, IDENTITY, 105) is None


def test_a_file_that_is_shorter_than_its_batch_has_no_record() -> None:
    header, file = batch_of([b"p" * 100] * 100)
    assert find_record(Reads(file[: AT + 500]), AT, header, IDENTITY, BASE + 90) is None


def test_another_log_has_no_such_record() -> None:
    header, file = batch_of([b"p" * 100] * 100)
    assert find_record(Reads(file), AT, header, b"stranger", BASE + 50) is None
