"""Monitoring: the pages of a running broker over HTTP, under nats-server's paths and with its field names.

    /varz /connz /subsz /accountz /accstatz /routez /leafz /gatewayz /jsz /healthz     JSON
    /eventz /ipqueuesz                                                                 JSON
    /metrics                                                                           Prometheus
    /historyz                                                                          ten minutes of figures
    /                                                                                  the live page (live_page.py)

It runs in the broker's event loop and reads the broker's state as it is; nothing can be changed from here. Passwords and
tokens are in no page.
"""

import asyncio
import time
from collections.abc import Generator
from functools import partial
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from headwater.errors import ConfigError, EnvironmentProblem
from headwater.monitoring import live_page
from headwater.monitoring.history import History
from headwater.monitoring.ledger import Totals
from headwater.monitoring.pages import PAGES
from headwater.monitoring.parameters import number, switch
from headwater.monitoring.steps import Steps, begun, encoded_pieces, in_turns
from headwater.monitoring.view import ObservableBroker, View
from headwater.net.limits import MONITORING
from headwater.net.link import Link
from headwater.net.listening import HTTP_FAREWELL, Listener, bind

if TYPE_CHECKING:
    from headwater.exchange.session import Session
    from headwater.jetstream_workers.line import Line
    from headwater.monitoring.http import Response
    from headwater.monitoring.parameters import Parameters
    from headwater.net.listener_options import MonitoringOptions

LOOK_SECONDS = 1.0  # between two checks of the clients' activity
FIRST_LOOK_SECONDS = 0.2  # until the first one: the start goes on with what it has left for after the greeting
LOOKED_AT = 1000  # clients in one turn of the loop


