"""Reasons in reports, as nats-server 2.15.1 writes them (measured, `tests/message_tracing/test_reference_traces.py`)."""

import pytest

from headwater.jetstream_documents.api_errors import api_error
from headwater.jetstream_state.trace_reasons import reason_of


def block(line: bytes) -> bytes:
    return b"NATS/1.0\r\n%b\r\n\r\n" % line


@pytest.mark.parametrize(
    ("name", "line", "in_batch", "reason"),
    [
        ("message_too_large", b"", False, "maximum payload exceeded"),
        ("message_too_large", b"", True, "message size exceeds maximum allowed (10054)"),
        ("batch_incomplete", b"", True, "atomic publish batch is incomplete (10176)"),
        ("expected_stream", b"", False, "expected stream does not match"),
        ("ttl_disabled", b"", False, "message TTL disabled"),
        ("batch_duplicate", b"", True, "msgid is duplicate"),
    ],
)
def test_a_refusal_has_its_number_or_the_words_of_the_store(
    name: str, line: bytes, in_batch: bool, reason: str
) -> None:
    assert reason_of(api_error(name), block(line), in_batch=in_batch) == reason


def test_a_wrong_sequence_is_told_beside_the_right_one_where_the_message_named_one() -> None:
    error = api_error("wrong_last_sequence", sequence=4)
    assert reason_of(error, block(b"Nats-Expected-Last-Sequence: 7")) == "last sequence mismatch: 7 vs 4"
    of_subject = block(b"Nats-Expected-Last-Subject-Sequence: 7")
    assert reason_of(error, of_subject) == "last sequence by subject mismatch: 7 vs 4"
    assert reason_of(error, block(b"Other: 1"), in_batch=True) == "wrong last sequence: 4 (10071)"
