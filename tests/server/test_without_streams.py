"""What an account without streams gets as answers. The real server: tests/jetstream/test_reference_domain.py."""

import json

from headwater.exchange.router import Router
from headwater.jetstream.domain import Domain
from headwater.server.without_streams import NotEnabled


def ask(router: Router, subject: bytes, payload: bytes = b"") -> tuple[int, list[int]]:
    """How many took the request, and the numbers of the errors that came back."""
    answers: list[int] = []

    def note(subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        answers.append(json.loads(payload)["error"]["err_code"])

    inbox = router.subscribe_internal(b"inbox", note)
    reached = router.publish(subject, b"inbox", b"", payload)
    router.unsubscribe(inbox)
    return reached, answers


def test_every_request_is_answered_and_the_rest_finds_nobody() -> None:
    router = Router(lambda work: None, 1, 1 << 20)
    refusing = NotEnabled(router, Domain("hub"))
    refusing.start()
    assert ask(router, b"$JS.API.INFO") == (1, [10039])
    assert ask(router, b"$JS.hub.API.STREAM.CREATE.S", b"{}") == (1, [10039])
    assert ask(router, b"$JS.API.STREAM.LEADER.STEPDOWN.S") == (1, [10010])
    assert ask(router, b"$JS.API.CONSUMER.MSG.NEXT.S.c") == (0, [])
    assert ask(router, b"$JS.API.FROB") == (1, [])
    refusing.stop()
    assert ask(router, b"$JS.API.INFO") == (0, [])


def test_requests_that_the_account_sends_to_another_one_are_left_alone() -> None:
    router = Router(lambda work: None, 1, 1 << 20)
    NotEnabled(router, Domain(), ["$JS.API.CONSUMER.>"]).start()
    assert ask(router, b"$JS.API.CONSUMER.INFO.S.c") == (0, [])
    assert ask(router, b"$JS.API.INFO") == (1, [10039])


def test_an_account_that_asks_another_one_for_information_learns_that_nobody_answers_the_rest() -> None:
    router = Router(lambda work: None, 1, 1 << 20)
    NotEnabled(router, Domain("hub"), ["$JS.API.INFO", "$JS.API.CONSUMER.MSG.NEXT.S.c"]).start()
    assert ask(router, b"$JS.API.CONSUMER.INFO.S.c") == (0, [])
    assert ask(router, b"$JS.hub.API.STREAM.NAMES") == (0, [])
