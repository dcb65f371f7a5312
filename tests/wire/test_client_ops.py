"""The parser of client ops: every rule of the document, every leniency of nats-server, any chunking of the bytes."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.wire import violations
from headwater.wire.client_ops import ClientOpHandler, ClientOpParser
from headwater.wire.memory import COMPILED
from headwater.wire.message_view import MessageView

Call = tuple[object, ...]


class Recorder(ClientOpHandler):
    """Records every call; refuses nothing."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.answer = 0

    def on_publish(self, message: MessageView) -> int:
        buffer = message.buffer
        block, payload = buffer[message.headers : message.payload], buffer[message.payload : message.end]
        tail = bytes(buffer[message.tail : message.end + 2])
        self.calls.append(
            ("publish", message.subject_bytes(), message.reply_bytes(), bytes(block), bytes(payload), tail)
        )
        return self.answer

    def on_subscribe(self, subject: bytes, queue: bytes, sid: bytes) -> int:
        self.calls.append(("subscribe", subject, queue, sid))
        return self.answer

    def on_unsubscribe(self, sid: bytes, maximum: int) -> int:
        self.calls.append(("unsubscribe", sid, maximum))
        return self.answer

    def on_connect(self, json: bytes) -> int:
        self.calls.append(("connect", json))
        return self.answer

    def on_info(self, json: bytes) -> int:
        self.calls.append(("info", json))
        return self.answer

    def on_ping(self) -> int:
        self.calls.append(("ping",))
        return self.answer

    def on_pong(self) -> int:
        self.calls.append(("pong",))
        return self.answer

    def on_error(self) -> int:
        self.calls.append(("error",))
        return self.answer

    def on_violation(self, violation: int) -> int:
        self.calls.append(("violation", violation))
        return 0


def parse(data: bytes, *, cuts: tuple[int, ...] = (), max_payload: int = 1 << 20, line: int = 64) -> list[Call]:
    """Feed `data`, cut at `cuts`, as a link would, and return the calls."""
    recorder = Recorder()
    parser = ClientOpParser(recorder, line, max_payload)
    waiting = bytearray()
    bounds = [0, *sorted(cuts), len(data)]
    for start, end in pairwise(bounds):
        waiting += data[start:end]
        used = parser.parse(waiting, 0, len(waiting))
        assert 0 <= used <= len(waiting)
        del waiting[:used]
    return recorder.calls


def publish(subject: bytes, payload: bytes, tail: bytes, reply: bytes = b"", headers: bytes = b"") -> Call:
    return ("publish", subject, reply, headers, payload, tail)


PIECES = [b" ", b" ", b"a", b"a.b", b"1", b"12", b"012", b"0", b"9999999999", b"-", b"\t", b"\r", b"\x01", b"\xff"]
BLOCK = b"NATS/1.0\r\nA: 1\r\n\r\n"


