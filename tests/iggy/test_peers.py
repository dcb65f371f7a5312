"""Released clients of every generation, each with its whole conversation against one server."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.iggy_peers import installed, talk, with_released_client

from headwater.iggy.face import Iggy, IggyOptions
from headwater.iggy_wire.identifiers import Identifier, position_of_key

pytestmark = pytest.mark.interop

PRE_RELEASE = "0.9.1.dev5"  # the newest one: protocol 0.12.0
OLD = [("apache-iggy", "0.8.0"), ("apache-iggy", "0.7.0"), ("apache-iggy", "0.6.0"), ("apache-iggy", "0.5.0")]
OLDER = [("iggy-py", "0.4.0"), ("iggy-py", "0.2.7")]
TYPED = {"Key-2": True, "f": 123.45, "i": -5, "key 1": "value1", "key_3": 123456}


def converse(tmp_path: Path, name: str, version: str, first: int = 0) -> dict[str, Any]:
    folder = None if (name, version) == ("apache-iggy", "0.9.0") else installed(name, version)

    async def main() -> dict[str, Any]:
        async with asyncio.timeout(90), Iggy(IggyOptions(tcp=("127.0.0.1", 0)), tmp_path) as iggy:
            steps = await talk(folder, name.replace("-", "_"), f"127.0.0.1:{iggy.tcp_port}", first, "x")
            return steps | {"committed": committed(iggy)}

    return asyncio.run(main())


def committed(iggy: Iggy) -> dict[str, dict[int, int]]:
    """What is kept for each group of the client's topic: the offset by partition, as positions."""
    topic = iggy.service.topic(Identifier("xstream"), Identifier("xtopic"))[1]
    stored = topic.offsets.stored
    return {
        group.name: {index: kept[f"g:{group.id}"] for index, kept in stored.items() if f"g:{group.id}" in kept}
        for group in topic.entry.groups
    }


def check_basics(steps: dict[str, Any], topic: object) -> None:
    failed = {step for step, value in steps.items() if isinstance(value, str) and value.startswith("error")}
    assert failed == {"poll_nowhere"}
    assert "PartitionNotFound" in steps["poll_nowhere"] or "was not found" in steps["poll_nowhere"]
    assert steps["get_stream"] == ["xstream", 0]
    assert steps["get_topic"] == topic
    assert steps["poll"] == [[number, f"x{number}"] for number in range(5)]
    assert steps["poll_last"] == [[3, "x3"], [4, "x4"]]
    turns = [
        steps[f"poll_next_{turn}"] for turn in ("first", "second", "third")
    ]  # each goes on behind the stored offset
    assert turns == [[[0, "x0"], [1, "x1"]], [[2, "x2"], [3, "x3"]], [[4, "x4"]]]


def check_groups(steps: dict[str, Any]) -> None:
    assert steps["poll_offset"] == [[3, "x3"]]
    assert steps["poll_empty"] == []
    assert steps["missing"] is True
    assert steps["poll_timestamp"] == [[0, "x0"], [1, "x1"]]
    everything = ["second", "x0", "x1", "x2", "x3", "x4"]
    assert steps["group"] == steps["group_offsets"] == steps.get("group_iterated", everything) == everything
    assert steps["committed"]["group2"] == {0: 4}, "stored by hand; the other partition's was deleted"


@pytest.mark.parametrize("version", [pytest.param("0.9.0", marks=with_released_client), PRE_RELEASE])
def test_the_client_of_today_and_of_tomorrow_with_typed_headers(tmp_path: Path, version: str) -> None:
    steps = converse(tmp_path, "apache-iggy", version)
    check_basics(steps, ["xtopic", 2])
    check_groups(steps)
    assert steps["poll_headers"] == [[5, "with headers", TYPED]]
    assert "group_iterated" in steps
    assert steps["poll_direct"] == steps["poll_background"] == [200, "19-9"]
    found = {text: number for number in range(5) for _, text in steps[f"poll_keyed_{number}"]}
    assert len(found) == 12 and len(set(found.values())) > 2
    assert found == {text: position_of_key(bytes.fromhex(text), 5) for text in found}, "as the client itself has it"


@pytest.mark.parametrize(("name", "version"), OLD)
def test_the_classic_clients(tmp_path: Path, name: str, version: str) -> None:
    steps = converse(tmp_path, name, version, first=1 if version == "0.5.0" else 0)
    check_basics(steps, ["xtopic", 2])
    check_groups(steps)


@pytest.mark.parametrize(("name", "version"), OLDER)
def test_the_clients_before_apache(tmp_path: Path, name: str, version: str) -> None:
    check_basics(converse(tmp_path, name, version), "xtopic")
