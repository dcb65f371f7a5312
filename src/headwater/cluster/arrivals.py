"""Delivers a peer's messages to local plain subscriptions, and to one local member of each queue group that the frame
names.

This broker's leaf nodes get the messages too (`exchange.junction`).

If the last local member of a group has just left (`departed`), its message is passed on to a member at a peer, once. A
frame that was already passed on goes to that group alone, and is dropped if the group has no member here either, so
messages do not bounce between brokers with stale interest. Messages that cannot be passed on are counted.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.cluster.forwarding import Forwarding
    from cython.cimports.headwater.exchange.junction import Junction
    from cython.cimports.headwater.exchange.router import Router
    from cython.cimports.headwater.exchange.shown_subject import route_arrival
    from cython.cimports.headwater.exchange.sublist import Beginning, Match
    from cython.cimports.headwater.wire.publish_series import PublishSeries
    from cython.cimports.headwater.wire.route_ops import RouteMessage, RouteOpParser
else:
    from headwater.cluster.forwarding import Forwarding
    from headwater.exchange.junction import Junction
    from headwater.exchange.router import Router
    from headwater.exchange.shown_subject import route_arrival
    from headwater.exchange.sublist import Beginning, Match
    from headwater.wire.publish_series import PublishSeries
    from headwater.wire.route_ops import RouteMessage, RouteOpParser

from collections.abc import Callable

from headwater.cluster.frames import PASSED_ON

# One for all routes: it is filled and used up within a call that runs no Python code.
SERIES: PublishSeries = PublishSeries()


class Arrivals:
    """The arrivals of one account. `departed(queue)`: whether a member of that group has left this broker recently.
    `queue_of(token)`: the group of the local member that has, or recently had, that v1 token.
    """

    def __init__(
        self,
        router: Router,
        forwarding: Forwarding,
        departed: Callable[[bytes], bool],
        queue_of: Callable[[bytes], bytes | None],
    ) -> None:
        self.router = router
        self.groups_missed = 0
        self.passed_on = 0
        self._forwarding = forwarding
        self._departed = departed
        self._queue_of = queue_of
        # Cache of the last Match, its list of groups (all with local members) and their combined match. Most messages
        # hit it.
        self._match: Match | None = None
        self._queues: list[bytes] = []
        self._served: Match | None = None
        self._head = b"RMSG " + forwarding.account + b" "

    def deliver_series(self, message: RouteMessage, ops: RouteOpParser) -> cython.Py_ssize_t:
        """Deliver a message of `ops` together with those behind it that have its receivers, if these take them unlooked at.
        Returns their number, 0 if the message was not delivered either: it needs `deliver`."""
        if not cython.compiled or ops._behind + 8 > ops._filled or ops._behind == 0:
            return 0
        buffer: bytearray = message.buffer
        if message.headers != message.payload or message.queues or message.token or message.origin:
            return 0
        # A reply that begins with `$` may have a shown subject behind it.
        if self.router.junction is not None or (message.reply_end > message.reply and buffer[message.reply] == 36):
            return 0
        match: Match = self.router.sublist.find(buffer, message.subject, message.subject_end)
        if not match.separate or not match.takes_series():
            return 0
        beginning: Beginning | None = self.router.sublist.beginning_of(
            match, buffer, message.subject, message.subject_end
        )
        prefix: bytes | None = None if beginning is None else beginning.prefix
        deep: cython.bint = beginning is not None and beginning.deep
        # A route's limit is for the whole line, CR LF included.
        SERIES.limit(ops._max_payload, ops._max_line - len(self._head) - 2)
        ops._behind = SERIES.gather(message, self._head, ops._behind, ops._filled, prefix, deep)
        if SERIES.count == 1:
            return 0
        self.router.route_series(None, match, buffer, SERIES)
        return SERIES.count

    def deliver(self, message: RouteMessage) -> cython.int:
        """A v2 message, or a plain one of v1."""
        match: Match = self.router.sublist.find(message.buffer, message.subject, message.subject_end)
        queue: bytes
        taken: list[bytes] | None = None
        junction: Junction | None = cython.cast(Junction, self.router.junction)
        if junction is not None and not _is_passed_on(message):
            junction.from_route(self.router, message.origin, match, message.queues, message)
            taken = junction.elsewhere
        if match is self._match and message.queues is self._queues:
            return self._route(cython.cast(Match, self._served), message)
        if message.queues or match.groups:
            takes_all: cython.bint = self._takes_all(match, message)
            if not takes_all and _is_passed_on(message):
                return self.deliver_to_queue(message, message.queues[0], True)
            for queue in message.queues:
                if queue not in match.queues and (taken is None or queue not in taken):
                    self._pass_on(message, queue)
            served: Match = match.serving(message.queues, True)
            if takes_all:
                self._match, self._queues, self._served = match, message.queues, served
            match = served
        return self._route(match, message)

    def deliver_run(self, message: RouteMessage, stride: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.int:
        """`deliver` for `count` messages with the same line, `stride` bytes apart."""
        match: Match = self.router.sublist.find(message.buffer, message.subject, message.subject_end)
        if self._takes_all(match, message) and not self._for_leafs(message):
            count -= self._route_run(match.serving(message.queues, True), message, stride, count)
        while count > 0:
            self.deliver(message)
            message.advance(stride)
            count -= 1
        return 0

    def deliver_to_member(
        self, message: RouteMessage, stride: cython.Py_ssize_t, count: cython.Py_ssize_t
    ) -> cython.int:
        """v1: like `deliver_run`, for messages whose token names a queue group member."""
        token: bytes = message.token
        queue: bytes | None = self._queue_of(token)
        passed_on: cython.bint = False
        if queue is None and token.endswith(PASSED_ON):
            passed_on = True
            queue = self._queue_of(token.removesuffix(PASSED_ON))
        if queue is None:
            self.groups_missed += count
            return 0
        match: Match = self.router.sublist.find(message.buffer, message.subject, message.subject_end)
        if queue in match.queues:
            count -= self._route_run(match.serving([queue], False), message, stride, count)
        while count > 0:
            self.deliver_to_queue(message, queue, passed_on)
            message.advance(stride)
            count -= 1
        return 0

    def _route_run(
        self,
        match: Match,
        message: RouteMessage,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.Py_ssize_t:
        """Route messages while `match` stays valid; returns their number. `message` is then at the first one left."""
        done: cython.Py_ssize_t = 0
        if count > 1 and match.separate and message.reply == message.reply_end:
            self.router.route_run_here(None, match, message, stride, count)
            return count
        generation: cython.Py_ssize_t = self.router.sublist.generation
        while done < count and generation == self.router.sublist.generation:
            self._route(match, message)
            message.advance(stride)
            done += 1
        return done

    def _for_leafs(self, message: RouteMessage) -> cython.bint:
        """Whether leaf nodes here have interest in the message."""
        junction: Junction | None = cython.cast(Junction, self.router.junction)
        return junction is not None and junction.leafs.has_interest(message.subject_bytes())

    def _takes_all(self, match: Match, message: RouteMessage) -> cython.bint:
        """Whether every group that the frame names has a local member, and the frame was not passed on."""
        queue: bytes
        if _is_passed_on(message):
            return False
        for queue in message.queues:
            if queue not in match.queues:
                return False
        return True

    def deliver_to_queue(self, message: RouteMessage, queue: bytes, passed_on: cython.bint) -> cython.int:
        """Deliver to one member of `queue` only. The subject is matched again, because a token proves nothing."""
        match: Match = self.router.sublist.find(message.buffer, message.subject, message.subject_end)
        if queue in match.queues:
            return self._route(match.serving([queue], False), message)
        if not passed_on:
            return self._pass_on(message, queue)
        self.groups_missed += 1
        return 0

    def _pass_on(self, message: RouteMessage, queue: bytes) -> cython.int:
        """The local member has left: forward to a member at a peer. Returns the number of receivers."""
        if self._departed(queue) and self._forwarding.pass_on(self.router, message, queue):
            self.passed_on += 1
            return 1
        self.groups_missed += 1
        return 0

    def _route(self, match: Match, message: RouteMessage) -> cython.int:
        return route_arrival(self.router, None, match, message, True)


def _is_passed_on(message: RouteMessage) -> cython.bint:
    return len(message.queues) == 2 and message.queues[0] == message.queues[1]
