"""Events that depend on time and on the end of a server; who comes and goes is in test_reference_system.py."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support.embedded_broker import options_of

from headwater.server.broker import Broker
from headwater.server.system import events

CONFIG = 'accounts { "$SYS" { users: [{user: s, password: p}] }, A { users: [{user: a, password: p}] } }'


def received_by(broker: Broker, reported: asyncio.Event | None = None) -> dict[str, Any]:
    """What is published to the system account from now on, the last of each kind."""
    assert broker.accounts is not None
    received: dict[str, Any] = {}

    def receive(subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        received[subject.decode().rpartition(".")[2]] = json.loads(payload)
        if reported is not None:
            reported.set()

    broker.accounts["$SYS"].router.subscribe_internal(b"$SYS.SERVER.*.*", receive)
    return received


def test_statistics_come_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "STATSZ_SECONDS", 0.01)
    file = tmp_path / "server.conf"
    file.write_text(CONFIG)

    async def main() -> None:
        async with asyncio.timeout(20), Broker(options=options_of(file)) as broker:
            reported = asyncio.Event()
            received = received_by(broker, reported)
            await reported.wait()
            assert received["STATSZ"]["statsz"]["active_servers"] == 1
            assert received["STATSZ"]["server"]["id"] == broker.server_id

    asyncio.run(main())


def test_the_end_is_announced_and_so_is_a_lame_duck(tmp_path: Path) -> None:
    file = tmp_path / "server.conf"
    file.write_text(CONFIG)

    async def main() -> None:
        async with asyncio.timeout(20):
            broker = Broker(options=options_of(file))
            await broker.start()
            received = received_by(broker)
            await broker.lame_duck()
            assert received["LAMEDUCK"]["id"] == broker.server_id
            await broker.stop()
            assert received["SHUTDOWN"]["id"] == broker.server_id

    asyncio.run(main())


def test_where_nobody_can_listen_no_events_are_made() -> None:
    async def main() -> None:
        async with Broker() as broker:
            assert broker.view is None, "no books are kept of clients"
            assert broker.sessions is not None
            assert broker.sessions.observers == []

    asyncio.run(main())
