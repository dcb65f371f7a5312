"""The reply subjects that an account lends to requests of other accounts, each until its reply came or its time is over.

    _R_.<head>.<two words>   leads back to the reply subject that the requester named, in the requester's account

What JetStream delivers to such a subject, for a pull request that came by an import, arrives under the subject that its
message was stored with, and with its acknowledgement subject as it is.

They are remembered for a time, and no more than REPLIES of them: older ones are forgotten first.
"""

import os
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from headwater.exchange.router import Router

REPLIES = 1 << 16  # reply subjects that an account keeps, some 300 bytes each
RESPONSE_SECONDS = 120.0  # for the first reply, where the export does not say
ACK_PREFIX = b"$JS.ACK."  # left as they are, as in nats-server: an ack names the stream, not the account


class Pending(NamedTuple):
    """A reply that may come: where it goes, whether more than one may, and until when (None: for ever)."""

    home: Router
    reply: bytes
    many: bool
    until: float
    asker: "Replies"


class Replies:
    """The reply subjects that one account has been given in place of those of importers. `clock`: monotonic seconds."""

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
        """Subscribe to the replies. Call it before the first request: a request may reach its responder over another route
        than this interest, and sooner, for instance through the Raft group of real servers."""
        if not self._head:
            self._head = b"_R_." + self._word() + b"."
            self._router.subscribe_between(self._head + b"*", self._on_reply, announce=True)

    def make(self, home: Router, reply: bytes, asker: "Replies", *, many: bool, seconds: float) -> bytes:
        """A subject here that leads to `reply` in `home`."""
        self.announce()
        now = self._clock()
        while self._waiting:
            oldest = next(iter(self._waiting.values()))
            if oldest.until > now and len(self._waiting) < REPLIES:
                break
            self._waiting.popitem(last=False)
        subject = self._head + self._word() + self._word()
        self._waiting[subject] = Pending(home, reply, many, now + seconds, asker)
        return subject

    def forget(self, subject: bytes) -> None:
        """No reply will come."""
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
            reply = pending.asker.make(self._router, reply, self, many=False, seconds=RESPONSE_SECONDS)
        shown = subject if inbox else pending.reply
        return pending.home.deliver(pending.reply, shown, reply, header_block, payload) > 0
