"""The verdicts on the documents that open a connection."""

import pytest

from headwater.leaf import handshake
from headwater.wire.leaf_lines import LeafConnect, LeafInfo


@pytest.mark.parametrize(
    ("connect", "refusal"),
    [
        (LeafConnect(), ""),
        (LeafConnect(cluster="other"), ""),
        (LeafConnect(lang="go"), "attempted to connect to leaf node port"),
        (LeafConnect(cluster="hub"), "remote leafnode has same cluster name"),
        (LeafConnect(cluster="a b"), "cluster name cannot contain spaces"),
        (LeafConnect(gateway="g"), 'Rejecting connection from gateway "g" on the leafnode port'),
    ],
)
def test_a_spoke_is_refused_in_nats_servers_words(connect: LeafConnect, refusal: str) -> None:
    assert handshake.refusal_of(connect, "hub") == refusal


@pytest.mark.parametrize(
    ("version", "minimum", "old"),
    [
        ("2.9.0", "", False),
        ("2.9.0", "2.9.0", False),
        ("2.10.1", "2.9.9", False),
        ("2.8.4", "2.9.0", True),
        ("", "2.9.0", True),
    ],
)
def test_versions_are_compared_as_numbers(version: str, minimum: str, old: bool) -> None:
    assert handshake.is_too_old(version, minimum) is old


@pytest.mark.parametrize(
    ("info", "is_hub"),
    [
        (LeafInfo(), False),
        (LeafInfo(client_id=3), False),
        (LeafInfo(client_id=3, nonce="x", ip="a:1", compression="off"), False),
        (LeafInfo(client_id=3, leafnode_urls=()), True),
        (LeafInfo(client_id=3, info_on_connect=True), True),
        (LeafInfo(leafnode_urls=()), False),
    ],
)
def test_a_leaf_node_port_is_recognised(info: LeafInfo, is_hub: bool) -> None:
    assert handshake.is_hub_info(info) is is_hub


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (handshake.loop_text("$G"), 30.0),
        (handshake.SAME_CLUSTER, 30.0),
        (handshake.old_version_text("2.99.0"), 5.0),
        ("Authorization Violation", None),
        ("Stale Connection", None),
    ],
)
def test_how_long_to_stay_away(text: str, seconds: float | None) -> None:
    assert handshake.is_final(text)
    assert handshake.wait_after(text) == seconds


def test_any_other_error_leaves_the_connection_open() -> None:
    assert not handshake.is_final(handshake.INVALID_SUBSCRIPTION)
    assert not handshake.is_final("something new")


def test_of_two_connections_made_at_once_the_one_that_the_smaller_id_dialled_is_kept() -> None:
    assert handshake.ours_stays("A", "B", 0.1)
    assert not handshake.ours_stays("B", "A", 0.1)
    assert not handshake.ours_stays("A", "B", 60.0)


def test_an_info_names_its_connection_and_announces_no_tls_on_a_websocket() -> None:
    ours = LeafInfo(client_id=1, tls_required=True, tls_verify=True)
    plain, inside = (handshake.info_for(ours, 7, websocket=websocket) for websocket in (False, True))
    assert (plain.client_id, plain.tls_required, plain.tls_verify) == (7, True, True)
    assert (inside.client_id, inside.tls_required, inside.tls_verify) == (7, False, False)
