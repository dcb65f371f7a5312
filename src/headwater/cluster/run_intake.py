"""Takes in the runs that another worker of this server announces (`wire.run_announcement`), unread if that can be.

    link ──announcement──▶ parser ──▶ `begin`
    link ──splice──▶ pages ─┬─ all receivers here have the sid of the run ──tee, splice──▶ their sockets
                            └─ otherwise ──read──▶ memory ──▶ the messages that they are, as from any route

What follows an announcement within one read is in memory already: then the rest of the run is read as well, and the next
read takes no more than an announcement. So runs one after the other stay unread, but for the first.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.exchange.router import Router
    from cython.cimports.headwater.exchange.sublist import Match, Outlet, Subscription
    from cython.cimports.headwater.net.arrived_run import ArrivedRun
    from cython.cimports.headwater.net.endpoint import Endpoint
    from cython.cimports.headwater.wire.memory import count_run, unset_array
    from cython.cimports.headwater.wire.route_ops import RouteMessage
    from cython.cimports.headwater.wire.run_announcement import Announced
else:
    from headwater.exchange.router import Router
    from headwater.exchange.sublist import Match, Outlet, Subscription
    from headwater.net.arrived_run import ArrivedRun
    from headwater.net.endpoint import Endpoint
    from headwater.wire.memory import count_run, unset_array
    from headwater.wire.route_ops import RouteMessage
    from headwater.wire.run_announcement import Announced

from headwater.wire.run_announcement import ANNOUNCED

_ANNOUNCED: cython.Py_ssize_t = ANNOUNCED


class RunIntake:
    """That of one link. `announced`: the current run, None without one; `missing`: its bytes that are not here yet.
    `runs_follow`: the link had a run last whose like may be handed on.
    """

    def __init__(self, link: Endpoint) -> None:
        self.announced: Announced | None = None
        self.missing = 0
        self.runs_follow = False
        self.pages = ArrivedRun()
        self._link = link
        self._direct = getattr(link, "_readers", None) is not None  # a DirectLoop reads the link
        self._router: Router | None = None
        self._body: bytearray | None = None
        self._have = 0  # bytes of `_body`
        self._message = RouteMessage()

    def begin(self, run: Announced, router: Router | None) -> cython.int:
        """Take `run` next, for the account of `router`; None if nothing here gets it."""
        self.announced, self.missing = run, run.total
        self._router = router
        self.runs_follow = (
            self._direct
            and self._receivers(run) is not None
            and self.pages.begin(cython.cast(Router, router).flusher.shared.calls)
        )
        return 0

    def take(self, buffer: bytearray, start: cython.Py_ssize_t, filled: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Take what is here of the current run, which is what `buffer` has from `start` on, or else what the socket has;
        returns the bytes that were taken from `buffer`."""
        count: cython.Py_ssize_t = min(self.missing, filled - start)
        run: Announced = cython.cast(Announced, self.announced)
        if count == 0:
            if self.runs_follow and self._body is None:
                moved: cython.Py_ssize_t = self.pages.take(self._link._descriptor, self.missing)
                self.missing -= moved
                if moved == 0 and self._link._apart < 0:  # the end of the input, or something that the next read tells
                    self.runs_follow = False
            return 0
        self._read_back()
        if self._body is None:
            self._body = unset_array(run.total)
            self._have = 0
        with memoryview(self._body) as body, memoryview(buffer) as source:
            body[self._have : self._have + count] = source[start : start + count]
        self._have += count
        self.missing -= count
        return count

    def expect(self, rest: cython.Py_ssize_t) -> cython.int:
        """A read has ended and left `rest` bytes unparsed: say what the next one takes."""
        most: cython.Py_ssize_t = 0
        if self.runs_follow:
            if self.missing == 0:
                most = max(0, _ANNOUNCED - rest)
            elif self._body is None:
                most = -1
            else:
                most = self.missing
        self._link._apart = most
        return 0

    def hand_on(self) -> cython.bint:
        """Hand the current run to all its receivers unread, and end it; False if it is to be read, which `message` does."""
        run: Announced = cython.cast(Announced, self.announced)
        if self._body is not None:
            return False
        receivers: list[Subscription] | None = self._receivers(run)
        if receivers is None:
            self.runs_follow = False
            self._read_back()
            return False
        router: Router = cython.cast(Router, self._router)
        subscription: Subscription
        self.pages.hand([cython.cast(Outlet, subscription.outlet).endpoint for subscription in receivers])
        for subscription in receivers:
            outlet: Outlet = cython.cast(Outlet, subscription.outlet)
            outlet.out_messages += run.count
            outlet.out_bytes += run.count * run.size
            subscription.delivered += run.count
            if not outlet.dirty:
                router.flusher.mark(outlet)
        self.announced = self._router = None
        return True

    def message(self) -> RouteMessage | None:
        """The first message of the current run, which has been read and ends; None if it is not as announced."""
        run: Announced = cython.cast(Announced, self.announced)
        body: bytearray = cython.cast(bytearray, self._body)
        self.announced = self._body = self._router = None
        line: cython.Py_ssize_t = len(run.head)
        if not body.startswith(run.head) or (
            run.count > 1 and count_run(body, 0, run.total, line, run.stride) != run.count
        ):
            return None
        message: RouteMessage = self._message
        message.account, message.token, message.origin, message.queues = run.account, b"", b"", []
        message.buffer = body
        message.subject = 4
        message.subject_end = 4 + len(run.subject)
        message.tail = message.reply = message.reply_end = message.subject_end + 2 + len(run.sid)
        message.headers = message.payload = line
        message.end = run.stride - 2
        return message

    def close(self) -> None:
        """The link is gone."""
        self.announced = self._body = self._router = None
        self.missing = 0
        self.pages.close()

    def _receivers(self, run: Announced) -> list[Subscription] | None:
        """Who gets the run unread; None if it has to be read for one of them, or has no receiver."""
        if self._router is None or self._router.junction is not None:
            return None
        match: Match = self._router.sublist.match(run.subject)
        found: list[Subscription] = []
        subscription: Subscription
        if not match.separate or match.groups:
            return None
        for subscription in match.plain:
            if subscription.closed:
                continue
            outlet: Outlet | None = subscription.outlet
            if outlet is None or outlet.endpoint is None or outlet.guard is not None:
                return None
            if subscription.sid != run.sid or subscription.maximum != 0:
                return None
            found.append(subscription)
        return found or None

    def _read_back(self) -> cython.int:
        """Have what the pages have in memory."""
        if self.pages.size > 0:
            run: Announced = cython.cast(Announced, self.announced)
            self._have = self.pages.size
            self._body = self.pages.read(run.total)
        return 0
