"""Frames for one peer, written from a publisher's message."""

from typing import NamedTuple

import pytest
from support.fake_link import make_outlet
from support.forwarding_bench import BLOCK

from headwater.cluster.frames import Frame, Target
from headwater.exchange.sublist import Subscription
from headwater.wire.route_ops import RouteMessage, RouteOpHandler, RouteOpParser


class Published(NamedTuple):
    """A message for a peer; parsing it as a frame gives the positions of its parts."""

    reply: bytes = b""
    block: bytes = b""


class Writing(RouteOpHandler):
    """Writes the messages that it parses, alone or as a run."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.left_out = 0

    def on_message(self, message: RouteMessage) -> int:
        self.left_out += self.frame.write(message)
        return 0

    def on_message_run(self, message: RouteMessage, stride: int, count: int) -> int:
        self.left_out += self.frame.write_run(message, stride, count)
        return 0


class WritingFrom(RouteOpHandler):
    """Writes the messages that it parses as those of a leaf node in the cluster `hub`."""

    def __init__(self, target: Target, listed: bytes) -> None:
        self.target = target
        self.listed = listed

    def on_message(self, message: RouteMessage) -> int:
        return self.target.write_from(b"hub", self.listed, message)


def written(message: Published, count: int, *, in_v1: bool = False, headers: bool = True, listed: bytes = b"") -> bytes:
    """The frames of `count` such messages for a peer; they come in one read, so several are a run."""
    _, outlet = make_outlet(headers=headers)
    subscription = Subscription(b"foo", b"", b"RSID:7:1", outlet) if in_v1 else None
    frame = Frame(Target(outlet, in_v1, b"$G", True), subscription, listed)
    reply = message.reply + b" " if message.reply else b""
    sizes = b"%d %d" % (len(message.block), len(message.block) + 2) if message.block else b"2"
    verb = b"HMSG" if message.block else b"RMSG"
    read = (verb + b" $G foo " + reply + sizes + b"\r\n" + message.block + b"hi\r\n") * count
    writing = Writing(frame)
    assert RouteOpParser(writing).parse(bytearray(read), 0, len(read)) == len(read)
    assert writing.left_out == (count if message.block and not headers else 0)
    if subscription is not None:
        assert subscription.delivered == count
    with memoryview(outlet.output.data) as view:
        return bytes(view[outlet.output.head : outlet.output.size])


MESSAGES = [Published(), Published(reply=b"answer"), Published(block=BLOCK), Published(b"answer", BLOCK)]


@pytest.mark.parametrize("count", [1, 12])
@pytest.mark.parametrize(
    ("message", "plain", "listed", "token"),
    [
        (MESSAGES[0], b"RMSG $G foo 2", b"RMSG $G foo | a b 2", b"MSG foo RSID:7:1 2"),
        (MESSAGES[1], b"RMSG $G foo answer 2", b"RMSG $G foo + answer a b 2", b"MSG foo RSID:7:1 answer 2"),
        (MESSAGES[2], b"HMSG $G foo 18 20", b"HMSG $G foo | a b 18 20", b""),
        (MESSAGES[3], b"HMSG $G foo answer 18 20", b"HMSG $G foo + answer a b 18 20", b""),
    ],
)
def test_a_frame_equals_that_of_servers_of_its_dialect(
    message: Published, plain: bytes, listed: bytes, token: bytes, count: int
) -> None:
    rest = b"\r\n" + message.block + b"hi\r\n"
    assert written(message, count) == (plain + rest) * count
    assert written(message, count, listed=b" | a b ") == (listed + rest) * count
    if token:
        assert written(message, count, in_v1=True, headers=False) == (token + rest) * count


@pytest.mark.parametrize("count", [1, 12])
def test_headers_are_left_out_where_they_cannot_travel(count: int) -> None:
    without = [b"RMSG $G foo 2", b"RMSG $G foo answer 2"]
    listed = [b"RMSG $G foo | a 2", b"RMSG $G foo + answer a 2"]
    tokens = [b"MSG foo RSID:7:1 2", b"MSG foo RSID:7:1 answer 2"]
    for at, message in enumerate(MESSAGES[2:]):
        assert written(message, count, headers=False) == (without[at] + b"\r\nhi\r\n") * count
        assert written(message, count, headers=False, listed=b" | a ") == (listed[at] + b"\r\nhi\r\n") * count
        assert written(message, count, headers=False, in_v1=True) == (tokens[at] + b"\r\nhi\r\n") * count


@pytest.mark.parametrize("headers", [True, False])
def test_a_frame_for_a_message_from_a_leaf_node_names_its_cluster(headers: bool) -> None:
    def lmsg(message: Published, listed: bytes) -> bytes:
        _, outlet = make_outlet(headers=headers)
        target = Target(outlet, False, b"$G", True, True)
        reply = message.reply + b" " if message.reply else b""
        sizes = b"%d %d" % (len(message.block), len(message.block) + 2) if message.block else b"2"
        verb = b"HMSG" if message.block else b"RMSG"
        read = bytearray(verb + b" $G foo " + reply + sizes + b"\r\n" + message.block + b"hi\r\n")
        assert RouteOpParser(WritingFrom(target, listed)).parse(read, 0, len(read)) == len(read)
        return outlet.output.take()

    block, sizes = (BLOCK, b"18 20") if headers else (b"", b"0 2")
    assert lmsg(MESSAGES[0], b"") == b"LMSG hub $G foo 0 2\r\nhi\r\n"
    assert lmsg(MESSAGES[1], b"") == b"LMSG hub $G foo answer 0 2\r\nhi\r\n"
    assert lmsg(MESSAGES[1], b" | a b ") == b"LMSG hub $G foo + answer a b 0 2\r\nhi\r\n"
    assert lmsg(MESSAGES[3], b"") == b"LMSG hub $G foo answer " + sizes + b"\r\n" + block + b"hi\r\n"
