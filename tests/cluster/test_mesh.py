"""Decisions about the full mesh: for one connection at a time, then for whole clusters in simulated time from a printed
seed.
"""

from collections.abc import Sequence
from random import Random
from typing import get_args

import pytest
from support.mesh_simulator import Network, Node

from headwater.cluster.mesh import (
    Action,
    AnnounceUrls,
    Close,
    Dial,
    Lost,
    Mesh,
    MeshOptions,
    Protocol,
    Registered,
    Repeat,
    Send,
)
from headwater.wire.peer_documents import SubjectLists
from headwater.wire.route_lines import RouteConnect, RouteInfo, decode_route_info

US = "nats-route://127.0.0.1:6222"
THEM = "nats-route://127.0.0.1:6333"


def info(server_id: str, port: int = 6333, **fields: object) -> RouteInfo:
    given = {"server_name": server_id.lower(), "headers": True, "cluster": "hw", "host": "127.0.0.1"} | fields
    return RouteInfo(server_id=server_id, port=port, **given)  # type: ignore[arg-type]


def mesh(**options: object) -> Mesh:
    given = {"info": info("ME", 6222, connect_urls=("127.0.0.1:4222",)), "routes": (THEM,)} | options
    return Mesh(MeshOptions(**given), lambda: 0.5)  # type: ignore[arg-type]


PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
CONNECT = RouteConnect(name="PEER", cluster="hw", headers=True)


def sent(actions: Sequence[Action]) -> bytes:
    return b"".join(action.data for action in actions if isinstance(action, Send))


def test_configured_routes_are_dialled_and_ourselves_is_not() -> None:
    assert mesh(routes=(US, THEM)).start() == [Dial(THEM, 0.0)]


def test_the_password_of_routes_is_in_no_repr() -> None:
    assert "s3cret" not in repr(
        MeshOptions(info=info("ME"), user="u", password="s3cret", routes=("nats://u:s3cret@h:1",))
    )


def test_dialled_peer_is_answered_with_connect_and_info_and_registered() -> None:
    us = mesh()
    us.start()
    assert us.dialled(1, THEM, "127.0.0.1") == []
    actions = us.on_info(1, info("PEER", connect_urls=("127.0.0.1:4333",)))
    assert sent(actions).startswith(b'CONNECT {"echo":true,"verbose":false,"pedantic":false,"tls_required":false,')
    assert b'"cluster":"hw"' in sent(actions)
    assert b"lang" not in sent(actions)
    assert [type(action) for action in actions[1:]] == [Registered, AnnounceUrls]
    assert us.client_urls() == ("127.0.0.1:4333",)


def test_accepted_peer_is_registered_after_both_documents() -> None:
    us = mesh()
    assert sent(us.accepted(1, "127.0.0.1")).startswith(b"INFO ")
    assert us.on_connect(1, CONNECT) == []
    assert us.peer_of(1) is None
    assert isinstance(us.on_info(1, info("PEER"))[0], Registered)
    assert us.peer_of(1) is not None


def test_info_before_connect_is_an_authorization_violation() -> None:
    us = mesh()
    us.accepted(1, "127.0.0.1")
    actions = us.on_info(1, info("PEER"))
    assert sent(actions) == b"-ERR 'Authorization Violation'\r\n"
    assert isinstance(actions[-1], Close)


@pytest.mark.parametrize(
    ("connect", "error"),
    [
        (RouteConnect(name="P", cluster="hw", lang="go"), b"attempted to connect to route port"),
        (RouteConnect(name="P", cluster="hw"), b"Authorization Violation"),
        (RouteConnect(name="P", cluster="hw", user="u", password="wrong"), b"Authorization Violation"),
        (
            RouteConnect(name="P", cluster="other", user="u", password="p"),
            b'Rejecting connection, cluster name "other" does not match "hw"',
        ),
        (
            RouteConnect(name="P", user="u", password="p"),
            b'Rejecting connection, cluster name "" does not match "hw"',
        ),
    ],
)
def test_refused_peer_gets_the_reason_as_the_last_op(connect: RouteConnect, error: bytes) -> None:
    us = mesh(user="u", password="p")
    us.accepted(1, "127.0.0.1")
    actions = us.on_connect(1, connect)
    assert sent(actions) == b"-ERR '" + error + b"'\r\n"
    assert isinstance(actions[-1], Close)
    assert us.on_info(1, info("PEER")) == []


