"""Kills of a worker that serves buckets, and of a hub over which a stream is copied: nothing acknowledged is lost, nothing
comes twice, and watchers go on."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import nats
import psutil
import pytest
from crossings.world import until
from nats.aio.client import Client as NatsPy
from support.headwater_server import HeadwaterServer, start_headwater
from support.nats_server import NatsServer, start_nats_server

import headwater
from headwater.client.jetstream_types import ExternalStream, StreamConfig, StreamSource
from headwater.client.key_value import BucketConfig, KeyValue
from headwater.client.object_store import ObjectStore, StoreConfig
from headwater.errors import HeadwaterError
from headwater.testing.ports import free_port

pytestmark = [pytest.mark.kill, pytest.mark.interop, pytest.mark.timeout(120)]

BUCKETS = 4  # on two workers, some on each
KEYS = 10
PATIENCE = 30.0  # seconds
AGAIN = 0.05  # seconds between two tries of who was refused


class Puts:
    """Somebody who puts numbers into a bucket until `stop`; `acked`: the last number of each key that was acknowledged."""

    def __init__(self, bucket: KeyValue) -> None:
        self.bucket = bucket
        self.acked: dict[str, int] = {}
        self.count = 0
        self.refused = 0
        self.running = True

    async def run(self) -> None:
        number = 0
        while self.running:
            number += 1
            key = f"k{number % KEYS}"
            try:
                await self.bucket.put(key, str(number).encode())
            except HeadwaterError:
                self.refused += 1
                await asyncio.sleep(AGAIN)
            else:
                self.acked[key] = number
                self.count += 1


class Watch:
    """What one watcher has seen: `seen` by key, and whether a revision came again or an older one (`backwards`)."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}
        self.backwards = False
        self._revision = 0

    def note(self, key: str, value: bytes | None, revision: int) -> None:
        self.backwards |= revision <= self._revision
        self._revision = max(revision, self._revision)
        self.seen[key] = int(value or b"0")

    def has_all(self, puts: Puts) -> bool:
        return all(self.seen.get(key, 0) >= number for key, number in puts.acked.items())


async def watch_with_ours(bucket: KeyValue, watch: Watch) -> None:
    async for entry in bucket.watch(">"):
        if entry is not None:
            watch.note(entry.key, entry.value, entry.revision)


async def watch_with_nats_py(client: NatsPy, name: str, watch: Watch) -> None:
    watcher = await (await client.jetstream().key_value(name)).watchall()
    async for entry in watcher:
        if entry is not None:
            watch.note(entry.key, entry.value, entry.revision or 0)


async def put_objects(store: ObjectStore, acked: dict[str, bytes], tried: set[bytes]) -> None:
    for number in range(1_000_000):
        data = os.urandom(300_000)
        tried.add(data)
        try:
            await store.put(f"o{number % 3}", data)
        except HeadwaterError:
            await asyncio.sleep(AGAIN)
        else:
            acked[f"o{number % 3}"] = data


def test_buckets_outlive_the_workers_that_serve_them(tmp_path: Path) -> None:
    async def main(server: HeadwaterServer) -> None:
        async with AsyncExitStack() as stack:
            client = await headwater.connect(server.url)
            stack.push_async_callback(client.close)
            nats_py = await nats.connect(
                server.url, max_reconnect_attempts=-1, reconnect_time_wait=AGAIN, error_cb=ignore
            )
            stack.push_async_callback(nats_py.close)
            jetstream = client.jetstream(timeout=2.0)
            puts = [
                Puts(await jetstream.create_key_value(BucketConfig(bucket=f"B{number}"))) for number in range(BUCKETS)
            ]
            store = await jetstream.create_object_store(StoreConfig(bucket="O"))
            objects: dict[str, bytes] = {}
            tried: set[bytes] = set()
            watches = [(each, Watch(), Watch()) for each in puts]
            tasks = [asyncio.create_task(put_objects(store, objects, tried))]
            stack.callback(lambda: [task.cancel() for task in tasks])
            for number, (each, ours, theirs) in enumerate(watches):
                tasks += [asyncio.create_task(watch_with_ours(each.bucket, ours))]
                tasks += [asyncio.create_task(watch_with_nats_py(nats_py, f"B{number}", theirs))]
                tasks += [asyncio.create_task(each.run())]

            async def all_put_again(counts: list[int]) -> bool:
                return all(each.count >= count + 2 * KEYS for each, count in zip(puts, counts, strict=True))

            await until(lambda: all_put_again([0] * BUCKETS), "the first puts", PATIENCE)
            for _ in range(2):
                worker = psutil.Process(server.pid).children()[0]  # a worker that is replaced comes last
                os.kill(worker.pid, signal.SIGKILL)
                counts = [each.count for each in puts]
                await until(lambda counts=counts: all_put_again(counts), "puts behind a kill", PATIENCE)  # type: ignore[misc]
            for each in puts:
                each.running = False

            async def all_seen() -> bool:
                return all(ours.has_all(each) and theirs.has_all(each) for each, ours, theirs in watches)

            await until(all_seen, "what was put, at every watcher", PATIENCE)
            assert not any(ours.backwards for _, ours, _ in watches)
            for each in puts:
                for key, number in each.acked.items():
                    entry = await each.bucket.get(key)
                    assert int(entry.value or b"0") >= number, (each.bucket, key)
            tasks[0].cancel()
            with suppress(asyncio.CancelledError):
                await tasks[0]
            for info in await store.objects():
                held = await store.get(info.name)
                assert held in tried, f"{info.name} is listed, and none of those that were put"
            assert {info.name for info in await store.objects()} >= set(objects)

    with start_headwater(
        tmp_path, "-js", "-sd", str(tmp_path / "js"), "--workers", "2", "--spread_streams", port=free_port()
    ) as server:
        asyncio.run(main(server))


