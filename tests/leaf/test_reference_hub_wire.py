"""A hub's bytes to a leaf node driven by raw bytes: nats-server proves the expectations, and ours must send the same."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.leafs import OURS, REAL, LeafServer, serve
from support.raw_wire import RawLink, dial

pytestmark = pytest.mark.interop

CONFIG = """
server_name: H, max_payload: 1000
accounts {
  A { users: [ {user: client, password: c}, {user: leaf, password: l} ] }
  B { users: [ {user: bounded, password: b, permissions {
        publish { allow: ["up.>"], deny: ["up.no"] }, subscribe { allow: ["down.>"], deny: ["down.no"] } } } ] }
}
leafnodes { listen: "127.0.0.1:-1", compression: off, min_version: "2.9.0" }
"""
ME = {"version": "2.10.0", "name": "me", "cluster": "mine", "headers": True, "user": "leaf", "pass": "l"}


@pytest.fixture(scope="module", params=[REAL, OURS])
def hub(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LeafServer]:
    directory: Path = tmp_path_factory.mktemp("hub")
    with serve(request.param, directory, CONFIG) as running:
        yield running


def connect_op(**changes: Any) -> bytes:
    fields = {name: value for name, value in {**ME, **changes}.items() if value is not None}
    return b"CONNECT " + json.dumps(fields).encode() + b"\r\n"


def joined(hub: LeafServer, **changes: Any) -> RawLink:
    """A leaf node that has received the second INFO and all interest."""
    link = RawLink(hub.leaf_port)
    link.send(connect_op(**changes))
    sent = link.receive_until(b"$LDS.")
    assert b'"connect_info":true' in sent
    link.settle()
    return link


def info_of(line: bytes) -> dict[str, Any]:
    assert line.startswith(b"INFO ")
    assert line.endswith(b" \r\n")
    found: dict[str, Any] = json.loads(line[5:])
    return found


def test_the_first_info_offers_no_compression_and_requires_credentials(hub: LeafServer) -> None:
    with RawLink(hub.leaf_port) as link:
        info = info_of(link.greeting)
    assert info["server_name"] == "H"
    assert (info["auth_required"], info["headers"], info["info_on_connect"]) == (True, True, True)
    assert info["max_payload"] == 1000
    assert info["leafnode_urls"] == [f"127.0.0.1:{hub.leaf_port}"]
    assert (info["ip"], info["proto"]) == (f"127.0.0.1:{hub.leaf_port}", 3)
    assert len(info["nonce"]) == 15
    assert info["client_id"] > 0
    assert info.get("compression", "off") == "off"


def test_the_second_info_says_where_the_leaf_node_is_joined(hub: LeafServer) -> None:
    with RawLink(hub.leaf_port) as link:
        link.send(connect_op())
        info = info_of(link.receive_line())
    assert (info["connect_info"], info["remote_account"]) == (True, "A")
    assert "nonce" not in info


def test_permissions_of_the_user_are_in_the_second_info(hub: LeafServer) -> None:
    with RawLink(hub.leaf_port) as link:
        link.send(connect_op(user="bounded", **{"pass": "b"}))
        info = info_of(link.receive_line())
    assert info["import"] == {"allow": ["down.>"], "deny": ["down.no"]}
    assert info["export"] == {"allow": ["up.>"], "deny": ["up.no"]}


@pytest.mark.parametrize(
    ("sent", "received"),
    [
        (connect_op(**{"pass": "wrong"}), b"-ERR 'Authorization Violation'\r\n"),
        (connect_op(user=None), b"-ERR 'Authorization Violation'\r\n"),
        (b"LS+ foo\r\n", b"-ERR 'Authorization Violation'\r\n"),
        (b"PING\r\n", b"-ERR 'Authorization Violation'\r\n"),
        (b"PONG\r\n", b"-ERR 'Authorization Violation'\r\n"),
        (b"-ERR 'something of its own'\r\n", b"-ERR 'Authorization Violation'\r\n"),
        (b"INFO {}\r\n", b"-ERR 'Authorization Violation'\r\n"),
        (connect_op(lang="go"), b"-ERR 'attempted to connect to leaf node port'\r\n"),
        (b"CONNECT {nonsense\r\n", b""),
        (connect_op(cluster="a b"), b"-ERR 'cluster name cannot contain spaces'\r\n"),
        (
            connect_op(gateway="g"),
            b"-ERR 'Rejecting connection from gateway \"g\" on the leafnode port'\r\n",
        ),
    ],
)
def test_who_is_not_let_in_hears_why(hub: LeafServer, sent: bytes, received: bytes) -> None:
    with RawLink(hub.leaf_port) as link:
        link.send(sent)
        assert link.receive_end() == received


def test_an_older_version_than_the_configured_one_gets_an_error(hub: LeafServer) -> None:
    with RawLink(hub.leaf_port) as link:
        link.send(connect_op(version="2.8.4"))
        assert b"-ERR 'connection rejected since minimum version required is \"2.9.0\"'\r\n" in link.receive_end()


@pytest.mark.parametrize(
    ("sent", "received"),
    [
        (b"FOO\r\n", b"-ERR 'Unknown Protocol Operation'\r\n"),
        (b"MSG foo 1 2\r\nhi\r\n", b"-ERR 'Unknown Protocol Operation'\r\n"),
        (b"LMSG foo 2\r\nhi!!", b"-ERR 'Unknown Protocol Operation'\r\n"),
        (b"LS+ a b\r\n", b""),
        (b"LMSG foo x\r\n", b""),
        (b"LMSG foo a b c 2\r\nhi\r\n", b""),
        (b"HMSG foo 15 14\r\nNATS/1.0\r\n\r\nhi\r\n", b""),
        (b"LMSG foo 1001\r\n" + b"x" * 1001 + b"\r\n", b"-ERR 'Maximum Payload Violation'\r\n"),
        (b"LS+ " + b"x" * 66_000 + b"\r\n", b"-ERR 'maximum control line exceeded'\r\n"),
    ],
)
def test_what_breaks_the_protocol_ends_the_connection(hub: LeafServer, sent: bytes, received: bytes) -> None:
    with joined(hub) as link:
        link.send(sent)
        assert link.receive_end() == received


@pytest.mark.parametrize(
    ("sent", "received"),
    [
        (b"LS+ bad..subj\r\n", b"-ERR 'Invalid Subscription'\r\n"),
        (b"LS+ foo\r\nLS+ foo\r\nLS- foo\r\nLS- never\r\n", b""),
        (b"LS+ foo q 0\r\nLS- foo q 1\r\n", b""),
        (b"+OK\r\nPONG\r\nINFO {}\r\n", b""),
        (b"LMSG nobody.wants.it reply 2\r\nhi\r\n", b""),
        (b"LMSG nobody.wants.it | g 2\r\nhi\r\n", b""),
        (b"-ERR 'something of its own'\r\n", b""),
    ],
)
def test_what_is_odd_and_leaves_the_connection_open(hub: LeafServer, sent: bytes, received: bytes) -> None:
    with joined(hub) as link:
        answer = link.answer(sent)
        assert (answer.output, answer.closed) == (received, False)


def test_the_return_of_the_hubs_own_loop_subject_is_a_loop(hub: LeafServer) -> None:
    with RawLink(hub.leaf_port) as link:
        link.send(connect_op())
        sent = link.receive_until(b"LS+ $LDS.")
        mark = link.receive_until(b"\r\n")
        assert sent
        link.settle()
        link.send(b"LS+ $LDS." + mark)
        text = b"-ERR 'Loop detected for leafnode account=\"A\". Delaying attempt to reconnect for 30s'\r\n"
        assert link.receive_end() == text


def test_the_same_leaf_node_again_takes_the_place_of_the_first(hub: LeafServer) -> None:
    with joined(hub, remote_account="X", name="twin") as first, joined(hub, remote_account="X", name="twin") as second:
        assert first.receive_end().endswith(b"-ERR 'Duplicate Remote LeafNode Connection'\r\n")
        assert second.answer(b"").closed is False


def test_a_second_connect_is_answered_again(hub: LeafServer) -> None:
    with joined(hub) as link:
        link.send(connect_op())
        info = info_of(link.receive_line())
        assert info["remote_account"] == "A"
        assert b"LS+ $LDS." in link.settle()


@pytest.mark.parametrize(
    ("sent", "received"),
    [
        (b"LS+ secret\r\n", b"-ERR 'Permissions Violation for Subscription to \"secret\"'\r\n"),
        (b"LMSG forbidden 2\r\nhi\r\n", b"-ERR 'Permissions Violation for Publish to \"forbidden\"'\r\n"),
        (b"LMSG up.no 2\r\nhi\r\n", b"-ERR 'Permissions Violation for Publish to \"up.no\"'\r\n"),
    ],
)
def test_a_leaf_node_that_oversteps_its_permissions_is_closed(hub: LeafServer, sent: bytes, received: bytes) -> None:
    with joined(hub, user="bounded", **{"pass": "b"}) as link:
        link.send(sent)
        assert link.receive_end() == received


def test_interest_and_messages_between_a_client_and_the_leaf_node(hub: LeafServer) -> None:
    with dial(hub.port, user="client", **{"pass": "c"}) as client, joined(hub) as link:
        assert client.answer(b"SUB from.leaf 1\r\nSUB work g 2\r\nSUB work g 3\r\n").output == b""
        lines = link.receive_until(b"work g 2\r\n").splitlines()
        assert [line for line in lines if line != b"PING"] == [b"LS+ from.leaf", b"LS+ work g 1", b"LS+ work g 2"]
        link.send(b"LS+ to.leaf\r\nLS+ to.* q 2\r\nPING\r\n")
        assert link.receive_until(b"PONG\r\n").endswith(b"PONG\r\n")
        assert client.answer(b"PUB to.leaf 1\r\na\r\nPUB to.me 1\r\nb\r\nPUB to.me reply 1\r\nc\r\n").output == b""
        assert link.receive_until(b"c\r\n") == (
            b"LMSG to.leaf | q 1\r\na\r\nLMSG to.me | q 1\r\nb\r\nLMSG to.me + reply q 1\r\nc\r\n"
        )
        link.send(b"LMSG from.leaf answer 2\r\nhi\r\nLMSG work 2\r\nno\r\nLMSG work | g 3\r\nyes\r\n")
        link.settle()
        received = client.settle()
        assert received.startswith(b"MSG from.leaf 1 answer 2\r\nhi\r\nMSG work ")
        assert received.endswith(b" 3\r\nyes\r\n")
        assert b"no" not in received


def test_a_leaf_node_without_header_support_gets_no_headers(hub: LeafServer) -> None:
    with dial(hub.port, user="client", **{"pass": "c"}) as client, joined(hub, headers=None) as link:
        assert link.answer(b"LS+ plain\r\n").output == b""
        assert client.answer(b"HPUB plain 12 14\r\nNATS/1.0\r\n\r\nhi\r\n").output == b""
        assert link.receive_until(b"hi\r\n") == b"LMSG plain 2\r\nhi\r\n"


def test_only_allowed_subjects_are_announced_and_sent(hub: LeafServer) -> None:
    with joined(hub, user="bounded", **{"pass": "b"}) as link:
        link.send(b"LS+ >\r\nLS+ down.a\r\n")
        link.settle()
        with joined(hub, user="bounded", name="other", cluster="theirs", **{"pass": "b"}) as other:
            other.send(b"LMSG up.a 1\r\na\r\n")
            other.settle()
        assert b"up.a" not in link.settle()  # one may send it, and the other may not receive it
