"""Reply subjects between accounts: each leads back until it expires, and their number is limited."""

import pytest

from headwater.exchange import replies
from headwater.exchange.replies import Replies
from headwater.exchange.router import Router

Received = list[tuple[bytes, bytes]]


def router() -> Router:
    return Router(lambda function: None, 1)


def listen(router: Router, subject: bytes) -> Received:
    received: Received = []
    router.subscribe_internal(subject, lambda name, reply, block, payload: received.append((name, payload)))
    return received


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_reply_subject_ends_with_its_time() -> None:
    clock, home, there = Clock(), router(), router()
    received = listen(home, b"back.>")
    owner, requester = Replies(there, clock, "seed"), Replies(home, clock, "seed")
    early = owner.make(home, b"back.1", requester, many=True, seconds=10.0)
    clock.now = 11.0
    late = owner.make(home, b"back.2", requester, many=True, seconds=10.0)
    assert there.publish(early, b"", b"", b"x") == 0
    assert there.publish(late, b"", b"", b"x") == 1
    assert received == [(b"back.2", b"x")]


def test_no_more_replies_are_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "REPLIES", 100)
    home, there = router(), router()
    owner, requester = Replies(there, Clock(), "seed"), Replies(home, Clock(), "seed")
    for _ in range(110):
        owner.make(home, b"back", requester, many=False, seconds=10.0)
    assert len(owner) == 100


def test_a_forgotten_reply_subject_leads_nowhere() -> None:
    home, there = router(), router()
    received = listen(home, b"back")
    owner = Replies(there, Clock(), "seed")
    subject = owner.make(home, b"back", Replies(home, Clock(), "seed"), many=True, seconds=10.0)
    owner.forget(subject)
    assert there.publish(subject, b"", b"", b"x") == 0
    assert (received, len(owner)) == ([], 0)


def test_a_reply_without_a_requester_has_no_receiver() -> None:
    home, there = router(), router()
    owner = Replies(there, Clock(), "seed")
    subject = owner.make(home, b"gone", owner, many=False, seconds=10.0)
    assert there.publish(subject, b"", b"", b"x") == 0
    assert there.publish(subject + b"x", b"", b"", b"x") == 0


def test_a_delivery_to_a_reply_subject_keeps_the_subject_and_the_acknowledgement_of_its_message() -> None:
    home, there = router(), router()
    received: list[tuple[bytes, bytes, bytes]] = []
    home.subscribe_internal(b"back", lambda *message: received.append((home.inbox, message[0], message[1])))
    owner, requester = Replies(there, Clock(), "seed"), Replies(home, Clock(), "seed")
    alias = owner.make(home, b"back", requester, many=True, seconds=10.0)
    acknowledged = b"$JS.ACK.S.c.1.1.1.0.0"
    assert there.deliver(alias, b"orders.eu", acknowledged, b"", b"x") == 1
    assert received == [(b"back", b"orders.eu", acknowledged)]
    assert there.deliver(alias + b"x", b"orders.eu", acknowledged, b"", b"x") == 0
    assert len(requester) == 0
