"""One connection's permissions: its user's rules, a cache of their results, and the reply subjects that it may answer
on.

A guard checks every message of a client with permissions, so it caches results: for the last subject without making an
object, for `REMEMBERED` subjects in a dict. A client without permissions has no guard. The clock is an argument.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.wire.memory import equals
    from cython.cimports.headwater.wire.message_view import MessageView
else:
    from headwater.wire.memory import equals
    from headwater.wire.message_view import MessageView

from collections import OrderedDict
from collections.abc import Callable

from headwater.authorization.permissions import Rules
from headwater.model.thinning import thin_out

REMEMBERED: int = 1024  # cached results of each kind
REPLIES: int = 1 << 16  # reply subjects kept, 200 bytes each: the most requests that one client may leave unanswered


class Guard:
    """The permissions of one connection. `clock`: monotonic seconds."""

    def __init__(self, rules: Rules, clock: Callable[[], float]) -> None:
        self.rules = rules
        self.filters = bool(rules.subscribe_deny)  # whether some deliveries may be denied
        self.tracks = rules.responses is not None  # whether the client may answer deliveries
        self._clock = clock
        self._last_published = b""  # a subject that the rules allow
        self._published: dict[bytes, bool] = {}
        self._last_delivered = b""
        self._last_queue = b""
        self._last_denied = False
        self._denied: dict[tuple[bytes, bytes], bool] = {}
        self._replies: OrderedDict[bytes, list[float]] = OrderedDict()  # values: [time of delivery, answers so far]

    @property
    def watches_deliveries(self) -> bool:
        """Whether `lets_through` has to be called for each delivery."""
        return self.filters or self.tracks

    def may_subscribe(self, subject: bytes, queue: bytes) -> bool:
        """Whether a subscription may be made."""
        return self.rules.may_subscribe(subject, queue)

    def always_publishes(self, message: MessageView) -> cython.bint:
        """Whether the rules allow the message's subject without a limit on the number of messages."""
        if self._last_published and equals(message.buffer, message.subject, message.subject_end, self._last_published):
            return True
        name: bytes = message.subject_bytes()
        allowed = self._published.get(name)
        if allowed is None:
            allowed = self.rules.may_publish(name)
            if len(self._published) >= REMEMBERED:
                thin_out(self._published)
            self._published[name] = allowed
        if allowed:
            self._last_published = name
        return allowed

    def may_publish(self, message: MessageView) -> cython.bint:
        """Whether the client may publish one message; counts it if it is a response."""
        if self.always_publishes(message):
            return True
        return self.tracks and self._is_response(message.subject_bytes(), self._clock())

    def lets_through(self, message: MessageView, queue: bytes) -> cython.bint:
        """Whether a message may be delivered to a subscription with this queue group. If so, the client may answer it."""
        if self.filters and self._is_denied(message, queue):
            return False
        if self.tracks and message.reply != message.reply_end:
            self._note_reply(message.reply_bytes(), self._clock())
        return True

    def _is_denied(self, message: MessageView, queue: bytes) -> cython.bint:
        if (
            self._last_delivered
            and queue == self._last_queue
            and equals(message.buffer, message.subject, message.subject_end, self._last_delivered)
        ):
            return self._last_denied
        key = (message.subject_bytes(), queue)
        denied = self._denied.get(key)
        if denied is None:
            denied = self.rules.subscribe_deny.has(key[0], queue)
            if len(self._denied) >= REMEMBERED:
                thin_out(self._denied)
            self._denied[key] = denied
        self._last_delivered, self._last_queue, self._last_denied = key[0], queue, denied
        return denied

    def _note_reply(self, reply: bytes, now: float) -> None:
        """Remember `reply` as the newest reply subject; drop expired ones, and the oldest ones above `REPLIES`."""
        if self.rules.may_publish(reply):
            return
        self._replies.pop(reply, None)
        self._replies[reply] = [now, 0]
        limits = self.rules.responses
        expires = limits.expires if limits is not None and limits.expires > 0 else float("inf")
        while True:
            since, _ = next(iter(self._replies.values()))
            if now - since <= expires and len(self._replies) <= REPLIES:
                return
            self._replies.popitem(last=False)

    def _is_response(self, subject: bytes, now: float) -> bool:
        limits = self.rules.responses
        reply = self._replies.get(subject)
        if reply is None or limits is None:
            return False
        reply[1] += 1
        if 0 < limits.max_messages < reply[1] or 0 < limits.expires < now - reply[0]:
            del self._replies[subject]
            return False
        return True
