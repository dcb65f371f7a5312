"""The port for spokes: bound when the broker starts, announced in our INFO, opened once the broker is ready."""

import logging
from collections.abc import Callable

from headwater.leaf.connection import LeafConnection
from headwater.leaf.own_info import OwnInfo
from headwater.net.address import announced, bracketed
from headwater.net.interfaces import dialable
from headwater.net.limits import Limits
from headwater.net.link import Link, LinkOwner
from headwater.net.listening import Listener, bind
from headwater.options.leaf import LeafOptions
from headwater.wire import error_texts

logger = logging.getLogger("headwater.leaf.service")


class SpokeListener:
    """`make` makes the owner of a connection, `make_link` its link."""

    def __init__(
        self,
        options: LeafOptions,
        make: Callable[[], LeafConnection],
        make_link: Callable[[LinkOwner], Link] | None,
        limits: Limits,
    ) -> None:
        self.port = 0  # the one that was bound
        self._options = options
        self._make = make
        self._make_link: Callable[[LinkOwner], Link] = make_link or Link
        self._limits = limits
        self._listener: Listener | None = None

    def bind(self, own: OwnInfo) -> None:
        """Bind the port, if there is one, and announce it in `own`. Raises EnvironmentProblem and ConfigError."""
        options = self._options
        if options.port is None:
            return
        self._listener = bind(
            options.host,
            options.port,
            self._make,
            self._make_link,
            limits=self._limits,
            farewell=b"" if options.tls is not None else error_texts.encode_error(error_texts.MAXIMUM_CONNECTIONS),
        )
        self.port = self._listener.port
        host = next(iter(dialable(options.host)), "")
        shown = announced(options.advertise or bracketed(host or options.host), self.port)
        hidden = options.no_advertise or (not options.advertise and not host)
        info = own.info.replace(
            host=options.host,
            port=self.port,
            ip=shown,
            tls_required=options.tls is not None,
            tls_verify=options.tls is not None and options.tls.verify,
        )
        own.listens(info, () if hidden else (shown,))

    def open(self) -> None:
        """Start accepting spokes."""
        if self._listener is not None:
            self._listener.open()
            logger.info("Listening for leafnode connections on %s:%d", self._options.host, self.port)

    def close(self) -> None:
        """Stop accepting; safe to call again."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
