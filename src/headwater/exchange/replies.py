"""The reply subjects that an account lends to requests of other accounts, each until its reply arrives or it expires.

    _R_.<head>.<two words>   leads back to the requester's reply subject, in the requester's account

A JetStream delivery to such a subject, for an imported pull request, keeps the subject that its message was stored with
and its ack subject.

At most REPLIES of them are kept; the oldest are dropped first.
"""

import os
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from headwater.exchange.router import Router

REPLIES = 1 << 16  # reply subjects kept per account, some 300 bytes each
RESPONSE_SECONDS = 120.0  # for the first reply, if the export does not set it
ACK_PREFIX = b"$JS.ACK."  # not replaced, as in nats-server: an ack names the stream, not the account


class Pending(NamedTuple):
    """An expected reply: its destination, whether several may arrive, and until when (monotonic seconds)."""

    home: Router
    reply: bytes
    many: bool
    until: float
    requester: "Replies"


class Replies:
    """The reply subjects in one account that replace those of importers. `clock`: monotonic seconds."""

    def __init__(self, router: Router, clock: Callable[[], float], seed: str | None = None) -> None:
        self._router = router
        self._clock = clock
        self._random_bytes: Callable[[int], bytes] = os.urandom
        if seed is not None:
            from random import Random  # here: a node of a cluster starts without it

            self._random_bytes = Random(seed).randbytes
        self._head = b""
        self._waiting: OrderedDict[bytes, Pending] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting)

    def announce(self) -> None:
        """Subscribe to the replies. Call this before the first request: a request may reach its responder over another
        route, and sooner, than this interest, for instance through the Raft group of real servers.
        """
        if not self._head:
            self._head = b"_R_." + self._word() + b"."
            self._router.subscribe_between(self._head + b"*", self._on_reply, announce=True)

    def make(self, home: Router, reply: bytes, requester: "Replies", *, many: bool, seconds: float) -> bytes:
        """A subject here that leads to `reply` in `home`."""
        self.announce()
        now = self._clock()
        while self._waiting:
            oldest = next(iter(self._waiting.values()))
            if oldest.until > now and len(self._waiting) < REPLIES:
                break
            self._waiting.popitem(last=False)
        subject = self._head + self._word() + self._word()
        self._waiting[subject] = Pending(home, reply, many, now + seconds, requester)
        return subject

    def forget(self, subject: bytes) -> None:
        """Drop a subject: no reply will arrive."""
        self._waiting.pop(subject, None)

    def _word(self) -> bytes:
        return b"%09x" % (int.from_bytes(self._random_bytes(5)) >> 4)

    def _on_reply(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        inbox = self._router.inbox
        pending = self._waiting.get(inbox or subject)
        if pending is None:
            return False
        if not pending.many:
            del self._waiting[inbox or subject]
        if reply and not reply.startswith(ACK_PREFIX):
            reply = pending.requester.make(self._router, reply, self, many=False, seconds=RESPONSE_SECONDS)
        shown = subject if inbox else pending.reply
        return pending.home.deliver(pending.reply, shown, reply, header_block, payload) > 0
