"""A life of a cluster: clients at work with faults among them, and a comparison of the final state with the promises.

    scenario = Scenario(seed, nodes=3)
    scenario.run(steps)                 # raises Broken, or any other failure

The first node has the streams. For `steps` the nemesis causes a fault every second or two of virtual time: it kills a node,
or cuts its power (between two callbacks, or in the middle of one), separates two nodes, resets connections, fills the disk
or slows it down. Then everything is repaired, and the promises are compared with what is there.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from simulator import programs
from simulator.ledger import Broken, Ledger
from simulator.world import Node, World, over

PATIENCE = 300.0  # seconds of virtual time in which a repaired cluster has to answer
ALL_FAULTS = ("kill", "power", "kill soon", "power soon", "stop", "cut", "reset", "full", "slow")


class Scenario:
    """`faults`: the faults that the nemesis may cause."""

    def __init__(self, seed: int, nodes: int = 3, faults: tuple[str, ...] = ALL_FAULTS) -> None:
        self.seed = seed
        self.faults = faults
        self.world = World(seed)
        hosts = tuple(f"10.0.0.{at + 1}" for at in range(nodes)) if nodes > 1 else ()
        for at in range(nodes):
            self.world.add_node(f"n{at}", streams=at == 0, routes=hosts)
        self.ledger = Ledger()
        self._over = False

    @property
    def nodes(self) -> list[Node]:
        return self.world.nodes

    def run(self, steps: int, most_afterwards: int = 1_000_000) -> None:
        """Live for `steps`, and then for the final checks, which take about ten thousand; more than `most_afterwards` mean
        a hang."""
        loop = self.world.loop
        loop.limit = steps + most_afterwards
        with self.world:
            self.world.run(self._live(steps))
            if loop.steps >= loop.limit:
                raise Broken(f"no end after {loop.steps} steps: {self.world.notes[-3:]}")
            self.check_failures()

    def check_failures(self) -> None:
        if self.world.loop.failures:
            raise Broken(f"callbacks failed: {self.world.loop.failures[:3]}")

    def _urls(self) -> list[str]:
        """The URLs of all nodes, in random order."""
        return self.world.random.sample([node.url for node in self.nodes], len(self.nodes))

    def _start(self, name: str, program: Callable[[list[str]], Coroutine[Any, Any, Any]]) -> "asyncio.Task[Any]":
        urls = self._urls()
        return self.world.start_program(name, lambda: program(urls))

    async def _live(self, steps: int) -> None:
        ledger, loop = self.ledger, self.world.loop
        for node in self.nodes:
            await node.start()
        await self._start("setup", programs.set_up)
        clients = [
            *(
                self._start(name, lambda urls, name=name: programs.publish_in_order(ledger, urls, name))  # type: ignore[misc]
                for name in ("p0", "p1")
            ),
            self._start("p2", lambda urls: programs.publish_many(ledger, urls, "p2", 10)),
            self._start("work0", lambda urls: programs.work(ledger, urls)),
            self._start("work1", lambda urls: programs.work(ledger, urls)),
            *(
                self._start(name, lambda urls, name=name: programs.serve_queue(ledger, urls, name))  # type: ignore[misc]
                for name in ("q0", "q1", "q2")
            ),
            self._start("s0", lambda urls: programs.listen(ledger, urls, "s0")),
            self._start("s1", lambda urls: programs.listen(ledger, urls, "s1")),
            self._start("t0", lambda urls: programs.talk(urls, "t0")),
            self._start("t1", lambda urls: programs.talk(urls, "t1")),
            self._start("w0", lambda urls: programs.write_keys(ledger, urls, "w0", 3)),
            self._start("w1", lambda urls: programs.write_keys(ledger, urls, "w1", 3)),
            self._start("b0", lambda urls: programs.publish_batches(ledger, urls, "b0")),
            self._start("sum0", lambda urls: programs.count_up(ledger, urls, "sum0")),
            self._start("plan0", lambda urls: programs.plan(ledger, urls, "plan0")),
            self._start("watch", lambda urls: programs.watch_keys(ledger, urls, "watch")),
        ]
        nemesis = loop.create_task(self._torment())
        while loop.steps < steps:  # noqa: ASYNC110  (no event says so)
            await asyncio.sleep(0.25)
        self._over = True
        await nemesis  # a fault in progress, such as a stop, has to end
        for client in clients:
            client.cancel()
        await self._mend()
        await self._judge()

    # ── faults ──

    async def _torment(self) -> None:
        random = self.world.random
        while self.faults and not self._over:
            await asyncio.sleep(random.expovariate(0.8))
            fault = random.choice(self.faults)
            node = random.choice([node for node in self.nodes if node.is_up] or [self.nodes[0]])
            self.world.note(f"{fault} {node.name}")
            if fault in ("kill", "power"):
                node.die(power=fault == "power")
            elif fault in ("kill soon", "power soon"):
                node.die_soon(power=fault == "power soon")
            elif fault == "stop" and node.is_up:
                await node.stop()
            elif fault in ("cut", "reset") and len(self.nodes) > 1:
                one, other = random.sample([node.host for node in self.nodes], 2)
                if fault == "cut":
                    self.world.loop.network.partition(one, other, random.uniform(0.1, 8.0))
                else:
                    self.world.loop.network.break_connections(one, other)
            elif fault == "full":
                node.disk.capacity = node.disk.used + random.choice((0, 100, 5000))
                await asyncio.sleep(random.uniform(0.1, 3.0))
                node.disk.capacity = None
            elif fault == "slow":
                node.disk.sync_seconds = random.choice((0.000_1, 0.002, 0.02))
            if random.random() < 0.7:
                await self._restart()

    async def _restart(self) -> None:
        for node in self.nodes:
            if not node.is_up:
                await asyncio.sleep(self.world.random.uniform(0.0, 3.0))
                if not node.is_up:
                    self.world.note(f"{node.name} starts")
                    await self._started(node)

    async def _started(self, node: Node) -> None:
        """Wait for a start, which may be cut short by a death; any failure of it is a finding."""
        await over(node.start(), node.process)

    # ── the end ──

    async def _mend(self) -> None:
        self.world.note("all is mended")
        self.world.loop.network.heal()
        for node in self.nodes:
            node.disk.die_at = 0
            node.disk.capacity = None
            node.disk.sync_seconds = 0.000_1
            if not node.is_up:
                await self._started(node)
        await asyncio.sleep(10.0)  # partitions end, connections are established, and failed operations are repeated

    async def _judge(self) -> None:
        ledger = self.ledger
        stream_at = [self.nodes[0].url]

        async def read(stream: str) -> dict[int, bytes]:
            reading = self.world.start_program(f"read {stream}", lambda: programs.read_all(stream_at, stream))
            async with asyncio.timeout(PATIENCE):
                return await reading

        origin = await read(programs.STREAM)
        ledger.holds(programs.STREAM, origin)
        copy = await read(programs.COPY)
        for _ in range(int(PATIENCE)):
            if origin == copy:
                break
            # A client may come back late with what it has buffered, so the origin is read again.
            await asyncio.sleep(1.0)
            origin, copy = await read(programs.STREAM), await read(programs.COPY)
        ledger.is_copy(origin, copy)
        ledger.holds_batches(await read(programs.BATCHES))
        ledger.brought(await read(programs.LATER))
        bucket = f"KV_{programs.BUCKET}"
        contents = await read(bucket)
        ledger.holds(bucket, contents, history=False)
        newest = max(contents, default=0)
        for key, revision in ledger.revisions.items():
            if revision > newest:
                raise Broken(f"revision {revision} of {key} was acknowledged, and the bucket ends at {newest}")
