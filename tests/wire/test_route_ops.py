"""The parser of ops between brokers: recorded conversations, every form, any chunking, and invalid bytes."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.route_transcripts import streams

from headwater.wire import route_ops, violations
from headwater.wire.route_ops import RouteMessage, RouteOpHandler, RouteOpParser
from headwater.wire.verbs import SUSPEND

Call = tuple[object, ...]


class Recorder(RouteOpHandler):
    def __init__(self) -> None:
        self.calls: list[Call] = []

    def note(self, *call: object) -> int:
        self.calls.append(call)
        return 0

    def on_connect(self, json: bytes) -> int:
        return self.note("connect", json)

    def on_info(self, json: bytes) -> int:
        return self.note("info", json)

    def on_ping(self) -> int:
        return self.note("ping")

    def on_pong(self) -> int:
        return self.note("pong")

    def on_error(self, text: bytes) -> int:
        return self.note("error", text)

    def on_subscribe(self, subject: bytes, queue: bytes, token: bytes) -> int:
        return self.note("subscribe", subject, queue, token)

    def on_unsubscribe(self, token: bytes, maximum: int) -> int:
        return self.note("unsubscribe", token, maximum)

    def on_interest(self, account: bytes, subject: bytes, queue: bytes, weight: int) -> int:
        return self.note("interest", account, subject, queue, weight)

    def on_no_interest(self, account: bytes, subject: bytes, queue: bytes) -> int:
        return self.note("no interest", account, subject, queue)

    def on_leaf_interest(self, origin: bytes, account: bytes, subject: bytes, queue: bytes, weight: int) -> int:
        return self.note("leaf interest", origin, account, subject, queue, weight)

    def on_message(self, message: RouteMessage) -> int:
        m = message
        buffer = m.buffer
        tail = bytes(buffer[m.tail : m.end + 2])
        subject, reply = bytes(buffer[m.subject : m.subject_end]), bytes(buffer[m.reply : m.reply_end])
        block, payload = bytes(buffer[m.headers : m.payload]), bytes(buffer[m.payload : m.end])
        assert not reply or tail.startswith((reply + b" ", reply + b"\t"))
        assert tail.endswith(b"\r\n" + block + payload + b"\r\n")
        origin = [m.origin] if m.origin else []
        return self.note("message", m.account, m.token, subject, reply, m.queues, block, payload, *origin)

    def on_too_large(self, subject: bytes, size: int, limit: int) -> int:
        return self.note("too large", subject, size, limit)

    def on_violation(self, violation: int) -> int:
        return self.note("violation", violation)


def calls_for(pieces: list[bytes], dialect: int = route_ops.UNDECIDED, account: bytes = b"") -> list[Call]:
    recorder = Recorder()
    parser = RouteOpParser(recorder, account)
    parser.dialect = dialect
    rest = b""
    for piece in pieces:
        buffer = bytearray(rest + piece)
        rest = bytes(buffer[parser.parse(buffer, 0, len(buffer)) :]) if buffer else b""
    return recorder.calls


def message(
    subject: bytes = b"foo",
    reply: bytes = b"",
    queues: tuple[bytes, ...] = (),
    block: bytes = b"",
    payload: bytes = b"hello",
    account: bytes = b"$G",
    token: bytes = b"",
) -> Call:
    return ("message", account, token, subject, reply, list(queues), block, payload)


CONVERSATIONS = [
    pytest.param(data, route_ops.V1 if "v1" in file else route_ops.V2, id=f"{file[:9]}-{part}-{connection}-{way}")
    for file, parts in (("routes_v1_gnatsd.txt", (1, 2, 3, 4)), ("routes_v2_nats_server.txt", (1,)))
    for part in parts
    for (connection, way), data in streams(file, part).items()
]


@pytest.mark.parametrize(("data", "dialect"), CONVERSATIONS)
def test_recorded_conversation_is_read_to_its_last_byte(data: bytes, dialect: int) -> None:
    recorder = Recorder()
    parser = RouteOpParser(recorder)
    parser.dialect = dialect
    assert parser.parse(bytearray(data), 0, len(data)) == len(data)
    assert recorder.calls
    assert "violation" not in {call[0] for call in recorder.calls}


@pytest.mark.parametrize(("data", "dialect"), [CONVERSATIONS[1], CONVERSATIONS[-1]])
def test_conversation_cut_at_any_byte_gives_the_same_calls(data: bytes, dialect: int) -> None:
    data = data[:2500]
    whole = calls_for([data], dialect)
    for cut in range(0, len(data), 7):
        assert calls_for([data[:cut], data[cut:]], dialect) == whole


@pytest.mark.parametrize(
    ("line", "call"),
    [
        (b"SUB foo  RSID:4:9\r\n", ("subscribe", b"foo", b"", b"RSID:4:9")),
        (b"sub\tfoo   wkrs \t QRSID:4:9 \r\n", ("subscribe", b"foo", b"wkrs", b"QRSID:4:9")),
        (b"UNSUB RSID:4:9\r\n", ("unsubscribe", b"RSID:4:9", 0)),
        (b"UNSUB RSID:4:9 2\r\n", ("unsubscribe", b"RSID:4:9", 2)),
        (b"MSG foo RSID:4:9 5\r\nhello\r\n", message(account=b"", token=b"RSID:4:9")),
        (b"MSG foo 9 bar 5\nhello\r\n", message(account=b"", token=b"9", reply=b"bar")),
        (b"PUB foo bar 5\r\nhello\r\n", message(account=b"", reply=b"bar")),
        (b"RS+ $G foo\r\n", ("interest", b"$G", b"foo", b"", 0)),
        (b"RS+ $G foo wkrs 3\r\n", ("interest", b"$G", b"foo", b"wkrs", 3)),
        (b"RS- $G foo\r\n", ("no interest", b"$G", b"foo", b"")),
        (b"RS- $G foo wkrs\r\n", ("no interest", b"$G", b"foo", b"wkrs")),
        (b"RMSG $G foo 5\r\nhello\r\n", message()),
        (b"rmsg  $G\tfoo  bar  5\r\nhello\r\n", message(reply=b"bar")),
        (b"RMSG $G foo + 5\r\nhello\r\n", message(reply=b"+")),  # two words are a reply and a size
        (b"RMSG $G foo | a b 5\r\nhello\r\n", message(queues=(b"a", b"b"))),
        (b"RMSG $G foo + bar a 5\r\nhello\r\n", message(reply=b"bar", queues=(b"a",))),
        (b"HMSG $G foo 12 17\r\nNATS/1.0\r\n\r\nhello\r\n", message(block=b"NATS/1.0\r\n\r\n")),
        (
            b"HMSG $G foo + bar a b 12 17\r\nNATS/1.0\r\n\r\nhello\r\n",
            message(block=b"NATS/1.0\r\n\r\n", reply=b"bar", queues=(b"a", b"b")),
        ),
        (b'INFO {"a":1} \r\n', ("info", b'{"a":1} ')),
        (b"INFO {}\r\n", ("info", b"{}")),
        (b"CONNECT {}\r\n", ("connect", b"{}")),
        (b"-ERR 'Unknown Protocol Operation'\r\n", ("error", b"Unknown Protocol Operation")),
        (b"pInG\r\n", ("ping",)),
        (b"PONG\n", ("pong",)),
    ],
)
def test_every_form_is_read_whole_and_byte_by_byte(line: bytes, call: Call) -> None:
    assert calls_for([line]) == [call]
    assert calls_for([line[at : at + 1] for at in range(len(line))]) == [call]


@pytest.mark.parametrize(
    ("line", "dialect"),
    [
        (b"RMSG $G foo bar 5\r\n", route_ops.V2),
        (b"RMSG $G foo | a b 5\r\n", route_ops.V2),
        (b"RMSG $G foo + bar a b 5\r\n", route_ops.V2),
        (b"RMSG $G foo + a.longer.reply a 5\r\n", route_ops.V2),
        (b"rmsg $G  foo 5\n", route_ops.V2),
        (b"MSG foo QRSID:1:1 bar 5\r\n", route_ops.V1),
    ],
)
def test_messages_with_the_same_line_are_the_same_one_by_one_and_together(line: bytes, dialect: int) -> None:
    ops = [line + b"%05d\r\n" % number for number in range(20)]
    calls = calls_for([b"".join(ops)], dialect)
    assert calls == calls_for(ops, dialect)
    assert [call[-1] for call in calls] == [b"%05d" % number for number in range(20)]
    torn = b"".join(ops[:3]) + line + b"123456\r\n"
    assert calls_for([torn], dialect) == [*calls[:3], ("violation", violations.UNKNOWN_OPERATION)]


class Counting(Recorder):
    def __init__(self) -> None:
        super().__init__()
        self.runs: list[int] = []

    def on_message_run(self, message: RouteMessage, stride: int, count: int) -> int:
        self.runs.append(count)
        return super().on_message_run(message, stride, count)


def test_run_is_handed_over_at_once_and_may_be_stopped_and_suspended_in_between() -> None:
    counting = Counting()
    data = bytearray(b"RMSG $G foo 1\r\nx\r\n" * 9 + b"RMSG $G bar 1\r\nx\r\n" * 2)
    assert RouteOpParser(counting).parse(data, 0, len(data)) == len(data)
    assert counting.runs == [9, 2]

    class Suspending(Recorder):
        def on_connect(self, json: bytes) -> int:
            super().on_connect(json)
            return SUSPEND

    waiting = Suspending()
    parser = RouteOpParser(waiting)
    data = bytearray(b"CONNECT {}\r\nPING\r\n")
    assert parser.parse(data, 0, len(data)) == len(b"CONNECT {}\r\n")
    parser.stopped = parser.suspended = False
    assert parser.parse(data, len(b"CONNECT {}\r\n"), len(data)) == len(data)
    assert waiting.calls == [("connect", b"{}"), ("ping",)]


def test_account_of_a_dedicated_route_is_not_on_the_wire() -> None:
    data = b"RS+ foo\r\nRS- foo q\r\nRMSG foo bar 2\r\nhi\r\n"
    assert calls_for([data], route_ops.V2, b"ACC") == [
        ("interest", b"ACC", b"foo", b"", 0),
        ("no interest", b"ACC", b"foo", b"q"),
        message(account=b"ACC", reply=b"bar", payload=b"hi"),
    ]


@pytest.mark.parametrize(
    ("line", "call"),
    [
        (b"LS+ c $G foo\r\n", ("leaf interest", b"c", b"$G", b"foo", b"", 1)),
        (b"LS+ c $G foo q 3\r\n", ("leaf interest", b"c", b"$G", b"foo", b"q", 3)),
        (b"LS- c $G foo\r\n", ("leaf interest", b"c", b"$G", b"foo", b"", 0)),
        (b"LS- c $G foo q\r\n", ("leaf interest", b"c", b"$G", b"foo", b"q", 0)),
        (b"LMSG c $G foo 0 5\r\nhello\r\n", (*message(), b"c")),
        (b"LMSG c $G foo bar 0 5\r\nhello\r\n", (*message(reply=b"bar"), b"c")),
        (b"LMSG c $G foo | a b 0 5\r\nhello\r\n", (*message(queues=(b"a", b"b")), b"c")),
        (b"LMSG c $G foo + bar a 0 5\r\nhello\r\n", (*message(reply=b"bar", queues=(b"a",)), b"c")),
        (b"lmsg c  $G foo  0\t5\r\nhello\r\n", (*message(), b"c")),
        (
            b"LMSG c $G foo bar 12 17\r\nNATS/1.0\r\n\r\nhello\r\n",
            (*message(reply=b"bar", block=b"NATS/1.0\r\n\r\n"), b"c"),
        ),
        (b"LMSG c $G foo 5\r\nhello\r\n", ("violation", violations.BAD_ARGUMENTS)),
        (b"LS+ c $G foo q\r\n", ("violation", violations.BAD_ARGUMENTS)),
    ],
)
def test_leaf_nodes_of_a_peer_are_named_by_their_cluster(line: bytes, call: Call) -> None:
    for cut in range(len(line)):
        assert calls_for([line[:cut], line[cut:]], route_ops.V2) == [call]


def test_sizes_behind_an_origin_are_written_for_clients() -> None:
    sizes: list[bytes] = []

    class Tails(RouteOpHandler):
        def on_message(self, message: RouteMessage) -> int:
            sizes.append(bytes(message.buffer[message.tail : message.headers]))
            return 0

    parser = RouteOpParser(Tails(), dialect=route_ops.V2)
    data = b"".join(
        b"LMSG c $G foo%b%b\r\nhello%b\r\n" % (words, size, b"" if size == b"0 5" else bytes(7))
        for words in (b" ", b" bar ", b" | q ", b" + bar q ")
        for size in (b"0 5", b"12 12")
    )
    assert parser.parse(bytearray(data), 0, len(data)) == len(data)
    assert sizes == [b"5\r\n", b"12 12\r\n", b"bar 5\r\n", b"bar 12 12\r\n"] * 2


@pytest.mark.parametrize("line", [b"+OK\r\n", b"A+ $G\r\n", b"A- $G\r\n"])
def test_ops_for_others_are_ignored(line: bytes) -> None:
    assert calls_for([line, b"PING\r\n"]) == [("ping",)]


@pytest.mark.parametrize(
    ("data", "dialect", "violation"),
    [
        (b"XYZ\r\n", route_ops.UNDECIDED, violations.UNKNOWN_OPERATION),
        (b"\r\n", route_ops.UNDECIDED, violations.UNKNOWN_OPERATION),
        (b"RS+ $G foo\r\n", route_ops.V1, violations.UNKNOWN_OPERATION),
        (b"HMSG $G foo 12 12\r\n", route_ops.V1, violations.UNKNOWN_OPERATION),
        (b"MSG foo RSID:1:1 2\r\nhi\r\n", route_ops.V2, violations.UNKNOWN_OPERATION),
        (b"MSG foo RSID:1:1 2\r\nhello\r\n", route_ops.V1, violations.UNKNOWN_OPERATION),
        (b"MSG foo 3\r\n", route_ops.V1, violations.BAD_ARGUMENTS),
        (b"MSG foo RSID:1:1 x\r\n", route_ops.V1, violations.BAD_ARGUMENTS),
        (b"RMSG $G foo a b 3\r\n", route_ops.V2, violations.BAD_ARGUMENTS),
        (b"HMSG $G foo 9 3\r\n", route_ops.V2, violations.BAD_ARGUMENTS),
        (b"RS+ $G\r\n", route_ops.V2, violations.BAD_ARGUMENTS),
        (b"RS+ $G foo q\r\n", route_ops.V2, violations.BAD_ARGUMENTS),
        (b"SUB foo\r\n", route_ops.V1, violations.BAD_ARGUMENTS),
        (b"RMSG $G foo 999999999\r\n", route_ops.V2, violations.PAYLOAD_TOO_LARGE),
        (b"INFO " + b"x" * 17000, route_ops.V2, violations.CONTROL_LINE_TOO_LONG),
    ],
)
def test_violation_is_reported_once_and_nothing_after_it_is_parsed(data: bytes, dialect: int, violation: int) -> None:
    calls = calls_for([data, b"PING\r\n"], dialect)
    assert [call for call in calls if call[0] != "too large"] == [("violation", violation)]


VERBS = [b"RS+", b"RMSG", b"HMSG", b"MSG", b"SUB", b"PING\r\n", b"INFO {}"]
PARTS = [
    b"$G",
    b"foo",
    b"|",
    b"+",
    b"q",
    b"5",
    b"12",
    b"17",
    b" ",
    b"\t",
    b"\r\n",
    b"\n",
    b"hello\r\n",
    b"\xff",
    b"-1",
    b"",
]
tokens = st.sampled_from([*VERBS, *PARTS, b"NATS/1.0\r\n\r\n"])
near_protocol = st.lists(tokens, max_size=24).map(b" ".join) | st.lists(tokens, max_size=24).map(b"".join)


@given(near_protocol | st.binary(max_size=60), st.lists(st.integers(0, 80), max_size=4), st.sampled_from([0, 1, 2]))
def test_any_bytes_in_any_pieces_give_the_same_calls_and_never_an_exception(
    data: bytes, cuts: list[int], dialect: int
) -> None:
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[a:b] for a, b in itertools.pairwise(edges)]
    assert calls_for(pieces, dialect) == calls_for([data], dialect)


# ── leaf nodes ──


def leaf_message(
    reply: bytes = b"", queues: tuple[bytes, ...] = (), block: bytes = b"", payload: bytes = b"hi"
) -> Call:
    return message(reply=reply, queues=queues, block=block, payload=payload, account=b"", token=b"")


def leaf_calls(*pieces: bytes) -> list[Call]:
    return calls_for(list(pieces), route_ops.LEAF)


@pytest.mark.parametrize(
    ("note", "received"),
    [
        (b"LS+ foo\r\n", ("interest", b"", b"foo", b"", 0)),
        (b"ls+\tfoo  q 3\r\n", ("interest", b"", b"foo", b"q", 3)),
        (b"LS+ foo q 0\r\n", ("interest", b"", b"foo", b"q", 0)),
        (b"LS- foo\r\n", ("no interest", b"", b"foo", b"")),
        (b"LS- foo q\n", ("no interest", b"", b"foo", b"q")),
        (b"LMSG foo 2\r\nhi\r\n", leaf_message()),
        (b"LMSG foo bar 2\r\nhi\r\n", leaf_message(reply=b"bar")),
        (b"lmsg\tfoo  bar 2\r\nhi\r\n", leaf_message(reply=b"bar")),
        (b"LMSG foo | a b 2\r\nhi\r\n", leaf_message(queues=(b"a", b"b"))),
        (b"LMSG foo + bar a 2\r\nhi\r\n", leaf_message(reply=b"bar", queues=(b"a",))),
        (b"LMSG foo  | a 2\r\nhi\r\n", leaf_message(queues=(b"a",))),
        (b"HMSG foo 12 14\r\nNATS/1.0\r\n\r\nhi\r\n", leaf_message(block=b"NATS/1.0\r\n\r\n")),
        (b"HMSG foo bar 12 14\r\nNATS/1.0\r\n\r\nhi\r\n", leaf_message(reply=b"bar", block=b"NATS/1.0\r\n\r\n")),
        (b"HMSG foo | a 12 14\r\nNATS/1.0\r\n\r\nhi\r\n", leaf_message(queues=(b"a",), block=b"NATS/1.0\r\n\r\n")),
        (
            b"HMSG foo + bar a b 12 14\r\nNATS/1.0\r\n\r\nhi\r\n",
            leaf_message(reply=b"bar", queues=(b"a", b"b"), block=b"NATS/1.0\r\n\r\n"),
        ),
    ],
)
def test_ops_between_leaf_nodes_name_no_account(note: bytes, received: Call) -> None:
    assert leaf_calls(note) == [received]
    assert leaf_calls(*(note[at : at + 1] for at in range(len(note)))) == [received]
    assert leaf_calls(note + note) == [received, received]


@pytest.mark.parametrize(
    ("note", "violation"),
    [
        (b"LS+\r\n", violations.UNKNOWN_OPERATION),
        (b"LS+ foo q\r\n", violations.BAD_ARGUMENTS),
        (b"LS+ foo q x\r\n", violations.BAD_ARGUMENTS),
        (b"LMSG foo\r\n", violations.BAD_ARGUMENTS),
        (b"LMSG foo a b 2\r\nhi\r\n", violations.BAD_ARGUMENTS),
        (b"HMSG foo 15 14\r\nNATS/1.0\r\n\r\nhi\r\n", violations.BAD_ARGUMENTS),
        (b"LMSG foo 2\r\nhiho", violations.UNKNOWN_OPERATION),
        (b"RMSG $G foo 2\r\nhi\r\n", violations.UNKNOWN_OPERATION),
        (b"RS+ $G foo\r\n", violations.UNKNOWN_OPERATION),
        (b"MSG foo 1 2\r\nhi\r\n", violations.UNKNOWN_OPERATION),
        (b"SUB foo 1\r\n", violations.UNKNOWN_OPERATION),
    ],
)
def test_anything_but_an_op_of_a_leaf_node_is_a_violation(note: bytes, violation: int) -> None:
    assert leaf_calls(note) == [("violation", violation)]


def test_a_leaf_nodes_end_of_interest_with_a_weight_is_ignored() -> None:
    assert leaf_calls(b"LS- foo q 1\r\n") == []


def test_a_leaf_nodes_lines_and_payloads_have_their_own_limits() -> None:
    def parse(data: bytes) -> list[Call]:
        recorder = Recorder()
        RouteOpParser(recorder, b"", route_ops.LEAF, 20, 4).parse(bytearray(data), 0, len(data))
        return recorder.calls

    assert parse(b"LMSG foo 4\r\nhiho\r\n") == [leaf_message(payload=b"hiho")]
    too_large = [("too large", b"foo", 5, 4), ("violation", violations.PAYLOAD_TOO_LARGE)]
    assert parse(b"LMSG foo 5\r\nhihi!\r\n") == too_large
    assert parse(b"LMSG foo  5\r\n") == too_large
    assert parse(b"LS+ " + b"x" * 20 + b"\r\n") == [("violation", violations.CONTROL_LINE_TOO_LONG)]


@given(st.binary(max_size=60), st.lists(st.integers(0, 80), max_size=4))
def test_any_bytes_of_a_leaf_node_in_any_pieces_give_the_same_calls(noise: bytes, cuts: list[int]) -> None:
    data = b"LMSG foo | a 2\r\nhi\r\nLS+ a q 2\r\n" + noise
    places = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    assert leaf_calls(*(data[a:b] for a, b in itertools.pairwise(places))) == leaf_calls(data)
