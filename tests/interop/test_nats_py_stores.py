"""nats-py's key-value and object stores, and its push and ordered consumers, on our broker and on the real nats-server.

They are unmodified clients of JetStream: per-subject limits, roll-ups, direct get, last-per-subject delivery, headers only,
heartbeats and flow control all have to be as they expect.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable

import nats
import nats.errors
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    DiscardPolicy,
    KeyValueConfig,
    RetentionPolicy,
    StorageType,
    StreamConfig,
)
from nats.js.errors import (
    APIError,
    BadRequestError,
    KeyNotFoundError,
    KeyWrongLastSequenceError,
    NotFoundError,
    ObjectNotFoundError,
    ServiceUnavailableError,
)
from support.scenarios import play_nats_py

pytestmark = pytest.mark.interop

FETCH_TIMEOUT = 5.0


Scenario = Callable[[Client, JetStreamContext], Awaitable[None]]


def play(url: str, scenario: Scenario) -> None:
    play_nats_py(url, lambda client: scenario(client, client.jetstream(timeout=FETCH_TIMEOUT)))


@pytest.mark.parametrize("storage", [StorageType.FILE, StorageType.MEMORY])
def test_keys_are_put_got_updated_deleted_and_listed(url: str, storage: StorageType) -> None:
    async def scenario(_: Client, js: JetStreamContext) -> None:
        bucket = f"life-{storage.value}"
        kv = await js.create_key_value(bucket=bucket, history=3, storage=storage)
        assert await kv.put("a", b"1") == 1
        assert await kv.put("b.c", b"2") == 2
        entry = await kv.get("a")
        assert (entry.value, entry.revision, entry.key) == (b"1", 1, "a")
        assert await kv.update("a", b"3", last=1) == 3
        with pytest.raises(KeyWrongLastSequenceError):
            await kv.update("a", b"4", last=1)
        assert await kv.create("d", b"5") == 4
        with pytest.raises(KeyWrongLastSequenceError):
            await kv.create("d", b"6")
        assert (await kv.get("a", revision=1)).value == b"1"
        assert sorted(await kv.keys()) == ["a", "b.c", "d"]
        assert [entry.value for entry in await kv.history("a")] == [b"1", b"3"]
        await kv.delete("a")
        with pytest.raises(KeyNotFoundError):
            await kv.get("a")
        assert await kv.create("a", b"again") > 4
        with pytest.raises(KeyNotFoundError):
            await kv.get("nobody")
        await kv.purge("b.c")
        assert [entry.operation for entry in await kv.history("b.c")] == ["PURGE"]
        status = await kv.status()
        assert (status.bucket, status.history) == (bucket, 3)
        await kv.purge_deletes(olderthan=-1)
        assert sorted(await kv.keys()) == ["a", "d"]
        assert await js.delete_key_value(bucket)

    play(url, scenario)


def test_history_is_as_long_as_it_was_asked_for(url: str) -> None:
    async def scenario(_: Client, js: JetStreamContext) -> None:
        kv = await js.create_key_value(bucket="history", history=2)
        for number in range(10):
            await kv.put(f"k{number % 3}", b"%d" % number)
        assert [entry.value for entry in await kv.history("k0")] == [b"6", b"9"]
        status = await kv.status()
        assert status.values == 6
        state = (await js.stream_info("KV_history")).state
        assert (state.first_seq, state.last_seq, state.messages) == (5, 10, 6)

    play(url, scenario)


def test_a_watcher_sees_what_is_there_and_then_what_happens(url: str) -> None:
    async def scenario(_: Client, js: JetStreamContext) -> None:
        kv = await js.create_key_value(bucket="watched", history=5)
        await kv.put("x.1", b"one")
        await kv.put("x.2", b"two")
        await kv.put("x.1", b"uno")
        await kv.put("y", b"other")
        watcher = await kv.watch("x.*")
        seen = [await watcher.updates(timeout=FETCH_TIMEOUT) for _ in range(3)]  # type: ignore[no-untyped-call]
        assert [entry and (entry.key, entry.value) for entry in seen] == [("x.2", b"two"), ("x.1", b"uno"), None]
        await kv.put("y", b"not for you")
        await kv.delete("x.2")
        await kv.put("x.3", b"three")
        later = [await watcher.updates(timeout=FETCH_TIMEOUT) for _ in range(2)]  # type: ignore[no-untyped-call]
        assert [(entry.key, entry.operation) for entry in later if entry] == [("x.2", "DEL"), ("x.3", None)]
        await watcher.stop()  # type: ignore[no-untyped-call]
        empty = await kv.watch("z.>")
        assert await empty.updates(timeout=FETCH_TIMEOUT) is None, "the mark that nothing is there"  # type: ignore[no-untyped-call]
        await empty.stop()  # type: ignore[no-untyped-call]

    play(url, scenario)


def test_a_bucket_forgets_what_is_too_old(url: str) -> None:
    async def scenario(_: Client, js: JetStreamContext) -> None:
        kv = await js.create_key_value(config=KeyValueConfig(bucket="brief", ttl=0.4))
        await kv.put("a", b"1")
        assert (await kv.get("a")).value == b"1"
        async with asyncio.timeout(20):
            while True:
                try:
                    await kv.get("a")
                except KeyNotFoundError:
                    return
                await asyncio.sleep(0.05)

    play(url, scenario)


def test_objects_come_back_whole_and_their_replacement_takes_the_room(url: str) -> None:
    async def scenario(_: Client, js: JetStreamContext) -> None:
        store = await js.create_object_store(bucket="things")
        content = bytes(range(256)) * 1500
        info = await store.put("blob", content)
        assert (info.size, info.chunks) == (len(content), 3)
        got = await store.get("blob")
        assert got.data == content
        digest = got.info.digest
        assert digest is not None
        assert digest.startswith("SHA-256=")
        await store.put("empty", b"")
        assert (await store.get("empty")).data in (b"", None)
        await store.put("blob", b"shorter")
        assert (await store.get("blob")).data == b"shorter"
        state = (await js.stream_info("OBJ_things")).state
        assert state.messages == 3, "one chunk and two descriptions; the old chunks are gone"
        assert sorted(entry.name for entry in await store.list()) == ["blob", "empty"]
        await store.delete("blob")
        with pytest.raises(ObjectNotFoundError):
            await store.get("blob")
        await store.seal()  # type: ignore[no-untyped-call]
        with pytest.raises(APIError):
            await store.put("late", b"no")
        assert hashlib.sha256(content).digest()

    play(url, scenario)


def test_a_push_subscription_hears_everything_in_order_and_acks(url: str) -> None:
    async def scenario(_: Client, js: JetStreamContext) -> None:
        await js.add_stream(name="push", subjects=["push.>"])
        for number in range(50):
            await js.publish(f"push.{number % 2}", b"%d" % number)
        subscription = await js.subscribe("push.>", durable="pushed")
        received = [await subscription.next_msg(timeout=FETCH_TIMEOUT) for _ in range(50)]
        assert [message.data for message in received] == [b"%d" % number for number in range(50)]
        for message in received:
            await message.ack_sync()
        info = await js.consumer_info("push", "pushed")
        assert (info.num_ack_pending, info.num_pending, info.push_bound) == (0, 0, True)
        await js.publish("push.0", b"more")
        assert (await subscription.next_msg(timeout=FETCH_TIMEOUT)).data == b"more"

    play(url, scenario)


def test_a_deliver_group_shares_the_messages(url: str) -> None:
    async def scenario(_: Client, js: JetStreamContext) -> None:
        await js.add_stream(name="shared", subjects=["shared"])
        one = await js.subscribe("shared", queue="crew")
        other = await js.subscribe("shared", queue="crew")
        for number in range(40):
            await js.publish("shared", b"%d" % number)
        received: dict[int, list[bytes]] = {0: [], 1: []}
        async with asyncio.timeout(FETCH_TIMEOUT * 4):
            while len(received[0]) + len(received[1]) < 40:
                for number, member in enumerate((one, other)):
                    try:
                        message = await member.next_msg(timeout=0.2)
                    except nats.errors.TimeoutError:
                        continue
                    received[number].append(message.data)
                    await message.ack()
        assert sorted(received[0] + received[1], key=int) == [b"%d" % number for number in range(40)]
        assert received[0]
        assert received[1]

    play(url, scenario)


def test_an_ordered_consumer_reads_a_large_stream_with_flow_control(url: str) -> None:
    async def scenario(_: Client, js: JetStreamContext) -> None:
        await js.add_stream(name="large", subjects=["large"])
        payload = b"x" * 2000
        await asyncio.gather(*(js.publish("large", payload) for _ in range(600)))
        subscription = await js.subscribe("large", ordered_consumer=True, idle_heartbeat=0.3)
        received = [await subscription.next_msg(timeout=FETCH_TIMEOUT) for _ in range(600)]
        assert [message.metadata.sequence.stream for message in received] == list(range(1, 601))
        await asyncio.sleep(0.8)
        await js.publish("large", b"after the heartbeats")
        assert (await subscription.next_msg(timeout=FETCH_TIMEOUT)).data == b"after the heartbeats"

    play(url, scenario)


def test_a_message_that_is_not_acked_comes_again_and_at_last_no_more(url: str) -> None:
    async def scenario(_: Client, js: JetStreamContext) -> None:
        await js.add_stream(name="again", subjects=["again"])
        await js.publish("again", b"x")
        config = ConsumerConfig(durable_name="stubborn", ack_policy=AckPolicy.EXPLICIT, ack_wait=0.3, max_deliver=3)
        subscription = await js.subscribe("again", config=config, manual_ack=True)
        counts = [(await subscription.next_msg(timeout=FETCH_TIMEOUT)).metadata.num_delivered for _ in range(3)]
        assert counts == [1, 2, 3]
        with pytest.raises(nats.errors.TimeoutError):
            await subscription.next_msg(timeout=0.8)

    play(url, scenario)


def test_a_work_queue_keeps_what_nobody_has_done(url: str) -> None:
    async def scenario(_: Client, js: JetStreamContext) -> None:
        await js.add_stream(name="work", subjects=["work.>"], retention=RetentionPolicy.WORK_QUEUE)
        for number in range(6):
            await js.publish("work.x", b"%d" % number)
        puller = await js.pull_subscribe("work.x", durable="worker")
        for message in await puller.fetch(4, timeout=FETCH_TIMEOUT):
            await message.ack_sync()
        state = (await js.stream_info("work")).state
        assert (state.messages, state.first_seq, state.last_seq) == (2, 5, 6)
        with pytest.raises(BadRequestError) as second:
            await js.pull_subscribe("work.>", durable="another")
        assert second.value.err_code == 10100

    play(url, scenario)


def test_limits_and_refusals(url: str) -> None:
    async def scenario(_: Client, js: JetStreamContext) -> None:
        config = StreamConfig(name="few", subjects=["few"], max_msgs=2, discard=DiscardPolicy.NEW)
        await js.add_stream(config)
        await js.publish("few", b"1")
        await js.publish("few", b"2")
        with pytest.raises(ServiceUnavailableError) as full:
            await js.publish("few", b"3")
        assert full.value.err_code == 10077
        await js.purge_stream("few", keep=1)
        assert (await js.publish("few", b"3")).seq == 3
        await js.delete_msg("few", 2)
        with pytest.raises(NotFoundError):
            await js.get_msg("few", 2)
        assert (await js.get_last_msg("few", "few")).data == b"3"

    play(url, scenario)


def test_the_last_of_each_subject_headers_only(url: str) -> None:
    async def scenario(_: Client, js: JetStreamContext) -> None:
        await js.add_stream(name="lasts", subjects=["lasts.*"])
        for number in range(9):
            await js.publish(f"lasts.{number % 3}", b"%d" % number)
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.LAST_PER_SUBJECT, headers_only=True, filter_subject="lasts.*"
        )
        subscription = await js.subscribe("lasts.*", config=config)
        received: list[Msg] = [await subscription.next_msg(timeout=FETCH_TIMEOUT) for _ in range(3)]
        assert [message.metadata.sequence.stream for message in received] == [7, 8, 9]
        assert [(message.data, (message.headers or {})["Nats-Msg-Size"]) for message in received] == [(b"", "1")] * 3

    play(url, scenario)
