"""The blocks about connections: `tls`, `websocket`, `cluster`.

Each block is a table of all settings that nats-server knows: done, ignored with the reason, or refused with the
reason. The tables of docs/config.md are made from these.
"""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from headwater.net.listener_options import HANDSHAKE_FIRST_AUTO, TlsOptions, WebSocketOptions
from headwater.options.cluster import ClusterOptions
from headwater.server.config import fields
from headwater.server.config.document import Setting, kind
from headwater.server.config.fields import Block, Reading, done, ignored, refused
from headwater.server.config.permissions import read_permissions
from headwater.server.config.scalars import duration

# ── tls ──

_CIPHERS = {  # of TLS 1.2, by Go's name; OpenSSL's name
    f"TLS_ECDHE_{key}_WITH_{ours}": f"ECDHE-{key}-{theirs}"
    for key in ("ECDSA", "RSA")
    for ours, theirs in (
        ("AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("CHACHA20_POLY1305", "CHACHA20-POLY1305"),
        ("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
        ("AES_128_CBC_SHA", "AES128-SHA"),
        ("AES_256_CBC_SHA", "AES256-SHA"),
    )
}
_CIPHERS_OF_13 = {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
_FINGERPRINT = re.compile("[0-9a-f]{64}")


def _ciphers(reading: Reading, setting: Setting) -> tuple[str, ...]:
    names = reading.elements(setting, fields.text)
    if not names:
        raise ValueError("cannot be empty")
    unknown = [name for name in names if name not in _CIPHERS and name not in _CIPHERS_OF_13]
    if unknown:
        raise ValueError(f"has an unrecognized or insecure cipher {unknown[0]}")
    # Python's ssl module cannot choose those of TLS 1.3.
    return tuple(_CIPHERS[name] for name in names if name in _CIPHERS)


def _handshake_first(reading: Reading, setting: Setting) -> bool | float:
    if isinstance(setting.value, bool):
        return setting.value
    if not isinstance(setting.value, str):
        raise ValueError(f"must be a boolean or a string, not {kind(setting.value)}")
    word = setting.value.lower()
    if word in ("true", "on", "false", "off"):
        return word in ("true", "on")
    return HANDSHAKE_FIRST_AUTO if word in ("auto", "auto_fallback") else duration(setting.value)


def _version(reading: Reading, setting: Setting) -> str:
    version = fields.text(reading, setting).lower().removeprefix("tls").removeprefix("v").strip()
    if version not in ("1.2", "1.3"):
        raise ValueError('must be "1.2" or "1.3": nothing older is spoken')
    return version


def _pinned(reading: Reading, setting: Setting) -> frozenset[str]:
    pins = [pin.lower() for pin in reading.elements(setting, fields.text)]
    if not all(_FINGERPRINT.fullmatch(pin) for pin in pins):
        raise ValueError("must be a list of SHA-256 sums in hexadecimal, of the certificates' public keys")
    return frozenset(pins)


TLS = Block(
    "tls",
    (
        done("cert_file", lambda reading, setting: Path(reading.file(setting)), "certificate chain, PEM"),
        done("key_file", lambda reading, setting: Path(reading.file(setting)), "its private key, PEM"),
        done("ca_file", lambda reading, setting: Path(reading.file(setting)), "authority of client certificates, PEM"),
        done("verify", fields.switch, "clients need a certificate"),
        done("verify_and_map", fields.switch, "and it names the user"),
        done("timeout", fields.amount_of_seconds, "for the handshake; 2 seconds"),
        done("handshake_first first immediate", _handshake_first, "TLS before INFO; `auto` waits 50 ms for it"),
        done("cipher_suites", _ciphers, "of TLS 1.2, by Go's names", to="ciphers"),
        done("min_version", _version, '"1.2" (default) or "1.3"'),
        done("pinned_certs", _pinned, "SHA-256 of the public keys that are taken"),
        ignored("curve_preferences", "OpenSSL chooses the curve"),
        ignored("connection_rate_limit", "handshakes are not counted"),
        ignored("allow_insecure_cipher_suites", "insecure ciphers are not offered at all"),
        refused("insecure", "it is for connections that the server makes"),
        refused("verify_cert_and_check_known_urls", "it is for routes and gateways"),
        refused("ocsp_peer", "certificates are not checked by OCSP"),
        refused("certs certificates", "one certificate a listener"),
        refused("cert_store cert_match_by cert_match ca_certs_match cert_match_skip_invalid", "Windows only"),
    ),
)


def read_tls(reading: Reading, setting: Setting) -> TlsOptions:
    """A `tls` block. Raises ValueError when it lacks a certificate or its key."""
    keywords = reading.block(setting, TLS)
    if "cert_file" not in keywords or "key_file" not in keywords:
        raise ValueError("needs a cert_file and a key_file that can be read")
    return TlsOptions(**keywords)


# ── websocket ──

WEBSOCKET_AUTHORIZATION = Block(
    "websocket.authorization",
    (
        done("user username", fields.text, "for clients that come this way", to="username"),
        done("pass password", fields.text, "plain or bcrypt", to="password"),
        done("token", fields.text, "plain or bcrypt"),
        ignored("timeout", "the broker's own holds"),
    ),
)

WEBSOCKET = Block(
    "websocket",
    (
        done("listen", fields.address, "host:port"),
        done("host net", fields.text, "the broker's host when absent"),
        done("port", fields.port, "without one nothing listens; -1 for any free one"),
        done("no_tls", fields.switch, "needed where there is no tls block"),
        done("tls", read_tls, "a tls block"),
        done("compression compress", fields.switch, "permessage-deflate"),
        done("handshake_timeout", fields.amount_of_seconds, "for the HTTP upgrade; 2 seconds"),
        done("same_origin", fields.switch, "a browser's page must come from the same host"),
        done(
            "allowed_origins allowed_origin allow_origins allow_origin origins origin",
            fields.texts,
            "pages that may connect",
        ),
        done("advertise", fields.text, "host:port in INFO for clients"),
        done("no_auth_user", fields.text, "the user of clients without credentials"),
        done(
            "authorization authentication",
            lambda reading, setting: reading.block(setting, WEBSOCKET_AUTHORIZATION),
            "replaces the broker's for clients that come this way",
        ),
        done("jwt_cookie", fields.text, "name of the cookie that holds a JWT"),
        done("user_cookie", fields.text, "name of the cookie that holds the user"),
        done("pass_cookie", fields.text, "name of the cookie that holds the password"),
        done("token_cookie", fields.text, "name of the cookie that holds the token"),
        done("headers", fields.strings, "further headers of the upgrade's answer"),
        ignored("ping_interval", "the broker's own holds"),
    ),
)


def read_websocket(reading: Reading, setting: Setting) -> WebSocketOptions | None:
    """A `websocket` block; None when it has no port, for then nothing listens, as in nats-server."""
    keywords = spread_address(reading.block(setting, WEBSOCKET))
    keywords |= keywords.pop("authorization", {})
    if keywords.get("port", 0) == 0:
        reading.warn(setting.place, '"websocket" has no port, so nothing listens; -1 takes any free one')
        return None
    return WebSocketOptions(**{**keywords, "port": max(0, keywords["port"])})


# ── cluster ──


def _route(reading: Reading, setting: Setting) -> str:
    url = fields.text(reading, setting).strip()
    try:
        parts = urlsplit(url)
        known = parts.hostname is not None and (parts.port is None or parts.port > 0)
    except ValueError:
        known = False
    if not known:
        raise ValueError("a route is a URL: nats-route://host:port")  # not quoted: it may hold a password
    return url


def _routes(reading: Reading, setting: Setting) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reading.elements(setting, _route)))


CLUSTER_AUTHORIZATION = Block(
    "cluster.authorization",
    (
        done("user username", fields.text, "that routes show", to="username"),
        done("pass password", fields.text, "plain or bcrypt", to="password"),
        done("timeout", fields.amount_of_seconds, "for a route to show it", to="auth_timeout"),
        refused("token", "routes show a user and a password"),
        refused("users", "one user for all routes"),
        refused("permissions default_permissions default_permission", "write them into the cluster block itself"),
    ),
)


def _protocol(reading: Reading, setting: Setting) -> str:
    protocol = fields.text(reading, setting).lower()
    if protocol not in ("v1", "v2", "auto"):
        raise ValueError("must be v1, v2 or auto")
    return protocol


CLUSTER = Block(
    "cluster",
    (
        done("name", fields.name, "of the cluster"),
        done("listen", fields.address, "host:port for routes"),
        done("host net", fields.text, "for routes"),
        done("port", fields.port, "for routes; -1 for any free one"),
        done("routes", _routes, "URLs of other brokers"),
        done("protocol", _protocol, "v2 (default), v1 or auto; not in nats-server"),
        done(
            "authorization",
            lambda reading, setting: reading.block(setting, CLUSTER_AUTHORIZATION),
            "what routes must show",
        ),
        done("tls", read_tls, "a tls block"),
        done("advertise cluster_advertise", fields.text, "host:port in INFO for routes"),
        done("no_advertise", fields.switch, "INFO for clients does not list the other brokers"),
        done("connect_retries", fields.number, "for routes that were learnt, not written"),
        done("connect_backoff", fields.switch, "wait longer after each failed attempt"),
        done("permissions", read_permissions, "which subjects are exchanged"),
        ignored("pool_size", "a peer has one connection, for all accounts, as with -1", same=(-1,)),
        ignored("accounts", "no account has a connection of its own"),
        ignored("compression", "routes are not compressed, as with off", same=("off", "disabled")),
        done("ping_interval", fields.seconds, "on routes"),
        done("ping_max", fields.number, "unanswered pings after which a route is stale"),
        done("write_deadline", fields.seconds, "on routes"),
        ignored("write_timeout", "a route that takes nothing within write_deadline is closed"),
    ),
)


def read_cluster(reading: Reading, setting: Setting) -> dict[str, Any]:
    """Keywords of ClusterOptions; flags may still change them."""
    keywords = spread_address(reading.block(setting, CLUSTER))
    keywords |= keywords.pop("authorization", {})
    permissions = keywords.pop("permissions", None)
    if permissions is not None:
        keywords |= {"imports": permissions.publish, "exports": permissions.subscribe}
    ClusterOptions(**{**keywords, "port": max(0, keywords.get("port", 0))})
    return keywords


def spread_address(keywords: dict[str, Any]) -> dict[str, Any]:
    """`listen` taken apart into host and port."""
    if "listen" in keywords:
        host, keywords["port"] = keywords.pop("listen")
        if host:
            keywords["host"] = host
    return keywords
