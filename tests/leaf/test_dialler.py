"""A hub that cannot be joined is dialled again and again, and the log says so once."""

import asyncio

import pytest
from support.leafs import until

from headwater import Broker
from headwater.options.leaf import LeafOptions, RemoteOptions
from headwater.testing.ports import free_port


def test_the_log_has_a_reason_once_until_the_hub_was_joined(caplog: pytest.LogCaptureFixture) -> None:
    port = free_port()
    remote = RemoteOptions(urls=(f"nats-leaf://127.0.0.1:{port}",))
    spoke = Broker(server_name="L", leafnodes=LeafOptions(remotes=(remote,), reconnect_interval=0.001))

    def lines() -> int:
        return sum(message.startswith("leafnode_not_joined") for message in caplog.messages)

    async def tried(broker: Broker) -> None:
        before = broker.journal.counts["leafnode_not_joined"]
        await until(lambda: broker.journal.counts["leafnode_not_joined"] >= before + 5, "five more tries")

    async def main() -> None:
        async with asyncio.timeout(60), spoke:
            assert spoke.leafnodes is not None
            await tried(spoke)
            assert lines() == 1
            async with Broker(server_name="H", leafnodes=LeafOptions(host="127.0.0.1", port=port)):
                await spoke.leafnodes.wait_for(1)
            await tried(spoke)
            assert lines() == 2

    asyncio.run(main())
