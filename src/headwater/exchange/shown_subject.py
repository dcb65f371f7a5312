# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""How a JetStream delivery keeps the subject that it shows on its way to another broker.

A delivery goes to an inbox, but shows the subject that its message was stored with. A frame of a route has one subject,
the destination; the shown subject is appended to the reply, and the delivering broker separates the two:

    RMSG $G _INBOX.7 $JS.ACK.<stream>.<consumer>.<delivered>.<sequence>.<given>.<time>.<pending>@orders.eu 5

Names of streams and consumers may contain `@`, so only one after the eighth dot counts. Ack subjects with a domain have
more tokens, and the same rule applies. A message without such a reply (a status) shows the inbox.

Source: nats-server 2.15, jsAckDeliverIdx and processMsgResults in server/client.go. gnatsd 1.x does not support this.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.exchange.router import Router
    from cython.cimports.headwater.exchange.sublist import Match, Outlet
    from cython.cimports.headwater.wire.memory import OutputBuffer, equals, find_byte, slice_bytes
    from cython.cimports.headwater.wire.message_view import MessageView
else:
    from headwater.exchange.router import Router
    from headwater.exchange.sublist import Match, Outlet
    from headwater.wire.memory import OutputBuffer, equals, find_byte, slice_bytes
    from headwater.wire.message_view import MessageView

_HEAD: bytes = b"$JS.ACK."
_DOTS_BEHIND: cython.int = 6  # least number of dots behind these two


def is_ack_subject(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Whether `buffer[start:end]` is an ack subject."""
    return end > start + 8 and equals(buffer, start, start + 8, _HEAD)


def find_shown(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Position in the reply `buffer[start:end]` of the `@` before the shown subject; -1 if there is none."""
    at: cython.Py_ssize_t = start + len(_HEAD)
    _dot: cython.int
    if not is_ack_subject(buffer, start, end):
        return -1
    for _dot in range(_DOTS_BEHIND):
        at = find_byte(buffer, 46, at, end) + 1
        if at == 0:
            return -1
    return find_byte(buffer, 64, at, end - 1) if at < end else -1


class AddressedMessage:
    """Makes the form of a delivery for peers: its subject is the inbox, and the shown subject follows the reply. The
    result of each call uses the same buffer.
    """

    def __init__(self) -> None:
        self._view = MessageView()
        self._frame = OutputBuffer()

    def to(self, inbox: bytes, message: MessageView) -> MessageView:
        """`message` addressed to `inbox`; valid until the next call."""
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
    """`Router.route_here` for a message from a peer, which may have a shown subject after its reply."""
    if message.reply_end > message.reply and message.buffer[message.reply] == 36:  # $
        at: cython.Py_ssize_t = find_shown(message.buffer, message.reply, message.reply_end)
        if at >= 0:
            return _route_shown(router, match, message, at, over_route)
    return router.route_here(publisher, match, True, message, None, over_route)


def _route_shown(
    router: Router, match: Match, message: MessageView, at: cython.Py_ssize_t, over_route: cython.bint
) -> cython.int:
    """Move the shown subject, which is at `at` in the reply, and the reply to their places in a delivery, and route it."""
    buffer: bytearray = message.buffer
    inbox: bytes = message.subject_bytes()
    shown: bytes = slice_bytes(buffer, at + 1, message.reply_end)
    reply: bytes = slice_bytes(buffer, message.reply, at)
    deliveries: cython.int
    if match.lone is not None and message.trace is None:
        headers: bytes = slice_bytes(buffer, message.headers, message.payload)
        payload: bytes = slice_bytes(buffer, message.payload, message.end)
        before: bytes = router.inbox
        router.inbox = inbox
        deliveries = router.call_one(match.lone, None, over_route, shown, reply, headers, payload)
        router.inbox = before
        return deliveries
    subject_end: cython.Py_ssize_t = message.subject_end
    tail: cython.Py_ssize_t = message.tail
    message.subject_end = message.subject + len(shown)  # fits before `reply`: the inbox was there too
    message.tail = message.reply = message.reply_end - len(reply)
    buffer[message.subject : message.subject_end] = shown
    buffer[message.reply : message.reply_end] = reply
    deliveries = router.route_under_here(inbox, match, message, None, over_route)
    message.subject_end = subject_end  # for the next message with the same line
    message.tail = message.reply = tail
    return deliveries
