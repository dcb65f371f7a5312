"""Messages from here across routes: who among the peers gets one, and in which frames.

One `Forwarding` per account. What came over a route never comes here (`arrivals`), so nothing makes a second hop.

    from a client here      every plain subscription here; one frame to each peer with plain interest; per queue group one
                            member of the whole cluster, each with the same chance
    passed on               a message of a peer for a member that has left here: one member at another peer, once

A v2 frame carries the plain copy and the chosen groups together; in v1 the plain copy and each chosen member of a group
have frames of their own, and headers cannot travel: they are dropped and counted.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.broker.cluster.frames import Frame, Target
    from cython.cimports.headwater.broker.cluster.peer_interest import PeerInterest
    from cython.cimports.headwater.broker.cluster.plans import Choice, Plan
    from cython.cimports.headwater.broker.router import Router
    from cython.cimports.headwater.broker.sublist import Match, Outlet, Subscription
    from cython.cimports.headwater.wire.memory import slice_bytes
    from cython.cimports.headwater.wire.route_ops import RouteMessage
else:
    from headwater.broker.cluster.frames import Frame, Target
    from headwater.broker.cluster.peer_interest import PeerInterest
    from headwater.broker.cluster.plans import Choice, Plan
    from headwater.broker.router import Router
    from headwater.broker.sublist import Match, Outlet, Subscription
    from headwater.wire.memory import slice_bytes
    from headwater.wire.route_ops import RouteMessage


class Forwarding(PeerInterest):
    """The routes of one account. `seed` starts the choice among members of queue groups; any integer."""

    def __init__(self, account: bytes, seed: int) -> None:
        PeerInterest.__init__(self, account)
        self.headers_dropped = 0
        self._random = (seed & 0xFFFFFFFF) | 1
        self._view = RouteMessage()
        self._elsewhere: list[bytes] | None = (
            None  # of the message under way: groups with members here that peers serve
        )

    def _goes_out(self, buffer: bytearray, subject: cython.Py_ssize_t, subject_end: cython.Py_ssize_t) -> cython.bint:
        """Whether peers may have what is on this subject."""
        return self.withheld is None or not self.withheld.has(slice_bytes(buffer, subject, subject_end))

    def _plan(self, remote: Match) -> Plan:
        """Made once for each Match, and kept with it."""
        plan: Plan = cython.cast(Plan, remote.plan)
        if plan is None:
            plan = Plan(remote, self.targets)
            remote.plan = plan
        return plan

    def route(
        self,
        router: Router,
        publisher: Outlet | None,
        match: Match,
        own_subject: cython.bint,
        buffer: bytearray,
        subject: cython.Py_ssize_t,
        subject_end: cython.Py_ssize_t,
        reply: cython.Py_ssize_t,
        reply_end: cython.Py_ssize_t,
        tail: cython.Py_ssize_t,
        headers: cython.Py_ssize_t,
        payload: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
    ) -> cython.int:
        """Deliveries here, and frames sent, together."""
        remote: Match = self.interest.find(buffer, subject, subject_end)
        elsewhere: list[bytes] | None = None
        frames: cython.int = 0
        if own_subject and (remote.plain or remote.groups) and self._goes_out(buffer, subject, subject_end):
            self._set_view(subject, subject_end, reply, reply_end, tail, headers, payload, end)
            frames = self._send(router, match, self._plan(remote), buffer, self._view)
            elsewhere = self._elsewhere
            if not match.plain and not match.groups:
                return frames
        return frames + router.route_here(
            publisher,
            match,
            own_subject,
            buffer,
            subject,
            subject_end,
            reply,
            reply_end,
            tail,
            headers,
            payload,
            end,
            elsewhere,
        )

    def route_run(
        self,
        router: Router,
        publisher: Outlet | None,
        match: Match,
        buffer: bytearray,
        subject: cython.Py_ssize_t,
        subject_end: cython.Py_ssize_t,
        reply: cython.Py_ssize_t,
        reply_end: cython.Py_ssize_t,
        tail: cython.Py_ssize_t,
        headers: cython.Py_ssize_t,
        payload: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        """Receivers here, and peers, together; a peer gets all of a run with one copy, where nothing is to be chosen."""
        remote: Match = self.interest.find(buffer, subject, subject_end)
        receivers: cython.int = 0
        plan: Plan
        if (remote.plain or remote.groups) and self._goes_out(buffer, subject, subject_end):
            self._set_view(subject, subject_end, reply, reply_end, tail, headers, payload, end)
            plan = self._plan(remote)
            if plan.limited or match.groups:
                return self._route_each(router, publisher, match, buffer, self._view, stride, count)
            receivers = self._send_run(router, match, plan, buffer, self._view, stride, count)
        return receivers + router.route_run_here(
            publisher,
            match,
            buffer,
            subject,
            subject_end,
            reply,
            reply_end,
            tail,
            headers,
            payload,
            end,
            stride,
            count,
        )

    def _set_view(
        self,
        subject: cython.Py_ssize_t,
        subject_end: cython.Py_ssize_t,
        reply: cython.Py_ssize_t,
        reply_end: cython.Py_ssize_t,
        tail: cython.Py_ssize_t,
        headers: cython.Py_ssize_t,
        payload: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
    ) -> cython.int:
        """Where the parts of the message under way are, in one object; in use until something is delivered here."""
        view: RouteMessage = self._view
        view.subject = subject
        view.subject_end = subject_end
        view.reply = reply
        view.reply_end = reply_end
        view.tail = tail
        view.headers = headers
        view.payload = payload
        view.end = end
        return 0

    def _route_each(
        self,
        router: Router,
        publisher: Outlet | None,
        match: Match,
        buffer: bytearray,
        message: RouteMessage,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        """A run of messages each of which has a choice of its own, or whose limit is among them."""
        receivers: cython.int = 0
        subject: cython.Py_ssize_t = message.subject
        subject_end: cython.Py_ssize_t = message.subject_end
        reply: cython.Py_ssize_t = message.reply
        reply_end: cython.Py_ssize_t = message.reply_end
        tail: cython.Py_ssize_t = message.tail
        headers: cython.Py_ssize_t = message.headers
        payload: cython.Py_ssize_t = message.payload
        end: cython.Py_ssize_t = message.end
        at: cython.Py_ssize_t
        for at in range(0, count * stride, stride):
            receivers += self.route(
                router,
                publisher,
                match,
                True,
                buffer,
                subject + at,
                subject_end + at,
                reply + at,
                reply_end + at,
                tail + at,
                headers + at,
                payload + at,
                end + at,
            )
        return receivers

    def _send_run(
        self,
        router: Router,
        match: Match,
        plan: Plan,
        buffer: bytearray,
        message: RouteMessage,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        """The frames of a run, of which nobody here is a queue member and no limit is near; returns how many there are."""
        frames: cython.int = 0
        frame: Frame
        if plan.settled is None:
            for _ in range(count):
                frames += self._send(router, match, plan, buffer, message)
                message.advance(stride)
            return frames
        for frame in plan.settled:
            if not frame.target.outlet.closed:
                self.headers_dropped += frame.write_run(buffer, message, stride, count)
                self._count(router, frame.target, message, count)
                frames += 1
        return frames

    def _send(self, router: Router, match: Match, plan: Plan, buffer: bytearray, message: RouteMessage) -> cython.int:
        """The frames for all peers that get the message; returns how many there are, and leaves `_elsewhere`."""
        frames: cython.int = 0
        frame: Frame
        target: Target
        index: cython.Py_ssize_t
        self._elsewhere = None
        if plan.settled is not None and not match.groups:
            for frame in plan.settled:
                if not frame.target.outlet.closed:
                    self.headers_dropped += frame.write(buffer, message)
                    self._count(router, frame.target, message, 1)
                    frames += 1
            return frames
        for index in range(len(plan.firsts)):
            target = plan.first_targets[index]
            if target.outlet.closed:
                continue
            if target.in_v1:
                frames += self._send_token(router, target, plan.firsts[index], False, buffer, message)
            else:
                target.plain = True
        if plan.choices:
            frames += self._choose(router, match, plan, buffer, message)
        for target in plan.first_targets:
            if target.plain:
                target.plain = False
                frames += self._send_listed(router, target, buffer, message)
        return frames

    def _choose(self, router: Router, match: Match, plan: Plan, buffer: bytearray, message: RouteMessage) -> cython.int:
        """Per group one member of the cluster. Those that are not here are noted at their peer, and written there if
        nothing else will be; returns how many frames that were."""
        frames: cython.int = 0
        here: cython.Py_ssize_t
        picked: cython.Py_ssize_t
        choice: Choice
        target: Target
        others: list[Target] | None = None
        for choice in plan.choices:
            here = 0
            if match.groups and choice.queue in match.queues:
                here = len(match.groups[match.queues.index(choice.queue)])
            picked = self._next_random() % (here + len(choice.entries))
            if picked < here:
                continue
            target = choice.targets[picked - here]
            if target.outlet.closed:
                continue
            if here > 0:
                self._elsewhere = choice.alone if self._elsewhere is None else [*self._elsewhere, choice.queue]
            if target.in_v1:
                frames += self._send_token(router, target, choice.entries[picked - here], False, buffer, message)
            elif target.listed:
                target.listed += choice.name
            else:
                target.listed = choice.listed
                if not target.plain:
                    others = [target] if others is None else [*others, target]
        if others is not None:
            for target in others:
                frames += self._send_listed(router, target, buffer, message)
        return frames

    def _send_listed(self, router: Router, target: Target, buffer: bytearray, message: RouteMessage) -> cython.int:
        """A v2 frame for plain interest and the groups noted at the peer."""
        self.headers_dropped += target.write(target.listed, buffer, message)
        target.listed = b""
        return self._count(router, target, message, 1)

    def _send_token(
        self,
        router: Router,
        target: Target,
        subscription: Subscription,
        passed_on: cython.bint,
        buffer: bytearray,
        message: RouteMessage,
    ) -> cython.int:
        """A v1 frame; it may be the last that its subscription gets."""
        self.headers_dropped += target.write_token(subscription, passed_on, buffer, message)
        if subscription.maximum != 0 and subscription.delivered >= subscription.maximum:
            self.end_one(subscription)
        return self._count(router, target, message, 1)

    def _count(self, router: Router, target: Target, message: RouteMessage, count: cython.Py_ssize_t) -> cython.int:
        """`count` messages were written for a peer."""
        target.outlet.out_messages += count
        target.outlet.out_bytes += count * (message.end - message.headers)
        if not target.outlet.dirty:
            router.mark_dirty(target.outlet)
        return 1

    # ── passed on ──

    def pass_on(self, router: Router, buffer: bytearray, message: RouteMessage, queue: bytes) -> cython.bint:
        """A peer's message for a group that has nobody here: to a member elsewhere, and the frame says so; whether one is.

        v2 names the group twice then, v1 ends the token in `:2`; to a real server neither means anything. It hands every v2
        frame to its plain subscriptions too: where it has any, they have had the message, and it is not passed on.
        """
        remote: Match = self.interest.find(buffer, message.subject, message.subject_end)
        if queue not in remote.queues or not self._goes_out(buffer, message.subject, message.subject_end):
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
        subscription = members[self._next_random() % len(members)]
        target = self.targets[cython.cast(Outlet, subscription.outlet)]
        if target.in_v1:
            self._send_token(router, target, subscription, target.ours, buffer, message)
        else:
            target.listed = b" | %b %b " % (queue, queue) if target.ours else b" | %b " % queue
            self._send_listed(router, target, buffer, message)
        return True

    def _next_random(self) -> cython.uint:
        x: cython.uint = self._random
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0xFFFFFFFF
        self._random = x
        return x