@pytest.mark.parametrize(
    ("data", "call"),
    [
        (b"PUB a.b 5\r\nhello\r\n", publish(b"a.b", b"hello", b"5\r\nhello\r\n")),
        (b"pub a.b 0\r\n\r\n", publish(b"a.b", b"", b"0\r\n\r\n")),
        (b"PUB a r.1 2\r\nok\r\n", publish(b"a", b"ok", b"r.1 2\r\nok\r\n", b"r.1")),
        (b"PUB a 002\r\nok\r\n", publish(b"a", b"ok", b"002\r\nok\r\n")),
        (b"PUB \t a\t r  2 \r\nok\r\n", publish(b"a", b"ok", b"r 2\r\nok\r\n", b"r")),
        (b"PUB a 2\nok\r\n", publish(b"a", b"ok", b"2\r\nok\r\n")),
        (b"PUB a 2 \nok\r\n", publish(b"a", b"ok", b"2\r\nok\r\n")),
        (b"PUB a\rb 2\r\nok\r\n", publish(b"a\rb", b"ok", b"2\r\nok\r\n")),
        (b"PUB \x00\xff 2\r\nok\r\n", publish(b"\x00\xff", b"ok", b"2\r\nok\r\n")),
        (b"HPUB a 18 20\r\n" + BLOCK + b"ok\r\n", publish(b"a", b"ok", b"18 20\r\n" + BLOCK + b"ok\r\n", b"", BLOCK)),
        (
            b"hPuB a r  18 20\n" + BLOCK + b"ok\r\n",
            publish(b"a", b"ok", b"r 18 20\r\n" + BLOCK + b"ok\r\n", b"r", BLOCK),
        ),
        (b"HPUB a 0 2\r\nok\r\n", publish(b"a", b"ok", b"2\r\nok\r\n")),
        (b"HPUB a r 0 2\r\nok\r\n", publish(b"a", b"ok", b"r 2\r\nok\r\n", b"r")),
        (b"SUB a.* 1\r\n", ("subscribe", b"a.*", b"", b"1")),
        (b"sub a.*\tq  -5\n", ("subscribe", b"a.*", b"q", b"-5")),
        (b"UNSUB 1\r\n", ("unsubscribe", b"1", 0)),
        (b"UNSUB 1 5\r\n", ("unsubscribe", b"1", 5)),
        (b"UNSUB 1 abc\r\n", ("unsubscribe", b"1", 0)),
        (b"UNSUB 1 -1\r\n", ("unsubscribe", b"1", 0)),
        (b'CONNECT {"a":1}\r\n', ("connect", b'{"a":1}')),
        (b"CONNECT{}\r\n", ("connect", b"{}")),
        (b"CONNECT\r\n", ("connect", b"")),
        (b"PING\r\n", ("ping",)),
        (b"PING foo\r\n", ("ping",)),
        (b"PINGPONG\r\n", ("ping",)),
        (b"pong\n", ("pong",)),
        (b"INFO {}\r\n", ("info", b"{}")),
        (b"-ERR 'x'\r\n", ("error",)),
        (b"FROB\r\n", ("violation", violations.UNKNOWN_OPERATION)),
        (b"X", ("violation", violations.UNKNOWN_OPERATION)),
        (b"PUX", ("violation", violations.UNKNOWN_OPERATION)),
        (b"\r\n", ("violation", violations.UNKNOWN_OPERATION)),
        (b" PING\r\n", ("violation", violations.UNKNOWN_OPERATION)),
        (b"PUB\r\n", ("violation", violations.UNKNOWN_OPERATION)),
        (b"SUB\r\n", ("violation", violations.UNKNOWN_OPERATION)),
        (b"PUBX a 1\r\n", ("violation", violations.UNKNOWN_OPERATION)),
        (b"MSG a 1 1\r\nx\r\n", ("violation", violations.UNKNOWN_OPERATION)),
        (b"GET / HTTP/1.1\r\n", ("violation", violations.UNKNOWN_OPERATION)),
        (b"PUB a 2\r\nokay\r\n", ("violation", violations.UNKNOWN_OPERATION)),
        (b"PUB a 2\r\nok\n", ("violation", violations.UNKNOWN_OPERATION)),
        (b"PUB a 2\r\nok\rX", ("violation", violations.UNKNOWN_OPERATION)),
        (b"PUB a\r\n", ("violation", violations.BAD_ARGUMENTS)),
        (b"PUB a b c 1\r\n", ("violation", violations.BAD_ARGUMENTS)),
        (b"PUB a 2\r\r\nok\r\n", ("violation", violations.BAD_ARGUMENTS)),
        (b"PUB a xx\r\n", ("violation", violations.BAD_ARGUMENTS)),
        (b"PUB a -1\r\n", ("violation", violations.BAD_ARGUMENTS)),
        (b"PUB a +1\r\n", ("violation", violations.BAD_ARGUMENTS)),
        (b"PUB a 1_0\r\n", ("violation", violations.BAD_ARGUMENTS)),
        ("PUB a ٢\r\n".encode(), ("violation", violations.BAD_ARGUMENTS)),
        (b"PUB a 1234567890\r\n", ("violation", violations.BAD_ARGUMENTS)),
        (b"HPUB a 5 4\r\n", ("violation", violations.BAD_ARGUMENTS)),
        (b"HPUB a 5\r\n", ("violation", violations.BAD_ARGUMENTS)),
        (b"HPUB a b c 1 2\r\n", ("violation", violations.BAD_ARGUMENTS)),
        (b"SUB a\r\n", ("violation", violations.BAD_ARGUMENTS)),
        (b"SUB a b c d\r\n", ("violation", violations.BAD_ARGUMENTS)),
        (b"UNSUB\t\r\n", ("violation", violations.BAD_ARGUMENTS)),
        (b"UNSUB 1 2 3\r\n", ("violation", violations.BAD_ARGUMENTS)),
        (b"PUB a 999999999\r\n", ("violation", violations.PAYLOAD_TOO_LARGE)),
        (b"SUB " + b"a" * 70, ("violation", violations.CONTROL_LINE_TOO_LONG)),
        (b"SUB " + b"a" * 70 + b" 1\r\n", ("violation", violations.CONTROL_LINE_TOO_LONG)),
        (b"PUB " + b"a" * 70 + b" 1\r\n", ("violation", violations.CONTROL_LINE_TOO_LONG)),
        (b"CONNECT " + b" " * 5 + b"{" * 70, ("violation", violations.CONTROL_LINE_TOO_LONG)),
    ],
)
def test_an_op_is_understood_as_nats_server_understands_it(data: bytes, call: Call) -> None:
    assert parse(data) == [call]
    assert parse(data, cuts=tuple(range(1, len(data)))) == [call]


