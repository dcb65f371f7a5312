from typing import Any

from headwater.exchange.peer_connection import PeerConnection


class RecordedLink:
    """Counts a connection's calls to its link."""

    def __init__(self) -> None:
        self.closing = False
        self.output = bytearray()
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda: self.calls.append(name)


def test_a_connection_that_closes_parses_no_more_and_reads_until_the_end() -> None:
    connection, link = PeerConnection(lambda: 1.0), RecordedLink()
    anything: Any = link
    connection.link = anything
    connection.close_link()
    assert connection.parser.stopped
    assert link.calls == ["resume_reading", "close"]


def test_without_a_link_nothing_is_sent_and_an_end_is_harmless() -> None:
    connection = PeerConnection(lambda: 1.0)
    connection.send(b"PING\r\n")
    connection.go_on()
    connection.ended()
    assert connection.parser.stopped
    assert connection.opened == 1.0
