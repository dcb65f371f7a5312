"""The head of an answer, and records that are encoded again."""

import pytest

from headwater.columns.range_answer import ANSWER_HEAD, AnswerHead, decode_head, encode_records
from headwater.streams.log_format import RecordCursor, StoredRecord


def test_a_head_is_read_as_it_was_written() -> None:
    head = AnswerHead(2, 1_700_000_000_000_000_000, 5, 9, 1, 1 << 40)
    assert decode_head(head.encode() + b"more") == head


@pytest.mark.parametrize("payload", [b"", b"HWR1", b"XXXX" + bytes(ANSWER_HEAD.size)])
def test_other_bytes_are_no_head(payload: bytes) -> None:
    assert decode_head(payload) is None


def test_records_with_gaps_are_read_back_as_version_2() -> None:
    records = [
        StoredRecord(offset, offset, b"s", b"NATS/1.0\r\n\r\n", b"p")
        for offset in ((1 << 32) - 1, 1 << 32, (1 << 32) + 7)
    ]
    body = encode_records(records)
    cursor = RecordCursor(body, 0, len(body), records[0].offset, 2)
    found = []
    while cursor.advance():
        found.append(cursor.record())
    assert found == records
