"""A node without streams in front of three nats-servers with replicated streams, while the stream's leader is killed.

Two fronts of the same cluster, a nats-server and ours, do the same at the same time; our front's client must see the
same as the other's.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig, KeyValueConfig, StorageType
from nats.js.errors import Error as JetStreamError
from nats.js.errors import KeyNotFoundError, NotFoundError
from support.jetstream_clusters import await_jetstream, real_streams, start_ours, start_real
from support.nats_server import NatsServer

from headwater.testing.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.slow]

PATIENCE = 30.0  # seconds until a new leader serves; nats-server's elections take four to nine
TRY = 1.0  # seconds for one try

T = TypeVar("T")


async def insist(what: Callable[[], Awaitable[T]]) -> T:
    """Retry while there is no leader, as a client must with nats-servers alone."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await what()
            except (NatsError, JetStreamError, TimeoutError) as error:
                if isinstance(error, KeyNotFoundError | NotFoundError):
                    raise
                await asyncio.sleep(0.05)


class Front:
    """One front's client, and its work."""

    def __init__(self, name: str, client: Client) -> None:
        self.name = name
        self.client = client
        self.stream: JetStreamContext = client.jetstream(timeout=TRY)
        self.pushed: asyncio.Queue[bytes] = asyncio.Queue()
        self.published = 0
        self.read = 0

    async def prepare(self) -> None:
        name, stream = self.name, self.stream
        await insist(lambda: stream.add_stream(name=name, subjects=[f"{name}.>"], num_replicas=3))
        await insist(
            lambda: stream.create_key_value(KeyValueConfig(bucket=name, replicas=3, storage=StorageType.MEMORY))
        )
        config = ConsumerConfig(durable_name="pull", ack_wait=60, num_replicas=3)
        await insist(lambda: stream.add_consumer(name, config))

        async def take(message: Msg) -> None:
            self.pushed.put_nowait(message.data)

        await insist(lambda: stream.subscribe(f"{name}.>", durable="push", cb=take))

    async def publish(self, count: int) -> None:
        for number in range(self.published, self.published + count):
            headers = {"Nats-Msg-Id": f"{self.name}-{number}"}
            publish = partial(self.stream.publish, f"{self.name}.x", b"%d" % number, headers=headers)
            await insist(publish)
        self.published += count

    async def leader(self) -> str:
        info = await insist(lambda: self.stream.stream_info(self.name))
        return str(info.cluster and info.cluster.leader)

    async def check(self) -> None:
        """Each consumer reads everything published since, in order; buckets and the API work."""
        name, stream = self.name, self.stream
        pull = await stream.pull_subscribe_bind("pull", name)
        wanted = [b"%d" % number for number in range(self.read, self.published)]
        self.read = self.published
        got: list[bytes] = []
        async with asyncio.timeout(PATIENCE):
            while got != wanted:  # messages in flight when the leader died may be redelivered
                with suppress(NatsError, TimeoutError):
                    for message in await pull.fetch(len(wanted), timeout=TRY):
                        got += [message.data] if message.data not in got else []
                        with suppress(NatsError, TimeoutError):
                            await message.ack_sync(timeout=TRY)
            seen: list[bytes] = []
            while seen != wanted:
                data = await self.pushed.get()
                seen += [data] if data in wanted and data not in seen else []
        bucket = await insist(lambda: stream.key_value(name))
        revision = await insist(lambda: bucket.put("key", b"value"))
        entry = await insist(lambda: bucket.get("key"))
        assert (entry.value, entry.revision) == (b"value", revision)
        assert await insist(bucket.keys) == ["key"]
        last = await insist(lambda: stream.get_last_msg(name, f"{name}.x"))
        assert last.data == wanted[-1]
        infos = await insist(lambda: stream.consumers_info(name))
        assert sorted(str(info.name) for info in infos) == ["pull", "push"]

    async def end(self) -> None:
        assert await insist(lambda: self.stream.purge_stream(self.name))
        assert await insist(lambda: self.stream.delete_stream(self.name))
        with pytest.raises(NotFoundError):
            await insist(lambda: self.stream.stream_info(self.name))
        with pytest.raises(NoRespondersError):
            await self.client.request(f"{self.name}.x", b"", timeout=PATIENCE)


def test_every_operation_works_through_a_front_of_ours_also_when_the_leader_has_died(tmp_path: Path) -> None:
    async def scenario(urls: dict[str, str], servers: dict[str, NatsServer]) -> None:
        async with asyncio.timeout(120):
            fronts = [Front(name, await nats.connect(url, allow_reconnect=False)) for name, url in urls.items()]
            await asyncio.gather(*[front.prepare() for front in fronts])
            await asyncio.gather(*[front.publish(20) for front in fronts])
            await asyncio.gather(*[front.check() for front in fronts])
            leader = await fronts[1].leader()
            work = [asyncio.create_task(front.publish(200)) for front in fronts]
            servers[leader].kill()
            await asyncio.gather(*work)
            assert await fronts[1].leader() != leader
            await asyncio.gather(*[front.check() for front in fronts])
            await asyncio.gather(*[front.end() for front in fronts])
            for front in fronts:
                await front.client.close()

    with ExitStack() as stack:
        servers, ports = real_streams(stack, tmp_path)
        real = start_real(stack, tmp_path / "front", "front", free_port(), ports, streams=False)
        ours = start_ours(stack, "ours", free_port(), ports, None)
        await_jetstream([real.url, ours.url])
        asyncio.run(scenario({"real": real.url, "ours": ours.url}, {f"r{at}": each for at, each in enumerate(servers)}))