@pytest.mark.parametrize("line_end", [b"\r\n", b"\n"])
def test_a_control_line_at_the_limit_is_whole_wherever_it_is_cut(line_end: bytes) -> None:
    data = b"SUB " + b"a" * 62 + b" 1" + line_end
    calls: list[Call] = [("subscribe", b"a" * 62, b"", b"1")]
    assert parse(data) == calls
    assert parse(data, cuts=tuple(range(1, len(data)))) == calls


def test_plus_ok_from_a_client_is_ignored() -> None:
    assert parse(b"+OK\r\nPING\r\n") == [("ping",)]


def test_a_payload_may_hold_anything() -> None:
    payload = b"PING\r\nPUB x 1\r\n\r\n"
    assert parse(b"PUB a %d\r\n%b\r\nPING\r\n" % (len(payload), payload))[1:] == [("ping",)]


def test_no_call_follows_a_violation() -> None:
    assert parse(b"FROB\r\nPING\r\nPING\r\n") == [("violation", violations.UNKNOWN_OPERATION)]


def test_a_handler_can_stop_the_parser() -> None:
    recorder = Recorder()
    recorder.answer = 1
    parser = ClientOpParser(recorder, 64, 64)
    data = bytearray(b"PING\r\nPING\r\n")
    assert parser.parse(data, 0, len(data)) == len(data)
    assert recorder.calls == [("ping",)]


def test_before_connect_only_connect_is_allowed_where_credentials_are_required() -> None:
    for data, expected in (
        (b"PING\r\n", [("violation", violations.NOT_CONNECTED)]),
        (b"CONNECT {}\r\n", [("connect", b"{}")]),
    ):
        recorder = Recorder()
        parser = ClientOpParser(recorder, 64, 64)
        parser.awaiting_connect = True
        parser.parse(bytearray(data), 0, len(data))
        assert recorder.calls == expected


def test_hpub_is_bad_arguments_if_the_client_did_not_enable_headers() -> None:
    recorder = Recorder()
    parser = ClientOpParser(recorder, 64, 64)
    parser.headers = False
    data = bytearray(b"HPUB a 18 20\r\n" + BLOCK + b"ok\r\n")
    parser.parse(data, 0, len(data))
    assert recorder.calls == [("violation", violations.BAD_ARGUMENTS)]


def test_max_payload_is_checked_before_the_body_arrives() -> None:
    assert parse(b"PUB a 11\r\n", max_payload=10) == [("violation", violations.PAYLOAD_TOO_LARGE)]
    assert parse(b"PUB a 10\r\n", max_payload=10) == []


token = st.binary(min_size=1, max_size=8).map(lambda raw: bytes(33 + byte % 90 for byte in raw))
blanks = st.sampled_from([b" ", b"  ", b"\t", b" \t "])
newline = st.sampled_from([b"\r\n", b"\n"])


@st.composite
def valid_ops(draw: st.DrawFn) -> bytes:
    kind = draw(st.sampled_from(["pub", "hpub", "sub", "unsub", "ping", "pong", "ok", "connect"]))
    end = draw(newline)
    if kind == "pub":
        payload = draw(st.binary(max_size=40))
        words = [b"PUB", draw(token), *draw(st.lists(token, max_size=1)), b"%d" % len(payload)]
        return draw(blanks).join(words) + end + payload + b"\r\n"
    if kind == "hpub":
        block, payload = draw(st.binary(max_size=20)), draw(st.binary(max_size=20))
        words = [b"HPUB", draw(token), *draw(st.lists(token, max_size=1))]
        words += [b"%d" % len(block), b"%d" % (len(block) + len(payload))]
        return draw(blanks).join(words) + end + block + payload + b"\r\n"
    if kind == "sub":
        return draw(blanks).join([b"SUB", draw(token), *draw(st.lists(token, max_size=1)), draw(token)]) + end
    if kind == "unsub":
        return draw(blanks).join([b"UNSUB", draw(token), *draw(st.lists(token, max_size=1))]) + end
    return {"ping": b"PING", "pong": b"PONG", "ok": b"+OK", "connect": b"CONNECT {}"}[kind] + end


