"""Peers' interest in accounts that do not exist here yet."""

from headwater.cluster import unclaimed
from headwater.cluster.route import Interest
from headwater.cluster.unclaimed import Unclaimed


def wish(account: bytes, subject: bytes, queue: bytes = b"", number: int = 1) -> Interest:
    return Interest(account, subject, queue, b"", number)


def test_an_added_account_gets_the_peers_last_interest_in_it_once() -> None:
    waiting = Unclaimed()
    for interest in (wish(b"A", b"a"), wish(b"A", b"w", b"q", 1), wish(b"B", b"b"), wish(b"A", b"w", b"q", 3)):
        assert waiting.note(1, interest)
    waiting.note(2, wish(b"A", b"a"))
    assert waiting.claim(b"A") == [(1, wish(b"A", b"a")), (1, wish(b"A", b"w", b"q", 3)), (2, wish(b"A", b"a"))]
    assert waiting.claim(b"A") == []
    assert waiting.claim(b"B") == [(1, wish(b"B", b"b"))]


def test_ended_interest_and_that_of_a_lost_peer_is_dropped() -> None:
    waiting = Unclaimed()
    waiting.note(1, wish(b"A", b"a"))
    waiting.note(1, wish(b"A", b"a", number=0))
    waiting.note(1, wish(b"A", b"never wanted", number=0))
    waiting.note(2, wish(b"A", b"a"))
    waiting.forget(2)
    waiting.forget(3)
    assert waiting.claim(b"A") == []


def test_a_peer_cannot_fill_the_memory() -> None:
    waiting = Unclaimed()
    for number in range(unclaimed.MOST):
        assert waiting.note(1, wish(b"A", b"%d" % number))
    assert not waiting.note(1, wish(b"A", b"one more"))
    assert waiting.note(1, wish(b"A", b"0", number=0))
    assert waiting.note(1, wish(b"A", b"one more"))
    assert waiting.note(2, wish(b"A", b"another peer's"))
