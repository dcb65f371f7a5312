"""Which brokers of the cluster are shown as there, lost, gone on purpose or never seen."""

from headwater.cluster.mesh import LONGEST_RETRY, Dial, Mesh, MeshOptions
from headwater.monitoring.peers import FORGOTTEN_MS, Peers
from headwater.wire.route_lines import RouteConnect, RouteInfo

SEED, OTHER = "nats-route://127.0.0.1:6333", "nats-route://127.0.0.1:6444"


def info(server_id: str, port: int, **fields: object) -> RouteInfo:
    given = {"server_name": server_id.lower(), "headers": True, "cluster": "hw", "host": "127.0.0.1"} | fields
    return RouteInfo(server_id=server_id, port=port, **given)  # type: ignore[arg-type]


def mesh(*routes: str) -> Mesh:
    made = Mesh(MeshOptions(info=info("ME", 6222), routes=routes), lambda: 0.0)
    made.start()
    return made


def states(peers: Peers) -> dict[object, object]:
    return {one["name"]: one["state"] for one in peers.document()}


def test_a_configured_peer_is_absent_until_it_joins_and_lost_until_it_is_back() -> None:
    us, peers = mesh(SEED, OTHER), Peers()
    peers.note(us, 1)
    assert states(peers) == {"127.0.0.1:6333": "absent", "127.0.0.1:6444": "absent"}
    us.dialled(1, SEED, "127.0.0.1")
    us.on_info(1, info("PEER", 6333))
    peers.note(us, 2)
    assert states(peers) == {"peer": "joined", "127.0.0.1:6444": "absent"}
    list(us.lost(1))
    peers.note(us, 3)
    peers.note(us, 3 + 10 * FORGOTTEN_MS)
    assert states(peers) == {"peer": "lost", "127.0.0.1:6444": "absent"}
    assert (peers.lost(), peers.document()[1]["since_ms"]) == (2, 3)
    us.dialled(2, SEED, "127.0.0.1")
    us.on_info(2, info("AGAIN", 6333, server_name="peer"))
    peers.note(us, 9)
    assert states(peers) == {"peer": "joined", "127.0.0.1:6444": "absent"}
    assert peers.lost() == 1


def test_a_peer_by_gossip_is_forgotten_in_the_end_and_one_that_leaves_is_no_loss() -> None:
    us, peers = mesh(), Peers()
    for link, name, leaving in ((1, "LEAVES", True), (2, "FAILS", False)):
        us.accepted(link, "127.0.0.1")
        us.on_connect(link, RouteConnect(name=name, cluster="hw", headers=True))
        us.on_info(link, info(name, 7000 + link, ldm=leaving))
    peers.note(us, 1)
    for link in (1, 2):
        list(us.lost(link))
    peers.note(us, 2)
    assert states(peers) == {"leaves": "left", "fails": "lost"}
    assert peers.lost() == 1
    peers.note(us, 3 + FORGOTTEN_MS)
    assert peers.document() == []


def test_a_route_that_leads_to_ourselves_is_no_loss_and_seldom_tried_again() -> None:
    us, peers = mesh("nats-route://by-another-name:6222"), Peers()
    us.dialled(1, "nats-route://by-another-name:6222", "127.0.0.1")
    us.on_info(1, info("ME", 6222))
    assert list(us.lost(1)) == [Dial("nats-route://by-another-name:6222", LONGEST_RETRY)]
    peers.note(us, 1)
    assert (peers.lost(), peers.document()) == (0, [])
