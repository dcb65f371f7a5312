"""Connections to other brokers: accepts them on the route port, and dials the addresses that the mesh requests.

Both kinds become a `Route`, made by `make_route`. TLS on routes starts before any other byte, and each side must present a
certificate.

An address that is not reached is dialled again, and nothing else shows it: two brokers of which one has a wrong address are
two clusters, and each looks healthy. So after PATIENCE seconds the journal has it, once for an address and a reason. Brokers
that start together find each other before.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from headwater.cluster.route import Route
from headwater.errors import HeadwaterError
from headwater.net.address import bracketed, url_address
from headwater.net.layer import Layer
from headwater.net.limits import Limits
from headwater.net.link import Link, LinkOwner
from headwater.net.listening import Listener, bind
from headwater.net.local_sockets import bind_local, dial_local
from headwater.net.tcp import dial
from headwater.options.cluster import ClusterOptions
from headwater.wire.error_texts import MAXIMUM_CONNECTIONS, encode_error

if TYPE_CHECKING:
    import ssl

    from headwater.net.journal import Journal

logger = logging.getLogger("headwater.cluster.service")

DIAL_SECONDS = 1.0
PATIENCE = 3.0  # seconds in which an address may not answer without a word
MOST_LOGGED = 256  # addresses with a logged reason: peers that announce ever new ones must not fill the memory


class Connections:
    """`make_route(url)` returns the owner of a new connection; `url` is "" for an accepted one. `dial_failed(url)` is
    called when an address cannot be reached. `port`: the route port, once `bind` has bound it.
    """

    def __init__(
        self,
        options: ClusterOptions,
        limits: Limits,
        make_route: Callable[[str], Route],
        dial_failed: Callable[[str], None],
        journal: "Journal | None" = None,
    ) -> None:
        self.port = options.port
        self.listener: Listener | None = None
        self._options = options
        self._limits = limits
        self._make_route = make_route
        self._dial_failed = dial_failed
        self._journal = journal
        self._unreached: dict[str, tuple[float, str]] = {}  # by URL: since when by the loop's clock, the reason noted
        self._loop = asyncio.get_running_loop()
        self._dial_tls: ssl.SSLContext | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.TimerHandle] = set()
        self._stopping = False

    def bind(self) -> None:
        """Bind the route port; `open` starts accepting. Raises EnvironmentProblem and ConfigError."""
        if self._options.place:
            self.listener = bind_local(
                self._options.place,
                self._options.port,
                lambda: self._make_route(""),
                limits=self._limits,
                farewell=encode_error(MAXIMUM_CONNECTIONS),
            )
            return
        make_link: Callable[[LinkOwner], Link] = Link
        tls = self._options.tls
        if tls is not None:
            from headwater.net.tls import Beginning, ServerTls, client_context, secure_link, server_context

            self._dial_tls = client_context(tls.ca_file, tls.cert_file, tls.key_file)
            context = server_context(tls.cert_file, tls.key_file, tls.ca_file, verify=True, ciphers=tls.ciphers)
            make_link = partial(secure_link, ServerTls(context, Beginning.FIRST, timeout=tls.timeout))
        self.listener = bind(
            self._options.host,
            self._options.port,
            lambda: self._make_route(""),
            make_link,
            limits=self._limits,
            farewell=b"" if tls is not None else encode_error(MAXIMUM_CONNECTIONS),
        )
        self.port = self.listener.port

    def open(self) -> None:
        """Start accepting. Raises EnvironmentProblem if another process has started to listen there meanwhile."""
        if self.listener is not None:
            self.listener.open()

    def withdraw(self) -> None:
        """Stop accepting and dialling; established connections stay open. Safe to call again."""
        self._stopping = True
        if self.listener is not None:
            self.listener.close()
            self.listener = None
        for timer in self._timers:
            timer.cancel()

    async def stop(self) -> None:
        """Cancel the dials in progress."""
        self.withdraw()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def later(self, delay: float, function: Callable[[], object]) -> None:
        """Call `function` in `delay` seconds, unless the broker leaves the cluster first."""
        if self._stopping:
            return

        def run() -> None:
            self._timers.discard(timer)
            function()

        timer = self._loop.call_later(delay, run)
        self._timers.add(timer)

    def dial(self, url: str) -> None:
        """Connect to the broker at `url`, in a new task."""
        if not self._stopping:
            task = self._loop.create_task(self._dial(url))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def forget_reasons(self) -> None:
        """A peer has joined, perhaps by dialling us: an address that is not reached after this is noted once more."""
        self._unreached.clear()

    async def _dial(self, url: str) -> None:
        route = self._make_route(url)
        layer: Layer | None = None
        try:
            place = url_address(url)
            if self._options.place:
                await dial_local(self._options.place, place.port or 0, route, DIAL_SECONDS)
                self._unreached.pop(url, None)
                return
            if self._dial_tls is not None:
                from headwater.net.tls import TlsLayer

                layer = TlsLayer(self._dial_tls, server_side=False, server_hostname=place.host)
            await dial(place.host, place.port or 0, route, DIAL_SECONDS, layer)
            self._unreached.pop(url, None)
        except Exception as error:  # noqa: BLE001  (whatever it is, the peer is dialled again)
            self._note(url, error)
            self._dial_failed(url)

    def _note(self, url: str, error: Exception) -> None:
        """Record why an address was not reached. A fault of ours is noted without patience."""
        foreseen = isinstance(error, HeadwaterError)
        reason = str(error) if foreseen else repr(error)
        now = self._loop.time()
        since, noted = self._unreached.get(url, (now, ""))
        due = reason != noted and (now - since >= PATIENCE or not foreseen)
        if len(self._unreached) >= MOST_LOGGED and url not in self._unreached:
            self._unreached.clear()
        self._unreached[url] = since, reason if due else noted
        shown = _without_password(url)
        if not due:
            logger.debug("route_not_reached url=%s error=%s", shown, reason)
        elif self._journal is not None:
            self._journal.note("route_not_reached", url=shown, reason=reason)
        if due and not foreseen:
            logger.debug("route_not_reached url=%s", shown, exc_info=error)


def _without_password(url: str) -> str:
    try:
        place = url_address(url)
    except ValueError:
        return "?"
    return f"nats-route://{bracketed(place.host)}:{place.port or 0}"
