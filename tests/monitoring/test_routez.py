"""/routez and the cluster's part of /varz, beside nats-server's."""

import asyncio
import re
from pathlib import Path
from typing import Any

import nats
import pytest
from support.clusters import route_url, until
from support.monitored import ask, monitored
from support.nats_py_flush import flushed
from support.nats_server import start_nats_server

from headwater.monitoring.routez import OMITTED
from headwater.options.access import SubjectRules
from headwater.options.cluster import ClusterOptions

LATER = {"rtt": "known after the first ping"}
VARZ_OMITTED = {"write_timeout": "a route that takes nothing within write_deadline is closed"}


def theirs(directory: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    flags = ("--cluster", "nats://127.0.0.1:-1", "--cluster_name", "hw", "-m", "-1")
    with start_nats_server(directory / "1", *flags, jetstream=False) as first:
        while not (route := re.search(r"route connections on (\S+)", first.log.read_text())):
            pass
        http = re.search(r"http monitor on \S+:(\d+)", first.log.read_text())
        assert http is not None
        with start_nats_server(directory / "2", *flags, "--routes", f"nats://{route[1]}", jetstream=False):
            while not (page := ask(int(http[1]), "/routez").document)["num_routes"]:
                pass
            return page, ask(int(http[1]), "/varz").document["cluster"]


async def ours() -> tuple[dict[str, Any], dict[str, Any]]:
    options = ClusterOptions(name="hw", host="127.0.0.1")
    async with monitored(server_name="a", cluster=options) as first:
        secret = route_url(first.broker).replace("://", "://u:hunter2@")
        other = ClusterOptions(name="hw", host="127.0.0.1", routes=(secret,))
        async with monitored(server_name="b", cluster=other) as second:
            cluster = first.broker.cluster
            assert cluster is not None
            await until(lambda: bool(cluster.routes()), "a route")
            page = (await first.ask("/routez")).document
            (route,) = page["routes"]
            assert (route["remote_name"], route["remote_id"]) == ("b", second.broker.server_id)
            assert (route["did_solicit"], route["ip"]) == (False, "127.0.0.1")
            (route,) = (await second.ask("/routez")).document["routes"]
            assert (route["remote_name"], route["did_solicit"], route["is_configured"]) == ("a", True, True)
            varz = (await second.ask("/varz")).document
            assert (varz["routes"], varz["remotes"]) == (1, 1)
            assert varz["cluster"]["urls"] == [f"127.0.0.1:{cluster.port}"]
            places = [f"127.0.0.1:{server.broker.port}" for server in (second, first)]
            assert varz["connect_urls"] == places  # as nats-server: the client addresses of the whole cluster
            for path in ("/varz", "/routez", "/metrics"):
                assert b"hunter2" not in (await second.ask(path)).body
            return page, (await first.ask("/varz")).document["cluster"]


def test_what_peers_want_is_counted_and_on_request_listed_beside_the_rules() -> None:
    async def look() -> None:
        options = ClusterOptions(name="hw", host="127.0.0.1", exports=SubjectRules(allow=("a.>",)))
        async with monitored(cluster=options) as first:
            other = ClusterOptions(
                name="hw", host="127.0.0.1", routes=(route_url(first.broker),), imports=SubjectRules(deny=("x",))
            )
            async with monitored(cluster=other) as second, await nats.connect(second.broker.url) as client:
                for subject, queue in (("a.b", ""), ("a.b", "q"), ("a.c", ""), ("a.c", ""), ("not.exported", "")):
                    await client.subscribe(subject, queue)
                await flushed(client)
                cluster = first.broker.cluster
                assert cluster is not None
                await until(
                    lambda: any(len(cluster.wants_of(route)) == 3 for _, route in cluster.routes()), "the interest"
                )
                page = (await first.ask("/routez?subs=1")).document
                (route,) = page["routes"]
                assert route["subscriptions"] == 3
                assert sorted(route["subscriptions_list"]) == ["a.b", "a.b", "a.c"]
                assert (page["export"], route["import"]) == ({"allow": ["a.>"]}, {"deny": ["x"]})
                (route,) = (await first.ask("/routez")).document["routes"]
                assert "subscriptions_list" not in route
                page = (await second.ask("/routez")).document
                assert (page["import"], page["routes"][0]["export"]) == ({"deny": ["x"]}, {"allow": ["a.>"]})

    asyncio.run(look())


@pytest.mark.interop
def test_the_pages_have_nats_servers_fields(tmp_path: Path) -> None:
    their_page, their_block = theirs(tmp_path)
    our_page, our_block = asyncio.run(ours())
    known = {name.rpartition(".")[2] for name in {**OMITTED, **LATER}}
    assert set(their_page) == set(our_page)
    assert set(their_page["routes"][0]) - set(our_page["routes"][0]) - known == set()
    assert set(our_page["routes"][0]) - set(their_page["routes"][0]) - known == set()
    assert set(their_block) - set(our_block) - set(VARZ_OMITTED) == set()
    assert set(our_block) - set(their_block) == set()
