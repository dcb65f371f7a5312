"""Frames for one peer, in the dialect that it speaks, written into its output buffer.

    v2   RMSG <account> <subject> [reply] <size>␍␊               HMSG with two sizes, where there are headers
         RMSG <account> <subject> | <queue>... <size>␍␊          for one member each of these groups, too
         RMSG <account> <subject> + <reply> <queue>... <size>␍␊
    v1   MSG <subject> <token> [reply] <size>␍␊               for plain interest; and for each chosen member of a group

Headers cannot travel in v1, nor to a peer that does not take them: they are left out, and whoever writes is told so.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.broker.sublist import Outlet, Subscription
    from cython.cimports.headwater.wire.memory import OutputBuffer, slice_bytes
    from cython.cimports.headwater.wire.route_ops import RouteMessage
else:
    from headwater.broker.sublist import Outlet, Subscription
    from headwater.wire.memory import OutputBuffer, slice_bytes
    from headwater.wire.route_ops import RouteMessage

PASSED_ON: bytes = b":2"  # behind a token of v1: the message has been passed on once


class Target:
    """A peer as far as frames are concerned. `ours`: it is a Headwater broker.

    `listed` and `plain` belong to whoever decides on the message under way: the groups that it is for, as ` | a b `, and
    whether the peer gets it for plain interest.
    """

    def __init__(self, outlet: Outlet, in_v1: bool, account: bytes, ours: bool) -> None:
        self.outlet = outlet
        self.in_v1 = in_v1
        self.ours = ours
        self.listed = b""
        self.plain = False
        self._rmsg = b"RMSG " + account + b" "
        self._hmsg = b"HMSG " + account + b" "

    def write(self, listed: bytes, buffer: bytearray, message: RouteMessage) -> cython.int:
        """RMSG or HMSG for plain interest and the groups of `listed` (` | a b `, or empty). 1 when headers were left out."""
        output: OutputBuffer = self.outlet.output
        end: cython.Py_ssize_t = message.end + 2
        plain: cython.bint = message.headers == message.payload
        replies: cython.bint = message.reply_end > message.reply
        strip: cython.bint = not plain and not self.outlet.headers
        head: bytes = self._rmsg if plain or strip else self._hmsg
        if (
            not listed and not strip and message.tail == message.subject_end + 1
        ):  # all of it is as the publisher wrote it
            output.append_pair(head, buffer, message.subject, end)
            return 0
        output.append_pair(head, buffer, message.subject, message.subject_end)
        if listed and not strip and not replies:
            output.append_pair(listed, buffer, message.tail, end)
            return 0
        output.append(b" + " if listed and replies else b" ")
        if replies:
            output.append_slice(buffer, message.reply, message.reply_end)
            output.append(b" ")
        if listed:
            output.append(listed[3:] if replies else listed[1:])
        if strip:
            output.append_pair(b"%d\r\n" % (message.end - message.payload), buffer, message.payload, end)
            return 1
        output.append_slice(buffer, message.reply_end + 1 if replies else message.tail, end)
        return 0

    def write_token(
        self, subscription: Subscription, passed_on: cython.bint, buffer: bytearray, message: RouteMessage
    ) -> cython.int:
        """MSG with the token of one subscription. 1 when headers were left out."""
        output: OutputBuffer = self.outlet.output
        end: cython.Py_ssize_t = message.end + 2
        subscription.delivered += 1
        output.append_pair(b"MSG ", buffer, message.subject, message.subject_end)
        output.append(b" " + subscription.sid + PASSED_ON + b" " if passed_on else subscription.after_subject)
        if message.headers == message.payload:
            output.append_slice(buffer, message.tail, end)
            return 0
        if message.reply != message.reply_end:
            output.append_slice(buffer, message.reply, message.reply_end)
            output.append(b" ")
        output.append_pair(b"%d\r\n" % (message.end - message.payload), buffer, message.payload, end)
        return 1


class Frame:
    """What a target gets of every message of one kind: in v2 `listed`, in v1 the token of `subscription`."""

    def __init__(self, target: Target, subscription: Subscription | None, listed: bytes) -> None:
        self.target = target
        self.subscription = subscription
        self.listed = listed

    def write(self, buffer: bytearray, message: RouteMessage) -> cython.int:
        """1 when headers were left out."""
        if self.subscription is None:
            return self.target.write(self.listed, buffer, message)
        return self.target.write_token(self.subscription, False, buffer, message)

    def write_run(
        self, buffer: bytearray, message: RouteMessage, stride: cython.Py_ssize_t, count: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """`count` messages with the same line, each `stride` bytes behind the one before. How many blocks were left out."""
        target: Target = self.target
        plain: cython.bint = message.headers == message.payload
        rest: cython.Py_ssize_t = message.tail
        left_out: cython.Py_ssize_t = 0
        if not plain and not target.outlet.headers:
            for _ in range(count):
                left_out += self.write(buffer, message)
                message.advance(stride)
            message.advance(-count * stride)
            return left_out
        subject: bytes = slice_bytes(buffer, message.subject, message.subject_end)
        head: bytes
        if self.subscription is not None:
            head = b"MSG " + subject + self.subscription.after_subject
            self.subscription.delivered += count
        else:
            head = (target._rmsg if plain else target._hmsg) + subject
            if not self.listed:
                head += b" "
            elif message.reply_end > message.reply:
                head += b" + " + slice_bytes(buffer, message.reply, message.reply_end) + b" " + self.listed[3:]
                rest = message.reply_end + 1
            else:
                head += self.listed
        target.outlet.output.append_run(head, buffer, rest, message.end + 2, stride, count)
        return 0
