import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.model.message_trace import is_sampled, read_trace_request
from headwater.wire.message_view import composed


def block(*lines: str) -> bytes:
    return "\r\n".join(["NATS/1.0", *lines, "", ""]).encode()


def test_a_destination_asks_for_a_trace_and_all_headers_are_kept_as_they_were_written() -> None:
    request = read_trace_request(block("b: 2", "Nats-Trace-Dest:\t x ", "b: 3", "empty:"))
    assert request is not None
    assert request.headers == {"b": ["2", "3"], "Nats-Trace-Dest": ["x"]}
    assert (request.external, request.only, request.first("none")) == (False, False, "")


def test_only_a_sampled_traceparent_asks_for_the_account_and_never_for_the_trace_alone() -> None:
    request = read_trace_request(block("TRACEPARENT: 00-a-b-01", "Nats-Trace-Only: true"))
    assert request is not None
    assert (request.external, request.only) == (True, False)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"NATS/1.0 503\r\nNats-Trace-Dest: x\r\n\r\n",
        block("Nats-Trace-Dest: trace disabled", "traceparent: 00-a-b-01"),
        block("nats-trace-dest: x"),
        block("X-Nats-Trace-Dest: x"),
        block("Nats-Trace-Dest:"),
        block("traceparent: 00-a-b-00"),
        b"NATS/1.0\r\nno colon\r\nNats-Trace-Dest: x\r\n\r\n",
        b"NATS/1.0\r\nNats-Trace-Dest: x",
    ],
)
def test_anything_else_asks_for_none(raw: bytes) -> None:
    assert read_trace_request(raw) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [(b"00-a-b-01", True), (b"00-a-b-7f", True), (b"00-a-b-81", False), (b"00-a-b-+1", False), (b"a-01", False)],
)
def test_the_flags_of_a_traceparent_are_a_signed_byte(value: bytes, expected: bool) -> None:
    assert is_sampled(value) is expected


LINES = st.lists(
    st.sampled_from(
        [
            *(
                "Nats-Trace-Dest: x",
                "Nats-Trace-Dest:x",
                "traceparent: 00-a-b-01",
                "TraceParent: 00-a-b-01",
                "Nats-TTL: 5",
            ),
            *(
                "N: 1",
                "Nats-Trace-Des",
                "t",
                "trace: 1",
                "",
                "Nats-Trace-Only: 1",
                f"Nats-Msg-Id: {'n' * 30}",
                "a\nb: 1",
            ),
        ]
    ),
    max_size=5,
)


@given(LINES, st.binary(max_size=8))
def test_the_mark_misses_no_message_that_is_to_be_traced(lines: list[str], payload: bytes) -> None:
    raw = block(*lines)
    request = read_trace_request(raw)
    view = composed(b"s", b"", raw, payload)
    mark = view.trace_mark()
    assert view.run_trace_mark(0, 3, True) == mark
    assert view.run_trace_mark(0, 3, False) == (mark if mark == 1 else 0)
    if request is not None:
        assert mark == (2 if request.external else 1) or (mark == 1 and request.external)


def test_a_run_is_marked_by_any_of_its_messages_and_the_view_stays() -> None:
    plain, traced = block("a: 1234567890123456"), block("Nats-Trace-Dest: xy")
    assert len(plain) == len(traced)
    one = composed(b"s", b"", plain, b"")
    stride = len(one.buffer)
    one.buffer = one.buffer + composed(b"s", b"", traced, b"").buffer
    assert (one.run_trace_mark(stride, 1, True), one.run_trace_mark(stride, 2, False)) == (0, 1)
    assert one.buffer[one.headers : one.payload] == plain
