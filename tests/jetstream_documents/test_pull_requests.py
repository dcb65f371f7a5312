"""MSG.NEXT: what is asked, in which order it is served, and the status that ends it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_documents.pull_requests import (
    CountRequest,
    NextRequest,
    RequestQueue,
    Waiting,
    idle_heartbeat,
    parse_request,
    refusal_by_limits,
)
from headwater.model.header_block import decode_header_block


@pytest.mark.parametrize(
    ("payload", "request_"),
    [
        (b"", CountRequest(batch=1)),
        (b"7", CountRequest(batch=7)),
        (b"0", CountRequest(batch=1)),
        (b"x", CountRequest(batch=1)),
        (b'{"batch":5,"expires":10,"no_wait":true}', NextRequest(batch=5, expires=10, no_wait=True)),
        (b'{"batch":-3,"max_bytes":-1,"group":"g"}', NextRequest(batch=1, group="g")),
        (b'{"batch":2,"min_pending":null,"id":null}', NextRequest(batch=2)),
    ],
)
def test_a_request_is_read_as_nats_server_reads_it(payload: bytes, request_: NextRequest) -> None:
    assert parse_request(payload) == request_


@pytest.mark.parametrize("wish", ['"id":"x"', '"min_pending":1', '"min_ack_pending":2', '"priority":10', '"id":5'])
def test_what_only_a_priority_group_can_grant_is_refused(wish: str) -> None:
    answer = parse_request(b'{"batch":1,%s}' % wish.encode())
    if not isinstance(answer, bytes):
        answer = refusal_by_limits(answer, ConsumerConfig()) or b""
    assert answer.startswith(b"NATS/1.0 400 Bad Request - ")


@given(st.binary(max_size=40))
def test_any_payload_is_a_request_or_a_status_400(payload: bytes) -> None:
    parsed = parse_request(payload)
    if isinstance(parsed, bytes):
        status, _ = decode_header_block(parsed)
        assert status is not None
        assert status.code == 400


def test_requests_above_the_consumers_limits_are_refused_by_name() -> None:
    config = ConsumerConfig(max_batch=2, max_expires=10**9, max_bytes=5)
    assert refusal_by_limits(NextRequest(batch=2), config) is None
    assert b"MaxRequestBatch of 2" in (refusal_by_limits(NextRequest(batch=3), config) or b"")
    assert b"MaxRequestExpires of 1s" in (refusal_by_limits(NextRequest(expires=2 * 10**9), config) or b"")
    assert b"MaxRequestMaxBytes of 5" in (refusal_by_limits(NextRequest(max_bytes=6), config) or b"")


def test_a_number_asks_for_no_priority_group_and_limits_are_judged_before_groups() -> None:
    config = ConsumerConfig(priority_groups=["A"], priority_policy="overflow", max_batch=5)
    assert refusal_by_limits(CountRequest(batch=3), config) is None
    assert b"Priority Group missing" in (refusal_by_limits(NextRequest(batch=3), config) or b"")
    assert b"MaxRequestBatch of 5" in (refusal_by_limits(NextRequest(batch=6), config) or b"")


def test_waiting_requests_take_turns() -> None:
    queue = RequestQueue()
    for reply in (b"a", b"b"):
        queue.add(Waiting(reply, NextRequest(batch=2), 0))
    served = []
    while (first := queue.first()) is not None:
        served.append(first.reply)
        if first.took(1, 0):
            queue.drop_first()
        else:
            queue.next_turn()
    assert served == [b"a", b"b", b"a", b"b"]


def test_a_request_that_ran_out_says_how_much_it_still_wanted() -> None:
    waiting = Waiting(b"r", NextRequest(batch=5, max_bytes=100, expires=10), 0)
    waiting.took(30, 0)
    status, headers = decode_header_block(waiting.timed_out())
    assert status is not None
    assert (status.code, status.description) == (408, "Request Timeout")
    assert (headers["Nats-Pending-Messages"], headers["Nats-Pending-Bytes"]) == ("4", "70")


def test_expiry_and_heartbeats_come_at_their_times() -> None:
    queue = RequestQueue()
    queue.add(Waiting(b"r", NextRequest(batch=1, expires=100, idle_heartbeat=30), 0))
    assert queue.next_deadline() == 30
    assert [request.reply for request in queue.take_heartbeats(30)] == [b"r"]
    assert queue.next_deadline() == 60
    assert queue.take_expired(99) == []
    assert [request.reply for request in queue.take_expired(100)] == [b"r"]
    assert len(queue) == 0


def test_no_wait_ends_when_nothing_is_there() -> None:
    queue = RequestQueue()
    queue.add(Waiting(b"now", NextRequest(batch=1, no_wait=True), 0))
    queue.add(Waiting(b"later", NextRequest(batch=1, no_wait=True, expires=10), 0))
    queue.add(Waiting(b"long", NextRequest(batch=1, expires=10), 0))
    assert [request.reply for request in queue.take_unserved()] == [b"now"]
    assert queue.replies() == [b"later", b"long"]


def test_a_heartbeat_names_what_was_delivered_last() -> None:
    status, headers = decode_header_block(idle_heartbeat(3, 17))
    assert status is not None
    assert (status.code, status.description) == (100, "Idle Heartbeat")
    assert (headers["Nats-Last-Consumer"], headers["Nats-Last-Stream"]) == ("3", "17")
