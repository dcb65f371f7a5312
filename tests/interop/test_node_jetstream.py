"""npm's @nats-io/jetstream, kv and obj, unmodified: each scenario finds the same on our broker as on the real nats-server.

Skipped, with the reason, where node or npm is missing or the packages cannot be had.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.headwater_server import start_headwater
from support.nats_server import start_nats_server
from support.peers import NODE_PACKAGE, install_node_package

pytestmark = pytest.mark.interop

PACKAGES = (NODE_PACKAGE, "@nats-io/jetstream", "@nats-io/kv", "@nats-io/obj")
SCRIPT = Path(__file__).parent / "node" / "jetstream.mjs"
SCENARIO_TIMEOUT = 60.0  # seconds


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The real server's, and ours."""
    directory = tmp_path_factory.mktemp("node-jetstream")
    with (
        start_nats_server(directory / "real") as real,
        start_headwater(directory / "ours", "-js", "-sd", str(directory / "ours" / "js")) as ours,
    ):
        yield [real.url, ours.url]


def play(packages: Path, url: str, scenario: str, *domain: str) -> dict[str, Any]:
    command = ["node", str(SCRIPT), str(packages), url, scenario, *domain]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SCENARIO_TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


SCENARIOS = (
    "streams", "publishing", "consumers", "settling", "policies", "ordered", "push", "direct", "keys", "buckets", "markers",
    "objects", "links",
)  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_node_client_finds_what_it_finds_on_the_real_server(urls: list[str], scenario: str) -> None:
    packages = install_node_package(PACKAGES)
    real, ours = (play(packages, url, scenario) for url in urls)
    assert ours == real
    match scenario:
        case "streams":
            assert (ours["first"], ours["duplicate"], ours["purged"]) == (6, True, 2)
        case "consumers":
            assert (ours["next"], ours["redelivered"], ours["consumed"]) == (2, True, list(range(6, 13)))
        case "ordered":
            assert (ours["count"], ours["ascending"]) == (233, True)
        case "direct":
            assert (ours["batch"], ours["lasts"]) == ([2, 3, 4, 5], [7, 9])
        case "keys":
            assert (ours["revisions"], ours["exists"], ours["stale"]) == ([1, 2, 3, 4], True, True)
        case "objects":
            assert (ours["equal"], ours["chunks"], ours["header"]) == (True, 6, "kept")
        case "publishing":
            assert ours["acks"][:2] == [[1, False], [1, True]]
            assert ours["description"] == "changed"
        case "settling":
            assert ours["seen"][1:] == [[[1, 2]], [[1, 3]]]
            assert ours["paused"] is not None
        case "policies":
            assert [len(found) for found in ours.values()] == [9, 1, 0, 3, 4, 5, 2]
        case "buckets":
            assert (ours["old"], ours["seen"], ours["gone"]) == ("3", "8", True)
        case "markers":
            assert [key for key, *_ in ours["seen"]] == ["k", "stays", "k"]
        case "links":
            assert (ours["followed"], ours["link"], ours["sealed"]) == ("hello", "first", [True, True])
        case _:
            assert len(ours["seen"]) == 6
