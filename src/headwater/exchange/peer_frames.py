"""Writes frames for one peer, a broker of the cluster or a leaf node, into its output buffer.

    RMSG <account> <subject> [reply] <size>␍␊               HMSG with two sizes for messages with headers
    RMSG <account> <subject> | <queue>... <size>␍␊          also for one member of each of these groups
    RMSG <account> <subject> + <reply> <queue>... <size>␍␊
    LMSG <subject> …                                        the same between leaf nodes, without the account

A peer that does not support headers gets messages without them; the writers return the number of header blocks left
out.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.exchange.sublist import Outlet
    from cython.cimports.headwater.wire.memory import OutputBuffer
    from cython.cimports.headwater.wire.message_view import MessageView
else:
    from headwater.exchange.sublist import Outlet
    from headwater.wire.memory import OutputBuffer
    from headwater.wire.message_view import MessageView


class PeerFrames:
    """`plain_head` and `headed_head`: the part of a frame before the subject, without and with headers.

    `listed` and `plain` are scratch fields for routing the current message: the groups that the peer gets it for, as `
    | a b `, and whether the peer gets it for plain interest.
    """

    def __init__(self, outlet: Outlet, plain_head: bytes, headed_head: bytes) -> None:
        self.outlet = outlet
        self.listed = b""
        self.plain = False
        self._plain_head = plain_head
        self._headed_head = headed_head

    def write(self, listed: bytes, message: MessageView) -> cython.int:
        """Write a message for plain interest and the groups of `listed` (` | a b `, or b""). Returns 1 if headers were
        left out.
        """
        output: OutputBuffer = self.outlet.output
        buffer: bytearray = message.buffer
        end: cython.Py_ssize_t = message.end + 2
        bare: cython.bint = message.headers == message.payload
        replies: cython.bint = message.reply_end > message.reply
        strip: cython.bint = not bare and not self.outlet.headers
        head: bytes = self._plain_head if bare or strip else self._headed_head
        if not listed and not strip and message.tail == message.subject_end + 1:  # the publisher's text can be copied
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

    def write_run(
        self, listed: bytes, message: MessageView, stride: cython.Py_ssize_t, count: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Write `count` messages with the same line, `stride` bytes apart. Returns the number of header blocks left
        out.
        """
        bare: cython.bint = message.headers == message.payload
        rest: cython.Py_ssize_t = message.tail
        left_out: cython.Py_ssize_t = 0
        if not bare and not self.outlet.headers:
            for _ in range(count):
                left_out += self.write(listed, message)
                message.advance(stride)
            message.advance(-count * stride)
            return left_out
        head: bytes = (self._plain_head if bare else self._headed_head) + message.subject_bytes()
        if not listed:
            head += b" "
        elif message.reply_end > message.reply:
            head += b" + " + message.reply_bytes() + b" " + listed[3:]
            rest = message.reply_end + 1
        else:
            head += listed
        self.outlet.output.append_run(head, message.buffer, rest, message.end + 2, stride, count)
        return 0
