"""The leaf nodes of a broker: accepts spokes, dials hubs, joins each to an account, and announces interest to it.

    accept ─▶ INFO ─▶ CONNECT ─▶ handshake, gate ─▶ INFO ─┐
    dial   ─▶ INFO ─▶ CONNECT ─▶ INFO ───────────────────┴▶ joined ─▶ LS+ lines, messages
    a client subscribes ─▶ LeafSpace ─▶ Interest ─▶ a line to every neighbour that may have it
    a client publishes  ─▶ Router ─▶ LeafForwarding ─▶ frames
    a neighbour's frame ─▶ LeafConnection ─▶ Router, and the other neighbours

A hub is dialled until it answers. The reason for a failure is in the log, in the journal and, while it lasts, in
/leafz.

Decided elsewhere: the verdicts on documents (handshake), who may connect (exchange.auth), which address to dial
(remote).
"""

import asyncio
import base64
import logging
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from headwater.errors import HeadwaterError, TransportError
from headwater.exchange.backpressure import Backpressure
from headwater.exchange.leaf_options import LeafOptions
from headwater.exchange.sublist import Outlet
from headwater.leaf import handshake
from headwater.leaf.accepting import Accepting, Ask
from headwater.leaf.connection import LeafConnection
from headwater.leaf.dialling import check_remote, layer_for
from headwater.leaf.forwarding import LeafTarget
from headwater.leaf.interest import Line, Neighbour
from headwater.leaf.introducing import Introducing
from headwater.leaf.own_info import OwnInfo
from headwater.leaf.remote import Address, Remote
from headwater.leaf.space import LeafSpace
from headwater.model.subject import is_literal, is_valid_subject
from headwater.net.address import bracketed
from headwater.net.interfaces import dialable
from headwater.net.limits import Limits
from headwater.net.link import Link, LinkOwner
from headwater.net.listening import Listener, bind
from headwater.net.tcp import dial
from headwater.wire import error_texts
from headwater.wire.leaf_lines import (
    LOOP_DETECTION,
    LeafInfo,
    encode_leaf_info,
    leaf_interest,
)

if TYPE_CHECKING:
    from headwater.exchange.account import Account
    from headwater.exchange.accounts import Accounts
    from headwater.exchange.auth.gate import Gate
    from headwater.net.journal import Journal

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 0.5
FIRST_PING_SECONDS = 1.0
LONGEST_PING_INTERVAL = 30.0  # as on routes, even if clients have a longer one: only PINGs detect a dead connection
SETTLE_SECONDS = 1.0  # for a neighbour to read pending output before we close
_NONCE_BYTES = 11


