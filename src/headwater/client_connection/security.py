"""The transport of a conversation: plain TCP, TLS, WebSocket, or WebSocket over TLS.

    nats://, tls://     INFO in the clear, then TLS when either side wants it; with `tls_first` TLS before INFO
    ws://               frames in the clear
    wss://              TLS, then frames in it

TLS is used if the server requires it; if it only offers TLS, when the options require it. The certificate is verified
against `tls_ca` or the system's authorities, for the host of the URL; an `ssl.SSLContext` of the program can change
that. `ssl` and `wsproto` are imported where they are used: a plain connection needs neither.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from headwater.client_connection.conversation import Conversation
from headwater.client_connection.options import ClientOptions
from headwater.client_connection.server_url import ServerAddress
from headwater.errors import EnvironmentProblem
from headwater.net.layer import Layer, Stack
from headwater.net.link import Link
from headwater.net.tcp import dial

if TYPE_CHECKING:
    from ssl import SSLContext


def tls_context(options: ClientOptions) -> "SSLContext":
    """The program's own context, or one from its files. Raises ConfigError for files that cannot be used."""
    from headwater.net.tls import client_context

    if not isinstance(options.tls, bool):
        return options.tls
    ca, cert, key = (Path(name) if name else None for name in (options.tls_ca, options.tls_cert, options.tls_key))
    return client_context(ca, cert, key)


async def dial_server(address: ServerAddress, conversation: Conversation, options: ClientOptions) -> Link:
    """Connect up to the point where INFO can arrive. Raises TransportError, and ConfigError for TLS files that cannot
    be used."""
    layer: Layer | None = None
    if address.scheme == "wss" or (options.tls_first and not address.is_websocket):
        from headwater.net.tls import TlsLayer

        layer = TlsLayer(tls_context(options), server_side=False, server_hostname=_name(address, options))
    if address.is_websocket:
        frames = _frames(address)
        layer = frames if layer is None else Stack(layer, frames)
    link = await dial(address.host, address.port, conversation, options.connect_timeout, layer)
    if layer is not None:
        await link.prepared()
    return link


def _frames(address: ServerAddress) -> Layer:
    try:
        from headwater.net.websocket_client import WebSocketClientLayer
    except ImportError as error:
        raise EnvironmentProblem("ws:// needs wsproto", hint="pip install 'headwater[websocket]'") from error
    return WebSocketClientLayer(address.where, address.path)


async def upgrade_link(link: Link, address: ServerAddress, options: ClientOptions) -> None:
    """Start TLS. Raises TransportError when the handshake fails."""
    from headwater.net.tls import upgrade

    await upgrade(link, tls_context(options), _name(address, options))


def _name(address: ServerAddress, options: ClientOptions) -> str:
    return options.tls_hostname or address.verify_as or address.host