async def ignore(error: Exception) -> None:
    """nats-py's errors while a server is away."""


def test_copies_over_a_leaf_of_a_real_hub_outlive_kills_on_either_side(tmp_path: Path) -> None:
    """A mirror and a source here of a stream there, while first the hub and then we are killed in a flood."""
    hub_port, leaf_port, port = free_port(), free_port(), free_port()
    hub_file, leaf_file = tmp_path / "hub.conf", tmp_path / "leaf.conf"
    hub_file.write_text(
        f'server_name: hub\njetstream {{ store_dir: "{tmp_path}/hub-js", domain: hub }}\n'
        f'leafnodes {{ listen: "127.0.0.1:{leaf_port}" }}\n'
    )
    leaf_file.write_text(
        f'server_name: leaf\njetstream {{ store_dir: "{tmp_path}/leaf-js", domain: leaf }}\n'
        f'leafnodes {{ reconnect: 1, remotes: [ {{ url: "nats://127.0.0.1:{leaf_port}" }} ] }}\n'
    )

    def hub() -> NatsServer:
        return start_nats_server(tmp_path / "hub", "-c", str(hub_file), jetstream=False, port=hub_port)

    def leaf() -> HeadwaterServer:
        return start_headwater(tmp_path / "leaf", "-c", str(leaf_file), port=port)

    servers: dict[str, NatsServer | HeadwaterServer] = {"hub": hub(), "leaf": leaf()}
    starts: dict[str, Callable[[], NatsServer | HeadwaterServer]] = {"hub": hub, "leaf": leaf}

    async def main() -> None:
        async with AsyncExitStack() as stack:
            there = await headwater.connect(servers["hub"].url)
            stack.push_async_callback(there.close)
            here = await headwater.connect(servers["leaf"].url)
            stack.push_async_callback(here.close)
            origin, copies = there.jetstream(timeout=1.0), here.jetstream(timeout=5.0)
            await origin.create_stream(StreamConfig(name="O", subjects=["o"]))
            source = StreamSource(name="O", external=ExternalStream(api="$JS.hub.API"))
            await copies.create_stream(StreamConfig(name="M", mirror=source))
            await copies.create_stream(StreamConfig(name="Z", sources=[source]))
            acked = 0

            async def flood() -> None:
                nonlocal acked
                while True:
                    try:
                        await origin.publish("o", b"x")
                        acked += 1
                    except HeadwaterError:
                        await asyncio.sleep(AGAIN)

            async def more(than: int) -> bool:
                return acked > than + 200

            flooding = asyncio.create_task(flood())
            stack.callback(flooding.cancel)
            for name in ("hub", "leaf", "hub"):
                before = acked
                await until(lambda before=before: more(before), "publishes", PATIENCE)  # type: ignore[misc]
                servers[name].kill()
                servers[name] = await asyncio.to_thread(starts[name])
            flooding.cancel()
            with suppress(asyncio.CancelledError):
                await flooding

            async def copied() -> bool:
                last = (await origin.stream_info("O")).state.last_seq
                states = [(await copies.stream_info(name)).state for name in ("M", "Z")]
                return all(state.last_seq >= last for state in states)

            await until(copied, "the copies of all messages", PATIENCE)
            held = (await origin.stream_info("O")).state
            assert held.messages >= acked
            for name in ("M", "Z"):
                state = (await copies.stream_info(name)).state
                assert (state.messages, state.last_seq) == (held.messages, held.last_seq), name

    try:
        asyncio.run(main())
    finally:
        for server in servers.values():
            server.stop()
