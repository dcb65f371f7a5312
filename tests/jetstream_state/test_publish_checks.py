"""What the headers of a publish demand, in nats-server's order and words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import JetStreamError
from headwater.jetstream_state.publish_checks import (
    Demands,
    check_after_id,
    check_before_id,
    has_status,
    lone_message_id,
    naming,
    of_batch_alone,
    without_status,
)
from headwater.model.header_block import lookup


def block_of(*lines: bytes) -> bytes:
    return b"NATS/1.0\r\n" + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


def check(*lines: bytes, last: int = 5, of_subject: int = 3) -> Demands:
    return check_before_id(block_of(*lines), b"s.a", "S", last, lambda _: of_subject)


def test_headers_that_do_not_concern_the_stream_demand_nothing() -> None:
    lines = (b"A: 1", b"Nat: x", b"nats-msg-id: 1")
    assert lone_message_id(block_of(*lines)) == b""
    assert check(*lines) == Demands(b"")


def test_the_message_id_is_found_alone_or_with_other_demands() -> None:
    alone = block_of(b"A: 1", b"Nats-Msg-Id: x y")
    assert lone_message_id(alone) == b"x y"
    assert check(b"A: 1", b"Nats-Msg-Id: x y") == Demands(b"x y")
    assert lone_message_id(block_of(b"Nats-Msg-Id: 1", b"Nats-Expected-Stream: S")) is None
    assert lone_message_id(block_of(b"Nats-Expected-Stream: S", b"Nats-Msg-Id: 1")) is None
    assert check(b"Nats-Msg-Id: 1", b"Nats-Expected-Stream: S") == Demands(b"1")


def test_the_stream_may_be_named_beside_the_message_id_if_it_is_this_one() -> None:
    named = naming("S")
    for lines in ((b"Nats-Msg-Id: 1", b"Nats-Expected-Stream: S"), (b"Nats-Expected-Stream: S", b"Nats-Msg-Id: 1")):
        assert lone_message_id(block_of(*lines), named) == b"1"
        assert lone_message_id(block_of(b"A: 1", *lines, b"B: 2"), named) == b"1"
        assert lone_message_id(block_of(*lines), naming("T")) is None
        assert lone_message_id(block_of(*lines, b"Nats-TTL: 1s"), named) is None
        assert lone_message_id(block_of(b"Nats-TTL: 1s", *lines), named) is None
    assert lone_message_id(block_of(b"Nats-Expected-Stream: S"), named) == b""
    assert lone_message_id(block_of(b"Nats-Expected-Stream: S", b"Nats-Expected-Stream: T"), named) is None
    assert lone_message_id(block_of(b"Nats-Expected-Stream: T"), named) is None


PIECES = [
    b"Nats-Msg-Id",
    b"\r\n",
    b"Nats-",
    b":",
    b" ",
    b"x",
    b"A: ",
    b"Nats-Expected-Stream",
    b": S\r\n",
    b"\r\nNats-Msg-Id: ",
]


@given(st.lists(st.sampled_from(PIECES), max_size=14), st.sampled_from([b"", naming("S")]))
def test_a_lone_message_id_is_what_the_look_up_finds(pieces: list[bytes], named: bytes) -> None:
    block = b"NATS/1.0\r\n" + b"".join(pieces) + b"\r\n\r\n"
    alone = lone_message_id(block, named)
    assert alone is None or alone == (lookup(block, b"Nats-Msg-Id") or b"")
    assert alone is None or lookup(block, b"Nats-Expected-Stream") in (None, b"", b"S" if named else None)


@pytest.mark.parametrize(
    ("line", "number"),
    [
        (b"Nats-Expected-Stream: T", 10060),
        (b"Nats-Expected-Last-Sequence: 4", 10071),
        (b"Nats-Expected-Last-Sequence: five", 10071),
        (b"Nats-Expected-Last-Subject-Sequence: 2", 10071),
        (b"Nats-TTL: 1s", 10166),
        (b"Nats-Batch-Id: 1", 10174),
    ],
)
def test_a_demand_that_is_not_met_is_refused_with_nats_servers_number(line: bytes, number: int) -> None:
    with pytest.raises(JetStreamError) as caught:
        check(line)
    assert caught.value.err_code == number


def test_demands_that_are_met_pass() -> None:
    lines = (b"Nats-Expected-Stream: S", b"Nats-Expected-Last-Sequence: 5", b"Nats-Expected-Last-Subject-Sequence: 3")
    assert check(*lines) == Demands(b"")


def test_the_last_message_id_and_rollup_are_checked_after_the_duplicate() -> None:
    demands = check(b"Nats-Expected-Last-Msg-Id: a")
    check_after_id(demands, b"a")
    with pytest.raises(JetStreamError, match="wrong last msg ID: b"):
        check_after_id(demands, b"b")
    rollup = check(b"Nats-Rollup: all")
    with pytest.raises(JetStreamError, match="rollup not permitted"):
        check_after_id(rollup, b"")


_LINES = [
    b"Nats-Batch-Id: a", b"Nats-Batch-Id:b", b"Nats-Batch-Sequence: 2", b"Nats-Batch-Commit: 1", b"Nats-Msg-Id: x",
    b"A: Nats-Batch-Id", b"Other: 1", b"Nats-Batch-Ident: c", b"Nats-Batch-Sequence", b"",
]  # fmt: skip


@given(st.lists(st.sampled_from(_LINES), max_size=5), st.sampled_from([b"\r\n\r\n", b"\r\n", b""]))
def test_a_message_of_a_batch_alone_says_what_the_lookups_find(lines: list[bytes], end: bytes) -> None:
    block = b"\r\n".join([b"NATS/1.0", *lines]) + end
    found = of_batch_alone(block)
    if found is not None:
        names = b"Nats-Batch-Id", b"Nats-Batch-Sequence", b"Nats-Batch-Commit"
        assert found == tuple(lookup(block, name) or b"" for name in names)
        assert b"Nats-Msg-Id" not in block
        assert b"Nats-Batch-Ident" not in block


def test_the_usual_message_of_a_batch_is_read_at_once() -> None:
    block = b"NATS/1.0\r\nA: 1\r\nNats-Batch-Id: b\r\nNats-Batch-Sequence: 7\r\nNats-Batch-Commit: eob\r\n\r\n"
    assert of_batch_alone(block) == (b"b", b"7", b"eob")
    assert of_batch_alone(b"NATS/1.0\r\nNats-Batch-Id: b\r\nNats-Required-Api-Level: 9\r\n\r\n") is None


@pytest.mark.parametrize(
    ("block", "stored"),
    [
        (b"NATS/1.0 503\r\n\r\n", b""),
        (b"NATS/1.0  \r\n\r\n", b""),
        (b"NATS/1.0 100 Idle Heartbeat\r\nA: b\r\n\r\n", b"NATS/1.0\r\nA: b\r\n\r\n"),
        (b"NATS/1.0\t404\r\nA: b\r\n\r\n", b"NATS/1.0\r\nA: b\r\n\r\n"),
        (b"NATS/1.0x\r\nNats-Msg-Id: 5\r\n\r\n", b"NATS/1.0\r\nNats-Msg-Id: 5\r\n\r\n"),
        (b"NATS/1.0 503", b"NATS/1.0 503"),
    ],
)
def test_a_status_is_not_stored_and_no_quick_way_takes_it(block: bytes, stored: bytes) -> None:
    """What nats-server 2.15.1 stores of the same blocks."""
    assert has_status(block) and lone_message_id(block) is None and of_batch_alone(block) is None
    assert without_status(block) == stored


@pytest.mark.parametrize(
    "block", [b"", b"NATS/1.0", b"NATS/1.0\r\n\r\n", b"NATS/1.1 404\r\nA: b\r\n\r\n", b"garbage!!"]
)
def test_a_block_without_a_status_is_stored_as_it_is(block: bytes) -> None:
    assert not has_status(block) and without_status(block) is block
