"""Answers of stored batches as columns: the rows that the records say, and a violation for bytes that do not add up."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.columns.range_answer import ANSWER_HEAD, BATCH_HEAD, AnswerHead, encode_records
from headwater.columns.stored_columns import StoredDecoder
from headwater.streams.log_format import BatchBuilder, StoredRecord
from headwater.wire.columns import Columns
from headwater.wire.message_view import composed

BLOCK = b"NATS/1.0\r\nce-id: 7\r\n\r\n"
SID = 3
RECORDS = st.lists(
    st.builds(
        StoredRecord,
        st.just(0),
        st.integers(0, 1 << 62),
        st.sampled_from([b"a", b"orders.new", "ö".encode(), b"\xff"]),
        st.sampled_from([b"", BLOCK, b"NATS/1.0\r\nbroken"]),
        st.binary(max_size=20),
    ),
    min_size=1,
    max_size=6,
)


def numbered(records: list[StoredRecord], base: int, steps: list[int]) -> list[StoredRecord]:
    """The records at increasing offsets from `base` on."""
    made = []
    for record, step in zip(records, steps, strict=False):
        made.append(StoredRecord(base, record.timestamp_ns, record.subject, record.header_block, record.payload))
        base += step
    return made


def batch(records: list[StoredRecord]) -> bytes:
    body = encode_records(records)
    return BATCH_HEAD.pack(records[0].offset, len(body), len(records), 2) + body


def answer(batches: list[bytes], requested: int, following: int) -> bytes:
    return AnswerHead(len(batches), 1, requested, following, 1, following).encode() + b"".join(batches)


def fed(payload: bytes, start: int, end: int, header_block: bytes = b"") -> StoredDecoder:
    decoder = StoredDecoder(start, end, with_map=True, with_raw=True)
    decoder.listen(SID, lambda head: True)
    message = composed(b"inbox", b"", header_block, payload)
    message.sid = SID
    decoder.on_message(message)
    return decoder


def rows(columns: Columns) -> list[tuple[int, int, bytes, bytes, bytes]]:
    blocks = columns.blocks
    assert blocks is not None
    texts = [
        [bytes(text.data[a:b]) for a, b in zip(text.offsets, text.offsets[1:], strict=False)]
        for text in (columns.subjects, blocks, columns.payloads)
    ]
    return list(zip(columns.sequences, columns.timestamps, *texts, strict=True))


@given(
    records=RECORDS,
    base=st.sampled_from([0, 7, (1 << 32) - 2, (1 << 40) + 5]),
    steps=st.lists(st.integers(1, 3), min_size=6, max_size=6),
    cut=st.integers(0, 6),
)
def test_rows_are_those_of_the_records_within_the_range(
    records: list[StoredRecord], base: int, steps: list[int], cut: int
) -> None:
    kept = numbered(records, base, steps)
    start, end = base + 1 + cut, kept[-1].offset + 2
    pieces = [kept[:1], kept[1:2], kept[2:]]
    decoder = fed(answer([batch(piece) for piece in pieces if piece], start, end), start, end)
    assert decoder.violation is None
    wanted = [record for record in kept if start <= record.offset + 1 < end]
    assert decoder.complete
    assert decoder.position == max(end, start) - 1
    assert rows(decoder.take()) == [
        (
            record.offset + 1,
            record.timestamp_ns,
            record.subject.decode("utf-8", "replace").encode(),
            record.header_block,
            record.payload,
        )
        for record in wanted
    ]
    present = {record.offset + 1 for record in wanted}
    gaps = [sequence for sequence in range(start, end) if sequence not in present]
    assert decoder.first_gap == (gaps[0] if gaps else -1)


def test_a_batch_of_the_log_is_read_as_it_lies_there() -> None:
    builder = BatchBuilder((1 << 32) - 1)
    for number in range(3):
        builder.append(b"s.%d" % number, BLOCK, b"p%d" % number, 1000 + number)
    header, _, body = builder.encode(b"12345678")
    start = header.base_offset + 1
    one = BATCH_HEAD.pack(header.base_offset, len(body), header.record_count, header.version) + body
    decoder = fed(answer([one], start, start + 3), start, start + 3)
    assert [row[0] for row in rows(decoder.take())] == [start, start + 1, start + 2]


def test_a_batch_of_version_1_is_read() -> None:
    body = b"".join(struct.pack("<qIHHII", 5, delta, 1, 0, 0, 1) + b"s" + b"%d" % delta for delta in (0, 2))
    one = BATCH_HEAD.pack(10, len(body), 2, 1) + body
    decoder = fed(answer([one], 11, 14), 11, 14)
    assert [(row[0], row[4]) for row in rows(decoder.take())] == [(11, b"0"), (13, b"2")]
    assert decoder.first_gap == 12


@given(place=st.integers(0, 200), byte=st.integers(0, 255), size=st.integers(-3, 3), records=RECORDS)
def test_bytes_that_do_not_add_up_are_a_violation_and_never_more_than_that(
    place: int, byte: int, size: int, records: list[StoredRecord]
) -> None:
    kept = numbered(records, 0, [1] * 6)
    payload = bytearray(answer([batch(kept)], 1, len(kept) + 1))
    payload[ANSWER_HEAD.size + place % (len(payload) - ANSWER_HEAD.size)] = byte
    cut = bytes(payload[:size]) if size < 0 else bytes(payload) + bytes(size)
    decoder = fed(cut, 1, len(kept) + 1)
    taken = decoder.take()
    assert taken.rows <= len(kept)
    if size:
        assert decoder.violation is not None


@pytest.mark.parametrize("payload", [b'{"error":{}}', b"HWR1", b""])
def test_what_is_no_answer_is_a_refusal(payload: bytes) -> None:
    decoder = fed(payload, 1, 2)
    assert (decoder.refusal, decoder.rows, decoder.complete) == (payload, 0, False)


def test_statuses_and_answers_that_are_not_wanted_give_no_rows() -> None:
    kept = numbered([StoredRecord(0, 1, b"s", b"", b"p")], 0, [1])
    assert fed(b"", 1, 2, b"NATS/1.0 503\r\n\r\n").statuses == [b"NATS/1.0 503\r\n\r\n"]
    decoder = StoredDecoder(1, 2, with_map=False, with_raw=False)
    decoder.listen(SID, lambda head: head.requested == 9)
    message = composed(b"inbox", b"", b"", answer([batch(kept)], 1, 2))
    message.sid = SID
    decoder.on_message(message)
    assert (decoder.rows, decoder.complete) == (0, False)


def test_a_range_begun_with_answers_goes_on_with_a_consumer() -> None:
    kept = numbered([StoredRecord(0, 1, b"s", b"", b"p")], 0, [1])
    decoder = fed(answer([batch(kept)], 1, 2), 1, 3)
    decoder.resubscribe(5)
    message = composed(b"s", b"$JS.ACK.S.c.1.2.1.7.0", b"", b"q")
    message.sid = 5
    decoder.on_message(message)
    assert decoder.complete
    assert [(row[0], row[4]) for row in rows(decoder.take())] == [(1, b"p"), (2, b"q")]
