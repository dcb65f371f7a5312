"""The leaf nodes of a broker: accepts spokes, dials hubs, joins each to an account, and announces interest to it.

    accept ─▶ INFO ─▶ CONNECT ─▶ handshake, gate ─▶ INFO ─┐
    dial   ─▶ INFO ─▶ CONNECT ─▶ INFO ───────────────────┴▶ joined ─▶ LS+ lines, messages
    a client subscribes ─▶ LeafSpace ─▶ Interest ─▶ a line to every neighbour that may have it
    a client publishes  ─▶ Router ─▶ LeafForwarding ─▶ frames
    a neighbour's frame ─▶ LeafConnection ─▶ Router, and the other neighbours

This file has the life of the whole and of each connection: open, refused, joined, lost. Its parts: `accepting` and
`introducing` log in, `dialler` finds the hubs, `spoke_listener` is the port, `spaces` announces interest, `leaf_watch`
has the timers.
"""

import asyncio
import base64
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.exchange.sublist import Outlet
from headwater.leaf import handshake
from headwater.leaf.accepting import Accepting, Ask
from headwater.leaf.connection import LeafConnection
from headwater.leaf.connections import LeafConnections
from headwater.leaf.dialler import Dialler
from headwater.leaf.forwarding import LeafTarget
from headwater.leaf.interest import Neighbour
from headwater.leaf.introducing import Introducing
from headwater.leaf.leaf_watch import LeafWatch
from headwater.leaf.own_info import OwnInfo
from headwater.leaf.remote import Address, Remote
from headwater.leaf.spaces import LeafSpaces
from headwater.leaf.spoke_listener import SpokeListener
from headwater.model.subject import is_literal, is_valid_subject
from headwater.net.limits import Limits
from headwater.net.link import Link, LinkOwner
from headwater.net.peer_timers import address_of
from headwater.options.leaf import LeafOptions
from headwater.wire import error_texts
from headwater.wire.leaf_lines import (
    LOOP_DETECTION,
    LeafInfo,
    encode_leaf_info,
    leaf_interest,
)

if TYPE_CHECKING:
    from headwater.authorization.gate import Gate
    from headwater.exchange.account import Account
    from headwater.exchange.accounts import Accounts
    from headwater.net.journal import Journal

logger = logging.getLogger(__name__)

SETTLE_SECONDS = 1.0  # for a neighbour to read pending output before we close
_NONCE_BYTES = 11


