# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""What comes over one leaf node connection: whether it may, and who gets it.

A consumer of a stream on the other side delivers message after message to one subject, which begins with `$` and so needs
a look at the permissions, and which no other cache keeps. So the result for the last delivery is kept here.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.exchange.router import Router
    from cython.cimports.headwater.exchange.sublist import Match
    from cython.cimports.headwater.wire.memory import equals
    from cython.cimports.headwater.wire.message_view import MessageView
else:
    from headwater.exchange.router import Router
    from headwater.exchange.sublist import Match
    from headwater.wire.memory import equals
    from headwater.wire.message_view import MessageView

from headwater.leaf.permissions import Crossing


class Admission:
    """`may_cross`: the permissions for what comes."""

    def __init__(self, may_cross: Crossing) -> None:
        self.may_cross = may_cross
        self._is_open = may_cross.is_open
        self._subject = b""  # of the last delivery, which may come
        self._receivers: Match | None = None
        self._generation = 0  # of the interest in which they were found

    def may_come(self, message: MessageView) -> cython.bint:
        """Whether a message may come."""
        if self._is_open and message.buffer[message.subject] != 36:  # $
            return True
        if self._subject and equals(message.buffer, message.subject, message.subject_end, self._subject):
            return True
        allowed: cython.bint = self.may_cross.has(message.subject_bytes())
        return allowed

    def receivers(self, router: Router, message: MessageView) -> Match:
        """The receivers of a message that may come."""
        if message.reply == message.reply_end or message.buffer[message.reply] != 36:  # only $JS.ACK ends a delivery
            return router.sublist.find(message.buffer, message.subject, message.subject_end)
        match: Match | None = self._receivers
        if match is not None and self._generation == router.sublist.generation:
            if equals(message.buffer, message.subject, message.subject_end, self._subject):
                return match
        match = router.sublist.find(message.buffer, message.subject, message.subject_end)
        self._subject, self._receivers = message.subject_bytes(), match
        self._generation = router.sublist.generation
        return match
