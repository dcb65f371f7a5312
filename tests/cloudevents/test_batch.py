"""Batches: there and back, one bad event among good ones, and never over NATS."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.event_strategies import events

from headwater.cloudevents import CloudEvent, CloudEventError, NATSMessage, content_mode, from_nats
from headwater.cloudevents.batch import BATCH_CONTENT_TYPE, from_batch, read_batch, to_batch

GOOD = b'{"specversion":"1.0","id":"1","source":"/s","type":"t"}'


@given(st.lists(events(), max_size=3))
def test_batch_comes_back(sent: list[CloudEvent]) -> None:
    assert from_batch(to_batch(sent)) == sent


def test_bad_event_stops_no_other_and_is_named_by_its_place() -> None:
    text = b"[" + GOOD + b',{"id":""},5,' + GOOD + b"]"
    outcomes = list(read_batch(text))
    assert [isinstance(outcome, CloudEvent) for outcome in outcomes] == [True, False, False, True]
    with pytest.raises(CloudEventError, match="event 1 of the batch") as caught:
        from_batch(text)
    assert (caught.value.attribute, caught.value.rule) == ("specversion", "missing")


@pytest.mark.parametrize(
    ("text", "rule"), [(GOOD, "not an array"), (b"", "JSON"), (b"[", "JSON"), (b"5", "not an array"), (b"[1,]", "JSON")]
)
def test_text_that_is_no_array_is_refused(text: bytes, rule: str) -> None:
    with pytest.raises(CloudEventError) as caught:
        from_batch(text)
    assert caught.value.rule == rule


def test_empty_batch_has_no_events() -> None:
    assert from_batch(to_batch([])) == []
    assert from_batch(b"\xef\xbb\xbf []") == []


@given(st.binary(max_size=20))
def test_any_bytes_are_a_batch_or_our_error(text: bytes) -> None:
    try:
        assert from_batch(text) == []
    except CloudEventError as error:
        assert error.rule


@pytest.mark.parametrize("strict", [False, True])
def test_batch_over_nats_is_refused_with_what_to_do_instead(strict: bool) -> None:
    message = NATSMessage({"Content-Type": BATCH_CONTENT_TYPE}, b"[" + GOOD + b"]")
    for attempt in (from_nats, content_mode):
        with pytest.raises(CloudEventError, match="publish each event as a message") as caught:
            attempt(message, strict)
        assert caught.value.header == "Content-Type"
