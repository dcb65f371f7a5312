"""Events in words, and rates between two answers."""

from typing import Any

import pytest

from headwater.operations.watching import Rates, rates, read_event


@pytest.mark.parametrize(
    ("subject", "payload", "kind", "text"),
    [
        (
            "$SYS.ACCOUNT.A.DISCONNECT",
            b'{"type":"io.nats.server.advisory.v1.client_disconnect","client":{"id":5,"acc":"A","name":"n","host":"h"},'
            b'"reason":"Client Closed"}',
            "client_disconnect",
            "n (id 5, account A, from h): Client Closed",
        ),
        ("$SYS.SERVER.N.SHUTDOWN", b'{"name":"one","id":"N"}', "shutdown", "server one"),
        ("$SYS.SERVER.N.LAMEDUCK", b'{"server":{"name":"one"}}', "lameduck", "server one"),
        (
            "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.S.C",
            b'{"type":"io.nats.jetstream.advisory.v1.max_deliver","stream":"S","consumer":"C","stream_seq":7,"deliveries":3}',
            "max_deliver",
            "stream S, consumer C, stream_seq 7, deliveries 3",
        ),
        ("$JS.EVENT.ADVISORY.API", b'{"type":"x.api_audit"}', "api_audit", "API"),
        ("a.B", b"no json", "b", "a.B"),
        ("a.B", b"[1]", "b", "a.B"),
    ],
)
def test_an_event_has_a_kind_and_a_line(subject: str, payload: bytes, kind: str, text: str) -> None:
    event = read_event(subject, payload)
    assert (event.kind, event.text) == (kind, text)


def counters(start: str, messages: int) -> dict[str, Any]:
    both = {"msgs": messages, "bytes": 10 * messages}
    statsz = {"start": start, "connections": 2, "received": both, "sent": {"msgs": 0, "bytes": 0}}
    return {"server": {"id": "N", "name": "one"}, "statsz": statsz}


def test_rates_are_differences_and_a_new_start_has_none_yet() -> None:
    found = rates([counters("monday", 5)], [counters("monday", 25)], 2.0)
    assert found == [Rates("one", 2, 10.0, 0.0, 100.0, 0.0)]
    assert rates([counters("monday", 5)], [counters("tuesday", 1)], 2.0) == []
