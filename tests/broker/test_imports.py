"""Imports at work, without sockets; what clients see of them is in test_reference_imports.py."""

import pytest

from headwater.broker import imports
from headwater.broker.imports import Replies, StreamImports
from headwater.broker.router import Router
from headwater.model.subject_rename import SubjectRename

Heard = list[tuple[bytes, bytes]]


def router() -> Router:
    return Router(lambda function: None, 1)


def listen(router: Router, subject: bytes) -> Heard:
    heard: Heard = []
    router.subscribe_internal(subject, lambda name, reply, block, payload: heard.append((name, payload)))
    return heard


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_reply_subject_ends_with_its_time() -> None:
    clock, home, there = Clock(), router(), router()
    heard = listen(home, b"back.>")
    asked, asker = Replies(there, clock, "seed"), Replies(home, clock, "seed")
    early = asked.make(home, b"back.1", asker, many=True, seconds=10.0)
    clock.now = 11.0
    late = asked.make(home, b"back.2", asker, many=True, seconds=10.0)
    assert there.publish(early, b"", b"", b"x") == 0
    assert there.publish(late, b"", b"", b"x") == 1
    assert heard == [(b"back.2", b"x")]


def test_no_more_replies_are_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "REPLIES", 100)
    home, there = router(), router()
    asked, asker = Replies(there, Clock(), "seed"), Replies(home, Clock(), "seed")
    for _ in range(110):
        asked.make(home, b"back", asker, many=False, seconds=10.0)
    assert len(asked) == 100


def test_a_reply_to_nobody_has_reached_nobody() -> None:
    home, there = router(), router()
    asked = Replies(there, Clock(), "seed")
    subject = asked.make(home, b"gone", asked, many=False, seconds=10.0)
    assert there.publish(subject, b"", b"", b"x") == 0
    assert there.publish(subject + b"x", b"", b"", b"x") == 0


def test_the_brokers_own_subscriptions_import_too() -> None:
    home, there = router(), router()
    imports = StreamImports(home)
    imports.add(SubjectRename("orders.*", "eu.$1"), there)
    home.imports = imports
    heard = listen(home, b"eu.*")
    assert there.publish(b"orders.7", b"", b"", b"x") == 1
    assert heard == [(b"eu.7", b"x")]
    imports.close()
    assert there.publish(b"orders.7", b"", b"", b"x") == 0
    assert there.sublist.count == 0


def test_a_subscription_beside_the_import_has_no_shadow() -> None:
    home, there = router(), router()
    home.imports = imports = StreamImports(home)
    imports.add(SubjectRename("orders.*", "eu.$1"), there)
    listen(home, b"us.*")
    listen(home, b"eu.a.b")
    assert there.sublist.count == 0
