"""Only the broker's Nats-Request-Info reaches a service."""

import pytest

from headwater.model.request_info import with_request_info, without_request_info


@pytest.mark.parametrize(
    ("block", "kept"),
    [
        (b"", b""),
        (b"NATS/1.0\r\n\r\n", b""),
        (b"NATS/1.0\r\nA: 1\r\nA: 2\r\n\r\n", b"A: 1\r\nA: 2\r\n"),
        (b"NATS/1.0\r\nNats-Request-Info: {}\r\nA: 1\r\n\r\n", b"A: 1\r\n"),
        (b"NATS/1.0\r\nnats-REQUEST-info : {}\r\n\r\n", b""),
        (b"NATS/1.0\r\nNats-Request-Info-Too: x\r\n\r\n", b"Nats-Request-Info-Too: x\r\n"),
        (b"no block at all", b""),
        (b"NATS/1.0\r\nA: 1", b""),
    ],
)
def test_the_header_is_there_once(block: bytes, kept: bytes) -> None:
    assert with_request_info(block, b"{}") == b"NATS/1.0\r\n" + kept + b"Nats-Request-Info: {}\r\n\r\n"


def test_a_stream_does_not_store_the_request_info() -> None:
    plain = b"NATS/1.0\r\nA: 1\r\nA: 2\r\n\r\n"
    assert without_request_info(with_request_info(plain, b"{}")) == plain
    assert without_request_info(with_request_info(b"", b"{}")) == b""
    for kept in (b"", plain, b"NATS/1.0\r\nNats-Request-Info-Too: x\r\n\r\n"):
        assert without_request_info(kept) == kept