class LeafNodes:
    """`info`: our INFO for neighbours; its `cluster` keeps a spoke from joining itself. `gate` and `make_link`: those
    of the listener. `stores(account)`: whether the account has JetStream. `ask` sends a spoke's credentials to a
    callout service, which has `seconds_to_ask`.
    """

    def __init__(
        self,
        options: LeafOptions,
        info: LeafInfo,
        accounts: "Accounts",
        gate: "Gate",
        *,
        make_link: Callable[[LinkOwner], Link] | None = None,
        ask: Ask | None = None,
        seconds_to_ask: float = 2.0,
        stores: Callable[["Account"], bool],
        ping_interval: float,
        ping_max: int,
        write_deadline: float,
        max_pending: int,
        limits: Limits,
        journal: "Journal",
        wall_clock: Callable[[], float],
    ) -> None:
        self.options = options
        self.stopping = False
        self.accounts = accounts
        self.journal = journal
        self.clock = asyncio.get_running_loop().time
        self._connections = LeafConnections(self)
        self._listener = SpokeListener(options, self.make, make_link, limits)
        self.dialler = Dialler(options, self._make_dialled, journal)
        self.spaces = LeafSpaces(self._announced_to)
        self.watch = LeafWatch(
            self,
            ping_interval=ping_interval,
            ping_max=ping_max,
            write_deadline=options.write_deadline or write_deadline,
            max_pending=max_pending,
        )
        self.own = OwnInfo(info, self.joined, lambda leaf: self.accepting.send_info(leaf))
        self.accepting: Accepting = Accepting(self, gate, ask, seconds_to_ask, wall_clock)
        self._introducing = Introducing(self, stores)

    # ── starting and stopping ──

    async def start(self) -> None:
        """Bind the port; `open` starts accepting and dialling. Raises EnvironmentProblem and ConfigError."""
        self.dialler.check()
        for remote in self.dialler.remotes:
            self.spaces.make(self.accounts[remote.options.account])
        self._listener.bind(self.own)

    def open(self) -> None:
        """Start accepting spokes and dialling hubs."""
        self._listener.open()
        self.watch.start()
        self.dialler.start()

    async def withdraw(self) -> None:
        """Stop making connections, and withdraw our interest: on return, everything that the neighbours sent before has
        arrived. Local messages are still forwarded. A neighbour has SETTLE_SECONDS to answer.
        """
        if self.stopping:
            return
        self.stopping = True
        self.accepting.doors.close()
        self._listener.close()
        self.dialler.withdraw()
        for leaf in self.joined():
            announced = leaf.neighbour.announced if leaf.neighbour is not None else {}
            leaf.send(b"".join(leaf_interest(subject, queue, 0) for subject, queue in announced))
        await self._settle()

    async def stop(self) -> None:
        """Close every connection, once the neighbours have read our output; safe to call again."""
        await self.withdraw()
        await self._settle()
        self.watch.stop()
        await self.dialler.stop()
        for leaf in self.connections():
            leaf.close("", "the broker stops")

    async def _settle(self) -> None:
        pinged = {leaf.settled(): leaf for leaf in self.joined() if leaf.link is not None and not leaf.link.closing}
        if not pinged:
            return
        _, silent = await asyncio.wait(pinged, timeout=SETTLE_SECONDS)
        for late in silent:
            logger.warning("leafnode_not_drained peer=%s seconds=%g", address_of(pinged[late]), SETTLE_SECONDS)

    # ── views ──

    @property
    def port(self) -> int:
        """The port for spokes; 0 without one."""
        return self._listener.port

    def connections(self) -> list[LeafConnection]:
        """All connections, joined or not."""
        return self._connections.all()

    def joined(self) -> list[LeafConnection]:
        """Every neighbour that has joined an account, in the order they connected."""
        return self._connections.joined()

    async def wait_for(self, count: int) -> None:
        """Return once at least `count` neighbours have joined; some may have left again by the time the caller looks."""
        await self._connections.wait_for(count)

    # ── opening and closing of connections ──

    def make(self) -> LeafConnection:
        """Create the owner of a connection that is being accepted."""
        return self._connections.make(self.own.info.max_payload)

    def _make_dialled(self, remote: Remote) -> LeafConnection:
        return self._connections.make(self.own.info.max_payload, remote)

    def opened(self, leaf: LeafConnection) -> None:
        """A connection is established; the accepting side sends first."""
        if self.stopping:
            leaf.close()
            return
        self._connections.add(leaf)
        if leaf.remote is not None:
            hub = leaf.remote.options
            self.watch.begin(leaf, hub.first_info_timeout + (hub.tls.timeout if hub.tls is not None else 0.0), "")
            return
        seconds = self.options.auth_timeout + (self.options.tls.timeout if self.options.tls is not None else 0.0)
        self.watch.begin(leaf, seconds, error_texts.AUTHENTICATION_TIMEOUT)
        leaf.nonce = base64.urlsafe_b64encode(os.urandom(_NONCE_BYTES)).decode("ascii").rstrip("=")
        info = handshake.info_for(self.own.info, leaf.number, websocket=leaf.websocket)
        leaf.send(encode_leaf_info(info.replace(nonce=leaf.nonce)))

    def lost(self, leaf: LeafConnection, error: Exception | None) -> None:
        """A connection is gone: remove its neighbour's interest."""
        self._connections.remove(leaf)
        self.watch.forget(leaf)
        reason = leaf.end_reason or (str(error) if error is not None else "the other end closed it")
        if leaf.joined and leaf.account is not None:
            self._part(leaf, leaf.account, reason)
        self.dialler.lost(leaf, reason)

    def _part(self, leaf: LeafConnection, account: "Account", reason: str) -> None:
        space = self.spaces[account.name]
        space.count_lost(leaf.target, leaf.arrivals.refused, leaf.arrivals.groups_missed)
        if leaf.outlet is not None:
            space.forwarding.drop(leaf.outlet)
        if leaf.neighbour is not None:
            space.leave(leaf.neighbour)
        account.leafnodes -= 1
        if self.stopping:
            return
        name, address = leaf.far_end.name, address_of(leaf)
        self.journal.note("leafnode_lost", name=name, account=account.name, address=address, reason=reason)

    def hold(self, leaf: LeafConnection, congested: list[Outlet]) -> None:
        """Pause reading from this neighbour: receivers of its messages are behind."""
        self.watch.hold(leaf, congested)

    def fail(self, leaf: LeafConnection, text: str, reason: str) -> None:
        """The other end broke the protocol: close with the -ERR `text`, if any; `reason` goes to our log."""
        logger.warning("leafnode_failed name=%s peer=%s error=%s", leaf.far_end.name, address_of(leaf), reason)
        leaf.close(text, reason)

    def on_early(self, leaf: LeafConnection) -> None:
        """The first op was not CONNECT or, from a hub, not INFO."""
        if leaf.remote is None and not leaf.end_reason:
            self.refuse(leaf, error_texts.AUTHORIZATION, "it did not begin with CONNECT")

    # ── documents ──

    def on_connect(self, leaf: LeafConnection, json: bytes) -> bool:
        """Handle CONNECT. True if the verdict arrives later: nothing more may be parsed until then."""
        return self.accepting.on_connect(leaf, json)

    def on_info(self, leaf: LeafConnection, json: bytes) -> None:
        self._introducing.on_info(leaf, json)

    def refuse(self, leaf: LeafConnection, text: str, reason: str) -> None:
        """Refuse a spoke: `text` goes to it as -ERR, `reason` to our log."""
        connect = leaf.far_end.connect
        name, user = (connect.name, connect.user) if connect is not None else ("", "")
        self.journal.note("leafnode_refused", name=name, user=user, address=address_of(leaf), reason=reason)
        leaf.close(text)

    def is_open(self, leaf: LeafConnection) -> bool:
        """Whether a connection is still open and known."""
        return leaf in self._connections and not self.stopping and leaf.link is not None and not leaf.link.closing

    def expect(self, leaf: LeafConnection, seconds: float, text: str) -> None:
        """Close a connection with the -ERR `text` unless it has joined within `seconds`."""
        self.watch.expect(leaf, seconds, text)

    def address_of(self, leaf: LeafConnection) -> Address:
        """The address at which a hub was dialled."""
        return self.dialler.address_of(leaf)

    # ── joined ──

    def join(
        self, leaf: LeafConnection, account: "Account", neighbour: Neighbour, target: LeafTarget, *, headers: bool
    ) -> None:
        """Join an account: route the neighbour's messages, and announce our interest to it."""
        space = self.spaces.make(account)
        leaf.neighbour = neighbour
        neighbour.sends = target.sends
        leaf.join(account, space.forwarding, target, headers)
        space.forwarding.add(target)
        account.leafnodes += 1
        self.watch.settled(leaf)
        if not self.stopping:
            leaf.send(space.interest.join(neighbour))
        logger.info(
            "leafnode_joined name=%s account=%s remote_account=%s we_are=%s peer=%s",
            leaf.far_end.name,
            account.name,
            leaf.far_end.remote_account,
            "spoke" if neighbour.is_hub else "hub",
            address_of(leaf),
        )
        self._connections.note_joined()

    def repeat(self, leaf: LeafConnection, *, all_of_it: bool) -> None:
        """Announce all interest to a neighbour again or, after a change of permissions, only the difference."""
        if leaf.neighbour is None or leaf.account is None or self.stopping:
            return
        interest = self.spaces[leaf.account.name].interest
        leaf.send(interest.repeat(leaf.neighbour) if all_of_it else interest.renew(leaf.neighbour))

    def on_interest(self, leaf: LeafConnection, subject: bytes, queue: bytes, weight: int) -> None:
        """Apply a change of a neighbour's interest."""
        neighbour, target, account = leaf.neighbour, leaf.target, leaf.account
        if neighbour is None or target is None or account is None or leaf.end_reason:
            return
        space = self.spaces[account.name]
        if subject == space.interest.loop_subject:
            text = handshake.loop_text(account.name)
            self.journal.note("leafnode_refused", name=leaf.far_end.name, address=address_of(leaf), reason=text)
            leaf.close(text)
            return
        if weight and not is_valid_subject(subject):
            leaf.send(error_texts.encode_error(handshake.INVALID_SUBSCRIPTION))
            return
        if weight and leaf.remote is None and is_literal(subject) and not target.sends.has(subject):
            if not subject.startswith((b"$JS.", b"$KV.", b"$OBJ.")):  # those are withheld without an error
                text = error_texts.subscribe_permission(subject.decode("utf-8", "surrogateescape"))
                self.journal.note(
                    "subscription_refused", account=account.name, subject=subject, address=address_of(leaf)
                )
                leaf.close(text)
                return
        if not subject.startswith(LOOP_DETECTION):
            space.forwarding.want(target.outlet, subject, queue, min(weight, 1 << 16))
        space.want(neighbour, subject, queue, weight)
        if weight and space.account.router.awaited:
            space.account.router.awaited.interest_arrived(subject)

    def publish_refused(self, leaf: LeafConnection, subject: bytes) -> None:
        """A spoke has published to a denied subject: send it an error, and close its connection."""
        if leaf.end_reason:
            return
        account = leaf.account.name if leaf.account is not None else ""
        self.journal.note("publish_refused", account=account, subject=subject, address=address_of(leaf))
        leaf.close(error_texts.publish_permission(subject.decode("utf-8", "surrogateescape")))

    def on_error(self, leaf: LeafConnection, text: str) -> None:
        """-ERR: the other end may have closed the connection."""
        logger.warning("leafnode_error name=%s peer=%s text=%s", leaf.far_end.name, address_of(leaf), text)
        if handshake.is_final(text):
            leaf.close("", text)

    def _announced_to(self) -> list[LeafConnection]:
        """The neighbours to which changes of interest are announced."""
        return [] if self.stopping else self.joined()

    # ── timers ──

    def swept(self) -> None:
        """The watch looks at all connections, every half second."""
        self.own.look()

    def not_joined_in_time(self, leaf: LeafConnection, text: str) -> None:
        """A connection has missed its deadline."""
        if leaf.remote is None:
            self.refuse(leaf, text, "it did not show who it is in time")
        else:
            leaf.close(text, text or "the hub sent no INFO in time")

    def expired(self, leaf: LeafConnection) -> str:
        """The error for a spoke whose credentials have expired; "" while they are valid, and for a hub."""
        return self.accepting.expired(leaf) if leaf.remote is None else ""
