"""GitHub's webhooks as CloudEvents: the adapter document row by row, and every real payload there and back."""

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.event_strategies import json_values

from headwater.cloudevents import CloudEvent, CloudEventError, NATSMessage, from_nats, to_binary, to_structured
from headwater.cloudevents.github import from_archive, from_request, from_webhook

SAMPLES = (Path(__file__).parents[1] / "vectors" / "github-webhooks.jsonl").read_bytes().splitlines()
REAL = Path(__file__).parents[3] / "shared" / "data" / "github-webhooks.jsonl.gz"
API = "https://api.github.com"
BODY: dict[str, Any] = {"action": "started", "repository": {"url": f"{API}/repos/o/r"}}


def context(event: CloudEvent) -> tuple[object, ...]:
    return event.type, event.source, event.subject, event.time_text


@pytest.mark.parametrize(
    ("line", "expected"),
    list(
        zip(
            SAMPLES,
            [
                ("com.github.issue.opened", f"{API}/repos/o/r", "7", "2024-05-01T08:00:00Z"),
                ("com.github.check_run.created", f"{API}/repos/o/r", "4", "2024-05-01T08:00:01Z"),
                (
                    "com.github.commit_comment.created",
                    f"{API}/repos/o/r/comments/5/6113728f",
                    "5",
                    "2024-05-01T08:00:02Z",
                ),
                ("com.github.marketplace_purchase.changed", f"{API}/users", "octocat", None),
                ("com.github.membership.team.added", f"{API}/teams/9", "octocat", None),
                ("com.github.installation_repository.added", f"{API}/users/octocat", "2", "2024-05-01T08:00:00Z"),
                ("com.github.security_advisory.published", "github.com", "GHSA-rf4j-j272-fj86", "2024-05-01T08:00:03Z"),
                ("com.github.push", "https://github.com/o/r", "refs/heads/main", "2024-05-01T08:00:04Z"),
                ("com.github.status.success", f"{API}/repos/o/r", "6113728f", "2024-05-01T08:00:05+00:00"),
                ("com.github.brand_new.started", f"{API}/orgs/o", None, None),
            ],
            strict=True,
        )
    ),
    ids=[json.loads(line)["event"] for line in SAMPLES],
)
def test_webhook_has_the_context_that_the_adapter_document_gives_it(line: bytes, expected: tuple[object, ...]) -> None:
    assert context(from_archive(line)) == expected


def test_data_is_the_body_byte_for_byte() -> None:
    body = b'{ "action":"started", "repository": {"url": "' + API.encode() + b'/repos/o/r"}, "n": 1.50 }'
    event = from_webhook("watch", body, delivery="d-1")
    assert (event.id, event.payload, event.datacontenttype) == ("d-1", body, "application/json")
    assert to_binary(event).data == body


def test_webhook_without_a_delivery_id_gets_one_that_is_always_the_same() -> None:
    first, again, other = from_webhook("watch", BODY), from_webhook("watch", BODY), from_webhook("star", BODY)
    assert first.id == again.id != other.id
    assert first.id.startswith("sha256-")


@pytest.mark.parametrize(
    ("action", "time"),
    [("created", "2020-01-01T00:00:00Z"), ("published", "2020-01-02T00:00:00Z"), ("edited", "2024-01-01T00:00:00Z")],
)
def test_release_has_the_time_of_its_action(action: str, time: str) -> None:
    release = {"id": 1, "created_at": "2020-01-01T00:00:00Z", "published_at": "2020-01-02T00:00:00Z"}
    body = BODY | {"action": action, "release": release}
    assert from_webhook("release", body, received=datetime(2024, 1, 1, tzinfo=UTC)).time_text == time


def test_request_is_read_in_both_content_types_whatever_the_case_of_its_headers() -> None:
    body = json.dumps(BODY | {"zen": "a&b=c+d é"}).encode()
    headers = {"x-github-event": "watch", "X-GITHUB-DELIVERY": "d-2"}
    plain = from_request(headers | {"Content-Type": "application/json"}, body)
    form = urlencode({"payload": body}).encode()
    wrapped = from_request(headers | {"content-type": "application/x-www-form-urlencoded"}, form)
    assert plain == wrapped
    assert (plain.id, plain.type) == ("d-2", "com.github.watch.started")


@pytest.mark.parametrize(
    ("event", "body", "attribute", "rule"),
    [
        ("watch", b"{", "data", "JSON"),
        ("watch", b"[]", "data", "not an object"),
        ("watch", b"{}", "source", "missing"),
        ("watch", b'{"repository":{"url":5}}', "source", "missing"),
        ("", b"{}", "type", "missing"),
        ("watch\n", json.dumps(BODY).encode(), "type", "control character"),
    ],
)
def test_body_that_is_no_webhook_is_refused_by_rule(event: str, body: bytes, attribute: str, rule: str) -> None:
    with pytest.raises(CloudEventError) as caught:
        from_webhook(event, body)
    assert (caught.value.attribute, caught.value.rule) == (attribute, rule)


@pytest.mark.parametrize("form", [b"", b"payload=%FF", b"\xff", b"payload=1&payload=2"])
def test_form_without_its_payload_is_refused(form: bytes) -> None:
    with pytest.raises(CloudEventError) as caught:
        from_request({"Content-Type": "application/x-www-form-urlencoded", "X-GitHub-Event": "push"}, form)
    assert caught.value.header == "Content-Type"


keys = ["action", "repository", "url", "comment", "commit_id", "installation", "account", "updated_at", "sender", "ref"]
bodies = st.recursive(
    json_values | st.sampled_from(["https://x", "2020-01-01T00:00:00Z", 1714550400]),
    lambda inner: st.dictionaries(st.sampled_from(keys), inner, max_size=4),
)


@given(st.sampled_from(["commit_comment", "installation", "marketplace_purchase", "push", "other"]), bodies)
def test_any_json_becomes_an_event_or_our_error(event: str, body: Any) -> None:
    try:
        assert from_webhook(event, json.dumps(body).encode()).data == body
    except CloudEventError as error:
        assert error.rule


@given(st.binary(max_size=40))
def test_any_line_of_an_archive_becomes_an_event_or_our_error(line: bytes) -> None:
    with pytest.raises(CloudEventError):
        from_archive(line)


@pytest.mark.skipif(not REAL.exists(), reason=f"no {REAL.name} beside the checkout")
def test_real_payloads_become_events_and_come_back_from_both_modes() -> None:
    with gzip.open(REAL) as lines:
        kept = list(lines)
    events = [from_archive(line) for line in kept]
    assert len(events) == len({event.id for event in events}) == 273
    assert sum(event.time_text is not None for event in events) == 215
    for line, event in zip(kept, events, strict=True):
        assert event.data == json.loads(line)["payload"]
        assert from_nats(to_structured(event)) == event
        headers, data = to_binary(event, msg_id=True)
        assert from_nats(NATSMessage(headers, data), strict=True) == event
