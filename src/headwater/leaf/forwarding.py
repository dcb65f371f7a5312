"""Forwards messages to leaf nodes and hubs: decides which of them get a message, and writes the frames.

One `LeafForwarding` per account. A message goes to every neighbour with plain interest, but not back to its source, not
between two spokes of one cluster, and not where its subject may not cross; a message of a peer in our cluster goes to
spokes only. For a queue group

    a local member          gets it: nothing is sent
    else one neighbour      chosen by the number of members behind each; the group's name in the frame marks the choice

A neighbour gets one frame for all its interest in a message. The plan for a Match is stored in it (`LeafPlan`).

`cluster/forwarding.py` looks alike; what both have in common is in `exchange/peer_frames.py` and `exchange/router.py`
(`PeerForwarding`). Its choices are made once for a subject, those here for each message and neighbour (`LeafTarget.takes`),
so one loop for both would call a method for each peer of each message.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.authorization.guard import Guard
    from cython.cimports.headwater.exchange.peer_frames import PeerFrames
    from cython.cimports.headwater.exchange.router import PeerForwarding, Router
    from cython.cimports.headwater.exchange.shown_subject import AddressedMessage
    from cython.cimports.headwater.exchange.sublist import Match, Outlet, Sublist, Subscription
    from cython.cimports.headwater.model.xorshift import Xorshift
    from cython.cimports.headwater.wire.memory import OutputBuffer, equals
    from cython.cimports.headwater.wire.message_view import MessageView
else:
    from headwater.authorization.guard import Guard
    from headwater.exchange.peer_frames import PeerFrames
    from headwater.exchange.router import PeerForwarding, Router
    from headwater.exchange.shown_subject import AddressedMessage
    from headwater.exchange.sublist import Match, Outlet, Sublist, Subscription
    from headwater.model.xorshift import Xorshift
    from headwater.wire.memory import OutputBuffer, equals
    from headwater.wire.message_view import MessageView

from headwater.leaf.permissions import Crossing
from headwater.model.message_trace import DENIED, LEAF, SUBSCRIPTION_DENIED

_NONE: list[bytes] = []


class _Nowhere:
    """The link of an outlet that is never written to."""

    pending = 0

    def flush(self) -> None: ...

    def abort(self) -> None: ...


_NOWHERE = _Nowhere()


class LeafTarget(PeerFrames):
    """A neighbour as a receiver of frames. `sends`: the permissions for messages to it. `cluster`: its cluster, or b"";
    always b"" for hubs, because messages from one hub may go to another.
    """

    def __init__(self, outlet: Outlet, sends: Crossing, cluster: bytes = b"", *, is_hub: bool = False) -> None:
        PeerFrames.__init__(self, outlet, b"LMSG ", b"HMSG ")
        self.cluster = cluster
        self.is_hub = is_hub
        self.is_route = False  # no neighbour, but the peers of our cluster as a source
        self.kept_back = 0  # messages not sent because they may not cross
        self.able = False  # scratch field of `_choose`
        self.guard: Guard | None = None  # for a user with `allow_responses`: keeps reply subjects
        self.allow(sends)

    def allow(self, sends: Crossing) -> None:
        """Set the permissions for messages to it."""
        self.sends = sends
        self._open = sends.is_open
        self._last = b""  # the last subject that was found to be allowed

    def takes(self, message: MessageView, source: "LeafTarget | None") -> cython.bint:
        """Whether a message from `source` (None for a local one) may go to this neighbour now."""
        if self.outlet.closed or self is source:
            return False
        if source is not None:
            if source.cluster and source.cluster == self.cluster:
                return False
            if source.is_route and self.is_hub:
                return self._is_answer(message)
        if self._open and message.buffer[message.subject] != 36:  # $
            return True
        if self._last and equals(message.buffer, message.subject, message.subject_end, self._last):
            return True
        subject: bytes = message.subject_bytes()
        if not self.sends.has(subject):
            self.kept_back += 1
            if message.trace is not None:
                message.trace.to_peer(self.outlet, LEAF, message, SUBSCRIPTION_DENIED if self.is_hub else DENIED)
            return False
        self._last = subject
        return True

    def _is_answer(self, message: MessageView) -> cython.bint:
        """Whether this is a reply from another account, at a peer, to a request that a hub sent here."""
        return bool(message.subject_bytes().startswith(b"_R_.")) and bool(self.sends.has(message.subject_bytes()))


class LeafChoice:
    """A queue group at the neighbours; `bounds` are the cumulative weights of `targets`."""

    def __init__(self, queue: bytes, targets: list[LeafTarget], weights: list[int]) -> None:
        self.queue = queue
        self.targets = targets
        self.weights = weights
        self.name = queue + b" "
        self.listed = b" | " + self.name


class LeafPlan:
    """`plain`: the neighbours with plain interest."""

    def __init__(self, match: Match, targets: dict[Outlet, LeafTarget], weights: dict[Subscription, int]) -> None:
        self.plain = [targets[cython.cast(Outlet, each.outlet)] for each in match.firsts()]
        self.choices: list[LeafChoice] = []
        for queue, members in zip(match.queues, match.groups, strict=True):
            behind: dict[LeafTarget, int] = {}
            for each in members:  # entries of a group count together, whether literal or wildcard
                target = targets[cython.cast(Outlet, each.outlet)]
                behind[target] = behind.get(target, 0) + weights[each]
            self.choices.append(LeafChoice(queue, list(behind), list(behind.values())))


class LeafForwarding(PeerForwarding):
    """`seed` starts the choice among members of queue groups; any integer."""

    def __init__(self, seed: int) -> None:
        PeerForwarding.__init__(self)
        self.interest = Sublist(as_one=True)
        self.targets: dict[Outlet, LeafTarget] = {}
        self.headers_dropped = 0
        self._known: dict[Outlet, dict[tuple[bytes, bytes], Subscription]] = {}
        self._weights: dict[Subscription, int] = {}
        self._chance = Xorshift(seed)
        self._addressed = AddressedMessage()
        self._over_routes = LeafTarget(Outlet(_NOWHERE, OutputBuffer()), Crossing(()))
        self._over_routes.is_route = True

    # ── neighbours and their interest ──

    def add(self, target: LeafTarget) -> None:
        """Add a neighbour."""
        self.targets[target.outlet] = target
        self._known[target.outlet] = {}

    def drop(self, outlet: Outlet) -> None:
        """Remove a neighbour and its interest."""
        for subscription in self._known.pop(outlet, {}).values():
            self.interest.remove(subscription)
            self._weights.pop(subscription, None)
        self.targets.pop(outlet, None)

    def want(self, outlet: Outlet, subject: bytes, queue: bytes, weight: int) -> None:
        """Set a neighbour's interest in `subject`: the number of members of a group, 1 for plain interest, 0 to end it."""
        known = self._known.get(outlet)
        if known is None:
            return
        key = (subject, queue)
        found = known.get(key)
        if not weight:
            if found is not None:
                del known[key]
                self.interest.remove(found)
                self._weights.pop(found, None)
            return
        if found is None:
            found = known[key] = Subscription(subject, queue, b"", outlet)
            self._weights[found] = weight
            self.interest.insert(found)
        elif self._weights[found] != weight:
            self._weights[found] = weight
            self.interest.renew()  # plans hold the weights

    def wants_of(self, outlet: Outlet) -> list[bytes]:
        """The subjects of a neighbour's interest, one more for each group."""
        return [subject for subject, _ in self._known.get(outlet, {})]

    # ── views ──

    def has_interest(self, subject: bytes) -> cython.bint:
        match: Match = self.interest.match(subject)
        members: list[Subscription]
        for members in [match.plain, *match.groups]:
            for each in members:
                if self.targets[cython.cast(Outlet, each.outlet)].sends.has(subject):
                    return True
        return False

    def pending(self, subject: bytes) -> cython.Py_ssize_t:
        match: Match = self.interest.match(subject)
        most: cython.Py_ssize_t = 0
        members: list[Subscription]
        for members in [match.plain, *match.groups]:
            for each in members:
                most = max(most, cython.cast(Outlet, each.outlet).link.pending)
        return most

    # ── messages from here ──

    def route(self, router: Router, publisher: Outlet | None, match: Match, message: MessageView) -> cython.int:
        """Route one message. Returns local deliveries plus frames sent."""
        remote: Match = self.interest.find(message.buffer, message.subject, message.subject_end)
        frames: cython.int = 0
        if remote.plain or remote.groups:
            frames = self._send(router, None, match.queues, None, remote, message)
            if not match.plain and not match.groups:
                return frames
        return frames + router.route_here(publisher, match, True, message, None, False)

    def route_under(self, router: Router, inbox: bytes, match: Match, message: MessageView) -> cython.int:
        """Route a message that shows another subject to `inbox`; see `shown_subject`."""
        remote: Match = self.interest.match(inbox)
        frames: cython.int = 0
        if remote.plain or remote.groups:
            frames = self._send(router, None, match.queues, None, remote, self._addressed.to(inbox, message))
            if not match.plain and not match.groups:
                return frames
        return frames + router.route_under_here(inbox, match, message, None, False)

    def route_run(
        self,
        router: Router,
        publisher: Outlet | None,
        match: Match,
        message: MessageView,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        """Route a run. Returns local receivers plus neighbours. If no group has to be chosen for, each gets it in one
        copy.
        """
        frames: cython.int = self.send_run(router, None, match, message, stride, count)
        return frames + router.route_run_here(publisher, match, message, stride, count)

    # ── to neighbours alone ──

    def pass_on(
        self, router: Router, source: LeafTarget, served: list[bytes], queues: list[bytes], message: MessageView
    ) -> cython.int:
        """Forward one neighbour's message to the others. Groups get it only if its frame names them (`queues`) and they
        have no local member (`served`). Returns the number of frames.
        """
        remote: Match = self.interest.find(message.buffer, message.subject, message.subject_end)
        if not remote.plain and not remote.groups:
            return 0
        return self._send(router, source, served, queues, remote, message)

    def send_run(
        self,
        router: Router,
        source: LeafTarget | None,
        match: Match,
        message: MessageView,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        """Send `count` messages with the same line; `message` is back at the first one afterwards."""
        remote: Match = self.interest.find(message.buffer, message.subject, message.subject_end)
        if not remote.plain and not remote.groups:
            return 0
        plan: LeafPlan = self._plan(remote)
        frames: cython.int = 0
        if not plan.choices:
            return self._run_to_plain(router, source, plan, message, stride, count)
        queues = _NONE if source is not None else None
        for _ in range(count):
            frames += self._send(router, source, match.queues, queues, remote, message)
            message.advance(stride)
        message.advance(-stride * count)
        return frames

    # ── beside the peers of a cluster ──

    def near(self, message: MessageView) -> list[bytes]:
        return _NONE

    def far(self, message: MessageView) -> list[bytes]:
        return self.interest.find(message.buffer, message.subject, message.subject_end).queues

    def weigh(self, queue: bytes, source: PeerFrames | None, origin: bytes, message: MessageView) -> cython.Py_ssize_t:
        choice: LeafChoice
        for choice in self._plan(self.interest.find(message.buffer, message.subject, message.subject_end)).choices:
            if choice.queue == queue:
                return self._total(choice, cython.cast(LeafTarget, source), message)
        return 0

    def spread(
        self,
        router: Router,
        source: PeerFrames | None,
        origin: bytes,
        match: Match,
        queues: list[bytes] | None,
        served: list[bytes],
        message: MessageView,
    ) -> cython.int:
        """As in the base class. Without a `source` and with `queues` the message is a peer's, and `elsewhere` is set to
        the groups that got it here.
        """
        self.elsewhere = None
        remote: Match = self.interest.find(message.buffer, message.subject, message.subject_end)
        if not remote.plain and not remote.groups:
            return 0
        sender = cython.cast(LeafTarget, source)
        if source is None and queues is not None:
            sender = self._over_routes
            sender.cluster = origin
        return self._send(router, sender, served, queues, remote, message)

    def spread_run(
        self,
        router: Router,
        source: PeerFrames | None,
        origin: bytes,
        message: MessageView,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        remote: Match = self.interest.find(message.buffer, message.subject, message.subject_end)
        return self._run_to_plain(router, cython.cast(LeafTarget, source), self._plan(remote), message, stride, count)

    def _run_to_plain(
        self,
        router: Router,
        source: LeafTarget | None,
        plan: LeafPlan,
        message: MessageView,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        """Send a run to each neighbour with plain interest; returns their number."""
        target: LeafTarget
        frames: cython.int = 0
        for target in plan.plain:
            if target.takes(message, source):
                self.headers_dropped += target.write_run(b"", message, stride, count)
                self._count(router, target, message, count)
                frames += 1
        return frames

    def _plan(self, remote: Match) -> LeafPlan:
        plan: LeafPlan = cython.cast(LeafPlan, remote.plan)
        if plan is None:
            plan = LeafPlan(remote, self.targets, self._weights)
            remote.plan = plan
        return plan

    def _send(
        self,
        router: Router,
        source: LeafTarget | None,
        served: list[bytes],
        queues: list[bytes] | None,
        remote: Match,
        message: MessageView,
    ) -> cython.int:
        """Send one message; returns the number of frames. `queues`: the groups that it is for, None for all."""
        plan: LeafPlan = self._plan(remote)
        frames: cython.int = 0
        target: LeafTarget
        choice: LeafChoice
        others: list[LeafTarget] | None = None
        for target in plan.plain:
            target.plain = target.takes(message, source)
        for choice in plan.choices:
            if choice.queue in served or (queues is not None and choice.queue not in queues):
                continue
            chosen = self._choose(choice, source, message)
            if chosen is None:
                continue
            if source is not None and source.is_route:
                self.elsewhere = [choice.queue] if self.elsewhere is None else [*self.elsewhere, choice.queue]
            target = chosen
            if target.listed:
                target.listed += choice.name
                continue
            target.listed = choice.listed
            if not target.plain:
                others = [target] if others is None else [*others, target]
        for target in plan.plain:
            if target.plain:
                target.plain = False
                frames += self._write(router, target, message)
        if others is not None:
            for target in others:
                frames += self._write(router, target, message)
        return frames

    def _choose(self, choice: LeafChoice, source: LeafTarget | None, message: MessageView) -> LeafTarget | None:
        """Choose one of the neighbours that may get the message, by weight; None if there is none."""
        index: cython.Py_ssize_t
        target: LeafTarget
        total: cython.Py_ssize_t = self._total(choice, source, message)
        if total == 0:
            return None
        total = self._chance.below(total)
        for index in range(len(choice.targets)):
            target = choice.targets[index]
            if target.able:
                total -= choice.weights[index]
                if total < 0:
                    return target
        return None

    def _total(self, choice: LeafChoice, source: LeafTarget | None, message: MessageView) -> cython.Py_ssize_t:
        """The total weight of the neighbours that may get the message, which it marks `able`."""
        total: cython.Py_ssize_t = 0
        index: cython.Py_ssize_t
        target: LeafTarget
        for index in range(len(choice.targets)):
            target = choice.targets[index]
            target.able = target.takes(message, source)
            if target.able:
                total += choice.weights[index]
        return total

    def _write(self, router: Router, target: LeafTarget, message: MessageView) -> cython.int:
        if message.trace is not None:
            traced = message.trace.to_peer(target.outlet, LEAF, message)
            if traced is None:
                target.listed = b""
                return 0
            message = traced
        self.headers_dropped += target.write(target.listed, message)
        target.listed = b""
        return self._count(router, target, message, 1)

    def _count(self, router: Router, target: LeafTarget, message: MessageView, count: cython.Py_ssize_t) -> cython.int:
        outlet: Outlet = target.outlet
        if target.guard is not None:
            target.guard.lets_through(message, b"")
        outlet.out_messages += count
        outlet.out_bytes += count * (message.end - message.headers)
        if not outlet.dirty:
            router.mark_dirty(outlet)
        return 1
