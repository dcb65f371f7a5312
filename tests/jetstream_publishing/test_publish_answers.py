"""Answers to publishes: refusals are counted, reported where there was no room, and given at the reply and the callback."""

import json

import pytest

from headwater.errors import DiskFull, JetStreamError, StorageError
from headwater.exchange.router import Router
from headwater.jetstream_documents.api_errors import api_error
from headwater.jetstream_publishing.publish_answers import PublishAnswers


def answers(domain: str = "") -> tuple[PublishAnswers, list[bytes]]:
    received: list[bytes] = []
    made = PublishAnswers("S", domain, lambda: 0)
    made.router = router = Router(lambda callback: None, 1)
    router.subscribe_internal(b"inbox", lambda _subject, _reply, _block, payload: received.append(payload))
    return made, received


def test_the_head_of_an_ack_names_stream_and_domain() -> None:
    assert answers()[0].head == b'{"stream":"S","seq":'
    assert answers("hub")[0].head == b'{"stream":"S","domain":"hub","seq":'
    assert json.loads(answers("hub")[0].duplicate(7)) == {"stream": "S", "domain": "hub", "seq": 7, "duplicate": True}


@pytest.mark.parametrize(
    ("error", "err_code", "reported"),
    [
        (api_error("sealed"), 10109, False),
        (api_error("account_resources_exceeded"), 10002, True),
        (api_error("too_many_requests"), 10167, True),
        (DiskFull("no room"), 10023, True),
        (StorageError("the record is too large"), 10077, True),
    ],
)
def test_a_refusal_is_answered_counted_and_reported_where_it_is_no_mistake_of_the_publisher(
    error: JetStreamError | StorageError, err_code: int, reported: bool
) -> None:
    made, received = answers()
    reports: list[tuple[str, int]] = []
    called: list[JetStreamError | None] = []
    made.on_refused = lambda stream, refusal: reports.append((stream, refusal.err_code))
    made.refuse(b"inbox", error, called.append)
    assert [json.loads(payload)["error"]["err_code"] for payload in received] == [err_code]
    assert [refusal.err_code for refusal in called if refusal is not None] == [err_code]
    assert reports == ([("S", err_code)] if reported else [])
    assert (made.refused, made.stats.refused) == (1, 1)


def test_a_mistake_of_a_publisher_that_gets_no_answer_is_reported() -> None:
    made, received = answers()
    reports: list[tuple[str, int]] = []
    made.on_refused = lambda stream, refusal: reports.append((stream, refusal.err_code))
    made.refuse(b"", api_error("sealed"), answered=False)
    assert (received, reports) == ([], [("S", 10109)])


def test_an_answer_goes_to_whoever_waits_for_it() -> None:
    made, received = answers()
    called: list[JetStreamError | None] = []
    made.confirm(b"inbox", b"ack", None)
    made.confirm(b"", b"ack", called.append)
    assert (received, called) == ([b"ack"], [None])
