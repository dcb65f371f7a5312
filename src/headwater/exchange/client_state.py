"""The state of a session: a small object for each aspect of a client.

    Login ──accepted──▶ Membership    CONNECT ──▶ Terms    reads, ops, messages ──▶ Traffic    PING, PONG ──▶ Heartbeat

Each part is independent of the others; `session.Session` composes them. All are compiled, because a publish reads
`Terms` and `Membership` and counts in `Traffic`.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.authorization.guard import Guard
    from cython.cimports.headwater.exchange.router import Router
else:
    from headwater.authorization.guard import Guard
    from headwater.exchange.router import Router

from typing import TYPE_CHECKING

from headwater.authorization.identity import STANDARD, Identity
from headwater.exchange.account import Account

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.authorization.gate import Gate
    from headwater.options.broker import BrokerOptions
    from headwater.options.mappings import Mappings
    from headwater.wire.handshake import ConnectOptions


class Login:
    """A client's authentication. `gate` is that of its listener; `nonce` is the text that it may sign."""

    def __init__(self, gate: "Gate", connection_type: str = STANDARD) -> None:
        self.gate = gate
        self.connection_type = connection_type
        self.nonce = ""
        self.pending: ConnectOptions | None = None  # a CONNECT that waits for a slow verdict
        self.refused_user = ""  # the name in a CONNECT that was refused
        self.accepted = False  # a CONNECT was accepted


class Membership:
    """The client's account and its rights there. Before the login `account` is None, and `router` the global account's."""

    def __init__(self, router: Router, max_subscriptions: int) -> None:
        self.router = router
        self.account: Account | None = None
        self.identity = Identity()
        self.guard: Guard | None = None  # None: every subject is allowed
        self.mappings: Mappings | None = None
        self.max_subscriptions = max_subscriptions

    def enter(self, account: Account, identity: Identity, clock: "Callable[[], float]") -> None:
        """Become a client of `account` with the rights of `identity`. The caller has checked that the account is not
        full.
        """
        account.connections += 1
        self.account = account
        self.router = account.router
        self.mappings = account.mappings
        self.renew(identity, clock)

    def limit(self, options: "BrokerOptions") -> int:
        """Apply the limits of the server, the account and the user as they are now; returns the most bytes of a payload."""
        user, account = self.identity, self.account.options if self.account is not None else None
        of_account = (account.max_subscriptions, account.max_payload) if account is not None else (-1, -1)
        self.max_subscriptions = strictest(options.max_subscriptions or -1, user.max_subscriptions, of_account[0])
        return strictest(options.max_payload, user.max_payload, of_account[1])

    def renew(self, identity: Identity, clock: "Callable[[], float]") -> None:
        """Replace the rights by those of `identity`."""
        self.identity = identity
        self.guard = Guard(identity.rules, clock) if identity.rules is not None else None

    def leave(self) -> None:
        """Stop being a client of the account; safe to call again."""
        if self.account is not None:
            self.account.connections -= 1
            self.account = None


class Terms:
    """The options of CONNECT; before it, those that nats-server assumes for a client that skips it."""

    def __init__(self) -> None:
        self.verbose = True
        self.pedantic = True
        self.no_responders = False
        self.protocol = 0
        self.name = ""
        self.lang = ""
        self.version = ""

    def settle(self, options: "ConnectOptions") -> None:
        """Apply an accepted CONNECT."""
        self.verbose = options.verbose
        self.pedantic = options.pedantic
        self.no_responders = options.no_responders
        self.protocol = options.protocol


class Traffic:
    """Counters of what a client has sent. `ops`: subscribes, unsubscribes and pings."""

    def __init__(self) -> None:
        self.reads = 0
        self.ops = 0
        self.messages = 0
        self.bytes = 0  # of header blocks and payloads


class Heartbeat:
    """PINGs to the client. `unanswered`: PINGs since its last byte; `round_trip` in seconds, 0 before the first PONG."""

    def __init__(self) -> None:
        self.unanswered = 0
        self.sent_at = 0.0  # by the monotonic clock; 0 while no PONG is due
        self.round_trip = 0.0

    def sent(self, now: float) -> None:
        """A PING is being sent."""
        self.unanswered += 1
        self.sent_at = now

    def answered(self, now: float) -> None:
        """A PONG has arrived. A round trip of 0 counts as one nanosecond, because 0 means "not measured"."""
        self.unanswered = 0
        if self.sent_at:
            self.round_trip = max(now - self.sent_at, 1e-9)
            self.sent_at = 0.0


def strictest(*limits: int) -> int:
    """The smallest limit, where -1 means none; 0 if there is none at all."""
    return min((limit for limit in limits if limit >= 0), default=0)
