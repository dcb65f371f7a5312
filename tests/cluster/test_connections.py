"""What a broker says of peers that it dials and does not reach; that it finds the others is in `test_service`."""

from contextlib import AsyncExitStack
from typing import Any

import pytest
from support.clusters import cluster_of, meshed, run, start_node, until

from headwater import Broker
from headwater.cluster import connections
from headwater.testing.ports import free_port


def noted(broker: Broker) -> list[dict[str, Any]]:
    return [event for event in broker.journal.events if event["kind"] == "route_not_reached"]


async def tries(broker: Broker, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for so many more failures."""
    failed: list[str] = []
    mesh = cluster_of(broker).mesh
    assert mesh is not None
    before = mesh.dial_failed

    def counted(url: str) -> list[Any]:
        failed.append(url)
        return before(url)

    with monkeypatch.context() as patch:
        patch.setattr(mesh, "dial_failed", counted)
        await until(lambda: len(failed) >= count, f"{count} failures")


def test_address_where_nobody_listens_is_in_the_journal_once_and_without_its_password(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connections, "PATIENCE", 0.05)

    async def test(stack: AsyncExitStack) -> None:
        port = free_port()
        broker = await start_node(stack, "n0", [f"nats-route://ann:secret@127.0.0.1:{port}"])
        await until(lambda: bool(noted(broker)), "a word")
        await tries(broker, 3, monkeypatch)
        (event,) = noted(broker)
        assert event["url"] == f"nats-route://127.0.0.1:{port}"
        assert f"cannot connect to 127.0.0.1:{port}" in str(event["reason"])
        lines = [record for record in caplog.records if "route_not_reached" in record.getMessage()]
        assert [record.levelname for record in lines if record.levelname != "DEBUG"] == ["WARNING"]
        assert "secret" not in caplog.text

    with caplog.at_level("DEBUG"):
        run(test)


def test_brokers_that_start_together_say_nothing_of_each_other() -> None:
    async def test(stack: AsyncExitStack) -> None:
        port = free_port()
        first = await start_node(stack, "n0", [f"nats-route://127.0.0.1:{port}"])
        await until(lambda: bool(cluster_of(first).connections._unreached), "a failure")
        second = await start_node(stack, "n1", port=port)
        await meshed([first, second], 1)
        assert noted(first) == []

    run(test)


def test_peer_that_was_there_meanwhile_is_named_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PATIENCE", 0.05)

    async def test(stack: AsyncExitStack) -> None:
        port = free_port()
        first = await start_node(stack, "n0", [f"nats-route://127.0.0.1:{port}"])
        await until(lambda: bool(noted(first)), "a word")
        async with AsyncExitStack() as while_there:
            second = await start_node(while_there, "n1", port=port)
            await meshed([first, second], 1)
        await until(lambda: first.journal.counts["route_not_reached"] == 2, "a word of the second absence")

    run(test)


def test_fault_of_ours_is_named_at_the_first_dial(monkeypatch: pytest.MonkeyPatch) -> None:
    async def dial(*_: object) -> None:
        raise ZeroDivisionError("of a test")

    monkeypatch.setattr(connections, "dial", dial)

    async def test(stack: AsyncExitStack) -> None:
        broker = await start_node(stack, "n0", [f"nats-route://127.0.0.1:{free_port()}"])
        await until(lambda: bool(noted(broker)), "a word")
        await tries(broker, 2, monkeypatch)
        assert [event["reason"] for event in noted(broker)] == ["ZeroDivisionError('of a test')"]

    run(test)
