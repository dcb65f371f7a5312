"""TLS, WebSocket and cluster blocks."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.net.listener_options import TlsOptions, WebSocketOptions
from headwater.options.access import SubjectRules
from headwater.options.cluster import ClusterOptions
from headwater.server.config.draft import Draft

Load = Callable[..., Draft]
Refusal = Callable[..., str]

PEM = {"c.pem": "certificate", "k.pem": "key", "ca.pem": "ca"}
PAIR = "cert_file: c.pem, key_file: k.pem"
FILES = {"cert_file": Path("c.pem"), "key_file": Path("k.pem")}


@pytest.mark.parametrize(
    ("block", "options"),
    [
        ("", {}),
        (", ca_file: ca.pem, verify: true, timeout: 5", {"ca_file": Path("ca.pem"), "verify": True, "timeout": 5.0}),
        (", verify_and_map: true", {"verify_and_map": True, "verify": True}),
        (", handshake_first: true", {"handshake_first": True}),
        (", handshake_first: auto", {"handshake_first": 0.05}),
        (', handshake_first: "300ms"', {"handshake_first": 0.3}),
        (", handshake_first: off", {"handshake_first": False}),
        (', min_version: "1.3"', {"min_version": "1.3"}),
        (
            ", cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_AES_128_GCM_SHA256]",
            {"ciphers": ("ECDHE-RSA-AES128-GCM-SHA256",)},
        ),
        (f", pinned_certs: [{'AB' * 32}]", {"pinned_certs": frozenset({"ab" * 32})}),
    ],
)
def test_tls(load_text: Load, block: str, options: dict[str, object]) -> None:
    tls = load_text(f"tls {{{PAIR}{block}}}", PEM).finish().broker.tls
    assert tls == TlsOptions(**{**FILES, **options})  # type: ignore[arg-type]


def test_clients_may_come_without_tls_when_that_is_said(load_text: Load) -> None:
    tls = load_text(f"allow_non_tls: true\ntls {{{PAIR}}}", PEM).finish().broker.tls
    assert tls is not None
    assert tls.allow_non_tls


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ("{cert_file: c.pem}", '"tls" needs a cert_file and a key_file'),
        (f"{{{PAIR}, ca_file: gone.pem}}", "\"ca_file\" names 'gone.pem': No such file"),
        (f"{{{PAIR}, cipher_suites: []}}", "cannot be empty"),
        (f"{{{PAIR}, cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]}}", "unrecognized or insecure cipher"),
        (f'{{{PAIR}, min_version: "1.1"}}', "nothing older is spoken"),
        (f"{{{PAIR}, handshake_first: soon}}", "'soon' is no duration"),
        (f"{{{PAIR}, pinned_certs: [abc]}}", "SHA-256 sums"),
        (f"{{{PAIR}, timeout: 0}}", "timeout must be above 0"),
        (f"{{{PAIR}, certz: 0}}", 'unknown field "certz"; did you mean "certs"?'),
    ],
)
def test_what_is_wrong_with_tls_is_said(refusal: Refusal, block: str, reason: str) -> None:
    assert reason in refusal(f"tls {block}", PEM)


def test_websocket(load_text: Load) -> None:
    text = (
        f"websocket {{listen: 127.0.0.1:8080, tls {{{PAIR}}}, compression: true, same_origin: true\n"
        "allowed_origins: [http://a, http://b], authorization {user: u, pass: p}, headers {X-A: b}, jwt_cookie: c\n"
        "handshake_timeout: 3}"
    )
    assert load_text(text, PEM).finish().broker.websocket == WebSocketOptions(
        host="127.0.0.1",
        port=8080,
        tls=TlsOptions(cert_file=Path("c.pem"), key_file=Path("k.pem")),
        compression=True,
        same_origin=True,
        allowed_origins=("http://a", "http://b"),
        username="u",
        password="p",
        headers={"X-A": "b"},
        jwt_cookie="c",
        handshake_timeout=3.0,
    )


def test_websocket_without_a_port_does_not_listen(load_text: Load) -> None:
    config = load_text("websocket {no_tls: true}").finish()
    assert config.broker.websocket is None
    assert "so nothing listens" in config.warnings[0]


def test_websocket_on_any_port(load_text: Load) -> None:
    websocket = load_text("websocket {port: -1, no_tls: true}").finish().broker.websocket
    assert websocket is not None
    assert websocket.port == 0


def test_websocket_wants_tls_or_a_word_that_there_is_none(refusal: Refusal) -> None:
    assert refusal("websocket {port: 1}").startswith("server.conf:1:1: websocket requires TLS configuration")


def test_cluster(load_text: Load) -> None:
    text = (
        "cluster {name: c, listen: 127.0.0.1:-1, routes: [nats://a:1, nats://a:1, nats-route://u:p@b:2]\n"
        "authorization {user: u, password: p, timeout: 1}, no_advertise: true\n"
        'permissions {import: a, export: {deny: b}}, ping_interval: "1m"}'
    )
    config = load_text(text).finish()
    assert config.broker.cluster == ClusterOptions(
        name="c",
        host="127.0.0.1",
        port=0,
        routes=("nats://a:1", "nats-route://u:p@b:2"),
        username="u",
        password="p",
        auth_timeout=1.0,
        no_advertise=True,
        imports=SubjectRules(allow=("a",)),
        exports=SubjectRules(deny=("b",)),
        ping_interval=60.0,
    )
    assert config.broker.no_advertise


@pytest.mark.parametrize(
    ("setting", "warned"),
    [
        ("pool_size: 3", '"pool_size" changes nothing here: a peer has one connection, for all accounts, as with -1'),
        ("pool_size: -1", ""),
        ("accounts: [A]", '"accounts" changes nothing here: no account has a connection of its own'),
        ("compression: s2_fast", '"compression" changes nothing here: routes are not compressed, as with off'),
        ("compression: {mode: s2_auto}", '"compression" changes nothing here'),
        ("compression: on", '"compression" changes nothing here'),
        ("compression: off", ""),
        ("compression: disabled", ""),
    ],
)
def test_route_settings_that_are_not_honoured_are_warned_about(load_text: Load, setting: str, warned: str) -> None:
    warnings = load_text(f"cluster {{name: c, port: -1, {setting}}}").finish().warnings
    assert [warned in warning for warning in warnings] == ([True] if warned else [])


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ("{routes: [nats://a:1]}", "solicited routes require cluster capabilities"),
        ("{port: -1, routes: [5]}", "must be a string, not a number"),
        ("{port: -1, routes: [a]}", "a route is a URL"),
        ("{port: -1, routes: ['nats://a:x']}", "a route is a URL"),
        ("{port: -1, authorization {token: x}}", "routes show a user and a password"),
        ("{prot: -1}", 'unknown field "prot"; did you mean "port"?'),
        ("{name: 'a b'}", '"name" cannot contain spaces'),
        ("{port: -1, protocol: v3}", '"protocol" must be v1, v2 or auto'),
    ],
)
def test_what_is_wrong_with_a_cluster_is_said(refusal: Refusal, block: str, reason: str) -> None:
    assert reason in refusal(f"cluster {block}")


@pytest.mark.parametrize("block", ["{name: c}", "{}", "{name: c, host: 127.0.0.1}"])
def test_without_a_port_there_is_no_cluster(load_text: Load, block: str) -> None:
    assert load_text(f"cluster {block}").finish().broker.cluster is None
