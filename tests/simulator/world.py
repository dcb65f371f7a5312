"""Brokers, their disks and their clients in one simulated world, in which a seed determines everything that happens.

    with World(seed) as world:
        node = world.add_node("n0", streams=True)
        world.run(main())                        # virtual time; a test of minutes takes moments

While a world is entered, it supplies the clocks, entropy, files, sockets and threads of product code, in place of the
standard library. The brokers and clients are the real ones.

A node is killed in the middle of its work: at one of its calls to the disk, or between two callbacks. With `power` its disk
keeps what was synced, and any part of the rest (`recording_files`); without, it keeps everything written.
"""

import asyncio
import contextvars
import gc
import os
import random
import time
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from random import Random
from typing import Any, Self, TypeVar
from unittest import mock

from simulator.network import NetworkLoop
from simulator.virtual_loop import CURRENT, Process
from support.recording_files import RecordingFiles, Replay

import headwater.net.listening
from headwater import Broker
from headwater.client.client import Client, connect
from headwater.durable_files import files as product_files
from headwater.group_commit import committer, writers
from headwater.jetstream import journal_writer, service
from headwater.jetstream_room import disk_room
from headwater.options.broker import BrokerOptions, SyncPolicy
from headwater.options.cluster import ClusterOptions

T = TypeVar("T")

CLIENT_PORT = 4222
ROUTE_PORT = 6222
STORE = "store"


class Writers(writers.Writers):
    """The thread pool for writes, without threads."""

    def submit(self, function: Any, argument: Any, done: Any) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, NetworkLoop)
        loop.work(function, argument, done)

    def shutdown(self) -> None:
        """Nothing to stop."""


class Disk(RecordingFiles):
    """A disk whose calls take time, and at any of which the node can die (`die_at`, counted from now)."""

    def __init__(self, node: "Node", before: RecordingFiles | None = None) -> None:
        start = before.snapshot() if before is not None else None
        super().__init__(start, seed=node.world.loop.random.randrange(1 << 30))
        self.node = node
        self.replay = Replay(self)
        self.die_at = 0
        self.with_power_loss = False
        self.sync_seconds = 0.000_1

    def record(self, verb: str, what: object, first: object = None, second: object = None) -> None:
        node = self.node
        if node.disk is not self or not node.process.alive:
            return  # a dead node's: its writes have no effect
        if self.die_at:
            self.die_at -= 1
            if not self.die_at:
                node.die(power=self.with_power_loss)
                return
        self.replay.make((verb, what, first, second))
        if verb in ("sync", "sync_directory"):
            loop = node.world.loop
            loop.now += loop.random.expovariate(1 / self.sync_seconds)

    def mkdir(self, path: str) -> None:
        """Create a directory durably, with its parents."""
        super().mkdir(path)
        parts = path.split("/")
        for end in range(len(parts)):
            self.record("sync_directory", "/".join(parts[:end]))

    def after_power_loss(self) -> RecordingFiles:
        random = self.node.world.loop.random
        return self.replay.crash(random.choice(("nothing", "everything", "torn", "torn")), random)


class Node:
    """A broker on a host of its own, and the disk that outlives it."""

    def __init__(self, world: "World", name: str, host: str, *, streams: bool, routes: tuple[str, ...]) -> None:
        self.world = world
        self.sync: SyncPolicy = "always"
        self.name = name
        self.host = host
        self.streams = streams
        self.routes = routes
        self.process = Process(name, host)
        self.process.alive = False
        self.disk = Disk(self)
        self.broker: Broker | None = None
        self.failure: BaseException | None = None
        self.lives = 0

    @property
    def url(self) -> str:
        return f"nats://{self.host}:{CLIENT_PORT}"

    @property
    def is_up(self) -> bool:
        return self.process.alive

    def start(self) -> "asyncio.Task[None]":
        """Start a new process with a new broker; the disk is as it was left."""
        assert not self.process.alive
        self.lives += 1
        self.process = Process(f"{self.name}.{self.lives}", self.host)
        self.world.loop.network.power_on(self.host)
        self.disk = Disk(self, self.disk)
        return self.world.loop.start_process(self.process, self._serve)

    async def _serve(self) -> None:
        cluster = None
        if self.routes:
            others = tuple(f"nats-route://{host}:{ROUTE_PORT}" for host in self.routes if host != self.host)
            cluster = ClusterOptions(name="sim", host=self.host, port=ROUTE_PORT, routes=others)
        options = BrokerOptions(
            host=self.host,
            port=CLIENT_PORT,
            server_name=self.name,
            cluster=cluster,
            jetstream=self.streams,
            store_dir=STORE,
            sync=self.sync,
            ping_interval=5.0,
            write_deadline=5.0,
        )
        self.broker = Broker(options=options)
        await self.broker.start()

    async def stop(self) -> None:
        """Stop in order, as an operator does."""
        if self.process.alive and self.broker is not None:
            process = self.process
            if await over(self.world.loop.start_process(process, self.broker.stop), process):
                self.world.loop.network.kill(process, power=False)

    def die(self, *, power: bool) -> None:
        """Kill the node now, whatever it is doing."""
        if not self.process.alive:
            return
        self.world.graveyard.append(self.broker)
        after = self.disk.after_power_loss() if power else RecordingFiles(self.disk.snapshot())
        self.world.loop.network.kill(self.process, power=power)
        self.disk = Disk(self, after)
        self.world.note(f"{self.name} dies{' without power' if power else ''}")

    def die_soon(self, *, power: bool) -> None:
        """Kill the node in the middle of its work: at one of its next calls to the disk."""
        self.disk.with_power_loss = power
        self.disk.die_at = self.world.loop.random.randint(1, 12)