class Monitoring:
    """The HTTP listener of one broker; an async context manager.

    Raises EnvironmentProblem when the address cannot be bound or the extra `http` is not installed.
    """

    def __init__(self, broker: ObservableBroker, options: "MonitoringOptions", *, digest: str = "") -> None:
        self.host = options.host
        self.port = options.port
        self.scheme = "https" if options.tls else "http"
        self._broker = broker
        self._options = options
        self.view = View(broker, broker.observe().ledger, options, options.port, digest)
        self._base = "" if options.base_path == "/" else options.base_path
        self._tasks: set[asyncio.Task[None]] = set()
        self._links: set[Link] = set()
        self._listener: Listener | None = None
        self._looking: asyncio.TimerHandle | None = None
        self._unseen: list[Session] = []
        self._sums = Totals()  # over the clients that were looked at
        self._passes = 0

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Where the list of pages is."""
        return f"{self.scheme}://{self.address}{self._base}/"

    async def __aenter__(self) -> Self:
        self.prepare()
        self.open()
        return self

    def prepare(self) -> None:
        """Bind; connections are not accepted yet. The broker has to run, or to be prepared."""
        session = _import("headwater.monitoring.http").HttpSession
        limits = self._broker.options.connection_limits[MONITORING]
        self._listener = bind(
            self.host,
            self.port,
            lambda: session(self._respond, self._tasks, limits),
            self._make_link,
            limits=limits,
            farewell=b"" if self._options.tls else HTTP_FAREWELL,
        )
        self.port = self.view.port = self._listener.port
        self.view.history = History(self.view)
        self._listener.places.on_turned_away = partial(self._broker.note_turned_away, self.port)
        if self._broker.sessions is not None:
            self._broker.view = self.view
        self._looking = asyncio.get_running_loop().call_later(FIRST_LOOK_SECONDS, self._look)

    def open(self) -> None:
        """Accept from now on; after `prepare`."""
        if self._listener is not None:
            self._listener.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._looking is not None:
            self._looking.cancel()
        if self._listener is not None:
            self._listener.close()
        for task in [*self._tasks]:
            task.cancel()
        for link in [*self._links]:
            link.abort()

    def _make_link(self, owner: Any) -> Link:
        if not self._options.tls or self._broker.options.tls is None:
            link = Link(owner)
        else:
            from dataclasses import replace

            from headwater.net.listeners import tls_settings
            from headwater.net.tls import secure_link

            link = secure_link(tls_settings(replace(self._broker.options.tls, handshake_first=True)), owner)
        self._links = {one for one in self._links if not one.closing} | {link}
        return link

    def _look(self) -> None:
        """A part of the clients in each turn of the loop; a sample for the history after every second round."""
        ledger = self.view.ledger
        if not self._unseen:
            self._unseen = self.view.sessions()
            self._sums = ledger.totals(())
        part = self._unseen[:LOOKED_AT]
        del self._unseen[:LOOKED_AT]
        ledger.look(part)
        for session in part:
            self._sums.add(session)
        if not self._unseen:
            self._passes += 1
            if self._passes % 2 and self.view.history is not None:
                self.view.history.note(self._sums, time.time_ns())
        loop = asyncio.get_running_loop()
        self._looking = loop.call_later(0 if self._unseen else LOOK_SECONDS, self._look)

    # ── pages ──

    def _respond(self, path: str, parameters: "Parameters") -> "Response | Any":
        from headwater.monitoring.http import TEXT, Response

        inside = path.removeprefix(self._base) if path.startswith(self._base) else ""
        if self.view.line is not None:
            from headwater.monitoring.whole import WHOLE

            if inside in WHOLE:
                self._count(inside)
                return self._whole(self.view.line, inside, parameters)
        if inside in PAGES:
            self._count(inside)
            return begun(self._page(inside, parameters))
        if inside == "/metrics":
            self._count(inside)
            return self._metrics(parameters)
        if inside == "/historyz" and self.view.history is not None:
            self._count(inside)
            return self._historyz(self.view.history, parameters)
        if inside in live_page.FILES and path != self._base:
            return live_page.file(inside)
        if inside in ("", "/") and path in (self._base, f"{self._base}/"):
            self._count("/")
            return self._index()
        return Response(b"404 page not found\n", 404, TEXT)

    def _page(self, path: str, parameters: "Parameters") -> Steps:
        """The response, in steps: with thousands of clients it takes a second, and other connections are served
        meanwhile."""
        from headwater.monitoring.http import TEXT, Response

        try:
            status, page = PAGES[path][1](self.view, parameters)
            document = (yield from page) if isinstance(page, Generator) else page
        except ConfigError as error:
            return Response(error.message.encode(), 400, TEXT)
        return (yield from _response(path, status, document))

    async def _whole(self, line: "Line", path: str, parameters: "Parameters") -> "Response":
        """A page about all workers."""
        from headwater.monitoring.http import TEXT, Response
        from headwater.monitoring.whole import whole_page

        status, document = await whole_page(self.view, line, path, parameters)
        if isinstance(document, str):
            return Response(document.encode(), status, TEXT)
        response: Response = await in_turns(_response(path, status, document))
        return response

    def _count(self, path: str) -> None:
        self.view.requests[path] = self.view.requests.get(path, 0) + 1

    def _historyz(self, history: History, parameters: "Parameters") -> "Response":
        from headwater.monitoring.http import TEXT, Response

        try:
            since = number(parameters, "since")
        except ConfigError as error:
            return Response(error.message.encode(), 400, TEXT)
        return Response(msgspec.json.encode(history.document(since)))

    async def _metrics(self, parameters: "Parameters") -> "Response":
        """The first one imports prometheus-client, which takes a tenth of a second: not in the broker's loop."""
        from headwater.monitoring.http import TEXT, Response

        prefix = parameters.get("prefix", self._options.metrics_prefix)
        if prefix and not (prefix.isascii() and prefix.isidentifier()):
            return Response(f"{prefix!r} is no beginning for a metric's name".encode(), 400, TEXT)
        try:
            detailed = switch(parameters, "connz_detailed")
        except ConfigError as error:
            return Response(error.message.encode(), 400, TEXT)

        await asyncio.get_running_loop().run_in_executor(None, _import, "prometheus_client")
        metrics = import_module("headwater.monitoring.metrics")
        gauges = await in_turns(metrics.gather(self.view, prefix, detailed=detailed))
        if self.view.line is not None:
            from headwater.monitoring.whole import add_others

            missing = await add_others(gauges, self.view.line, prefix, detailed=detailed)
            if missing:
                return Response(missing.encode(), 503, TEXT)
        return Response(await in_turns(metrics.render(gauges)), 200, metrics.CONTENT_TYPE)

    def _index(self) -> "Response":
        listed = [(path, title) for path, (title, _) in PAGES.items() if title]
        return live_page.index(self._base, [*listed, ("/metrics", "Prometheus"), ("/historyz", "History")])


def _response(path: str, status: int, document: object) -> Steps:
    """The response with this document, in steps."""
    from headwater.monitoring.http import Response

    # A health probe compares text, people read the rest.
    dump = msgspec.json.encode if path == "/healthz" else _pretty
    pieces = yield from encoded_pieces(document, dump)
    return Response(pieces[0], status, more=pieces[1:])


def _pretty(document: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def _import(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise EnvironmentProblem(
            f"monitoring needs a package that is not installed: {error.name}",
            value=error.name,
            hint="pip install 'headwater[http]'",
        ) from error
