"""Requests of the system account that go wrong here; right answers are compared with nats-server's in the test beside."""

import asyncio
import json

import pytest

import headwater
from headwater import Broker
from headwater.options.access import AccountOptions, UserOptions
from headwater.server.system.services import Services


def test_a_request_that_fails_for_a_fault_of_ours_is_answered_with_it_and_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("of a test")

    monkeypatch.setattr(Services, "_page", broken)
    system = AccountOptions(name="$SYS", users=(UserOptions(username="s", password="p"),))

    async def main() -> None:
        async with (
            asyncio.timeout(30),
            Broker(port=0, accounts=(system,)) as broker,
            await headwater.connect(broker.url, user="s", password="p") as client,
        ):
            answer = json.loads((await client.request("$SYS.REQ.SERVER.PING.VARZ", b"", timeout=10)).data)
            assert answer["error"] == {"code": 500, "description": "the server failed: ZeroDivisionError('of a test')"}
            assert answer["server"]["id"]
            assert "system_request_failed" in caplog.text

    asyncio.run(main())
