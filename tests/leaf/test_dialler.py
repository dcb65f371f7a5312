"""A hub that cannot be joined is dialled again and again, and the log says so once."""

import asyncio

import pytest
from support.leafs import until

from headwater import Broker
from headwater.leaf import dialler
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


@pytest.mark.parametrize("fault", [UnicodeError("label empty or too long"), RuntimeError("a fault of ours")])
def test_a_hub_is_dialled_again_whatever_goes_wrong(fault: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = RemoteOptions(urls=("nats-leaf://127.0.0.1:1",))
    spoke = Broker(server_name="L", leafnodes=LeafOptions(remotes=(remote,), reconnect_interval=0.001))

    async def fails(*_: object) -> None:
        raise fault

    async def main() -> None:
        monkeypatch.setattr(dialler, "dial", fails)
        async with asyncio.timeout(60), spoke:
            await until(lambda: spoke.journal.counts["leafnode_not_joined"] >= 3, "three tries")
            assert str(fault) in str(spoke.journal.events[-1]["reason"])

    asyncio.run(main())
