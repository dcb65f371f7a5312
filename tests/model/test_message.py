"""A message as a value: its headers are read at the first access, and a bad block does no harm before."""

import copy
import pickle
from collections.abc import Awaitable, Generator
from typing import Any

import pytest

from headwater.errors import HeaderError, LocalProtocolError
from headwater.model.headers import Headers, HeaderSource
from headwater.model.message import Message
from headwater.model.status import Status


def test_a_message_without_headers_has_empty_ones_and_no_status() -> None:
    message = Message("a", b"data")
    assert (message.subject, message.data, message.reply, message.header_block) == ("a", b"data", "", b"")
    assert dict(message.headers) == {}
    assert message.status is None


def test_headers_are_read_once_and_keep_every_value() -> None:
    message = Message("a", b"", "", b"NATS/1.0\r\nK: 1\r\nk: 2\r\nK: 3\r\n\r\n")
    assert message.headers.get_all("K") == ["1", "3"]
    assert message.headers is message.headers


def test_the_status_stands_apart_from_the_headers() -> None:
    message = Message("a", b"", "", b"NATS/1.0 404 No Messages\r\nStatus: 503\r\n\r\n")
    assert message.status == Status(404, "No Messages")
    assert dict(message.headers) == {"Status": "503"}


@pytest.mark.parametrize("block", [b"garbage", b"NATS/1.0\r\nno colon\r\n\r\n", b"NATS/1.0 x\r\n"])
def test_a_malformed_block_raises_on_access_each_time_and_nothing_else_does(block: bytes) -> None:
    message = Message("a", b"data", "r", block)
    for _ in range(2):
        with pytest.raises(HeaderError):
            _ = (message.status, message.headers)
    assert (message.data, message.header_block) == (b"data", block)
    assert "header_block=<" in repr(message)


class Sent:
    def __await__(self) -> Generator[Any, Any, None]:
        yield from ()


SENT = Sent()


class Recorder:
    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes, object]] = []

    def respond(self, reply: str, data: bytes, headers: HeaderSource | Headers | None) -> Awaitable[None]:
        self.sent.append((reply, data, headers))
        return SENT


def test_respond_goes_to_the_reply_subject_through_where_it_came_from() -> None:
    channel = Recorder()
    message = Message("a", b"", "r.1", b"", channel)
    assert message.respond(b"answer", headers={"K": "1"}) is SENT
    assert channel.sent == [("r.1", b"answer", {"K": "1"})]


def test_respond_needs_a_reply_subject_and_a_connection() -> None:
    with pytest.raises(LocalProtocolError, match="no reply subject"):
        Message("a", b"", "", b"", Recorder()).respond(b"")
    with pytest.raises(LocalProtocolError, match="did not come from a connection"):
        Message("a", b"", "r").respond(b"")


def test_the_shown_form_is_short() -> None:
    assert len(repr(Message("a", bytes(10_000), "r", bytes(1000)))) < 300


def test_a_pickled_message_is_the_same_without_its_connection() -> None:
    message = Message("a", b"data", "reply", b"NATS/1.0 100 Idle\r\nA: 1\r\n\r\n", (lambda: None))  # type: ignore[arg-type]
    copied = pickle.loads(pickle.dumps(message))
    assert (copied.subject, copied.data, copied.reply, copied.header_block) == (
        "a",
        b"data",
        "reply",
        message.header_block,
    )
    with pytest.raises(LocalProtocolError, match="did not come from a connection"):
        copied.respond(b"")


def test_changed_headers_are_pickled() -> None:
    message = Message("a", b"data", "", b"NATS/1.0\r\nA: 1\r\n\r\n")
    message.headers.append("B", "2")
    assert pickle.loads(pickle.dumps(message)).headers == Headers({"A": "1", "B": "2"})
    del message.headers["A"], message.headers["B"]
    assert pickle.loads(pickle.dumps(message)).headers == Headers()
    assert copy.copy(message).headers == Headers()
