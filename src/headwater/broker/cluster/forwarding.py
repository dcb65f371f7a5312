"""Messages across routes: who among the peers wants one, which frame each gets, and what a peer's message reaches here.

One `Forwarding` per account. It holds what the peers have announced in a `Sublist` of its own, so that brokers without a
cluster never look at it, and what came over a route can never find a way onto another (one hop).

    from a client here      every plain subscription here; one frame to each peer with plain interest; per queue group one
                            member of the whole cluster, each with the same chance
    from a peer             plain subscriptions here, and one member here of each group that the frame names

A v2 frame carries the plain copy and the chosen groups together; in v1 the plain copy and each chosen member of a group
have frames of their own, and headers cannot travel: they are dropped and counted.

A group whose last member here is gone when its message arrives gets nothing, and that is counted: passing it on could
bounce between brokers whose news of each other is late.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.broker.router import Router
    from cython.cimports.headwater.broker.sublist import Match, Outlet, Sublist, Subscription
    from cython.cimports.headwater.wire.memory import OutputBuffer, slice_bytes
    from cython.cimports.headwater.wire.route_ops import RouteMessage
else:
    from headwater.broker.router import Router
    from headwater.broker.sublist import Match, Outlet, Sublist, Subscription
    from headwater.wire.memory import OutputBuffer, slice_bytes
    from headwater.wire.route_ops import RouteMessage

from headwater.broker.auth.permissions import SubjectSet
from headwater.wire.route_lines import message_head_v2


class Target:
    """A peer as far as frames are concerned. `chosen`: the groups that the message under way is for."""

    def __init__(self, outlet: Outlet, in_v1: bool, account: bytes) -> None:
        self.outlet = outlet
        self.in_v1 = in_v1
        self.rmsg = b"RMSG " + account + b" "
        self.hmsg = b"HMSG " + account + b" "
        self.chosen: list[bytes] = []
        self.plain = False


class Forwarding:
    """The routes of one account. `seed` starts the choice among members of queue groups; any integer."""

    def __init__(self, account: bytes, seed: int) -> None:
        self.account = account
        self.interest = Sublist()
        self.headers_dropped = 0
        self.groups_missed = 0
        self.withheld: SubjectSet | None = None  # what no peer gets, though it may want more than that
        self._targets: dict[Outlet, Target] = {}
        self._known: dict[Outlet, dict[tuple[bytes, bytes], list[Subscription]]] = {}
        self._random = (seed & 0xFFFFFFFF) | 1

    # ── what peers want ──

    def add_peer(self, outlet: Outlet, in_v1: bool) -> None:
        self._targets[outlet] = Target(outlet, in_v1, self.account)
        self._known[outlet] = {}

    def has_peer(self, outlet: Outlet) -> bool:
        """Whether it is known here."""
        return outlet in self._targets

    def has_interest(self, subject: bytes) -> bool:
        """Whether some peer wants a message on `subject`."""
        goes: cython.bint = self.withheld is None or not self.withheld.has(subject)
        return goes and self.interest.has_interest(subject)

    def _goes_out(self, buffer: bytearray, subject: cython.Py_ssize_t, subject_end: cython.Py_ssize_t) -> cython.bint:
        """Whether peers may have what is on this subject."""
        return self.withheld is None or not self.withheld.has(slice_bytes(buffer, subject, subject_end))

    def drop_peer(self, outlet: Outlet) -> None:
        """It is gone: so is all that it wanted."""
        for subscriptions in self._known.pop(outlet, {}).values():
            for subscription in subscriptions:
                self.interest.remove(subscription)
        self._targets.pop(outlet, None)

    def want(self, outlet: Outlet, subject: bytes, queue: bytes, weight: int) -> None:
        """RS+: `weight` members of a queue group, an entry for each; 1 for plain interest."""
        known = self._known.get(outlet)
        if known is None:
            return
        entries = known.setdefault((subject, queue), [])
        while len(entries) > weight:
            self.interest.remove(entries.pop())
        while len(entries) < weight:
            entries.append(Subscription(subject, queue, b"", outlet))
            self.interest.insert(entries[len(entries) - 1])
        if not entries:
            del known[subject, queue]

    def want_one(self, outlet: Outlet, subject: bytes, queue: bytes, token: bytes) -> None:
        """v1's SUB: one subscription of one client of the peer. A token that is in use is left alone."""
        known = self._known.get(outlet)
        if known is not None and (b"", token) not in known:
            subscription = Subscription(subject, queue, token, outlet)
            known[b"", token] = [subscription]
            self.interest.insert(subscription)

    def limit_one(self, outlet: Outlet, token: bytes, maximum: int) -> None:
        """v1's UNSUB: over now, or after so many messages on its token since its SUB."""
        for subscription in self._known.get(outlet, {}).get((b"", token), ()):
            if maximum > subscription.delivered:
                subscription.maximum = maximum
            else:
                self._end_one(subscription)

    def _end_one(self, subscription: Subscription) -> None:
        self.interest.remove(subscription)
        outlet: Outlet | None = subscription.outlet
        if outlet is not None:
            self._known.get(outlet, {}).pop((b"", subscription.sid), None)

    def wants_of(self, outlet: Outlet) -> list[bytes]:
        """The subject of each entry that one peer has announced; of v2 a line each for subject and group."""
        return [entries[0].subject for entries in self._known.get(outlet, {}).values()]

    def peers_want(self) -> list[tuple[bytes, bytes, int]]:
        """Every (subject, queue, number) that peers have announced, sorted: of a group its members, else the peers."""
        members: dict[tuple[bytes, bytes], int] = {}
        peers: dict[tuple[bytes, bytes], set[Outlet]] = {}
        for outlet, known in self._known.items():
            for entries in known.values():
                key = (entries[0].subject, entries[0].queue)
                members[key] = members.get(key, 0) + len(entries)
                peers.setdefault(key, set()).add(outlet)
        return sorted((*key, count if key[1] else len(peers[key])) for key, count in members.items())

    # ── from here ──

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
        """`Router.route` for a broker with peers; deliveries here, and frames sent, together."""
        remote: Match = self.interest.find(buffer, subject, subject_end)
        elsewhere: list[bytes] | None = None
        frames: cython.int = 0
        if own_subject and (remote.plain or remote.groups) and self._goes_out(buffer, subject, subject_end):
            elsewhere = []
            frames = self._send(
                router,
                match,
                remote,
                elsewhere,
                buffer,
                subject,
                subject_end,
                reply,
                reply_end,
                tail,
                headers,
                payload,
                end,
            )
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

    def _send(
        self,
        router: Router,
        match: Match,
        remote: Match,
        elsewhere: list[bytes],
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
        """The frames for all peers that get the message; returns how many peers do."""
        targets: list[Target] = []
        subscription: Subscription
        target: Target
        for subscription in remote.plain:
            target = self._targets[cython.cast(Outlet, subscription.outlet)]
            if not target.plain and not target.outlet.closed:
                target.plain = True
                targets.append(target)
                if target.in_v1:
                    self._write_v1(target, subscription, buffer, subject, reply, reply_end, tail, headers, payload, end)
        if remote.groups:
            self._choose(
                match, remote, elsewhere, targets, buffer, subject, reply, reply_end, tail, headers, payload, end
            )
        for target in targets:
            if not target.in_v1:
                self._write_v2(target, buffer, subject, subject_end, reply, reply_end, tail, headers, payload, end)
            target.plain = False
            target.chosen = []
            target.outlet.out_messages += 1
            target.outlet.out_bytes += end - headers
            router.mark_dirty(target.outlet)
        return len(targets)

    def _choose(
        self,
        match: Match,
        remote: Match,
        elsewhere: list[bytes],
        targets: list[Target],
        buffer: bytearray,
        subject: cython.Py_ssize_t,
        reply: cython.Py_ssize_t,
        reply_end: cython.Py_ssize_t,
        tail: cython.Py_ssize_t,
        headers: cython.Py_ssize_t,
        payload: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
    ) -> cython.int:
        """Per group one member of the cluster; those that are not here are noted at their peer, and in `elsewhere`."""
        index: cython.Py_ssize_t
        here: cython.Py_ssize_t
        picked: cython.Py_ssize_t
        members: list[Subscription]
        subscription: Subscription
        target: Target
        for index in range(len(remote.groups)):
            queue: bytes = remote.queues[index]
            members = remote.groups[index]
            here = len(match.groups[match.queues.index(queue)]) if queue in match.queues else 0
            picked = self._next_random() % (here + len(members))
            if picked < here:
                continue
            subscription = members[picked - here]
            target = self._targets[cython.cast(Outlet, subscription.outlet)]
            if target.outlet.closed:
                continue
            elsewhere.append(queue)
            if target not in targets:
                targets.append(target)
            if target.in_v1:
                self._write_v1(target, subscription, buffer, subject, reply, reply_end, tail, headers, payload, end)
            else:
                target.chosen.append(queue)
        return 0

    def _write_v2(
        self,
        target: Target,
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
        """RMSG or HMSG. Without a queue list all behind the account is as the publisher wrote it."""
        output: OutputBuffer = target.outlet.output
        strip: cython.bint = headers != payload and not target.outlet.headers
        if strip:
            self.headers_dropped += 1
        if not strip and not target.chosen and tail == subject_end + 1:
            output.append_pair(target.rmsg if headers == payload else target.hmsg, buffer, subject, end + 2)
            return 0
        verb: bytes = b"RMSG" if headers == payload or strip else b"HMSG"
        output.append(
            message_head_v2(
                verb,
                self.account,
                slice_bytes(buffer, subject, subject_end),
                slice_bytes(buffer, reply, reply_end),
                target.chosen,
            )
        )
        if strip:
            output.append_pair(b"%d\r\n" % (end - payload), buffer, payload, end + 2)
        else:
            output.append_slice(buffer, reply_end + 1 if reply_end > reply else tail, end + 2)
        return 0

    def _write_v1(
        self,
        target: Target,
        subscription: Subscription,
        buffer: bytearray,
        subject: cython.Py_ssize_t,
        reply: cython.Py_ssize_t,
        reply_end: cython.Py_ssize_t,
        tail: cython.Py_ssize_t,
        headers: cython.Py_ssize_t,
        payload: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
    ) -> cython.int:
        """MSG with the token of one subscription."""
        output: OutputBuffer = target.outlet.output
        output.append_pair(b"MSG ", buffer, subject, tail)
        output.append(subscription.sid + b" ")
        if headers == payload:
            output.append_slice(buffer, tail, end + 2)
        else:
            self.headers_dropped += 1
            if reply != reply_end:
                output.append_slice(buffer, reply, reply_end)
                output.append(b" ")
            output.append_pair(b"%d\r\n" % (end - payload), buffer, payload, end + 2)
        subscription.delivered += 1
        if subscription.maximum != 0 and subscription.delivered >= subscription.maximum:
            self._end_one(subscription)
        return 0

    # ── from a peer ──

    def deliver(self, router: Router, buffer: bytearray, message: RouteMessage) -> cython.int:
        """A v2 message: plain subscriptions here, and one member here of each of its groups."""
        match: Match = router.sublist.find(buffer, message.subject, message.subject_end)
        queue: bytes
        for queue in message.queues:
            if queue not in match.queues:
                self.groups_missed += 1
        not_ours: list[bytes] = [queue for queue in match.queues if queue not in message.queues]
        return router.route_here(
            None,
            match,
            True,
            buffer,
            message.subject,
            message.subject_end,
            message.reply,
            message.reply_end,
            message.tail,
            message.headers,
            message.payload,
            message.end,
            not_ours,
        )

    def deliver_to_queue(self, router: Router, buffer: bytearray, message: RouteMessage, queue: bytes) -> cython.int:
        """A v1 message for one member of `queue`, and nobody else. Its subject is matched again: a token is only text."""
        match: Match = router.sublist.find(buffer, message.subject, message.subject_end)
        if queue not in match.queues:
            self.groups_missed += 1
            return 0
        group: Match = Match(match.generation)
        group.groups.append(match.groups[match.queues.index(queue)])
        group.queues.append(queue)
        return router.route_here(
            None,
            group,
            True,
            buffer,
            message.subject,
            message.subject_end,
            message.reply,
            message.reply_end,
            message.tail,
            message.headers,
            message.payload,
            message.end,
            None,
        )

    def _next_random(self) -> cython.uint:
        x: cython.uint = self._random
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0xFFFFFFFF
        self._random = x
        return x