def test_credentials_of_the_url_come_before_those_of_the_cluster() -> None:
    us = mesh(user="u", password="p", routes=("nats-route://a:b@127.0.0.1:6333",))
    us.dialled(1, "nats-route://a:b@127.0.0.1:6333", "127.0.0.1")
    us.dialled(2, "nats-route://127.0.0.1:6444/", "127.0.0.1")
    assert b'"user":"a","pass":"b"' in sent(us.on_info(1, info("PEER")))
    assert b'"user":"u","pass":"p"' in sent(us.on_info(2, info("OTHER", 6444)))


@pytest.mark.parametrize("given", [info("ME"), info("PEER", server_name="me"), info("PEER", cluster="other"), info("")])
def test_peer_that_is_ourselves_or_another_cluster_is_closed_in_silence(given: RouteInfo) -> None:
    us = mesh()
    us.accepted(1, "127.0.0.1")
    us.on_connect(1, CONNECT)
    actions = us.on_info(1, given)
    assert [type(action) for action in actions] == [Close]


def test_second_link_to_a_real_server_is_closed_and_the_first_stays() -> None:
    us = mesh()
    us.dialled(1, THEM, "127.0.0.1")
    us.on_info(1, info("PEER"))
    us.accepted(2, "127.0.0.1")
    us.on_connect(2, CONNECT)
    assert [type(action) for action in us.on_info(2, info("PEER"))] == [Close]
    assert list(us.lost(2)) == []
    assert us.peers["PEER"].link == 1


@pytest.mark.parametrize(("us_id", "stays"), [("A", 1), ("Z", 2)])
def test_of_two_links_between_brokers_of_ours_the_smaller_ids_stays(us_id: str, stays: int) -> None:
    us = mesh(info=info(us_id, 6222, headwater="1"))
    us.start()
    us.dialled(1, THEM, "127.0.0.1")
    us.on_info(1, info("PEER", headwater="1"))
    us.accepted(2, "127.0.0.1")
    us.on_connect(2, CONNECT)
    actions = us.on_info(2, info("PEER", headwater="1"))
    assert us.peers["PEER"].link == stays
    assert [action.link for action in actions if isinstance(action, Close)] == [3 - stays]
    assert list(us.lost(3 - stays)) == []  # the remaining link satisfies the configured route
    assert list(us.lost(stays))[-1] == Dial(THEM, 1.05)


def test_new_peer_is_announced_to_the_others_with_its_remote_address() -> None:
    us = mesh()
    us.dialled(1, THEM, "127.0.0.1")
    us.on_info(1, info("PEER"))
    us.accepted(2, "10.0.0.7")
    us.on_connect(2, CONNECT)
    actions = us.on_info(2, info("NEW", 6444))
    gossip = [action for action in actions if isinstance(action, Send)]
    assert [action.link for action in gossip] == [1]
    assert b'"ip":"nats-route://10.0.0.7:6444/"' in gossip[0].data
    assert b"_required" not in gossip[0].data


def test_gossip_says_whether_the_new_peer_requires_a_password_and_tls() -> None:
    us = mesh()
    us.dialled(1, THEM, "127.0.0.1")
    us.on_info(1, info("PEER"))
    us.accepted(2, "10.0.0.7")
    us.on_connect(2, CONNECT)
    (gossip,) = [
        action
        for action in us.on_info(2, info("NEW", 6444, auth_required=True, tls_required=True, tls_verify=True))
        if isinstance(action, Send)
    ]
    reported = decode_route_info(gossip.data.removeprefix(b"INFO "))
    assert (reported.auth_required, reported.tls_required, reported.tls_verify) == (True, True, True)


