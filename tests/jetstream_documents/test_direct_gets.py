"""Which direct gets are refused, and with which status (measured with nats-server 2.15.1)."""

import pytest

from headwater.jetstream_documents.direct_gets import BAD_REQUEST, EMPTY_REQUEST, MALFORMED_REQUEST, read_direct_get
from headwater.jetstream_documents.requests import DirectGetRequest


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b'{"seq":2}', DirectGetRequest(seq=2)),
        (b'{"next_by_subj":"a.*","seq":2}', DirectGetRequest(seq=2, next_by_subj="a.*")),
        (b"", EMPTY_REQUEST),
        (b"{}", EMPTY_REQUEST),
        (b"null", EMPTY_REQUEST),
        (b" ", MALFORMED_REQUEST),
        (b"[]", MALFORMED_REQUEST),
        (b'{"start_time":"noon"}', MALFORMED_REQUEST),
        (b'{"seq":1,"start_time":"noon"}', MALFORMED_REQUEST),
        (b'{"seq":1,"last_by_subj":"a"}', BAD_REQUEST),
        (b'{"multi_last":["a"],"next_by_subj":"a"}', BAD_REQUEST),
    ],
)
def test_a_request_is_read_or_refused(payload: bytes, expected: DirectGetRequest | bytes) -> None:
    assert read_direct_get(payload) == expected


@pytest.mark.parametrize("payload", [b"", b"{}", b"null", b'{"x":1}', b'{"seq":0}', b'{"start_time":null}'])
def test_with_a_subject_behind_the_name_the_document_may_be_empty(payload: bytes) -> None:
    assert read_direct_get(payload, b"a.b") == DirectGetRequest(last_by_subj="a.b")


def test_with_a_subject_behind_the_name_the_document_may_only_say_how_to_answer() -> None:
    assert read_direct_get(b'{"no_hdr":true}', b"a") == DirectGetRequest(last_by_subj="a", no_hdr=True)
    for part in (b'"seq":1', b'"last_by_subj":"a"', b'"multi_last":["a"]', b'"batch":1', b'"up_to_seq":1'):
        assert read_direct_get(b"{%b}" % part, b"a") == BAD_REQUEST
    assert read_direct_get(b"{", b"a") == MALFORMED_REQUEST
    assert read_direct_get(b"[]", b"a") == MALFORMED_REQUEST
