"""The layers between a leaf node connection and the wire: TLS before or after the hub's INFO, WebSocket, or both.

    tls://, tls {}                  INFO in the clear, then TLS
    tls { handshake_first: true }   TLS before any other byte
    ws://, wss://                   binary frames, at <path>/leafnode; wss: in TLS from the first byte on

TLS starts if the hub requires it, even if the URL does not. If we require TLS and the hub does not offer it, we
disconnect.
"""

import logging
from typing import TYPE_CHECKING

from headwater.errors import EnvironmentProblem, TransportError
from headwater.leaf.credentials import check
from headwater.leaf.remote import Address, Remote, address_of
from headwater.net.address import bracketed
from headwater.net.layer import Layer, Stack
from headwater.net.link import Link
from headwater.options.leaf import KNOWN_SCHEMES, RemoteOptions, RemoteTlsOptions
from headwater.wire.leaf_lines import LeafInfo

if TYPE_CHECKING:
    import ssl

logger = logging.getLogger("headwater")

ENDPOINT = "/leafnode"


def check_remote(options: RemoteOptions) -> None:
    """Raise what every dial would raise: ConfigError for unusable files, EnvironmentProblem for a missing package."""
    check(options)
    addresses = [address_of(url) for url in options.urls]
    for address in addresses:
        if address.scheme not in KNOWN_SCHEMES:  # as nats-server, which does not warn
            logger.warning("leaf_scheme_unknown url=%s, not encrypted unless the hub requires TLS", address.shown)
    if options.tls is not None or any(address.is_secure for address in addresses):
        _context(options.tls)
    if any(address.is_websocket for address in addresses):
        try:
            import headwater.net.websocket_client  # noqa: F401
        except ImportError as error:
            raise EnvironmentProblem(
                "WebSocket needs the package wsproto", hint="pip install 'headwater[websocket]'"
            ) from error


def layer_for(remote: Remote, address: Address) -> Layer | None:
    """The layer that a connection to `address` starts with. Raises ConfigError for unusable files."""
    tls = remote.options.tls
    secure: Layer | None = None
    if (
        address.scheme == "wss"
        or (address.is_websocket and tls is not None)
        or (tls is not None and tls.handshake_first)
    ):
        secure = _tls_layer(remote, address)
    if not address.is_websocket:
        return secure
    from headwater.net.websocket_client import WebSocketClientLayer

    websocket = WebSocketClientLayer(f"{bracketed(address.host)}:{address.port}", address.path.rstrip("/") + ENDPOINT)
    return websocket if secure is None else Stack(secure, websocket)


def secured(link: Link, remote: Remote, address: Address, info: LeafInfo) -> None:
    """Start TLS after the hub's INFO, if either side requires it and it is not active yet. Output waits for the
    handshake. Raises TransportError if we require TLS and the hub does not offer it.
    """
    if link.layer is not None:
        return
    wanted = address.is_secure or remote.options.tls is not None
    if not wanted and not info.tls_required:
        return
    if not info.tls_required:
        raise TransportError(f"{address.shown} does not offer TLS, and we insist on it", value=address.shown)
    link.install(_tls_layer(remote, address))


def _tls_layer(remote: Remote, address: Address) -> Layer:
    from headwater.net.tls import TlsLayer

    return TlsLayer(_context(remote.options.tls), server_side=False, server_hostname=remote.tls_name(address))


def _context(tls: RemoteTlsOptions | None) -> "ssl.SSLContext":
    from headwater.net.tls import client_context

    if tls is None:
        return client_context()
    return client_context(tls.ca_file, tls.cert_file, tls.key_file, verify=not tls.insecure)