def test_gossip_is_dialled_once_and_given_up_when_it_fails() -> None:
    us = mesh(connect_retries=1)
    us.dialled(1, THEM, "127.0.0.1")
    us.on_info(1, info("PEER"))
    reported = info("NEW", 6444, ip="nats-route://10.0.0.7:6444/")
    assert us.on_info(1, reported) == [Dial("nats-route://10.0.0.7:6444/", 0.0)]
    assert us.on_info(1, reported) == []
    assert us.dial_failed(reported.ip) == [Dial(reported.ip, 1.05)]
    assert us.dial_failed(reported.ip) == []


def test_a_lost_peer_that_gossip_brought_is_dialled_for_ten_minutes() -> None:
    us = mesh()
    us.dialled(1, THEM, "127.0.0.1")
    us.on_info(1, info("PEER"))
    url = "nats-route://10.0.0.7:6444/"
    us.on_info(1, info("NEW", 6444, ip=url))
    us.dialled(2, url, "10.0.0.7")
    us.on_info(2, info("NEW", 6444))
    assert us.peers["NEW"].dialled is True
    tries = [action for action in us.lost(2) if isinstance(action, Dial)]
    while (more := us.dial_failed(url)) and len(tries) < 100:
        tries += [action for action in more if isinstance(action, Dial)]
    assert 595 < sum(dial.delay for dial in tries) < 610


@pytest.mark.parametrize(
    "reported", [info("ME", ip=US), info("PEER", ip=THEM), info("X", ip=THEM), info("X"), info("X", ip="x://")]
)
def test_gossip_about_known_peers_or_without_an_address_is_ignored(reported: RouteInfo) -> None:
    us = mesh()
    us.dialled(1, THEM, "127.0.0.1")
    us.on_info(1, info("PEER"))
    assert [action for action in us.on_info(1, reported) if not isinstance(action, AnnounceUrls)] == []


def test_websocket_clients_get_only_the_peers_websocket_addresses() -> None:
    us = mesh()
    us.dialled(1, THEM, "127.0.0.1")
    assert AnnounceUrls() in us.on_info(1, info("PEER", ws_connect_urls=("127.0.0.1:8080",)))
    assert (us.client_urls(), us.websocket_urls()) == ((), ("127.0.0.1:8080",))
    assert us.on_info(1, info("PEER", ws_connect_urls=("10.0.0.7:8080",))) == [AnnounceUrls()]
    assert us.websocket_urls() == ("10.0.0.7:8080",)
    assert AnnounceUrls() in list(us.lost(1))
    assert us.websocket_urls() == ()


def test_later_info_changes_client_urls_and_never_the_address() -> None:
    us = mesh()
    us.dialled(1, THEM, "127.0.0.1")
    us.on_info(1, info("PEER"))
    assert us.on_info(1, info("PEER", 9999, connect_urls=("10.0.0.7:4222",))) == [AnnounceUrls()]
    assert us.peers["PEER"].port == 6333
    assert us.on_info(1, info("PEER", 4333, client_id=12)) == []  # a bug of gnatsd 1.4.1
    assert us.client_urls() == ("10.0.0.7:4222",)
    assert us.on_info(1, info("PEER", connect_urls=("10.0.0.7:4222",), ldm=True)) == [AnnounceUrls()]
    assert us.client_urls() == ()


def test_peer_that_changes_its_exports_gets_all_interest_again() -> None:
    us = mesh()
    us.dialled(1, THEM, "127.0.0.1")
    few, more = SubjectLists(allow=("a",)), SubjectLists(allow=("a", "b"))
    us.on_info(1, info("PEER", exports=few))
    assert us.on_info(1, info("PEER", exports=few)) == []
    assert us.on_info(1, info("PEER", exports=more)) == [Repeat(us.peers["PEER"])]
    assert us.on_info(1, info("PEER", exports=more)) == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_imports_and_exports_are_announced(protocol: Protocol) -> None:
    ours = info("ME", 6222, imports=SubjectLists(allow=("a.>",)), exports=SubjectLists(deny=("b",)))
    output = sent(mesh(info=ours, protocol=protocol).accepted(1, "127.0.0.1"))
    assert b'"import":{"allow":["a.>"]},"export":{"deny":["b"]}' in output


