# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The subject that a JetStream delivery bears, on its way to another broker.

A delivery goes to an inbox, and shows the subject that its message was stored with. A frame of a route has one subject,
which says where it goes; the other one travels behind the reply, and the broker that delivers it takes the two apart:

    RMSG $G _INBOX.7 $JS.ACK.<stream>.<consumer>.<delivered>.<sequence>.<given>.<time>.<pending>@orders.eu 5

Names of streams and consumers may have an `@` in them, so it counts only behind the eighth dot. A domain's ack subjects,
which have more tokens, are read the same way. What has no such reply (a status) shows the inbox.

Source: nats-server 2.15, jsAckDeliverIdx and processMsgResults in server/client.go. gnatsd 1.x knows nothing of it.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.exchange.router import Router
    from cython.cimports.headwater.exchange.sublist import Match, Outlet
    from cython.cimports.headwater.wire.memory import OutputBuffer, slice_bytes
    from cython.cimports.headwater.wire.message_view import MessageView
else:
    from headwater.exchange.router import Router
    from headwater.exchange.sublist import Match, Outlet
    from headwater.wire.memory import OutputBuffer, slice_bytes
    from headwater.wire.message_view import MessageView

_HEAD = b"$JS.ACK."
_DOTS: cython.int = 8  # in an ack subject, at least


def is_ack_subject(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Whether `buffer[start:end]` is where a delivery is acknowledged."""
    return end > start + 8 and slice_bytes(buffer, start, start + 8) == _HEAD


def find_shown(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Where in the reply `buffer[start:end]` the `@` is that the shown subject follows; -1: nowhere."""
    dots: cython.int = 0
    at: cython.Py_ssize_t
    if not is_ack_subject(buffer, start, end):
        return -1
    for at in range(start, end - 1):
        if buffer[at] == 46:
            dots += 1
        elif buffer[at] == 64 and dots >= _DOTS:
            return at
    return -1


class AddressedMessage:
    """A delivery as peers get it: on the inbox that it goes to, with what it shows behind its reply. All share a buffer."""

    def __init__(self) -> None:
        self._view = MessageView()
        self._frame = OutputBuffer()

    def to(self, inbox: bytes, message: MessageView) -> MessageView:
        """`message` on `inbox`; it holds until the next one is made."""
        buffer: bytearray = message.buffer
        frame: OutputBuffer = self._frame
        view: MessageView = self._view
        frame.size = 0
        frame.append(inbox)
        view.subject_end = frame.size
        frame.append(b" ")
        view.tail = view.reply = frame.size
        frame.append_slice(buffer, message.reply, message.reply_end)
        view.shown = 0
        if is_ack_subject(buffer, message.reply, message.reply_end):
            view.shown = frame.size
            frame.append_pair(b"@", buffer, message.subject, message.subject_end)
        view.reply_end = frame.size
        shift: cython.Py_ssize_t = view.reply_end - message.reply_end
        frame.append_slice(buffer, message.reply_end, message.end + 2)
        view.headers = message.headers + shift
        view.payload = message.payload + shift
        view.end = message.end + shift
        view.buffer = frame.data  # last: the buffer may have grown
        return view


def route_arrival(
    router: Router, publisher: Outlet | None, match: Match, message: MessageView, over_route: cython.bint
) -> cython.int:
    """`Router.route_here` for a message that came from a peer, which may bear another subject behind its reply."""
    if message.reply_end > message.reply and message.buffer[message.reply] == 36:  # $
        at: cython.Py_ssize_t = find_shown(message.buffer, message.reply, message.reply_end)
        if at >= 0:
            return _route_shown(router, match, message, at, over_route)
    return router.route_here(publisher, match, True, message, None, over_route)


def _route_shown(
    router: Router, match: Match, message: MessageView, at: cython.Py_ssize_t, over_route: cython.bint
) -> cython.int:
    """The reply bears the subject that clients are to see, from `at` on. Both are put where a delivery has them."""
    buffer: bytearray = message.buffer
    inbox: bytes = message.subject_bytes()
    shown: bytes = slice_bytes(buffer, at + 1, message.reply_end)
    reply: bytes = slice_bytes(buffer, message.reply, at)
    subject_end: cython.Py_ssize_t = message.subject_end
    tail: cython.Py_ssize_t = message.tail
    message.subject_end = message.subject + len(shown)  # before `reply`: the inbox was there, too
    message.tail = message.reply = message.reply_end - len(reply)
    buffer[message.subject : message.subject_end] = shown
    buffer[message.reply : message.reply_end] = reply
    deliveries: cython.int = router.route_under_here(inbox, match, message, None, over_route)
    message.subject_end = subject_end  # for what follows with the same line
    message.tail = message.reply = tail
    return deliveries
