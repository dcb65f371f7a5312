"""One connection's permissions: its user's rules, their latest verdicts, and the reply subjects it may answer on.

Asked for every message of a client that has permissions, so answers are kept: of the last subject without making an
object, of `REMEMBERED` subjects in a dict. A client without permissions has no guard. The clock is an argument.
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

from headwater.exchange.auth.permissions import Rules

REMEMBERED: int = 1024  # decisions of each kind that a guard keeps
REPLIES: int = 1 << 16  # reply subjects that it keeps, 200 bytes each: requests that one client may leave unanswered


class Guard:
    """What one connection may do. `clock`: seconds, monotonic."""

    def __init__(self, rules: Rules, clock: Callable[[], float]) -> None:
        self.rules = rules
        self.filters = bool(rules.subscribe_deny)  # whether some deliveries may be denied
        self.tracks = rules.responses is not None  # whether deliveries may be answered
        self._clock = clock
        self._last_published = b""  # a subject that the rules allow
        self._published: dict[bytes, bool] = {}
        self._last_heard = b""
        self._last_queue = b""
        self._last_denied = False
        self._denied: dict[tuple[bytes, bytes], bool] = {}
        self._replies: OrderedDict[bytes, list[float]] = OrderedDict()  # to [when delivered, answers so far]

    @property
    def watches_deliveries(self) -> bool:
        """Whether `lets_through` has to be called for each delivery."""
        return self.filters or self.tracks

    def may_subscribe(self, subject: bytes, queue: bytes) -> bool:
        """Whether a subscription may be made."""
        return self.rules.may_subscribe(subject, queue)

    def always_publishes(self, message: MessageView) -> cython.bint:
        """Whether the rules allow the message's subject, however many messages there are."""
        if self._last_published and equals(message.buffer, message.subject, message.subject_end, self._last_published):
            return True
        name: bytes = message.subject_bytes()
        allowed = self._published.get(name)
        if allowed is None:
            allowed = self.rules.may_publish(name)
            if len(self._published) >= REMEMBERED:
                self._published.clear()
            self._published[name] = allowed
        if allowed:
            self._last_published = name
        return allowed

    def may_publish(self, message: MessageView) -> cython.bint:
        """Whether one message may go out; counts it when it is a response."""
        if self.always_publishes(message):
            return True
        return self.tracks and self._is_response(message.subject_bytes(), self._clock())

    def lets_through(self, message: MessageView, queue: bytes) -> cython.bint:
        """Whether a message may be delivered, on a subscription with this queue group. If so, it may be answered."""
        if self.filters and self._is_denied(message, queue):
            return False
        if self.tracks and message.reply != message.reply_end:
            self._note_reply(message.reply_bytes(), self._clock())
        return True

    def _is_denied(self, message: MessageView, queue: bytes) -> cython.bint:
        if (
            self._last_heard
            and queue == self._last_queue
            and equals(message.buffer, message.subject, message.subject_end, self._last_heard)
        ):
            return self._last_denied
        key = (message.subject_bytes(), queue)
        denied = self._denied.get(key)
        if denied is None:
            denied = self.rules.subscribe_deny.has(key[0], queue)
            if len(self._denied) >= REMEMBERED:
                self._denied.clear()
            self._denied[key] = denied
        self._last_heard, self._last_queue, self._last_denied = key[0], queue, denied
        return denied

    def _note_reply(self, reply: bytes, now: float) -> None:
        """Remember it as the newest; forget, from the oldest on, those whose time is over or that there is no room for."""
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