def test_lost_peer_takes_its_addresses_with_it_and_a_configured_route_is_dialled_again() -> None:
    us = mesh()
    us.start()
    us.dialled(1, THEM, "127.0.0.1")
    us.on_info(1, info("PEER", connect_urls=("127.0.0.1:4333",)))
    actions = list(us.lost(1))
    assert [type(action) for action in actions] == [AnnounceUrls, Lost, Dial]
    assert us.client_urls() == ()
    assert not us.peers


def test_lost_peer_that_gossip_tells_of_again_is_dialled_at_once() -> None:
    us = mesh()
    us.dialled(1, THEM, "127.0.0.1")
    us.on_info(1, info("PEER"))
    other = "nats-route://127.0.0.1:6302/"
    assert us.on_info(1, RouteInfo(server_id="OTHER", ip=other)) == [Dial(other, 0.0)]
    us.dialled(2, other, "127.0.0.1")
    us.on_info(2, info("OTHER", 6302))
    assert list(us.lost(2))[-1] == Dial(other, 1.05)  # dialled with growing delays
    assert us.dial_failed(other) == [Dial(other, 2.05)]
    assert us.on_info(1, RouteInfo(server_id="OTHER2", ip=other)) == [Dial(other, 0.0)]


def test_route_that_has_never_answered_is_retried_soon_and_then_every_second() -> None:
    us = mesh()
    us.start()
    waits = [action.delay for _ in range(15) for action in us.dial_failed(THEM) if isinstance(action, Dial)]
    assert [round(wait, 4) for wait in waits[:4]] == [0.015, 0.0225, 0.0338, 0.0506]
    assert waits[:12] == sorted(waits[:12])
    assert waits[-1] == waits[-2] == 1.05


def test_configured_peer_that_came_to_us_meanwhile_is_not_dialled_until_it_is_lost() -> None:
    us = mesh()
    us.start()
    us.dial_failed(THEM)
    us.accepted(1, "127.0.0.1")
    us.on_connect(1, CONNECT)
    us.on_info(1, info("PEER"))
    assert not us.still_wanted(THEM)
    assert us.peers["PEER"].configured == THEM
    assert us.dial_failed(THEM) == []
    assert list(us.lost(1))[-1] == Dial(THEM, 1.05)


def test_back_off_doubles_up_to_a_bound_and_starts_anew_after_success() -> None:
    us = mesh(connect_backoff=True)
    us.start()
    us.dialled(2, THEM, "127.0.0.1")
    list(us.lost(2))
    waits = [action.delay for _ in range(7) for action in us.dial_failed(THEM) if isinstance(action, Dial)]
    assert [round(wait, 2) for wait in waits] == [2.05, 4.05, 8.05, 16.05, 30.05, 30.05, 30.05]
    us.dialled(1, THEM, "127.0.0.1")
    us.on_info(1, info("PEER"))
    assert list(us.lost(1))[-1] == Dial(THEM, 1.05)


def test_generated_cluster_name_gives_way() -> None:
    us = mesh(name_is_dynamic=True, info=info("ME", 6222, cluster="made-up"))
    us.accepted(1, "127.0.0.1")
    assert us.on_connect(1, RouteConnect(name="P", cluster="chosen", headers=True)) == []
    assert us.info.cluster == "chosen"


def test_v1_info_has_no_v2_fields_and_an_impatient_v2_peer_is_held() -> None:
    us = mesh(protocol="v1")
    hello = sent(us.accepted(1, "127.0.0.1"))
    assert b"cluster" not in hello
    assert b"headers" not in hello
    assert b"server_name" not in hello
    refusal = us.on_connect(1, CONNECT)[-1]
    assert isinstance(refusal, Close)
    assert refusal.hold >= 1


def test_only_a_broker_that_meets_no_gnatsd_says_a_proto() -> None:
    """gnatsd 1.4.1 answers any `proto` with the INFO for its clients."""
    shown = {protocol: b'"proto":3' in sent(mesh(protocol=protocol).accepted(1, "127.0.0.1")) for protocol in PROTOCOLS}
    assert shown == {"v1": False, "v2": True, "auto": False}
    assert b'"proto"' not in sent(mesh(protocol="v1").accepted(1, "127.0.0.1"))


