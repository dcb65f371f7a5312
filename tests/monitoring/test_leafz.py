"""/leafz and the leaf nodes' part of /varz, beside nats-server's."""

import asyncio
import re
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from support.clusters import connect, run
from support.field_names import names
from support.leafs import HUB, OURS, REAL, LeafServer, both_cross, serve, spoke_config
from support.monitored import ask

from headwater.monitoring.leafz import leafz
from headwater.monitoring.varz import varz

ADDED = {"leafz": {"remotes", "remotes.local_account", "remotes.urls", "remotes.joined", "remotes.connected_to"}}
HTTP = 'http: "127.0.0.1:-1"\n'


async def _look(server: LeafServer) -> dict[str, Any]:
    if server.embedded is None:
        port = re.search(r"http monitor on \S+:(\d+)", server.log())
        assert port is not None
        pages = [await asyncio.to_thread(ask, int(port[1]), path) for path in ("/leafz?subs=1", "/varz")]
        return {"leafz": pages[0].document, "leaf": pages[1].document["leaf"], "count": pages[1].document["leafnodes"]}
    view = server.embedded.broker.observe()
    return {"leafz": leafz(view, {"subs": "1"}), "leaf": varz(view)["leaf"], "count": varz(view)["leafnodes"]}


def pages(directory: Path, kind: str) -> list[dict[str, Any]]:
    """What a hub and its leaf node, both of this kind, show."""
    found: list[dict[str, Any]] = []
    with serve(kind, directory / "hub", HTTP + HUB) as hub:
        with serve(kind, directory / "leaf", HTTP + spoke_config(hub)) as leaf:

            async def test(stack: AsyncExitStack) -> None:
                await both_cross(await connect(stack, hub.url), await connect(stack, leaf.url))
                found.extend([await _look(hub), await _look(leaf)])

            run(test)
    return found


@pytest.mark.interop
def test_leaf_nodes_are_shown_with_nats_servers_fields(tmp_path: Path) -> None:
    real, made = pages(tmp_path / "theirs", REAL), pages(tmp_path / "ours", OURS)
    for there, here in zip(real, made, strict=True):
        assert here["count"] == there["count"] == 1
        assert names(here["leafz"]) - ADDED["leafz"] == names(there["leafz"])
        assert names(here["leaf"]) == names(there["leaf"])
    assert [page["leafz"]["leafs"][0]["is_spoke"] for page in made] == [False, True]
    assert made[0]["leafz"]["leafs"][0]["name"] == "L"
    assert made[1]["leafz"]["remotes"][0]["joined"] is True


def test_a_hub_that_is_not_joined_is_shown_with_the_reason(tmp_path: Path) -> None:
    config = 'server_name: L\nleafnodes { remotes: [ { url: "nats-leaf://u:hunter2@127.0.0.1:1" } ] }'
    with serve(OURS, tmp_path, config) as leaf:
        assert leaf.embedded is not None
        document = leafz(leaf.embedded.broker.observe(), {})
        remote = document["remotes"][0]  # type: ignore[index]
        assert remote["joined"] is False
        assert remote["reason"]
        assert "hunter2" not in str(document)