async def over(task: "asyncio.Task[None]", process: Process) -> bool:
    """Wait for a task of a process; False if the process died first, because the task never ends then. Raises the task's
    error."""
    while not task.done() and process.alive:  # noqa: ASYNC110  (no event reports the death)
        await asyncio.sleep(0.05)
    if task.done():
        task.result()
    return task.done()


class World:
    """While it is entered, product code gets its time, network and disks from this world."""

    def __init__(self, seed: int, limit: int = 1 << 62) -> None:
        self.loop = NetworkLoop(seed, limit)
        self.random = Random(seed + 1)
        self.nodes: list[Node] = []
        self.graveyard: list[object] = []  # dead objects, kept so that they are not collected before the end
        self.notes: list[str] = []
        self._patches = ExitStack()
        self._clients = 0
        self.failure: BaseException | None = None  # the failure of a program

    def note(self, text: str) -> None:
        """Add a note for reading the run afterwards."""
        self.notes.append(f"{self.loop.now:.6f} step {self.loop.steps}: {text}")

    def add_node(self, name: str, *, streams: bool = False, routes: tuple[str, ...] = ()) -> Node:
        node = Node(self, name, f"10.0.0.{len(self.nodes) + 1}", streams=streams, routes=routes)
        self.nodes.append(node)
        return node

    async def connect(self, *urls: str, **options: Any) -> Client:
        """A client in its own process and on its own host."""
        self._clients += 1
        process = Process(f"c{self._clients}", f"10.0.1.{self._clients}")
        client: Client = await self.loop.start_process(process, lambda: connect(list(urls), **options))
        return client

    def start_program(self, name: str, work: Callable[[], Coroutine[Any, Any, T]]) -> "asyncio.Task[T]":
        """Start a program other than a broker, in its own process and on its own host. Its failure ends the run."""
        self._clients += 1
        task = self.loop.start_process(Process(name, f"10.0.1.{self._clients}"), work)
        task.add_done_callback(self._ended, context=contextvars.Context())
        return task

    def _ended(self, task: "asyncio.Task[T]") -> None:
        if not task.cancelled() and task.exception() is not None and self.failure is None:
            self.failure = task.exception()
            self.loop.stop()

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run until `work` is done, or the limit of steps is reached."""
        main = self.loop.create_task(work)
        main.add_done_callback(lambda _: self.loop.stop())
        self.loop.run_forever()
        if self.failure is not None:
            raise self.failure
        if main.done():
            main.result()
        else:
            self.graveyard.append(main)

    def __enter__(self) -> Self:
        loop = self.loop

        def files() -> RecordingFiles:
            process = CURRENT.get()
            return next(node for node in self.nodes if node.process is process).disk

        places: list[tuple[object, str, Callable[..., object]]] = [
            (time, "time", lambda: loop.time_ns() / 1e9),
            (time, "time_ns", loop.time_ns),
            (time, "monotonic", loop.time),
            (time, "monotonic_ns", lambda: int(loop.now * 1e9)),
            (time, "perf_counter", loop.time),
            (time, "perf_counter_ns", lambda: int(loop.now * 1e9)),
            (committer, "perf_counter", loop.time),
            (journal_writer, "perf_counter", loop.time),
            (os, "urandom", self.random.randbytes),
            (random, "_urandom", self.random.randbytes),
            (headwater.net.listening, "bound_sockets", loop.network.bound_sockets),
            (service, "KeepingFiles", files),
            (product_files, "OsFiles", files),
            (service, "Writers", Writers),
            (disk_room, "room_at", lambda path: None),
        ]
        for owner, name, stand_in in places:
            self._patches.enter_context(mock.patch.object(owner, name, stand_in))
        self._state = random.getstate()
        random.seed(self.random.random())
        gc.disable()  # the collector would run at a different step each time
        return self

    def __exit__(self, *error: object) -> None:
        for process in self.loop.processes:
            process.alive = False
        for task in asyncio.all_tasks(self.loop):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._patches.close()
        random.setstate(self._state)
        gc.enable()
        self.graveyard.clear()
        self.loop.close()
