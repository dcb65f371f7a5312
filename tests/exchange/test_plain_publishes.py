"""The interpreted shorter way for publishes gives what `Session.on_publish` gives for each of them."""

import hypothesis.strategies as st
import pytest
from hypothesis import example, given
from support.session_desk import PLAIN, Desk

import headwater
from headwater.exchange import session
from headwater.exchange.sublist import Sublist, Subscription
from headwater.wire import plain_publishes

pytestmark = pytest.mark.skipif(headwater.__compiled__, reason="compiled, there is only one way")

NO_ECHO = b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true,"echo":false}\r\n'
WITHOUT_HEADERS = b'CONNECT {"verbose":false,"pedantic":false}\r\n'
PATTERNS = (b"a", b"a", b"a.*", b"a.>", b">", b"_INBOX.1.*", b"*.b", b"a.b 1000", b"c.>")
SUBJECTS = (b"a", b"a.b", b"a.c", b"a.b.c", b"a..b", b"a.", b"b", b"c.d", b"_INBOX.1.2", b"_GR_.x", b"$NRG.x", b"$JS.x")
REPLIES = (b"", b"", b"", b"_INBOX.1.7 ", b"_R_.x ", b"$JS.ACK.x ", b"b ")


def publish(subject: bytes, reply: bytes, payload: bytes, digits: str) -> bytes:
    return b"PUB %b %b%b\r\n%b\r\n" % (subject, reply, (digits % len(payload)).encode(), payload)


publishes = st.builds(
    publish,
    st.sampled_from(SUBJECTS),
    st.sampled_from(REPLIES),
    st.sampled_from((b"", b"x", b"xy", b"\r\n", b"PUB a 1\r\nz", b"z" * 40)),
    st.sampled_from(("%d", "%d", "%d", "%03d")),
)
others = st.sampled_from(
    (
        b"pub a 1\r\nx\r\n", b"PUB  a 1\r\nx\r\n", b"PUB a\t1\r\nx\r\n", b"PUB a 1\nx\r\n",
        b"PUB a 41\r\n" + b"y" * 41 + b"\r\n",
        b"HPUB a 12 13\r\nNATS/1.0\r\n\r\nx\r\n", b"PING\r\n", b"SUB a.b 20\r\n", b"UNSUB 20\r\n",
        b"SUB a.b 21\r\nUNSUB 21 2\r\n",
        b"PUB a 1\r\nxx\r\n", b"PUB a -1\r\nx\r\n", b"PUB " + b"l" * 60 + b" 1\r\nx\r\n", b"PUB a 1 2 3\r\nx\r\n",
    )
)  # fmt: skip
conversations = st.lists(st.one_of(publishes, publishes, publishes, others), min_size=1, max_size=30)


def result(reads: list[bytes], patterns: list[bytes], first: bytes, called: bytes) -> list[object]:
    """Everything that can be seen after one client has sent `reads`."""
    desk = Desk()
    seen: list[object] = []
    publisher, own_link = desk.connect(first)
    publisher.parser.max_control_line, publisher.parser.max_payload = 50, 40
    plain, plain_link = desk.connect(WITHOUT_HEADERS)
    other, other_link = desk.connect()
    for number, pattern in enumerate(patterns):
        words = pattern.split()
        queue = b"workers " if number == 7 else b""
        sub = b"SUB %b %b%d\r\n" % (words[0], queue, number)
        desk.feed((publisher, plain, other, other)[number % 4], sub)
    if called:
        desk.router.subscribe_internal(called, lambda *parts: seen.append(parts))
    for data in reads:
        if not publisher.parser.stopped:
            used = publisher.receive(bytearray(data), len(data))
            seen.append(used)
        for function in desk.scheduled:
            function()
        desk.scheduled.clear()
    for each, link in ((publisher, own_link), (plain, plain_link), (other, other_link)):
        subscriptions = [(one.sid, desk.router.sublist.delivered(one)) for one in each.outlet.subscriptions.values()]
        seen.append((link.take_flushed(), each.outlet.out_messages, each.outlet.out_bytes, subscriptions))
    return [*seen, publisher.traffic.messages, publisher.traffic.bytes, desk.register.noted]


@given(
    conversations,
    st.lists(st.sampled_from(PATTERNS), max_size=9),
    st.sampled_from((PLAIN, NO_ECHO)),
    st.sampled_from((b"", b"", b"c.d", b"a.b")),
    st.booleans(),
)
@example(
    [b"SUB a.b 21\r\nUNSUB 21 2\r\n", *[publish(b"a.b", b"", b"x" * size, "%d") for size in range(5)]],
    [],
    PLAIN,
    b"",
    True,
)
@example([publish(b"a.b", b"_INBOX.1.7 ", b"x" * size, "%d") for size in range(5)], [b"_INBOX.1.*"], PLAIN, b"", True)
@example([publish(b"a.b", b"", b"x" * size, "%d") for size in range(5)], [*[b"c.>"] * 7, b"a.*"], PLAIN, b"", True)
@example([b"PUB a.b 1\r\nx\r\n"] * 7, [b"a.*"], PLAIN, b"", True)
def test_the_shorter_way_gives_the_same(
    ops: list[bytes], patterns: list[bytes], first: bytes, called: bytes, together: bool
) -> None:
    reads = [b"".join(ops)] if together else ops
    found = result(reads, patterns, first, called)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "collect_plain_publishes", lambda *arguments: arguments[4])
        assert found == result(reads, patterns, first, called)


def test_publishes_with_different_lines_take_the_shorter_way(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    receiver, link = desk.connect()
    publisher, _ = desk.connect()
    desk.feed(receiver, b"SUB a.* 1\r\n")
    monkeypatch.setattr(session.Session, "on_publish", None)  # the longer way
    monkeypatch.setattr(plain_publishes, "LOOKED_AT", 100)
    ops = [b"PUB a.%d %d\r\n%b\r\n" % (number, number % 5, b"x" * (number % 5)) for number in range(50)]
    desk.feed(publisher, b"".join(ops))
    assert link.take_flushed() == b"".join(
        op.replace(b"PUB a.%d" % n, b"MSG a.%d 1" % n, 1) for n, op in enumerate(ops)
    )
    assert (publisher.traffic.messages, publisher.traffic.bytes) == (50, 100)


def test_of_lines_in_turn_most_are_known_when_there_are_a_few_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_publishes, "MOST_LINES", 128)
    lines, sublist, found = plain_publishes.Lines(), Sublist(), 0
    sublist.insert(Subscription(b"a.*", b"", b"1", Desk().connect()[0].outlet))
    for number in [*range(132)] * 4:
        text = b"PUB a.%d 1" % number
        found += text in lines.known
        assert lines.known.get(text) or lines.look_up(text, sublist.match)
    assert found > 250


def test_lines_are_forgotten_when_interest_changes() -> None:
    desk = Desk()
    receiver, link = desk.connect()
    publisher, _ = desk.connect()
    op = b"PUB a 1\r\nx\r\n"
    desk.feed(publisher, op)
    desk.feed(receiver, b"SUB a 1\r\n")
    desk.feed(publisher, op)
    desk.feed(receiver, b"UNSUB 1\r\n")
    desk.feed(publisher, op)
    assert link.take_flushed() == b"MSG a 1 1\r\nx\r\n"
