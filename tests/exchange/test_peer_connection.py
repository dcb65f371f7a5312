from typing import Any

import pytest

from headwater.exchange.peer_connection import PeerConnection
from headwater.wire import route_ops
from headwater.wire.route_ops import RouteOpParser


class RecordedLink:
    """Counts a connection's calls to its link."""

    def __init__(self) -> None:
        self.closing = False
        self.output = bytearray()
        self.calls: list[str] = []
        self.peer = "192.0.2.1:7422"

    def __getattr__(self, name: str) -> Any:
        return lambda: self.calls.append(name)


def test_a_connection_that_closes_parses_no_more_and_reads_until_the_end() -> None:
    connection, link = PeerConnection(lambda: 1.0), RecordedLink()
    anything: Any = link
    connection.link = anything
    connection.close_link()
    assert connection.parser.stopped
    assert link.calls == ["resume_reading", "close"]


def test_a_message_beyond_the_limit_is_logged_with_its_peer(caplog: pytest.LogCaptureFixture) -> None:
    connection = PeerConnection(lambda: 1.0)
    connection.link = link = RecordedLink()  # type: ignore[assignment]
    connection.parser = RouteOpParser(connection, b"", route_ops.LEAF, 20, 4)
    connection.parser.parse(bytearray(b"LMSG foo 5\r\n"), 0, 12)
    assert f"message_refused peer={link.peer} subject=b'foo' size=5 limit=4" in caplog.text


def test_without_a_link_nothing_is_sent_and_an_end_is_harmless() -> None:
    connection = PeerConnection(lambda: 1.0)
    connection.send(b"PING\r\n")
    connection.go_on()
    connection.ended()
    assert connection.parser.stopped
    assert connection.opened == 1.0