class LeafObserver(Protocol):
    """Records joins and losses; called in the event loop, and must not block."""

    def leaf_joined(self, leaf: LeafConnection) -> None:
        """A neighbour has joined its account."""

    def leaf_left(self, leaf: LeafConnection) -> None:
        """A neighbour is gone; its counters are final."""


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
        self.port = 0
        self.observers: list[LeafObserver] = []
        self.slow = 0
        self.stale = 0
        self.stopping = False
        self.accounts = accounts
        self._make_link: Callable[[LinkOwner], Link] = make_link or Link
        self.stores = stores
        self._ping_interval = min(ping_interval, LONGEST_PING_INTERVAL)
        self._ping_max = ping_max
        self._write_deadline = options.write_deadline or write_deadline
        self._limits = limits
        self.journal = journal
        self._loop = asyncio.get_running_loop()
        self.clock = self._loop.time
        self.remotes = [Remote(each, options.reconnect_interval, _any_fraction) for each in options.remotes]
        self._spaces: dict[str, LeafSpace] = {}
        self._leafs: dict[int, LeafConnection] = {}
        self._addresses: dict[int, Address] = {}  # the address of each connection that we dialled
        self._next_ping: dict[int, float] = {}
        self._deadlines: dict[int, tuple[float, str]] = {}  # the time, and the -ERR for a connection that misses it
        self._backpressure = Backpressure(self.clock, max_pending)
        self._numbers = 0
        self._listener: Listener | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.TimerHandle] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._changed = asyncio.Event()
        self.own = OwnInfo(info, self.joined, lambda leaf: self.accepting.tell_again(leaf))
        self.accepting = Accepting(self, gate, ask, seconds_to_ask, wall_clock)
        self._introducing = Introducing(self)

    # ── starting and stopping ──

    async def start(self) -> None:
        """Bind the port; `open` starts accepting and dialling. Raises EnvironmentProblem and ConfigError."""
        for remote in self.remotes:
            check_remote(remote.options)
            self._space(self.accounts[remote.options.account])
        options = self.options
        if options.port is None:
            return
        self._listener = bind(
            options.host,
            options.port,
            self.make,
            self._make_link,
            limits=self._limits,
            farewell=b"" if options.tls is not None else error_texts.encode_error(error_texts.MAXIMUM_CONNECTIONS),
        )
        self.port = self._listener.port
        host = next(iter(dialable(options.host)), "")
        shown = options.advertise or f"{bracketed(host or options.host)}:{self.port}"
        hidden = options.no_advertise or (not options.advertise and not host)
        info = self.own.info.replace(
            host=options.host,
            port=self.port,
            ip=shown,
            tls_required=options.tls is not None,
            tls_verify=options.tls is not None and options.tls.verify,
        )
        self.own.listens(info, () if hidden else (shown,))

    def open(self) -> None:
        """Start accepting spokes and dialling hubs."""
        if self._listener is not None:
            self._listener.open()
            logger.info("Listening for leafnode connections on %s:%d", self.options.host, self.port)
        self._sweeper = self._loop.call_later(SWEEP_SECONDS, self._sweep)
        for remote in self.remotes:
            self._start_dial(remote)

    async def withdraw(self) -> None:
        """Stop making connections, and withdraw our interest: on return, everything that the neighbours sent before has
        arrived. Local messages are still forwarded. A neighbour has SETTLE_SECONDS to answer.
        """
        if self.stopping:
            return
        self.stopping = True
        self.accepting.doors.close()
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for timer in self._timers:
            timer.cancel()
        for leaf in self.joined():
            told = leaf.neighbour.told if leaf.neighbour is not None else {}
            leaf.send(b"".join(leaf_interest(subject, queue, 0) for subject, queue in told))
        await self._settle()

    async def stop(self) -> None:
        """Close every connection, once the neighbours have read our output; safe to call again."""
        await self.withdraw()
        await self._settle()
        if self._sweeper is not None:
            self._sweeper.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for leaf in self.connections():
            leaf.close("", "the broker stops")

    async def _settle(self) -> None:
        asked = {leaf.settled(): leaf for leaf in self.joined() if leaf.link is not None and not leaf.link.closing}
        if not asked:
            return
        _, silent = await asyncio.wait(asked, timeout=SETTLE_SECONDS)
        for late in silent:
            logger.warning("leafnode_not_drained peer=%s seconds=%g", _peer(asked[late]), SETTLE_SECONDS)

    def accounts_changed(self) -> None:
        """A reload has changed mappings or added accounts."""
        for space in self._spaces.values():
            space.mappings_changed()

    # ── views ──

    def connections(self) -> list[LeafConnection]:
        """All connections, joined or not."""
        return list(self._leafs.values())

    def joined(self) -> list[LeafConnection]:
        """Every neighbour that has joined an account, in the order they connected."""
        return [leaf for leaf in self._leafs.values() if leaf.joined]

    async def wait_for(self, count: int) -> None:
        """Return once at least `count` neighbours have joined; some may have left again by the time the caller looks."""
        while len(self.joined()) < count:
            self._changed.clear()
            await self._changed.wait()

    def wants_of(self, leaf: LeafConnection) -> list[bytes]:
        """The subjects that a neighbour has announced."""
        neighbour = leaf.neighbour
        return [subject for subject, _ in neighbour.wants] if neighbour is not None else []

    def spaces(self) -> list[tuple[str, LeafSpace]]:
        """The space of every account, with its name."""
        return list(self._spaces.items())

    def space(self, account: str) -> LeafSpace:
        """The space of one account. Raises KeyError for an account that no neighbour has ever joined."""
        return self._spaces[account]

    # ── opening and closing of connections ──

    def make(self) -> LeafConnection:
        """Create the owner of a connection that is being accepted."""
        self._numbers += 1
        return LeafConnection(self, self._numbers, self.own.info.max_payload)

    def opened(self, leaf: LeafConnection) -> None:
        """A connection is established; the accepting side sends first."""
        if self.stopping:
            leaf.close()
            return
        now = self.clock()
        self._leafs[leaf.number] = leaf
        self._next_ping[leaf.number] = now + FIRST_PING_SECONDS
        if leaf.remote is not None:
            options = leaf.remote.options
            seconds = options.first_info_timeout + (options.tls.timeout if options.tls is not None else 0.0)
            self._deadlines[leaf.number] = (now + seconds, "")
            return
        seconds = self.options.auth_timeout + (self.options.tls.timeout if self.options.tls is not None else 0.0)
        self._deadlines[leaf.number] = (now + seconds, error_texts.AUTHENTICATION_TIMEOUT)
        leaf.nonce = base64.urlsafe_b64encode(os.urandom(_NONCE_BYTES)).decode("ascii").rstrip("=")
        info = handshake.info_for(self.own.info, leaf.number, websocket=leaf.websocket)
        leaf.send(encode_leaf_info(info.replace(nonce=leaf.nonce)))

    def lost(self, leaf: LeafConnection, error: Exception | None) -> None:
        """A connection is gone: remove its neighbour's interest."""
        self._leafs.pop(leaf.number, None)
        self._next_ping.pop(leaf.number, None)
        self._deadlines.pop(leaf.number, None)
        address = self._addresses.pop(leaf.number, None)
        if leaf.link is not None:
            self._backpressure.progress.forget(leaf.link)
        reason = leaf.end_reason or (str(error) if error is not None else "the other end closed it")
        if leaf.joined and leaf.account is not None:
            self._part(leaf, leaf.account, reason)
        if leaf.remote is not None and address is not None:
            if not leaf.joined:
                self._not_joined(leaf.remote, address.shown, reason)
            refused = leaf.end_reason.startswith("Authorization Violation")
            leaf.remote.failed(reason, refused=refused, stay_away=handshake.wait_after(leaf.end_reason))
            self._dial_later(leaf.remote)

    def _part(self, leaf: LeafConnection, account: "Account", reason: str) -> None:
        space = self._spaces[account.name]
        space.count_lost(leaf.target, leaf.refused, leaf.groups_missed)
        if leaf.outlet is not None:
            space.forwarding.drop(leaf.outlet)
        if leaf.neighbour is not None:
            space.leave(leaf.neighbour)
        account.leafnodes -= 1
        for observer in self.observers:
            observer.leaf_left(leaf)
        if self.stopping:
            return
        self.journal.note("leafnode_lost", name=leaf.name, account=account.name, address=_peer(leaf), reason=reason)

    def _not_joined(self, remote: Remote, where: str, reason: str) -> None:
        """Record that a hub is not joined. The journal logs the first failure, not every try."""
        self.journal.note("leafnode_not_joined", account=remote.options.account, address=where, reason=reason)

    def hold(self, leaf: LeafConnection, congested: list[Outlet]) -> None:
        """Pause reading from this neighbour: receivers of its messages are behind."""
        if leaf.link is not None:
            self._backpressure.hold_route(leaf.link, congested)

    def broke(self, leaf: LeafConnection, said: str, reason: str) -> None:
        """The other end broke the protocol."""
        logger.warning("leafnode_failed name=%s peer=%s error=%s", leaf.name, _peer(leaf), reason)
        leaf.close(said, reason)

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

    def refuse(self, leaf: LeafConnection, said: str, reason: str) -> None:
        """Refuse a spoke: `said` goes to it as -ERR, `reason` to our log."""
        name = leaf.connect.name if leaf.connect is not None else ""
        user = leaf.connect.user if leaf.connect is not None else ""
        self.journal.note("leafnode_refused", name=name, user=user, address=_peer(leaf), reason=reason)
        leaf.close(said)

    def is_open(self, leaf: LeafConnection) -> bool:
        """Whether a connection is still open and known."""
        return leaf.number in self._leafs and not self.stopping and leaf.link is not None and not leaf.link.closing

    def expect(self, leaf: LeafConnection, seconds: float, said: str) -> None:
        """Close a connection with the -ERR `said` unless it has joined within `seconds`."""
        self._deadlines[leaf.number] = (self.clock() + seconds, said)

    def address_of(self, leaf: LeafConnection) -> Address:
        """The address at which a hub was dialled."""
        return self._addresses[leaf.number]

    # ── joined ──

    def _space(self, account: "Account") -> LeafSpace:
        space = self._spaces.get(account.name)
        if space is None:
            space = self._spaces[account.name] = LeafSpace(account, self._tell)
        return space

    def join(
        self, leaf: LeafConnection, account: "Account", neighbour: Neighbour, target: LeafTarget, *, headers: bool
    ) -> None:
        """Join an account: route the neighbour's messages, and announce our interest to it."""
        space = self._space(account)
        leaf.neighbour = neighbour
        neighbour.sends = target.sends
        leaf.join(account, space.forwarding, target, headers)
        space.forwarding.add(target)
        account.leafnodes += 1
        self._deadlines.pop(leaf.number, None)
        if not self.stopping:
            leaf.send(space.interest.join(neighbour))
        logger.info(
            "leafnode_joined name=%s account=%s remote_account=%s we_are=%s peer=%s",
            leaf.name,
            account.name,
            leaf.remote_account,
            "spoke" if neighbour.is_hub else "hub",
            _peer(leaf),
        )
        for observer in self.observers:
            observer.leaf_joined(leaf)
        self._changed.set()

    def repeat(self, leaf: LeafConnection, *, all_of_it: bool) -> None:
        """Announce all interest to a neighbour again or, after a change of permissions, only the difference."""
        if leaf.neighbour is None or leaf.account is None or self.stopping:
            return
        interest = self._spaces[leaf.account.name].interest
        leaf.send(interest.repeat(leaf.neighbour) if all_of_it else interest.renew(leaf.neighbour))

    def on_interest(self, leaf: LeafConnection, subject: bytes, queue: bytes, weight: int) -> None:
        """Apply a change of a neighbour's interest."""
        neighbour, target, account = leaf.neighbour, leaf.target, leaf.account
        if neighbour is None or target is None or account is None or leaf.end_reason:
            return
        space = self._spaces[account.name]
        if subject == space.interest.loop_subject:
            text = handshake.loop_text(account.name)
            self.journal.note("leafnode_refused", name=leaf.name, address=_peer(leaf), reason=text)
            leaf.close(text)
            return
        if weight and not is_valid_subject(subject):
            leaf.send(error_texts.encode_error(handshake.INVALID_SUBSCRIPTION))
            return
        if weight and leaf.remote is None and is_literal(subject) and not target.sends.has(subject):
            if not subject.startswith((b"$JS.", b"$KV.", b"$OBJ.")):  # those are withheld without an error
                text = error_texts.subscribe_permission(subject.decode("utf-8", "surrogateescape"))
                self.journal.note("subscription_refused", account=account.name, subject=subject, address=_peer(leaf))
                leaf.close(text)
                return
        if not subject.startswith(LOOP_DETECTION):
            space.forwarding.want(target.outlet, subject, queue, min(weight, 1 << 16))
        space.want(neighbour, subject, queue, weight)
        if weight and space.account.router.awaited:
            space.account.router.awaited.heard(subject)

    def publish_refused(self, leaf: LeafConnection, subject: bytes) -> None:
        """A spoke has published to a denied subject: send it an error, and close its connection."""
        if leaf.end_reason:
            return
        account = leaf.account.name if leaf.account is not None else ""
        self.journal.note("publish_refused", account=account, subject=subject, address=_peer(leaf))
        leaf.close(error_texts.publish_permission(subject.decode("utf-8", "surrogateescape")))

    def on_error(self, leaf: LeafConnection, text: str) -> None:
        """-ERR: the other end may have closed the connection."""
        logger.warning("leafnode_error name=%s peer=%s text=%s", leaf.name, _peer(leaf), text)
        if handshake.is_final(text):
            leaf.close("", text)

    def _tell(self, space: LeafSpace, lines: Iterable[Line]) -> None:
        """Send interest lines, in the same write as the answer to the client or earlier: once it has its PONG, they
        have been sent.
        """
        if self.stopping:
            return
        outlets = {leaf.neighbour: leaf.outlet for leaf in self._leafs.values() if leaf.joined} if lines else {}
        for neighbour, line in lines:
            outlet = outlets.get(neighbour)
            if outlet is not None and not outlet.closed:
                outlet.output.append(line)
                space.account.router.mark_dirty(outlet)

    # ── dialling ──

    def _start_dial(self, remote: Remote) -> None:
        if self.stopping:
            return
        task = self._loop.create_task(self._dial(remote))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _dial(self, remote: Remote) -> None:
        address = remote.next()
        self._numbers += 1
        leaf = LeafConnection(self, self._numbers, self.own.info.max_payload, remote)
        leaf.websocket = address.is_websocket
        self._addresses[leaf.number] = address
        try:
            layer = layer_for(remote, address)
            await dial(address.host, address.port, leaf, remote.options.dial_timeout, layer)
        except (HeadwaterError, TransportError) as error:
            self._addresses.pop(leaf.number, None)
            self._not_joined(remote, address.shown, str(error))
            remote.failed(str(error))
            self._dial_later(remote)

    def _dial_later(self, remote: Remote) -> None:
        if self.stopping:
            return

        def run() -> None:
            self._timers.discard(timer)
            self._start_dial(remote)

        timer = self._loop.call_later(remote.wait(), run)
        self._timers.add(timer)

    # ── timers ──

    def _sweep(self) -> None:
        now = self.clock()
        self.own.look()
        self._sweeper = self._loop.call_later(SWEEP_SECONDS, self._sweep)
        for number, leaf in list(self._leafs.items()):
            deadline, said = self._deadlines.get(number, (now + 1, ""))
            if now > deadline:
                self._deadlines.pop(number)
                if leaf.remote is None:
                    self.refuse(leaf, said, "it did not show who it is in time")
                else:
                    leaf.close(said, said or "the hub said no INFO in time")
            elif leaf.joined and leaf.remote is None and (farewell := self.accepting.farewell(leaf)):
                leaf.close(farewell)
            elif leaf.joined and now >= self._next_ping.get(number, now + 1):
                self._next_ping[number] = now + self._ping_interval
                if not leaf.ping(self._ping_max, now):
                    self.stale += 1
            if self._backpressure.progress.end_stuck(leaf.link, now, self._write_deadline):
                leaf.end_reason = f"took nothing for {self._write_deadline:g} s"
                self.slow += 1


def _peer(leaf: LeafConnection) -> str:
    return leaf.link.peer if leaf.link is not None else ""


def _any_fraction() -> float:
    return int.from_bytes(os.urandom(4)) / (1 << 32)
