"""What the reports of a trace say together."""

import json
from typing import Any

import pytest

from headwater.operations.tracing import Trace, read_report


def payload(server: str, hop: str, *events: dict[str, Any]) -> bytes:
    header = {"Nats-Trace-Dest": ["r"], **({"Nats-Trace-Hop": [hop]} if hop else {})}
    return json.dumps({"server": {"name": server}, "request": {"header": header}, "events": events}).encode()


def gathered(*payloads: bytes) -> Trace:
    reports = [report for each in payloads if (report := read_report(each)) is not None]
    return Trace({report.hop: report for report in reports})


IN = {"type": "in", "kind": 0, "cid": 7, "name": "shop", "acc": "A", "subj": "o.eu"}
ROUTE = {"type": "eg", "kind": 1, "cid": 3, "name": "two", "hop": "1"}
OLD = {"type": "eg", "kind": 1, "cid": 4, "name": "old", "hop": "2", "error": "no tracing"}
CLIENT = {"type": "eg", "kind": 0, "cid": 9, "name": "store", "sub": "o.*", "queue": "g"}


def test_reports_are_missing_until_each_hop_has_its_own() -> None:
    first, second = payload("one", "", IN, ROUTE, OLD), payload("two", "1", IN, CLIENT)
    assert gathered().missing == [""]
    assert gathered(second).missing == [""]
    assert gathered(first).missing == ["1"]
    assert gathered(second, first).missing == []


def test_what_another_server_does_is_below_the_hop_that_leads_there() -> None:
    stored = {"type": "js", "stream": "S", "subject": "o.eu", "nointerest": True}
    lines = gathered(payload("one", "", IN, ROUTE, OLD, stored), payload("two", "1", CLIENT)).lines()
    assert lines == [
        "--> client shop (cid 7), subject o.eu, to one",
        "<-- router two (cid 3)",
        "    <-- client store (cid 9), sub o.*, queue g",
        "<-- router old (cid 4); no tracing",
        "--| JetStream: stream S, subject o.eu, no consumer wants it",
    ]
    assert gathered(payload("one", "", ROUTE)).lines()[-1] == "    !! there was no report of hop 1"


@pytest.mark.parametrize("payload", [b"", b"{}", b"[]", b'{"server": 1, "request": {}, "events": []}', b"\xff"])
def test_what_is_no_report_is_passed_over(payload: bytes) -> None:
    assert read_report(payload) is None
