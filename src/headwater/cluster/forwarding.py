"""Forwards local messages across routes: decides which peers get a message, and in which frames.

One `Forwarding` per account. Messages from a route go to `arrivals`, not here, so no message makes a second hop.

    from a client here      every plain subscription here; one frame to each peer with plain interest; per queue group one
                            member of the whole cluster, each with the same chance
    to an inbox             the same for a JetStream delivery, which shows another subject than the inbox
    passed on               a message of a peer for a member that has left here: one member at another peer, once

    from a leaf node        `spread`: as from a client, in frames that name the leaf node's cluster

A group without members in the cluster may have some at leaf nodes behind peers (`PeerInterest.behind`): one of those
gets the message. If this broker has leaf nodes too, `exchange.junction` decides between those and ours.

One v2 frame carries the plain copy and the chosen groups; in v1 the plain copy and each chosen group member need a frame
each, and the protocol has no headers: they are dropped and counted.

`leaf/forwarding.py` looks alike and is not a second face of this: here the frames of a subject are settled once for all its
messages (`Plan.settled`), with the dialects, limits and origins of routes; there permissions, source and weight are judged
for each message and neighbour. One loop for both would call a method for each peer of each message.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.cluster.frames import Frame, Target
    from cython.cimports.headwater.cluster.peer_interest import PeerInterest
    from cython.cimports.headwater.cluster.plans import Choice, Plan
    from cython.cimports.headwater.cluster.shared_beginnings import may_follow, shared_beginning
    from cython.cimports.headwater.exchange.peer_frames import PeerFrames
    from cython.cimports.headwater.exchange.router import Router
    from cython.cimports.headwater.exchange.shown_subject import AddressedMessage
    from cython.cimports.headwater.exchange.sublist import Beginning, Match, Outlet, Subscription
    from cython.cimports.headwater.model.xorshift import Xorshift
    from cython.cimports.headwater.net.shared_run import SharedRun
    from cython.cimports.headwater.wire.client_ops import ClientOpParser
    from cython.cimports.headwater.wire.memory import equals
    from cython.cimports.headwater.wire.message_view import MessageView
    from cython.cimports.headwater.wire.publish_series import PublishSeries
    from cython.cimports.headwater.wire.run_announcement import ToAnnounce
else:
    from headwater.cluster.frames import Frame, Target
    from headwater.cluster.peer_interest import PeerInterest
    from headwater.cluster.plans import Choice, Plan
    from headwater.cluster.shared_beginnings import may_follow, shared_beginning
    from headwater.exchange.peer_frames import PeerFrames
    from headwater.exchange.router import Router
    from headwater.exchange.shown_subject import AddressedMessage
    from headwater.exchange.sublist import Beginning, Match, Outlet, Subscription
    from headwater.model.xorshift import Xorshift
    from headwater.net.shared_run import SharedRun
    from headwater.wire.client_ops import ClientOpParser
    from headwater.wire.memory import equals
    from headwater.wire.message_view import MessageView
    from headwater.wire.publish_series import PublishSeries
    from headwater.wire.run_announcement import ToAnnounce

from headwater.exchange.router import SHARED
from headwater.model.message_trace import ROUTE

_NONE: list[bytes] = []
_WORTH: cython.Py_ssize_t = SHARED


class Forwarding(PeerInterest):
    """The routes of one account. `seed` starts the choice among members of queue groups; any integer."""

    def __init__(self, account: bytes, seed: int) -> None:
        PeerInterest.__init__(self, account)
        self.headers_dropped = 0
        self._chance = Xorshift(seed)
        self._addressed = AddressedMessage()
        self._inbox = b""  # the last inbox, whose Match follows: most of the next messages have the same
        self._inbox_match = self.interest.match(b"")
        self._announced: list[Frame] = []  # workers that are to get the current run as it is rendered here

    def _goes_out(self, message: MessageView) -> cython.bint:
        """Whether messages on this subject may be sent to peers."""
        return self.withheld is None or not self.withheld.has(message.subject_bytes())

    def _plan(self, remote: Match) -> Plan:
        """The plan for this Match, made once and stored in it."""
        plan: Plan = cython.cast(Plan, remote.plan)
        if plan is None:
            plan = Plan(remote, self.targets, self.origins)
            remote.plan = plan
        return plan

    def route(self, router: Router, publisher: Outlet | None, match: Match, message: MessageView) -> cython.int:
        """Route one message. Returns local deliveries plus frames sent.

        The last inbox is known: the table of subjects leaves inboxes out, and acks of a stream often go to one."""
        remote: Match = self._inbox_match
        is_inbox: cython.bint = message.buffer[message.subject] == 95  # _
        if (
            not is_inbox
            or remote.generation != self.interest.generation
            or not equals(message.buffer, message.subject, message.subject_end, self._inbox)
        ):
            remote = self.interest.find(message.buffer, message.subject, message.subject_end)
            if is_inbox:
                self._inbox, self._inbox_match = message.subject_bytes(), remote
        elsewhere: list[bytes] | None = None
        frames: cython.int = 0
        if self.behind.count:
            frames = self.spread(router, None, b"", match, None, _NONE, message)
            elsewhere = self.elsewhere
        elif (remote.plain or remote.groups) and self._goes_out(message):
            frames = self._send(router, match, self._plan(remote), message)
            elsewhere = self.elsewhere
            if not match.plain and not match.groups:
                return frames
        return frames + router.route_here(publisher, match, True, message, elsewhere, False)

    def route_under(self, router: Router, inbox: bytes, match: Match, message: MessageView) -> cython.int:
        """Route a message that shows another subject to `inbox`; peers get it in the form of `shown_subject`."""
        remote: Match = self._inbox_match
        if inbox != self._inbox or remote.generation != self.interest.generation:
            remote = self._inbox_match = self.interest.match(inbox)
            self._inbox = inbox
        elsewhere: list[bytes] | None = None
        frames: cython.int = 0
        if self.behind.count:
            frames = self.spread(router, None, b"", match, None, _NONE, self._addressed.to(inbox, message))
            elsewhere = self.elsewhere
        elif (remote.plain or remote.groups) and (self.withheld is None or not self.withheld.has(inbox)):
            frames = self._send(router, match, self._plan(remote), self._addressed.to(inbox, message))
            elsewhere = self.elsewhere
            if not match.plain and not match.groups:
                return frames
        return frames + router.route_under_here(inbox, match, message, elsewhere, False)

    def route_run(
        self,
        router: Router,
        publisher: Outlet | None,
        match: Match,
        message: MessageView,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        """Route a run. Returns local receivers plus peers. If no group has to be chosen for, each peer gets it in one
        copy.
        """
        remote: Match = self.interest.find(message.buffer, message.subject, message.subject_end)
        receivers: cython.int = 0
        plan: Plan
        if self.behind.count and self.behind.find(message.buffer, message.subject, message.subject_end).groups:
            for _ in range(count):
                receivers += self.route(router, publisher, match, message)
                message.advance(stride)
            return receivers
        if (remote.plain or remote.groups) and self._goes_out(message):
            plan = self._plan(remote)
            if plan.limited or match.groups:  # each message needs its own choice, or a limit falls within the run
                for _ in range(count):
                    receivers += self.route(router, publisher, match, message)
                    message.advance(stride)
                return receivers
            receivers = self._send_run(router, match, plan, message, stride, count)
        try:
            return receivers + router.route_run_here(publisher, match, message, stride, count)
        finally:
            if self._announced:
                self._send_unshared(router, message, stride, count)

    def _announce(
        self,
        router: Router,
        match: Match,
        plan: Plan,
        message: MessageView,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        """Other workers are to get the run as it is rendered for the first client here, if it is worth that."""
        shared: SharedRun = router.flusher.shared
        plain: cython.bint = message.headers == message.payload and message.reply == message.reply_end
        frame: Frame
        if shared.calls.refused or not plain or stride * count < _WORTH or not match.plain:
            return 0
        for frame in cython.cast(list, plan.settled):
            if frame.target.takes_runs and frame.is_plain() and not frame.target.outlet.closed:
                self._announced.append(frame)
        if self._announced:
            links = [cython.cast(Outlet, frame.target.outlet).endpoint for frame in self._announced]
            size: cython.Py_ssize_t = message.end - message.payload
            shared.announce(links, ToAnnounce(self.account, message.subject_bytes(), size, count))
        return 0

    def _send_unshared(
        self, router: Router, message: MessageView, stride: cython.Py_ssize_t, count: cython.Py_ssize_t
    ) -> cython.int:
        """Send the run to the workers that have not got it by its announcement."""
        shared: SharedRun = router.flusher.shared
        announced, self._announced = self._announced, []
        left, shared.links = shared.links, []
        frame: Frame
        for frame in announced:
            if cython.cast(Outlet, frame.target.outlet).endpoint in left:
                self.headers_dropped += frame.write_run(message, stride, count)
            self._count(router, frame.target, message, count)
        return 0

    def _send_run(
        self,
        router: Router,
        match: Match,
        plan: Plan,
        message: MessageView,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        """Send a run without local queue members and without limits; returns the number of frames."""
        frames: cython.int = 0
        frame: Frame
        if plan.settled is None:
            for _ in range(count):
                frames += self._send(router, match, plan, message)
                message.advance(stride)
            message.advance(-stride * count)
            return frames
        self._announce(router, match, plan, message, stride, count)
        for frame in plan.settled:
            if not frame.target.outlet.closed:
                frames += 1
                if not self._announced or frame not in self._announced:
                    self.headers_dropped += frame.write_run(message, stride, count)
                    self._count(router, frame.target, message, count)
        return frames

    def publish_series(
        self,
        router: Router,
        publisher: Outlet,
        match: Match,
        ops: ClientOpParser,
        series: PublishSeries,
        same_subject: cython.bint,
    ) -> cython.int:
        message: MessageView = ops.message
        plan: Plan | None = None
        receivers: cython.int = 0
        frame: Frame
        target: Target
        if self.behind.count or self.withheld is not None or not may_follow(ops):
            return -1
        remote: Match = self.interest.find(message.buffer, message.subject, message.subject_end)
        if remote.plain or remote.groups:
            plan = self._plan(remote)
            if not plan.bare:
                return -1
        beginning: Beginning | None = None
        if not same_subject:
            beginning = shared_beginning(router.sublist, match, self.interest, remote, message)
        prefix: bytes | None = None if beginning is None else beginning.prefix
        if series.collect(ops, prefix, beginning is not None and beginning.deep) == 1:
            return -1
        if plan is not None and plan.settled is not None:
            for frame in plan.settled:
                target = frame.target
                if not target.outlet.closed:
                    series.append_frames(target.outlet.output, message.buffer, target._plain_head)
                    target.outlet.out_messages += series.count
                    target.outlet.out_bytes += series.payload
                    if not target.outlet.dirty:
                        router.mark_dirty(target.outlet)
                    receivers += 1
        return receivers + router.route_series(publisher, match, message.buffer, series)

    def _send(self, router: Router, match: Match, plan: Plan, message: MessageView) -> cython.int:
        """Send the message to all peers with interest; returns the number of frames, and sets `elsewhere`."""
        frames: cython.int = 0
        frame: Frame
        target: Target
        index: cython.Py_ssize_t
        self.elsewhere = None
        if plan.settled is not None and not match.groups and message.trace is None:
            for frame in plan.settled:
                if not frame.target.outlet.closed:
                    self.headers_dropped += frame.write(message)
                    self._count(router, frame.target, message, 1)
                    frames += 1
            return frames
        for index in range(len(plan.firsts)):
            target = plan.first_targets[index]
            if target.outlet.closed:
                continue
            if target.in_v1:
                frames += self._send_token(router, target, plan.firsts[index], False, message)
            else:
                target.plain = True
        if plan.choices:
            frames += self._choose(router, match, plan, message)
        for target in plan.first_targets:
            if target.plain:
                target.plain = False
                frames += self._send_listed(router, b"", target, message)
        return frames

    def _choose(self, router: Router, match: Match, plan: Plan, message: MessageView) -> cython.int:
        """Choose one member of the cluster per group. A chosen remote member is noted at its peer; a peer that gets no
        other frame gets one now. Returns the number of those frames.
        """
        frames: cython.int = 0
        picked: cython.Py_ssize_t
        choice: Choice
        target: Target
        others: list[Target] | None = None
        for choice in plan.choices:
            picked = self._pick(match, choice)
            if picked < 0:
                continue
            target = choice.targets[picked]
            if target.in_v1:
                frames += self._send_token(router, target, choice.entries[picked], False, message)
            elif target.listed:
                target.listed += choice.name
            else:
                target.listed = choice.listed
                if not target.plain:
                    others = [target] if others is None else [*others, target]
        if others is not None:
            for target in others:
                frames += self._send_listed(router, b"", target, message)
        return frames

    def _pick(self, match: Match, choice: Choice) -> cython.Py_ssize_t:
        """The index of the chosen member of a group; -1 for a local one. Adds a group with local members to
        `elsewhere`.
        """
        here: cython.Py_ssize_t = 0
        if match.groups and choice.queue in match.queues:
            here = len(match.groups[match.queues.index(choice.queue)])
        picked: cython.Py_ssize_t = self._chance.below(here + len(choice.entries)) - here
        if picked < 0 or cython.cast(Target, choice.targets[picked]).outlet.closed:
            return -1
        if here > 0:
            self.elsewhere = choice.alone if self.elsewhere is None else [*self.elsewhere, choice.queue]
        return picked

    # ── where there are leaf nodes ──

    def near(self, message: MessageView) -> list[bytes]:
        return self.interest.find(message.buffer, message.subject, message.subject_end).queues

    def far(self, message: MessageView) -> list[bytes]:
        if self.behind.count == 0:
            return _NONE
        return self.behind.find(message.buffer, message.subject, message.subject_end).queues

    def weigh(self, queue: bytes, source: PeerFrames | None, origin: bytes, message: MessageView) -> cython.Py_ssize_t:
        return len(self._behind(queue, origin, message))

    def _behind(self, queue: bytes, origin: bytes, message: MessageView) -> list[Subscription]:
        """The members of a group at leaf nodes behind peers, except those in the cluster `origin`."""
        found: Match = self.behind.find(message.buffer, message.subject, message.subject_end)
        if queue not in found.queues:
            return []
        members: list[Subscription] = found.groups[found.queues.index(queue)]
        return [
            each
            for each in members
            if not cython.cast(Outlet, each.outlet).closed and (not origin or self.origins.get(each) != origin)
        ]

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
        self.elsewhere = None
        if not self._goes_out(message):
            return 0
        remote: Match = self.interest.find(message.buffer, message.subject, message.subject_end)
        plan: Plan = self._plan(remote)
        frames: cython.int = 0
        index: cython.Py_ssize_t
        target: Target
        choice: Choice
        others: list[Target] = []
        for index in range(len(plan.firsts)):
            target = plan.first_targets[index]
            if target.outlet.closed or (origin and plan.only[index] == origin):
                continue
            if target.in_v1:
                frames += self._send_token(router, target, plan.firsts[index], False, message)
            else:
                target.plain = True
                others.append(target)
        for choice in plan.choices:
            if queues is not None and choice.queue not in queues:
                continue
            index = self._pick(match, choice)
            if index < 0:
                continue
            target = choice.targets[index]
            if target.in_v1:
                frames += self._send_token(router, target, choice.entries[index], False, message)
            else:
                self._list(target, choice.queue, others)
        for queue in self.far(message):
            if queue in served or queue in match.queues or queue in remote.queues:
                continue
            if queues is None or queue in queues:
                members = self._behind(queue, origin, message)
                if members:
                    chosen: Subscription = members[self._chance.below(len(members))]
                    self._list(self.targets[cython.cast(Outlet, chosen.outlet)], queue, others)
        for target in others:
            target.plain = False
            frames += self._send_listed(router, origin, target, message)
        return frames

    def _list(self, target: Target, queue: bytes, others: list[Target]) -> cython.int:
        if not target.listed and not target.plain:
            others.append(target)
        target.listed = (target.listed or b" | ") + queue + b" "
        return 0

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
        if not remote.plain or not self._goes_out(message):
            return 0
        plan: Plan = self._plan(remote)
        frames: cython.int = 0
        index: cython.Py_ssize_t
        target: Target
        for index in range(len(plan.firsts)):
            target = plan.first_targets[index]
            if target.outlet.closed or target.in_v1 or (origin and plan.only[index] == origin):
                continue
            if origin and target.knows_leafs:
                self.headers_dropped += target.write_run_from(origin, message, stride, count)
            else:
                self.headers_dropped += target.write_run(b"", message, stride, count)
            self._count(router, target, message, count)
            frames += 1
        return frames

    def _send_listed(self, router: Router, origin: bytes, target: Target, message: MessageView) -> cython.int:
        """Send a v2 frame for plain interest and the groups noted at the peer. `origin`: the cluster of the leaf node
        that sent the message, or b"".
        """
        if message.trace is not None:
            traced = message.trace.to_peer(target.outlet, ROUTE, message)
            if traced is None:
                target.listed = b""
                return 0
            message = traced
        if origin and target.knows_leafs:
            self.headers_dropped += target.write_from(origin, target.listed, message)
        else:
            self.headers_dropped += target.write(target.listed, message)
        target.listed = b""
        return self._count(router, target, message, 1)

    def _send_token(
        self,
        router: Router,
        target: Target,
        subscription: Subscription,
        passed_on: cython.bint,
        message: MessageView,
    ) -> cython.int:
        """Send a v1 frame, and end its subscription if that reaches its limit."""
        if message.trace is not None and message.trace.to_peer(target.outlet, ROUTE, message) is None:
            return 0
        self.headers_dropped += target.write_token(subscription, passed_on, message)
        if subscription.maximum != 0 and subscription.delivered >= subscription.maximum:
            self.end_one(subscription)
        return self._count(router, target, message, 1)

    def _count(self, router: Router, target: Target, message: MessageView, count: cython.Py_ssize_t) -> cython.int:
        """Count messages written for a peer."""
        target.outlet.out_messages += count
        target.outlet.out_bytes += count * (message.end - message.headers)
        if not target.outlet.dirty:
            router.mark_dirty(target.outlet)
        return 1

    # ── passed on ──

    def pass_on(self, router: Router, message: MessageView, queue: bytes) -> cython.bint:
        """Forward a peer's message for a group without local members to a member elsewhere; False if there is none.

        The mark is the group's name written twice in v2, and a token that ends in `:2` in v1; nats-server ignores both.
        It delivers every v2 frame to its plain subscriptions too, so it is not chosen if it has any: they already got
        the message.
        """
        remote: Match = self.interest.find(message.buffer, message.subject, message.subject_end)
        if queue not in remote.queues or not self._goes_out(message):
            return False
        plain = {subscription.outlet for subscription in remote.firsts()}
        members: list[Subscription] = []
        target: Target
        for subscription in remote.groups[remote.queues.index(queue)]:
            target = self.targets[cython.cast(Outlet, subscription.outlet)]
            if not target.outlet.closed and (target.ours or target.in_v1 or target.outlet not in plain):
                members.append(subscription)
        if not members:
            return False
        subscription = members[self._chance.below(len(members))]
        target = self.targets[cython.cast(Outlet, subscription.outlet)]
        if target.in_v1:
            self._send_token(router, target, subscription, target.ours, message)
        else:
            target.listed = b" | %b %b " % (queue, queue) if target.ours else b" | %b " % queue
            self._send_listed(router, b"", target, message)
        return True
