"""Makes the layers of client connections from the listeners' options."""

from collections.abc import Callable
from typing import Protocol, cast

from headwater.net.layer import Layer
from headwater.net.link import Link, LinkOwner
from headwater.net.listener_options import TlsOptions, WebSocketOptions
from headwater.net.tls import Beginning, ServerTls, TlsLayer, public_key_fingerprint, secure_link, server_context


class SecuredOwner(Protocol):
    """An owner that waits for the handshake of its link."""

    def secured(self) -> None: ...


def tls_settings(options: TlsOptions, *, inside_websocket: bool = False) -> ServerTls:
    """The TLS settings of the listener. Raises ConfigError for certificates and keys that cannot be used."""
    context = server_context(
        options.cert_file,
        options.key_file,
        options.ca_file,
        verify=options.verify,
        ciphers=options.ciphers,
        min_version=options.min_version,
    )
    if inside_websocket or options.handshake_first is True:
        beginning = Beginning.FIRST
    else:
        beginning = Beginning.WAIT if options.handshake_first else Beginning.UPGRADE

    def is_pinned(layer: TlsLayer) -> bool:
        certificate = layer.peer_certificate
        return certificate is not None and public_key_fingerprint(certificate) in options.pinned_certs

    return ServerTls(
        context,
        beginning,
        hello_wait=float(options.handshake_first),
        timeout=options.timeout,
        clear_allowed=options.allow_non_tls and not inside_websocket,
        accepts=is_pinned if options.pinned_certs else None,
    )


def secure_session(settings: ServerTls, owner: LinkOwner, upper: Layer | None = None) -> Link:
    """The link of a session on a TLS connection."""
    return secure_link(settings, owner, upper, cast(SecuredOwner, owner).secured)


_MESSAGE_ROOM = 1 << 16  # bytes that a WebSocket message may have besides the largest payload


def websocket_links(
    options: WebSocketOptions, max_payload: int, *, leafnodes: bool = False
) -> Callable[[LinkOwner], Link]:
    """The function that makes the WebSocket listener's links; `leafnodes`: with the endpoint for leaf nodes. Raises
    ConfigError, and EnvironmentProblem without wsproto.
    """
    from headwater.net.websocket import WebSocketServer, websocket_link

    server = WebSocketServer(
        compression=options.compression,
        same_origin=options.same_origin,
        allowed_origins=options.allowed_origins,
        headers=tuple(options.headers.items()),
        secure=options.tls is not None,
        handshake_timeout=options.handshake_timeout,
        max_message=max_payload + _MESSAGE_ROOM,
        leafnodes=leafnodes,
    )
    if options.tls is None:
        return lambda owner: websocket_link(server, owner)
    tls = tls_settings(options.tls, inside_websocket=True)
    return lambda owner: websocket_link(server, owner, lambda layer: secure_session(tls, owner, layer))