def test_v1_peer_is_taken_by_v1_and_auto_and_not_by_v2() -> None:
    old = RouteInfo(server_id="OLD", host="127.0.0.1", port=6333, version="1.4.1")
    taken = {}
    for protocol in ("v1", "auto", "v2"):
        us = mesh(protocol=protocol)
        us.accepted(1, "127.0.0.1")
        us.on_connect(1, RouteConnect(name="OLD"))
        us.on_info(1, old)
        taken[protocol] = us.peers["OLD"].dialect if "OLD" in us.peers else None
    assert taken == {"v1": "v1", "auto": "v1", "v2": None}


def test_lame_duck_tells_its_peers() -> None:
    us = mesh()
    us.dialled(1, THEM, "127.0.0.1")
    us.on_info(1, info("PEER"))
    assert b'"ldm":true' in sent(us.leave())


def assert_full_mesh(network: Network) -> None:
    nodes: list[Node] = list(network.nodes.values())
    everybody = {node.mesh.info.server_id for node in nodes}
    for node in nodes:
        me = node.mesh.info.server_id
        assert node.peers() == everybody - {me}, f"{me} at {network.now}"
        for peer in node.mesh.peers.values():
            assert peer.link in node.readers, f"{me} holds a dead link to {peer.server_id}"
            assert {end.mesh.info.server_id for end in network.ends[peer.link]} == {me, peer.server_id}
        assert len(node.readers) == len(everybody) - 1, f"{me} has links beside those of its peers"


@pytest.mark.parametrize("seed", range(30))
def test_any_cluster_that_one_address_connects_becomes_a_full_mesh(seed: int) -> None:
    random = Random(seed)
    network = Network(seed)
    size = random.randint(2, 7)
    protocol = random.choice(PROTOCOLS)
    for at in range(size):
        # what people configure: a chain, a star, all to all, or all including themselves
        routes = random.choice([[6000], [6000 + max(at - 1, 0)], [6000 + i for i in range(size)]])
        network.add(f"n{at}", 6000 + at, routes, protocol)
        if random.random() < 0.5:
            network.run(random.uniform(0, 0.02))
    network.run(10)
    assert_full_mesh(network)


@pytest.mark.parametrize("seed", range(20))
def test_mesh_heals_after_links_and_brokers_are_lost(seed: int) -> None:
    random = Random(seed)
    network = Network(seed)
    size = random.randint(3, 6)
    every = [6000 + at for at in range(size)]
    for at in range(size):
        network.add(f"n{at}", 6000 + at, every)
    network.run(5)
    for round in range(6):
        for link in random.sample(sorted(network.ends), k=random.randint(0, len(network.ends))):
            network.close(link)
        if random.random() < 0.5:
            port = random.choice(sorted(network.nodes))
            network.kill(port)
            network.run(random.uniform(0, 2))
            network.add(f"n{port}-{round}", port, every)
        network.run(random.uniform(0, 3))
    network.run(10)
    assert_full_mesh(network)
    for node in network.nodes.values():
        for peer in node.peers():  # each change in order: registered, lost, registered ...
            seen = [event for event, origin in node.events if origin == peer]
            assert seen == ["registered", "lost"] * (len(seen) // 2) + ["registered"]


@pytest.mark.parametrize("seed", range(20))
def test_route_lost_between_two_that_gossip_brought_together_is_made_again(seed: int) -> None:
    """All know only the first broker; no broker dies, and the first one's routes may stay up all the time."""
    random = Random(seed)
    network = Network(seed)
    for at in range(random.randint(3, 6)):
        network.add(f"n{at}", 6000 + at, [6000])
    network.run(5)
    assert_full_mesh(network)
    for _ in range(random.randint(1, 6)):
        for link in random.sample(sorted(network.ends), k=random.randint(0, len(network.ends))):
            network.close(link)
        network.run(random.uniform(0, 3))
    network.run(120)  # a peer learned by gossip is dialled at most 30 seconds after the last try
    assert_full_mesh(network)
