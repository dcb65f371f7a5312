"""Messages across routes: who among the peers wants one, which frame each gets, and what a peer's message reaches here.

One `Forwarding` per account. It holds what the peers have announced in a `Sublist` of its own, so that brokers without a
cluster never look at it, and what came over a route can never find a way onto another (one hop).

    from a client here      every plain subscription here; one frame to each peer with plain interest; per queue group one
                            member of the whole cluster, each with the same chance
    from a peer             plain subscriptions here, and one member here of each group that the frame names

A v2 frame carries the plain copy and the chosen groups together; in v1 the plain copy and each chosen member of a group
have frames of their own, and headers cannot travel: they are dropped and counted.

A group whose last member here has left when its message arrives (`departed`: not long ago) is served by a member at a peer,
once. The frame says so: v2 names the group twice, v1 ends its token in `:2`. Neither means anything to a real server, which
reads it as any other frame; one of ours gives it to that group alone, and drops it when it has no member either, so that
nothing bounces between brokers whose news of each other is late. A real server hands every v2 frame to its plain
subscriptions too: where it has any, they have had the message, and it is not passed on. What is not passed on is counted.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.broker.router import PeerForwarding, Router
    from cython.cimports.headwater.broker.sublist import Match, Outlet, Sublist, Subscription
    from cython.cimports.headwater.wire.memory import OutputBuffer, slice_bytes
    from cython.cimports.headwater.wire.route_ops import RouteMessage
else:
    from headwater.broker.router import PeerForwarding, Router
    from headwater.broker.sublist import Match, Outlet, Sublist, Subscription
    from headwater.wire.memory import OutputBuffer, slice_bytes
    from headwater.wire.route_ops import RouteMessage

from collections.abc import Callable

from headwater.broker.auth.permissions import SubjectSet

PASSED_ON: bytes = b":2"  # behind a token of v1


class Target:
    """A peer as far as frames are concerned. `chosen`: the groups that the message under way is for. `ours`: it is a
    Headwater broker."""

    def __init__(self, outlet: Outlet, in_v1: bool, account: bytes, ours: bool) -> None:
        self.outlet = outlet
        self.in_v1 = in_v1
        self.ours = ours
        self.rmsg = b"RMSG " + account + b" "
        self.hmsg = b"HMSG " + account + b" "
        self.chosen: list[bytes] = []
        self.plain = False


class Forwarding(PeerForwarding):
    """The routes of one account. `seed` starts the choice among members of queue groups; any integer.

    `departed(queue)`: whether a member of that group has left this broker not long ago.
    """

    def __init__(self, account: bytes, seed: int, departed: Callable[[bytes], bool] = lambda queue: False) -> None:
        self.account = account
        self.departed = departed
        self.interest = Sublist()
        self.headers_dropped = 0
        self.groups_missed = 0
        self.passed_on = 0
        self.withheld: SubjectSet | None = None  # what no peer gets, though it may want more than that
        self._targets: dict[Outlet, Target] = {}
        self._known: dict[Outlet, dict[tuple[bytes, bytes], list[Subscription]]] = {}
        self._random = (seed & 0xFFFFFFFF) | 1
        self._view = RouteMessage()

    # ── what peers want ──

    def add_peer(self, outlet: Outlet, in_v1: bool, ours: bool = False) -> None:
        self._targets[outlet] = Target(outlet, in_v1, self.account, ours)
        self._known[outlet] = {}

    def has_peer(self, outlet: Outlet) -> bool:
        """Whether it is known here."""
        return outlet in self._targets

    def has_interest(self, subject: bytes) -> cython.bint:
        goes: cython.bint = self.withheld is None or not self.withheld.has(subject)
        return goes and bool(self.interest.has_interest(subject))

    def pending(self, subject: bytes) -> cython.Py_ssize_t:
        match: Match = self.interest.match(subject)
        most: cython.Py_ssize_t = 0
        members: list[Subscription]
        for members in [match.firsts(), *match.groups]:
            for subscription in members:
                outlet: Outlet | None = subscription.outlet
                if outlet is not None:
                    most = max(most, outlet.link.pending)
        return most

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
        """Deliveries here, and frames sent, together."""
        remote: Match = self.interest.find(buffer, subject, subject_end)
        elsewhere: list[bytes] | None = None
        frames: cython.int = 0
        if own_subject and (remote.plain or remote.groups) and self._goes_out(buffer, subject, subject_end):
            elsewhere = []
            self._set_view(subject, subject_end, reply, reply_end, tail, headers, payload, end)
            frames = self._send(router, match, remote, elsewhere, buffer, self._view)
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
        message: RouteMessage
        if (remote.plain or remote.groups) and self._goes_out(buffer, subject, subject_end):
            self._set_view(subject, subject_end, reply, reply_end, tail, headers, payload, end)
            message = self._view
            if remote.groups or not self._sends_alike(remote.firsts(), headers != payload):
                return self._route_each(router, publisher, match, buffer, message, stride, count)
            receivers = self._send_run(router, remote.firsts(), buffer, message, stride, count)
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

    def _sends_alike(self, firsts: list[Subscription], with_headers: cython.bint) -> cython.bint:
        """Whether the messages of a run need no look at each."""
        for subscription in firsts:
            outlet: Outlet | None = subscription.outlet
            if subscription.maximum != 0 or outlet is None or (with_headers and not outlet.headers):
                return False
        return True

    def _send_run(
        self,
        router: Router,
        firsts: list[Subscription],
        buffer: bytearray,
        message: RouteMessage,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        """The frames of a run to each peer; returns how many peers there are."""
        peers: cython.int = 0
        plain: cython.bint = message.headers == message.payload
        subscription: Subscription
        target: Target
        head: bytes
        for subscription in firsts:
            target = self._targets[cython.cast(Outlet, subscription.outlet)]
            if target.outlet.closed:
                continue
            if target.in_v1:
                head = b"MSG " + slice_bytes(buffer, message.subject, message.subject_end) + subscription.after_subject
                target.outlet.output.append_run(head, buffer, message.tail, message.end + 2, stride, count)
                subscription.delivered += count
            else:
                head = target.rmsg if plain else target.hmsg
                target.outlet.output.append_run(head, buffer, message.subject, message.end + 2, stride, count)
            self._count(router, target, message, count)
            peers += 1
        return peers

    def _send(
        self,
        router: Router,
        match: Match,
        remote: Match,
        elsewhere: list[bytes],
        buffer: bytearray,
        message: RouteMessage,
    ) -> cython.int:
        """The frames for all peers that get the message; returns how many peers do."""
        targets: list[Target] = []
        subscription: Subscription
        target: Target
        for subscription in remote.firsts():
            target = self._targets[cython.cast(Outlet, subscription.outlet)]
            if not target.outlet.closed:
                target.plain = True
                targets.append(target)
                if target.in_v1:
                    self._write_v1(target, subscription, False, buffer, message)
        if remote.groups:
            self._choose(match, remote, elsewhere, targets, buffer, message)
        for target in targets:
            if not target.in_v1:
                self._write_v2(target, buffer, message)
            target.plain = False
            if target.chosen:
                target.chosen = []
            self._count(router, target, message, 1)
        return len(targets)

    def _count(self, router: Router, target: Target, message: RouteMessage, count: cython.Py_ssize_t) -> cython.int:
        """`count` messages were written for a peer."""
        target.outlet.out_messages += count
        target.outlet.out_bytes += count * (message.end - message.headers)
        router.mark_dirty(target.outlet)
        return 0

    def _choose(
        self,
        match: Match,
        remote: Match,
        elsewhere: list[bytes],
        targets: list[Target],
        buffer: bytearray,
        message: RouteMessage,
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
                self._write_v1(target, subscription, False, buffer, message)
            else:
                target.chosen.append(queue)
        return 0

    def _write_v2(self, target: Target, buffer: bytearray, message: RouteMessage) -> cython.int:
        """RMSG or HMSG. Without a queue list all behind the account is as the publisher wrote it."""
        output: OutputBuffer = target.outlet.output
        end: cython.Py_ssize_t = message.end + 2
        plain: cython.bint = message.headers == message.payload
        strip: cython.bint = not plain and not target.outlet.headers
        if strip:
            self.headers_dropped += 1
        if not strip and not target.chosen and message.tail == message.subject_end + 1:
            output.append_pair(target.rmsg if plain else target.hmsg, buffer, message.subject, end)
            return 0
        replies: cython.bint = message.reply_end > message.reply
        output.append_pair(target.rmsg if plain or strip else target.hmsg, buffer, message.subject, message.subject_end)
        output.append(b" " if not target.chosen else b" + " if replies else b" | ")
        if replies:
            output.append_slice(buffer, message.reply, message.reply_end)
            output.append(b" ")
        for queue in target.chosen:
            output.append(queue)
            output.append(b" ")
        if strip:
            output.append_pair(b"%d\r\n" % (message.end - message.payload), buffer, message.payload, end)
        else:
            output.append_slice(buffer, message.reply_end + 1 if replies else message.tail, end)
        return 0

    def _write_v1(
        self,
        target: Target,
        subscription: Subscription,
        passed_on: cython.bint,
        buffer: bytearray,
        message: RouteMessage,
    ) -> cython.int:
        """MSG with the token of one subscription."""
        output: OutputBuffer = target.outlet.output
        end: cython.Py_ssize_t = message.end + 2
        output.append_pair(b"MSG ", buffer, message.subject, message.subject_end)
        output.append(b" " + subscription.sid + PASSED_ON + b" " if passed_on else subscription.after_subject)
        if message.headers == message.payload:
            output.append_slice(buffer, message.tail, end)
        else:
            self.headers_dropped += 1
            if message.reply != message.reply_end:
                output.append_slice(buffer, message.reply, message.reply_end)
                output.append(b" ")
            output.append_pair(b"%d\r\n" % (message.end - message.payload), buffer, message.payload, end)
        subscription.delivered += 1
        if subscription.maximum != 0 and subscription.delivered >= subscription.maximum:
            self._end_one(subscription)
        return 0

    # ── from a peer ──

    def deliver(self, router: Router, buffer: bytearray, message: RouteMessage) -> cython.int:
        """A v2 message: plain subscriptions here, and one member here of each of its groups."""
        match: Match = router.sublist.find(buffer, message.subject, message.subject_end)
        not_ours: list[bytes] | None = None
        queue: bytes
        if message.queues:
            if len(message.queues) == 2 and message.queues[0] == message.queues[1]:
                return self.deliver_to_queue(router, buffer, message, message.queues[0], True)
            for queue in message.queues:
                if queue not in match.queues:
                    self._pass_on(router, buffer, message, queue)
        if match.groups:
            not_ours = [queue for queue in match.queues if queue not in message.queues]
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

    def deliver_run(
        self,
        router: Router,
        buffer: bytearray,
        message: RouteMessage,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        """`deliver` for `count` messages with the same line, each `stride` bytes behind the one before."""
        match: Match = router.sublist.find(buffer, message.subject, message.subject_end)
        if match.separate and not message.queues and message.reply == message.reply_end:
            return router.route_run_here(
                None,
                match,
                buffer,
                message.subject,
                message.subject_end,
                message.reply,
                message.reply_end,
                message.tail,
                message.headers,
                message.payload,
                message.end,
                stride,
                count,
            )
        deliveries: cython.int = self.deliver(router, buffer, message)
        while count > 1:
            message.advance(stride)
            deliveries += self.deliver(router, buffer, message)
            count -= 1
        return deliveries

    def deliver_to_queue(
        self, router: Router, buffer: bytearray, message: RouteMessage, queue: bytes, passed_on: cython.bint
    ) -> cython.int:
        """A message for one member of `queue`, and nobody else. Its subject is matched again: a token is only text."""
        match: Match = router.sublist.find(buffer, message.subject, message.subject_end)
        if queue not in match.queues:
            if passed_on:
                self.groups_missed += 1
                return 0
            return self._pass_on(router, buffer, message, queue)
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

    def _pass_on(self, router: Router, buffer: bytearray, message: RouteMessage, queue: bytes) -> cython.int:
        """Its member here has left: to one at a peer, and it says that it was passed on. Returns how many get it."""
        remote: Match = self.interest.find(buffer, message.subject, message.subject_end)
        members: list[Subscription] = []
        goes_out: cython.bint = self._goes_out(buffer, message.subject, message.subject_end)
        if goes_out and queue in remote.queues and self.departed(queue):
            plain = {subscription.outlet for subscription in remote.firsts()}
            for subscription in remote.groups[remote.queues.index(queue)]:
                target: Target = self._targets[cython.cast(Outlet, subscription.outlet)]
                if not target.outlet.closed and (target.ours or target.in_v1 or target.outlet not in plain):
                    members.append(subscription)
        if not members:
            self.groups_missed += 1
            return 0
        subscription = members[self._next_random() % len(members)]
        target = self._targets[cython.cast(Outlet, subscription.outlet)]
        if target.in_v1:
            self._write_v1(target, subscription, target.ours, buffer, message)
        else:
            target.chosen = [queue, queue] if target.ours else [queue]
            self._write_v2(target, buffer, message)
            target.chosen = []
        self._count(router, target, message, 1)
        self.passed_on += 1
        return 1

    def _next_random(self) -> cython.uint:
        x: cython.uint = self._random
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0xFFFFFFFF
        self._random = x
        return x
