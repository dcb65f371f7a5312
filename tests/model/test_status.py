"""Message status, and the names that the server knows."""

import pytest

from headwater.errors import HeaderError
from headwater.model.header_block import parse_status
from headwater.model.header_names import NatsHeader
from headwater.model.headers import Headers
from headwater.model.status import NO_RESPONDERS, Status


def test_status_is_read_without_looking_at_the_lines_below() -> None:
    assert parse_status(b"NATS/1.0 503\r\nNats-Subject: x\r\n\r\n") == Status(NO_RESPONDERS)
    assert parse_status(b"NATS/1.0 409 Message Size Exceeds MaxBytes\r\njunk") == (409, "Message Size Exceeds MaxBytes")
    assert parse_status(b"NATS/1.0\r\nStatus: 503\r\n\r\n") is None


@pytest.mark.parametrize("block", [b"", b"x", b"NATS/1.0", b"NATS/1.0503\r\n", b"NATS/1.0 5\r\n", b"NATS/1.0 099\r\n"])
def test_bad_version_line_or_status_is_a_header_error(block: bytes) -> None:
    with pytest.raises(HeaderError):
        parse_status(block)


def test_status_prints_as_on_the_wire() -> None:
    assert str(Status(404, "No Messages")) == "404 No Messages"
    assert str(Status(503)) == "503"


def test_server_names_are_header_names_of_exact_spelling() -> None:
    headers = Headers({NatsHeader.MSG_ID: "a"})
    assert headers["Nats-Msg-Id"] == "a"
    assert type(next(iter(headers))) is str
    assert NatsHeader.MSG_ID.wire == b"Nats-Msg-Id"
    assert len({name.value for name in NatsHeader}) == len(NatsHeader)
