"""Writes frames for one peer, in its dialect, into its output buffer.

    v2   RMSG <account> <subject> [reply] <size>␍␊               HMSG with two sizes for messages with headers
         RMSG <account> <subject> | <queue>... <size>␍␊          also for one member of each of these groups
         RMSG <account> <subject> + <reply> <queue>... <size>␍␊
         LMSG <origin> <account> <subject> …                     from a leaf node in the cluster `origin`; always two sizes
    v1   MSG <subject> <token> [reply] <size>␍␊               for plain interest; and for each chosen member of a group

v1 has no headers, and a v2 peer may not support them: they are then left out, and the return value counts them. The
shown subject of a JetStream delivery (`shown_subject`) is not sent to a gnatsd, which could not parse it.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.exchange.peer_frames import PeerFrames
    from cython.cimports.headwater.exchange.sublist import Outlet, Subscription
    from cython.cimports.headwater.wire.memory import OutputBuffer
    from cython.cimports.headwater.wire.message_view import MessageView
else:
    from headwater.exchange.peer_frames import PeerFrames
    from headwater.exchange.sublist import Outlet, Subscription
    from headwater.wire.memory import OutputBuffer
    from headwater.wire.message_view import MessageView

from headwater.net.local_sockets import LocalLink

PASSED_ON: bytes = b":2"  # suffix of a v1 token: the message has been passed on once


class Target(PeerFrames):
    """A peer as a receiver of frames. `ours`: it is a Headwater broker; `knows_leafs`: it understands the frames of
    `write_from`.
    """

    def __init__(self, outlet: Outlet, in_v1: bool, account: bytes, ours: bool, knows_leafs: bool = False) -> None:
        PeerFrames.__init__(self, outlet, b"RMSG " + account + b" ", b"HMSG " + account + b" ")
        self.in_v1 = in_v1
        self.ours = ours
        self.knows_leafs = knows_leafs
        self._account = account
        # It is another worker of this server, over a link that pages can be handed to.
        self.takes_runs = outlet.endpoint is not None and isinstance(outlet.link, LocalLink)

    def write_from(self, origin: bytes, listed: bytes, message: MessageView) -> cython.int:
        """`write` for a message from a leaf node in the cluster `origin`."""
        output: OutputBuffer = self.outlet.output
        buffer: bytearray = message.buffer
        replies: cython.bint = message.reply_end > message.reply
        bare: cython.bint = message.headers == message.payload
        output.append_pair(
            b"LMSG " + origin + b" " + self._account + b" ", buffer, message.subject, message.subject_end
        )
        output.append(b" + " if listed and replies else b" ")
        if replies:
            output.append_slice(buffer, message.reply, message.reply_end)
            output.append(b" ")
        if listed:
            output.append(listed[3:] if replies else listed[1:])
        if not bare and not self.outlet.headers:
            output.append_pair(b"0 %d\r\n" % (message.end - message.payload), buffer, message.payload, message.end + 2)
            return 1
        if bare:
            output.append(b"0 ")
        output.append_slice(buffer, message.reply_end + 1 if replies else message.tail, message.end + 2)
        return 0

    def write_run_from(
        self, origin: bytes, message: MessageView, stride: cython.Py_ssize_t, count: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """`write_run` for messages from a leaf node, without reply and queue groups."""
        left_out: cython.Py_ssize_t = 0
        bare: cython.bint = message.headers == message.payload
        if not bare and not self.outlet.headers:
            for _ in range(count):
                left_out += self.write_from(origin, b"", message)
                message.advance(stride)
            message.advance(-count * stride)
            return left_out
        head: bytes = b"LMSG " + origin + b" " + self._account + b" " + message.subject_bytes()
        head += b" 0 " if bare else b" "
        self.outlet.output.append_run(head, message.buffer, message.tail, message.end + 2, stride, count)
        return 0

    def write_token(self, subscription: Subscription, passed_on: cython.bint, message: MessageView) -> cython.int:
        """Write a MSG with the token of one subscription. Returns 1 if headers were left out."""
        output: OutputBuffer = self.outlet.output
        buffer: bytearray = message.buffer
        end: cython.Py_ssize_t = message.end + 2
        reply_end: cython.Py_ssize_t = message.shown if message.shown != 0 and not self.ours else message.reply_end
        strip: cython.bint = message.headers != message.payload
        subscription.delivered += 1
        output.append_pair(b"MSG ", buffer, message.subject, message.subject_end)
        output.append(b" " + subscription.sid + PASSED_ON + b" " if passed_on else subscription.after_subject)
        if not strip and reply_end == message.reply_end:
            output.append_slice(buffer, message.tail, end)
            return 0
        if message.reply != reply_end:
            output.append_slice(buffer, message.reply, reply_end)
            output.append(b" ")
        output.append_pair(b"%d\r\n" % (message.end - message.payload), buffer, message.payload, end)
        return 1 if strip else 0


class Frame:
    """The addressing part of a target's frames: `listed` in v2, the token of `subscription` in v1."""

    def __init__(self, target: Target, subscription: Subscription | None, listed: bytes) -> None:
        self.target = target
        self.subscription = subscription
        self.listed = listed

    def is_plain(self) -> cython.bint:
        """Whether it has nothing but the message."""
        return self.subscription is None and not self.listed

    def write(self, message: MessageView) -> cython.int:
        """Write one message. Returns 1 if headers were left out."""
        if self.subscription is None:
            return self.target.write(self.listed, message)
        return self.target.write_token(self.subscription, False, message)

    def write_run(self, message: MessageView, stride: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Write `count` messages with the same line, `stride` bytes apart. Returns the number of header blocks left
        out.
        """
        target: Target = self.target
        if self.subscription is None:
            return target.write_run(self.listed, message, stride, count)
        left_out: cython.Py_ssize_t = 0
        if message.headers != message.payload and not target.outlet.headers:
            for _ in range(count):
                left_out += self.write(message)
                message.advance(stride)
            message.advance(-count * stride)
            return left_out
        head: bytes = b"MSG " + message.subject_bytes() + self.subscription.after_subject
        self.subscription.delivered += count
        target.outlet.output.append_run(head, message.buffer, message.tail, message.end + 2, stride, count)
        return 0
