"""Nats-Request-Info is what the broker says, and nothing else."""

import pytest

from headwater.broker.request_info import with_request_info


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
