"""The parser of server ops: any chunking gives the same calls, garbage gives one violation, nothing raises."""

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headwater.errors import RemoteProtocolError
from headwater.wire.message_view import MessageView
from headwater.wire.server_ops import ServerOpHandler, ServerOpParser

Call = tuple[object, ...]


class Recorder(ServerOpHandler):
    """Records each call, with the slices as bytes."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def on_message(self, message: MessageView) -> int:
        self.calls.append(
            (
                "message",
                message.subject_bytes(),
                message.sid,
                message.reply_bytes(),
                bytes(message.buffer[message.headers : message.payload]),
                bytes(message.buffer[message.payload : message.end]),
            )
        )
        return 0

    def on_info(self, json: bytes) -> int:
        self.calls.append(("info", json))
        return 0

    def on_ping(self) -> int:
        self.calls.append(("ping",))
        return 0

    def on_pong(self) -> int:
        self.calls.append(("pong",))
        return 0

    def on_ok(self) -> int:
        self.calls.append(("ok",))
        return 0

    def on_error(self, text: str) -> int:
        self.calls.append(("error", text))
        return 0

    def on_violation(self, error: RemoteProtocolError) -> int:
        self.calls.append(("violation", str(error), error.value))
        return 0


def feed(chunks: list[bytes], max_control_line: int = 1 << 16) -> list[Call]:
    """The calls for the chunks, each appended to the bytes that the parser has not consumed."""
    recorder = Recorder()
    parser = ServerOpParser(recorder, max_control_line=max_control_line)
    rest = bytearray()
    for chunk in chunks:
        rest += chunk
        used = parser.parse(rest, 0, len(rest))
        assert 0 <= used <= len(rest)
        del rest[:used]
    return recorder.calls


def parse(data: bytes) -> list[Call]:
    return feed([data])


CONVERSATION = (
    b'INFO {"server_id":"N1","max_payload":1048576} \r\n'
    b"PONG\r\n"
    b"+OK\r\n"
    b"MSG a.b 1 5\r\nhello\r\n"
    b"MSG a.b 1 reply.to 0\r\n\r\n"
    b"HMSG a.b 22 r 12 17\r\nNATS/1.0\r\n\r\nhello\r\n"
    b"HMSG a 3 16 16\r\nNATS/1.0 503\r\n\r\n\r\n"
    b"msg\t\xff.x \t 7   2\nMS\r\n"
    b"PING\r\n"
    b"-ERR 'Permissions Violation for Publish to \"x\"'\r\n"
)
CALLS: list[Call] = [
    ("info", b'{"server_id":"N1","max_payload":1048576}'),
    ("pong",),
    ("ok",),
    ("message", b"a.b", 1, b"", b"", b"hello"),
    ("message", b"a.b", 1, b"reply.to", b"", b""),
    ("message", b"a.b", 22, b"r", b"NATS/1.0\r\n\r\n", b"hello"),
    ("message", b"a", 3, b"", b"NATS/1.0 503\r\n\r\n", b""),
    ("message", b"\xff.x", 7, b"", b"", b"MS"),
    ("ping",),
    ("error", 'Permissions Violation for Publish to "x"'),
]


def test_a_conversation_gives_one_call_for_each_op() -> None:
    assert parse(CONVERSATION) == CALLS


def test_every_cut_in_two_gives_the_same_calls() -> None:
    for cut in range(len(CONVERSATION) + 1):
        assert feed([CONVERSATION[:cut], CONVERSATION[cut:]]) == CALLS, cut


def test_byte_by_byte_gives_the_same_calls() -> None:
    assert feed([bytes([byte]) for byte in CONVERSATION]) == CALLS


@given(st.lists(st.integers(0, len(CONVERSATION)), max_size=12))
def test_every_chunking_gives_the_same_calls(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(CONVERSATION)]
    assert feed([CONVERSATION[a:b] for a, b in pairwise(edges)]) == CALLS


FRAGMENT = st.sampled_from(
    [
        b"MSG a 1 2\r\nhi\r\n",
        b"MSG a 1 2\r\nhi",
        b"HMSG a 1 12 14\r\nNATS/1.0\r\n\r\nhi\r\n",
        b"HMSG",
        b"MSG ",
        b"PING",
        b"-ERR ",
        b"+OK",
        b"INFO {}",
        b"\r\n",
        b"\n",
        b"\r",
        b" ",
        b"\t",
        b"1",
        b"99999999999",
        b"\x00\xff",
    ]
)


@settings(max_examples=300)
@example([b"HMSG" + b"9" * 37 + b"\r\n" + b"x" * 40], [41])  # a line above the limit, cut directly after the limit
@given(st.lists(FRAGMENT | st.binary(max_size=4), max_size=12), st.lists(st.integers(0, 200), max_size=6))
def test_garbage_gives_at_most_one_violation_and_the_same_calls_for_every_chunking(
    fragments: list[bytes], cuts: list[int]
) -> None:
    data = b"".join(fragments)
    whole = feed([data], max_control_line=40)
    assert [call[0] for call in whole].count("violation") <= 1
    assert "violation" not in [call[0] for call in whole[:-1]]
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    assert feed([data[a:b] for a, b in pairwise(edges)], max_control_line=40) == whole


token = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=1, max_size=12).map(str.encode)


@given(token, st.integers(0, 10**9 - 1), st.none() | token, st.binary(max_size=40), st.binary(max_size=60))
def test_the_handler_gets_what_a_server_writes(
    subject: bytes, sid: int, reply: bytes | None, headers: bytes, payload: bytes
) -> None:
    middle = b"" if reply is None else b" " + reply
    plain = b"MSG %s %d%s %d\r\n%s\r\n" % (subject, sid, middle, len(payload), payload)
    both = b"HMSG %s %d%s %d %d\r\n%s%s\r\n" % (
        subject,
        sid,
        middle,
        len(headers),
        len(headers) + len(payload),
        headers,
        payload,
    )
    assert parse(plain + both) == [
        ("message", subject, sid, reply or b"", b"", payload),
        ("message", subject, sid, reply or b"", headers, payload),
    ]


@pytest.mark.parametrize(
    "line",
    [
        b"\r\n",
        b" PING\r\n",
        b"PINGPONG\r\n",
        b"FOO\r\n",
        b"HTTP/1.1 400 Bad Request\r\n",
        b"\rERR x\r\n",
        b"MSG\r\n",
        b"MSG \r\n",
        b"HMSG\r\n",
        b"MSG a\r\n",
        b"MSG a 1\r\n",
        b"MSG a 1 2 3 4\r\n",
        b"HMSG a 1 2\r\n",
        b"HMSG a 1 b 2 3 4\r\n",
        b"HMSG a 1 5 4\r\n",
        b"MSG a x 1\r\n",
        b"MSG a -1 1\r\n",
        b"MSG a 1 +1\r\n",
        b"MSG a 1 0_1\r\n",
        "MSG a 1 ٢\r\n".encode(),
        b"MSG a 1 1234567890\r\n",
        b"MSG a 1 999999999\r\n",
        b"MSG a 1234567890 1\r\n",
        b"MSG a 1 1\r\nab\r\n",
        b"MSG a 1 2\r\nab\n\n",
        b"PUB a 0\r\n\r\n",
    ],
)
def test_anything_but_a_server_op_is_a_violation_that_quotes_it(line: bytes) -> None:
    calls = parse(b"PING\r\n" + line + b"PING\r\n")
    assert [call[0] for call in calls] == ["ping", "violation"]
    quoted = calls[1][2]
    assert isinstance(quoted, bytes)
    assert line.startswith(quoted)


def test_a_violation_quotes_no_more_than_64_bytes() -> None:
    [(_, message, quoted)] = parse(b"X" * 3000 + b"\r\n")
    assert quoted == b"X" * 64
    assert "an unknown op" in str(message)


def test_a_broken_parser_consumes_and_ignores_everything() -> None:
    recorder = Recorder()
    parser = ServerOpParser(recorder)
    assert parser.parse(bytearray(b"NO\r\nPING\r\n"), 0, 10) == 10
    assert parser.broken
    assert parser.parse(bytearray(b"PING\r\n"), 0, 6) == 6
    assert len(recorder.calls) == 1


def test_a_control_line_without_an_end_is_refused_at_the_limit_but_info_may_be_longer() -> None:
    assert parse(b"MSG " + b"a" * 65532) == []
    assert [call[0] for call in parse(b"MSG " + b"a" * 65533)] == ["violation"]
    assert [call[0] for call in parse(b"MSG " + b"a" * 70000 + b" 1 0\r\n\r\n")] == ["violation"]
    assert [call[0] for call in parse(b"INFO {" + b" " * 900_000 + b"}\r\n")] == ["info"]
    assert [call[0] for call in parse(b"INFO {" + b" " * 1_100_000)] == ["violation"]


def test_the_parser_says_how_many_bytes_the_incomplete_op_needs() -> None:
    parser = ServerOpParser(Recorder())
    part = bytearray(b"MSG a 1 100000\r\nabc")
    assert parser.parse(part, 0, len(part)) == 0
    assert parser.wanted == 16 + 100_000 + 2


def test_parsing_starts_and_stops_at_the_given_positions() -> None:
    recorder = Recorder()
    buffer = bytearray(b"garbagePING\r\nMSG a 1 2\r\nhi\r\nPONG\r\n")
    assert ServerOpParser(recorder).parse(buffer, 7, 28) == 28
    assert recorder.calls == [("ping",), ("message", b"a", 1, b"", b"", b"hi")]


def test_error_text_that_is_no_utf8_is_escaped_and_loses_only_its_own_quotes() -> None:
    assert parse(b"-ERR 'it's \xff'\r\n-ERR plain\r\n-ERR\r\n") == [
        ("error", "it's \\xff"),
        ("error", "plain"),
        ("error", ""),
    ]


def test_the_default_handler_ignores_everything() -> None:
    data = bytearray(CONVERSATION + b"FOO\r\n")
    assert ServerOpParser(ServerOpHandler()).parse(data, 0, len(data)) == len(data)