@st.composite
def valid_runs(draw: st.DrawFn) -> list[bytes]:
    """Ops with one control line, which the parser may pass together."""
    op = draw(valid_ops())
    return [op] * draw(st.integers(1, 5))


cuts = st.lists(st.integers(min_value=0, max_value=2000), max_size=30).map(tuple)


@given(st.lists(valid_runs(), max_size=8), cuts)
def test_any_cut_of_valid_ops_gives_the_same_calls(runs: list[list[bytes]], cut: tuple[int, ...]) -> None:
    ops = [op for run in runs for op in run]
    data = b"".join(ops)
    whole = parse(data, line=256)
    assert parse(data, cuts=tuple(c for c in cut if c <= len(data)), line=256) == whole
    assert len(whole) == len([op for op in ops if not op.startswith(b"+OK")])


@given(st.lists(st.one_of(valid_ops(), st.binary(max_size=30)), max_size=6), cuts)
def test_any_cut_of_any_bytes_gives_the_same_calls_and_no_exception(parts: list[bytes], cut: tuple[int, ...]) -> None:
    data = b"".join(parts)
    assert parse(data, cuts=tuple(c for c in cut if c <= len(data))) == parse(data)


def test_ops_with_one_control_line_are_handed_over_together() -> None:
    counts: list[int] = []

    class Counting(Recorder):
        def on_publish_run(self, message: MessageView, stride: int, count: int) -> int:
            counts.append(count)
            return ClientOpHandler.on_publish_run(self, message, stride, count)

    recorder = Counting()
    data = bytearray(b"PUB a r 1\r\nx\r\nPUB a r 1\r\ny\r\nPUB a r 2\r\nzz\r\nPUB a r 2\r\nzz\r\nPUB a r 2\r\nzz")
    parser = ClientOpParser(recorder, 64, 100)
    assert parser.parse(data, 0, len(data)) == len(data) - len(b"PUB a r 2\r\nzz")
    assert counts == [2, 2]
    assert [call[4] for call in recorder.calls] == [b"x", b"y", b"zz", b"zz"]


def test_a_handler_advances_from_one_publish_to_the_next_until_another_op() -> None:
    turns: list[list[tuple[int, bytes]]] = []

    class Going(Recorder):
        def on_publishes(self, ops: ClientOpParser) -> int:
            turns.append([])
            while True:
                view = ops.message
                turns[-1].append((ops.count, bytes(view.buffer[view.payload : view.end])))
                if not ops.next_publish():
                    return 0

        def on_publish(self, message: MessageView) -> int:  # interpreted, single ops are not passed this way
            turns.append([(1, bytes(message.buffer[message.payload : message.end]))])
            return 0

    data = bytearray(
        b"PUB a 1\r\nx\r\nPUB b 1\r\ny\r\nPUB b 1\r\ny\r\nPING\r\npub c 1\r\nz\r\nPUB d 2\r\nzz\r\nPUB d 2\r\nz"
    )
    parser = ClientOpParser(Going(), 64, 100)
    assert parser.parse(data, 0, len(data)) == len(data) - len(b"PUB d 2\r\nz")
    assert [op for turn in turns for op in turn] == [(1, b"x"), (2, b"y"), (1, b"z"), (1, b"zz")]
    if COMPILED:
        assert len(turns) == 3


def test_a_run_stops_where_the_handler_stops() -> None:
    recorder = Recorder()
    recorder.answer = 1
    parser = ClientOpParser(recorder, 64, 100)
    data = bytearray(b"PUB a 1\r\nx\r\n" * 3)
    assert parser.parse(data, 0, len(data)) == len(data)
    assert len(recorder.calls) == 1


@given(st.sampled_from([b"PUB ", b"HPUB ", b"pub "]), st.lists(st.sampled_from(PIECES), max_size=8))
def test_the_common_form_gives_the_result_of_the_general_parser(verb: bytes, pieces: list[bytes]) -> None:
    """A tab for a space, or a verb in lower case, avoids the fast path for the common form; nothing else may change."""
    line, body = b"".join(pieces), b"x" * 12 + b"\r\n"
    common = parse(verb + line + b"\r\n" + body)
    assert common == parse(verb.lower() + line + b"\r\n" + body)
