"""Traces that continue at a leaf node or a hub: one report from each server, linked by the hop. Every pair of servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.leafs import HUB, PAIR_NAMES, PAIRS, LeafServer, serve, spoke_config
from support.raw_wire import RawLink, dial
from support.traces import Report, block, hpub, read_report, receive

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module", params=PAIRS, ids=PAIR_NAMES)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[LeafServer, LeafServer]]:
    """A hub and its leaf node, joined."""
    folder = tmp_path_factory.mktemp("traces")
    hub_kind, leaf_kind = request.param
    with serve(hub_kind, folder / "hub", HUB) as hub:
        remote = 'deny_exports: ["shut.>"], deny_imports: ["shut.>"]'
        with serve(leaf_kind, folder / "leaf", spoke_config(hub, remote)) as leaf:
            with dial(hub.port) as here, dial(leaf.port) as there:
                joined(here, there)
                joined(there, here)
            yield hub, leaf


def joined(sender: RawLink, receiver: RawLink) -> None:
    """Return once the sender's server knows the interest of `receiver`."""
    receiver.send(b"SUB joined 99\r\n")
    receiver.settle()
    while b"joined" not in receiver.settle():
        sender.send(b"PUB joined 0\r\n\r\n")
        sender.settle()
    receiver.send(b"UNSUB 99\r\n")
    receiver.settle()


def reports(link: RawLink, count: int) -> dict[str, Report]:
    """Reports by server name, because they arrive over two paths."""
    return {report.server: report for report in (read_report(got.payload) for got in receive(link, count))}


@pytest.mark.parametrize("only", [False, True])
@pytest.mark.parametrize("upwards", [False, True])
def test_both_servers_report_and_the_hop_links_them(
    pair: tuple[LeafServer, LeafServer], upwards: bool, only: bool
) -> None:
    near, far = reversed(pair) if upwards else pair
    name, other = ("L", "H") if upwards else ("H", "L")
    traced = {"Nats_Trace_Dest": "tr.1", **({"Nats_Trace_Only": "1"} if only else {})}
    with dial(near.port, name="pub") as publisher, dial(far.port, name="sub") as subscriber:
        publisher.send(b"SUB tr.> 1\r\n")
        subscriber.send(b"SUB orders.* 2\r\n")
        joined(publisher, subscriber)
        joined(subscriber, publisher)
        publisher.send(hpub("orders.1", b"hi", "", **traced))
        received = reports(publisher, 2)
        first, second = received[name], received[other]
        assert first.events == [
            "in client name=pub acc=$G subj=orders.1",
            f"eg leaf name={other} hop=1",
        ]
        assert (first.hops, first.hop, second.hops, second.hop) == (1, "", 0, "1")
        assert second.events == [f"in leaf name={name} acc=$G subj=orders.1", "eg client name=sub sub=orders.*"]
        delivered = [] if only else [block(**traced, Nats_Trace_Hop="1")]
        subscriber.send(b"PUB orders.end 0\r\n\r\n")
        assert [got.headers for got in receive(subscriber, 1 + len(delivered))] == [*delivered, b""]


def test_the_report_says_that_a_message_may_not_cross(pair: tuple[LeafServer, LeafServer]) -> None:
    hub, leaf = pair
    with dial(leaf.port, name="pub") as publisher, dial(hub.port, name="sub") as subscriber:
        publisher.send(b"SUB tr.> 1\r\n")
        subscriber.send(b"SUB > 2\r\n")
        joined(publisher, subscriber)
        publisher.send(hpub("shut.1", Nats_Trace_Dest="tr.1"))
        report = reports(publisher, 1)["L"]
        assert report.events[0] == "in client name=pub acc=$G subj=shut.1"
        # A message withheld by a leaf node's own `deny_exports` counts as a denied subscription of the hub.
        denied = "eg leaf name=H hop=1 error=Not delivered because subscription denies this subject"
        assert report.events[1:] == [denied]
    with dial(hub.port, name="pub") as publisher, dial(leaf.port, name="sub") as subscriber:
        publisher.send(b"SUB tr.> 1\r\n")
        subscriber.send(b"SUB > 2\r\n")
        joined(publisher, subscriber)
        publisher.send(hpub("shut.1", Nats_Trace_Dest="tr.1"))
        denied = "eg leaf name=L hop=1 error=Not delivered because publish denied for this subject"
        assert reports(publisher, 1)["H"].events[1:] == [denied]


GUARDED = """authorization { users: [
    { user: u, password: p }
    { user: leaf, password: p, permissions: { publish: { deny: ["secret.>"] } } }
] }"""


@pytest.mark.parametrize(("hub_kind", "leaf_kind"), PAIRS, ids=PAIR_NAMES)
def test_a_leaf_node_has_nothing_reported_where_it_may_not_publish(
    tmp_path: Path, hub_kind: str, leaf_kind: str
) -> None:
    """GHSA-p3j5-5hrq-p75h."""
    with serve(hub_kind, tmp_path / "hub", f"{HUB}\n{GUARDED}") as hub:
        config = spoke_config(hub).replace("nats-leaf://", "nats-leaf://leaf:p@")
        with (
            serve(leaf_kind, tmp_path / "leaf", config) as leaf,
            dial(leaf.port, name="pub") as publisher,
            dial(hub.port, user="u", name="sub", **{"pass": "p"}) as subscriber,
        ):
            subscriber.send(b"SUB orders.* 1\r\nSUB secret.* 2\r\nSUB tr.* 3\r\n")
            joined(publisher, subscriber)
            publisher.send(hpub("orders.1", Nats_Trace_Dest="secret.1") + hpub("orders.2", Nats_Trace_Dest="tr.1"))
            received = [got.subject for got in receive(subscriber, 3)]  # both servers report to tr.1
            assert sorted(received) == ["orders.2", "tr.1", "tr.1"]
