"""A hub that is reached by WebSocket: dialled by ours as nats-server dials it."""

import re
from pathlib import Path

import pytest
from support.clusters import connect, run
from support.leafs import OURS, REAL, both_cross, serve

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("leaf_kind", [REAL, OURS])
@pytest.mark.parametrize("path", ["", "/behind/a/proxy"])
def test_a_hub_is_joined_by_websocket(tmp_path: Path, leaf_kind: str, path: str) -> None:
    config = (
        'server_name: H\nwebsocket { listen: "127.0.0.1:-1", no_tls: true }\n'
        'leafnodes { listen: "127.0.0.1:-1", compression: off }'
    )
    with serve(REAL, tmp_path / "hub", config) as hub:
        found = re.search(r"Listening for websocket clients on ws://\S+:(\d+)", hub.log())
        assert found is not None
        remote = f'{{ url: "ws://127.0.0.1:{found[1]}{path}", compression: off }}'
        with serve(leaf_kind, tmp_path / "leaf", f"server_name: L\nleafnodes {{ remotes: [ {remote} ] }}") as leaf:

            async def test(stack: object) -> None:
                await both_cross(await connect(stack, hub.url), await connect(stack, leaf.url))  # type: ignore[arg-type]

            run(test)
