"""The block about leaf nodes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.net.listener_options import TlsOptions
from headwater.options.access import UserOptions
from headwater.options.leaf import LeafOptions, LeafUser, RemoteOptions, RemoteTlsOptions
from headwater.server.config.draft import Draft

Load = Callable[..., Draft]
Refusal = Callable[..., str]

NKEY = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
SEED = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
PEM = {"c.pem": "certificate", "k.pem": "key", "ca.pem": "ca"}


@pytest.mark.parametrize(
    ("block", "options"),
    [
        ("port: -1", {"port": 0}),
        ('listen: "127.0.0.1:7422"', {"host": "127.0.0.1", "port": 7422}),
        (
            "port: 1, no_advertise: true, isolate: true, compression: off",
            {"port": 1, "no_advertise": True, "isolate": True},
        ),
        (
            'port: 1, min_version: "2.9.0", reconnect: "5s"',
            {"port": 1, "min_version": "2.9.0", "reconnect_interval": 5.0},
        ),
        (
            "port: 1, authorization { user: a, pass: b, account: A, timeout: 3 }",
            {
                "port": 1,
                "auth_timeout": 3.0,
                "users": (LeafUser(user=UserOptions(username="a", password="b"), account="A"),),
            },
        ),
        (
            f"port: 1, authorization {{ nkey: {NKEY} }}",
            {"port": 1, "users": (LeafUser(user=UserOptions(nkey=NKEY)),)},
        ),
        ("port: 1, authorization { account: A }", {"port": 1, "account": "A"}),
        (
            "port: 1, authorization { users: [ {user: a, password: b, account: A} ] }",
            {"port": 1, "users": (LeafUser(user=UserOptions(username="a", password="b"), account="A"),)},
        ),
        (
            "port: 1, tls { cert_file: c.pem, key_file: k.pem, handshake_first: true }",
            {"port": 1, "tls": TlsOptions(cert_file=Path("c.pem"), key_file=Path("k.pem"), handshake_first=True)},
        ),
    ],
)
def test_what_spokes_find(load_text: Load, block: str, options: dict[str, object]) -> None:
    draft = load_text(f"leafnodes {{ {block} }}\naccounts {{ A {{}} }}", PEM)
    assert draft.finish().broker.leafnodes == LeafOptions(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("block", "options"),
    [
        ('url: "tls://h:7422"', {"urls": ("tls://h:7422",)}),
        ('urls: ["a:1", "b:2"], dont_randomize: true', {"urls": ("a:1", "b:2"), "no_randomize": True}),
        ('url: "wss://h/path", local: A', {"urls": ("wss://h/path",), "account": "A"}),
        ('url: "h", creds: "x.creds"', {"urls": ("h",), "credentials": "x.creds"}),
        (f'url: "h", seed: "{SEED}"', {"urls": ("h",), "nkey": SEED}),
        (
            'url: "h", deny_import: "a.>", deny_exports: ["b", "c"]',
            {"urls": ("h",), "deny_imports": ("a.>",), "deny_exports": ("b", "c")},
        ),
        ('url: "h", hub: true, isolate: true', {"urls": ("h",), "hub": True, "isolate": True}),
        (
            'url: "h", request_isolation: true, first_info_timeout: "3s", dial_timeout: "2s"',
            {"urls": ("h",), "request_isolation": True, "first_info_timeout": 3.0, "dial_timeout": 2.0},
        ),
        ('url: "h", ignore_discovered_servers: true', {"urls": ("h",), "ignore_discovered_servers": True}),
        (
            'url: "h", tls { ca_file: ca.pem, handshake_first: "300ms", timeout: 5 }',
            {"urls": ("h",), "tls": RemoteTlsOptions(ca_file=Path("ca.pem"), handshake_first=True, timeout=5.0)},
        ),
        ('url: "h", tls {}', {"urls": ("h",), "tls": RemoteTlsOptions()}),
        ('urls: ["leaf://h:1", "hub://h:2"]', {"urls": ("leaf://h:1", "hub://h:2")}),
    ],
)
def test_hubs_that_are_dialled(load_text: Load, block: str, options: dict[str, object]) -> None:
    draft = load_text(f"leafnodes {{ remotes: [ {{ {block} }} ] }}\naccounts {{ A {{}} }}", PEM)
    leafnodes = draft.finish().broker.leafnodes
    assert leafnodes is not None
    assert leafnodes.remotes == (RemoteOptions(**options),)  # type: ignore[arg-type]
    assert leafnodes.port is None


def test_a_remote_that_is_disabled_is_not_there(load_text: Load) -> None:
    draft = load_text('leafnodes { port: 1, remotes: [ {url: "h", disabled: true} ] }')
    assert draft.finish().broker.leafnodes == LeafOptions(port=1)


def test_without_port_and_remotes_nothing_is_joined_and_a_warning_says_so(load_text: Load) -> None:
    draft = load_text("leafnodes { host: a }")
    assert draft.finish().broker.leafnodes is None
    assert "neither a port nor remotes" in draft.warnings[0]


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ("port: 1, compression: s2_fast", '"compression" can only be off'),
        ("port: 1, compression { mode: s2_auto }", '"compression" can only be off'),
        ('remotes: [ {url: "h", compression: accept} ]', '"compression" can only be off'),
        ('remotes: [ {url: "h", ws_compression: true} ]', "are not compressed"),
        ('remotes: [ {url: "h", proxy { url: "http://p" }} ]', "hubs are dialled directly"),
        ('remotes: [ {url: "h", tls { pinned_certs: [a] }} ]', "certificates of hubs are not pinned"),
        ('remotes: [ {url: "h", reconnect_delay: 3} ]', 'unknown field "reconnect_delay"'),
        ('remotes: [ {urls: ["ws://a:1", "tls://b:1"]} ]', "cannot mix websocket and non-websocket urls"),
        ('remotes: [ {url: "http://a:1"} ]', "http as its scheme"),
        ("remotes: [ {account: A} ]", "has no url"),
        ('remotes: [ {url: "h", nkey: "SUBAD"} ]', '"nkey" is not a valid seed'),
        (f'remotes: [ {{url: "h", nkey: "{SEED}", creds: x}} ]', "both credentials and an nkey"),
        ('remotes: [ {url: "h"}, {url: "h"} ]', "duplicate remote"),
        ('remotes: [ {url: "h", account: X} ]', 'cannot find local account "X"'),
        (
            "port: 1, authorization { user: a, users: [ {user: b} ] }",
            "can not have a single user/pass and a users array",
        ),
        ("port: 1, authorization { token: t }", 'unknown field "token"'),
        ("port: 1, authorization { users: [ {user: b, permissions {}} ] }", 'unknown field "permissions"'),
        ("port: 1, authorization { user: a, account: X }", 'cannot find local account "X"'),
        ('port: 1, min_version: "2.7.0"', "the minimum version should be at least 2.8.0"),
        ('port: 1, min_version: "new"', "invalid semver"),
        ("port: 1, reconnect: 0", "reconnect_interval must be above 0"),
        ('remotes: [ {url: "h", deny_imports: "a..b"} ]', 'subject "a..b" is not a valid subject'),
    ],
)
def test_what_is_refused(refusal: Refusal, block: str, reason: str) -> None:
    output = refusal(f"leafnodes {{ {block} }}\naccounts {{ A {{}} }}")
    assert reason in output
    assert SEED not in output


def test_leaf_nodes_do_not_go_with_the_old_protocol_of_clusters(load_text: Load, refusal: Refusal) -> None:
    text = "leafnodes { port: 1 }\ncluster { name: c, port: 2, protocol: v2 }"
    load_text(text).finish()
    for protocol in ("v1", "auto"):
        assert f"do not go with cluster.protocol {protocol}" in refusal(text.replace("v2", protocol))


def test_the_domain_of_accounts_without_streams(load_text: Load, refusal: Refusal) -> None:
    text = "default_js_domain { A: hub }\naccounts { A {} }"
    assert load_text(text).finish().broker.default_js_domain == {"A": "hub"}
    assert "invalid domain name" in refusal(text.replace("hub", '"a.b"'))
    with_streams = "jetstream: enabled\ndefault_js_domain { A: hub }\naccounts { A { jetstream: enabled } }"
    assert 'contains account name "A", with enabled JetStream' in refusal(with_streams)
