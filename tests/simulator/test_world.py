"""The simulated world itself: real brokers and clients run in it, and the seed determines everything that happens."""

import asyncio

import pytest
from simulator.scenario import Scenario
from simulator.world import World

from headwater.client.client import connect
from headwater.errors import HeadwaterError


async def talk(world: World) -> None:
    node = world.add_node("n0", streams=True)
    await node.start()
    client = await world.connect(node.url)
    subscription = await client.subscribe("a")
    await client.flush()
    for number in range(20):
        client.publish("a", b"%d" % number)
    got = [(await subscription.next(5.0)).data for _ in range(20)]
    assert got == [b"%d" % number for number in range(20)]
    await client.close()


def test_a_client_talks_to_a_broker_in_virtual_time() -> None:
    with World(1) as world:
        world.run(talk(world))
        assert world.loop.failures == []


def test_an_hour_passes_in_a_moment() -> None:
    with World(1) as world:
        world.run(asyncio.sleep(3600))
        assert world.loop.now > 4600


def test_the_same_seed_gives_the_same_steps_and_another_seed_gives_others() -> None:
    seen = []
    for seed in (7, 7, 8):
        with World(seed) as world:
            world.loop.trace = []
            world.run(talk(world))
            seen.append((world.loop.fingerprint, world.loop.steps, world.loop.trace))
    assert seen[0] == seen[1]
    assert seen[0] != seen[2]


def test_a_life_of_a_cluster_under_faults_is_the_same_each_time() -> None:
    seen = []
    for _ in range(2):
        scenario = Scenario(12, faults=("kill", "power", "cut"))
        scenario.world.loop.trace = []
        scenario.run(8_000)
        seen.append((scenario.world.loop.trace, scenario.world.notes, dict(scenario.ledger.counts)))
    assert seen[0] == seen[1]
    assert any("dies" in note for note in seen[0][1])


@pytest.mark.parametrize("power", [False, True])
def test_a_client_learns_of_a_death_and_goes_on_with_the_next_life(power: bool) -> None:
    async def main() -> None:
        node = world.add_node("n0")
        await node.start()
        client = await world.connect(node.url, ping_interval=1.0)
        node.die(power=power)
        with pytest.raises(HeadwaterError):
            await client.flush(timeout=3.0)
        await node.start()
        async with asyncio.timeout(30):
            while not client.reconnects:  # noqa: ASYNC110  (events are the client's own)
                await asyncio.sleep(0.1)
        await client.flush()

    with World(2) as world:
        world.run(main())


def test_a_partition_holds_what_is_sent_and_loses_nothing() -> None:
    async def main() -> None:
        hosts = ("10.0.0.1", "10.0.0.2")
        nodes = [world.add_node(name, routes=hosts) for name in ("n0", "n1")]
        for node in nodes:
            await node.start()
        await asyncio.sleep(3.0)
        publisher, listener = [await world.connect(node.url) for node in nodes]
        subscription = await listener.subscribe("a")
        await listener.flush()
        await asyncio.sleep(1.0)
        world.loop.network.partition(*hosts, 4.0)
        begun = world.loop.now
        publisher.publish("a", b"held")
        assert (await subscription.next(9.0)).data == b"held"
        assert world.loop.now - begun > 3.9

    with World(3) as world:
        world.loop.network.slow = 0.0
        world.run(main())


def test_nobody_is_heard_where_nothing_listens() -> None:
    async def program() -> None:
        with pytest.raises(HeadwaterError, match="Connection refused"):
            await connect("nats://10.0.0.9:4222")

    async def main() -> None:
        await world.start_program("c", program)

    with World(4) as world:
        world.run(main())
