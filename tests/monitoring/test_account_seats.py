"""The clients of an account at all workers, against one limit."""

import asyncio
import logging

import pytest
from support.clusters import until
from support.monitored import monitored

from headwater.jetstream_workers.shared_slots import SharedSlots, key_of
from headwater.monitoring.account_seats import AccountSeats, shared_seats
from headwater.options.access import AccountOptions, UserOptions

ACCOUNTS = (AccountOptions(name="A", users=(UserOptions(username="a", password="p"),), max_connections=2),)


def test_clients_at_other_workers_count_until_these_have_ended() -> None:
    async def main() -> None:
        async with monitored(accounts=ACCOUNTS) as server:
            broker, slots = server.broker, shared_seats(2)
            first = await server.dial(user="a", **{"pass": "p"})
            assert broker.sessions is not None
            AccountSeats(broker.sessions, slots, 1)
            assert slots.elsewhere(2, key_of("A"), 1) == 1, "who was there before"
            slots.numbers[slots.slot(2, key_of("A"), make=True) + 1] = 1
            with pytest.raises(EOFError, match="maximum account active connections"):
                await server.dial(user="a", **{"pass": "p"})
            slots.clear(2)
            second = await server.dial(user="a", **{"pass": "p"})
            assert slots.elsewhere(2, key_of("A"), 1) == 2
            for link in (first, second):
                link.close()
            await until(lambda: slots.elsewhere(2, key_of("A"), 1) == 0, "their ends")
            slots.close()

    asyncio.run(main())


def test_an_account_without_a_slot_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with monitored(accounts=ACCOUNTS) as server:
            slots = SharedSlots(1, 0, 1, slots=1)
            slots.slot(1, key_of("B"), make=True)
            assert server.broker.sessions is not None
            AccountSeats(server.broker.sessions, slots, 1)
            for _ in range(2):
                link = await server.dial(user="a", **{"pass": "p"})
                link.close()
            slots.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    (line,) = [one for one in caplog.messages if one.startswith("account_limits_not_shared")]
    assert "account=A" in line
