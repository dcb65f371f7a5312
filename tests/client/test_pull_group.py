"""Priority groups from the client, with the real nats-server and with ours."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.both_servers import Serve
from support.nats_server import start_nats_server
from support.scripted_server import finish

import headwater
from headwater.client import sync
from headwater.client.jetstream import JetStream
from headwater.client.jetstream_types import ConsumerConfig, StreamConfig
from headwater.client.pull_group import PullGroup
from headwater.client.stream_message import StreamMessage
from headwater.errors import JetStreamError, LocalProtocolError
from headwater.model.header_block import encode_header_block
from headwater.model.status import Status

LONG = 30.0  # seconds


@contextlib.asynccontextmanager
async def group(serve: Serve, policy: str, **fields: object) -> AsyncIterator[tuple[JetStream, str]]:
    """A JetStream, and the name of a stream on `<name>.>` whose consumer C has the group "A"."""
    name = f"G{secrets.token_hex(4)}"
    config = {"priority_groups": ["A"], "priority_policy": policy, "ack_wait": 600, **fields}
    async with serve() as url, await headwater.connect(url) as client:
        jetstream = client.jetstream(timeout=LONG)
        await jetstream.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        await jetstream.create_consumer(name, ConsumerConfig(durable_name="C", **config))  # type: ignore[arg-type]
        try:
            yield jetstream, name
        finally:
            await jetstream.delete_stream(name)


async def fill(jetstream: JetStream, name: str, *bodies: bytes) -> None:
    for body in bodies:
        await jetstream.publish(f"{name}.a", body)


async def waiting(jetstream: JetStream, name: str, count: int) -> None:
    """Until so many requests wait at the server."""
    async with asyncio.timeout(LONG):
        while (await jetstream.consumer_info(name, "C")).num_waiting != count:
            pass


def bodies(messages: list[StreamMessage]) -> list[bytes]:
    return [message.data for message in messages]


def test_a_second_client_helps_out_when_the_first_is_behind(serve: Serve) -> None:
    async def main() -> None:
        async with group(serve, "overflow") as (jetstream, name):
            helper = jetstream.pull_consumer(name, "C", group="A")
            await fill(jetstream, name, b"1", b"2")
            assert await helper.fetch(9, no_wait=True, min_pending=3) == []
            assert await helper.fetch(9, no_wait=True, min_ack_pending=1) == []
            waits = asyncio.create_task(helper.fetch(1, timeout=LONG, min_pending=3))
            await waiting(jetstream, name, 1)
            await fill(jetstream, name, b"3")
            assert bodies(await waits) == [b"1"]
            assert bodies(await helper.fetch(1, no_wait=True, min_pending=9, min_ack_pending=1)) == [b"2"]
            async with helper.consume(10, min_ack_pending=2) as messages:
                async for message in messages:
                    assert message.data == b"3"
                    break

    finish(main())


def test_the_lowest_priority_is_served_first(serve: Serve) -> None:
    async def main() -> None:
        async with group(serve, "prioritized") as (jetstream, name):
            fetches = []
            for number, priority in enumerate((5, 1, 0)):
                reader = jetstream.pull_consumer(name, "C", group="A")
                fetches.append(asyncio.create_task(reader.fetch(1, timeout=LONG, priority=priority)))
                await waiting(jetstream, name, number + 1)
            await fill(jetstream, name, b"1", b"2", b"3")
            assert [bodies(came) for came in await asyncio.gather(*fetches)] == [[b"3"], [b"2"], [b"1"]]
            with pytest.raises(JetStreamError, match="between 0 and 9"):
                await jetstream.pull_consumer(name, "C", group="A").fetch(1, priority=10)

    finish(main())


def test_fetches_go_to_the_pinned_client_until_it_is_unpinned(serve: Serve) -> None:
    async def main() -> None:
        async with group(serve, "pinned_client") as (jetstream, name):
            first, second = (jetstream.pull_consumer(name, "C", group="A") for _ in range(2))
            await fill(jetstream, name, b"1", b"2", b"3", b"4")
            assert bodies(await first.fetch(1)) == [b"1"]
            assert await second.fetch(1, no_wait=True) == []
            assert bodies(await first.fetch(1)) == [b"2"]
            await jetstream.unpin_consumer(name, "C", "A")
            assert bodies(await second.fetch(1)) == [b"3"]
            assert await first.fetch(1, no_wait=True) == []  # its pin is refused, and it waits like others
            assert bodies(await second.fetch(1)) == [b"4"]
            with pytest.raises(JetStreamError) as refused:
                await jetstream.unpin_consumer(name, "C", "B")
            assert refused.value.err_code == 10160

    finish(main())


def test_who_consumes_and_loses_the_pin_gets_it_back_in_turn(serve: Serve) -> None:
    async def main() -> None:
        async with group(serve, "pinned_client") as (jetstream, name):
            came: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue()

            async def read(number: int) -> None:
                # One message at a time: each reader has one request at the server.
                async with jetstream.pull_consumer(name, "C", group="A").consume(1, expires=600) as messages:
                    async for message in messages:
                        came.put_nowait((number, message.data))

            readers = []
            for number in range(2):
                readers.append(asyncio.create_task(read(number)))
                await waiting(jetstream, name, number + 1)
            for turn in range(6):
                for body in (b"first %d" % turn, b"second %d" % turn):
                    await fill(jetstream, name, body)
                    assert await came.get() == (turn % 2, body)
                    await waiting(jetstream, name, 2)
                await jetstream.unpin_consumer(name, "C", "A")
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)

    finish(main())


def test_a_pin_outlives_a_lost_connection(serve: Serve) -> None:
    async def main() -> None:
        async with group(serve, "pinned_client") as (jetstream, name):
            first, second = (jetstream.pull_consumer(name, "C", group="A") for _ in range(2))
            await fill(jetstream, name, b"1", b"2", b"3")
            assert bodies(await first.fetch(1)) == [b"1"]
            others = asyncio.create_task(second.fetch(1, timeout=LONG))
            await waiting(jetstream, name, 1)
            await jetstream.client.reconnect()  # type: ignore[attr-defined]
            assert bodies(await first.fetch(1)) == [b"2"]
            assert not others.done()
            await jetstream.unpin_consumer(name, "C", "A")
            assert bodies(await others) == [b"3"]

    finish(main())


def test_a_request_whose_client_has_gone_is_not_pinned_by_ours(tmp_path: Path) -> None:
    @contextlib.asynccontextmanager
    async def ours() -> AsyncIterator[str]:
        async with headwater.Broker(jetstream=True, store_dir=tmp_path) as broker:
            yield broker.url

    async def main() -> None:
        async with group(ours, "pinned_client") as (jetstream, name):
            gone = await jetstream.pull_consumer(name, "C", group="A").consume(1, expires=600).__aenter__()
            gone_reading = asyncio.ensure_future(anext(aiter(gone)))
            await waiting(jetstream, name, 1)
            gone.stop()
            await asyncio.gather(gone_reading, return_exceptions=True)
            await fill(jetstream, name, b"1")
            assert bodies(await jetstream.pull_consumer(name, "C", group="A").fetch(1, timeout=5)) == [b"1"]

    finish(main())


@pytest.mark.parametrize("restarts", ["ours", pytest.param("the real one", marks=pytest.mark.interop)])
def test_a_pin_of_a_server_that_starts_again_is_given_up(restarts: str, tmp_path: Path) -> None:
    @contextlib.asynccontextmanager
    async def server(port: int) -> AsyncIterator[str]:
        if restarts == "ours":
            async with headwater.Broker(port=port, jetstream=True, store_dir=tmp_path) as broker:
                yield broker.url
        else:
            with start_nats_server(tmp_path, "-p", str(port)) as running:
                yield running.url

    async def main() -> None:
        settings = ConsumerConfig(durable_name="C", priority_groups=["A"], priority_policy="pinned_client")
        async with server(0 if restarts == "ours" else -1) as url:
            client = await headwater.connect(url, reconnect_wait=0.05, error_callback=lambda _: None)
            jetstream = client.jetstream(timeout=LONG)
            await jetstream.create_stream(StreamConfig(name="S", subjects=["S.>"]))
            await jetstream.create_consumer("S", settings)
            await fill(jetstream, "S", b"1", b"2")
            consumption = jetstream.pull_consumer("S", "C", group="A").consume(1, expires=600)
            messages = await consumption.__aenter__()
            reading = aiter(messages)
            assert (await anext(reading)).data == b"1"
        async with server(int(url.rpartition(":")[2])):
            assert (await anext(reading)).data == b"2"
            consumption.stop()
            await client.close()

    finish(main(), 2 * LONG)


@pytest.mark.parametrize("policy", ["overflow", "pinned_client"])
def test_a_pin_that_a_publisher_made_up_harms_nobody(serve: Serve, policy: str) -> None:
    async def main() -> None:
        async with group(serve, policy) as (jetstream, name):
            reader = jetstream.pull_consumer(name, "C", group="A")
            for _ in range(6):
                await jetstream.publish(f"{name}.a", b"x", headers={"Nats-Pin-Id": "forged"})
            assert [len(await reader.fetch(1)) for _ in range(3)] == [1, 1, 1]
            async with reader.consume(1) as messages:
                numbers = []
                async for message in messages:
                    numbers.append(message.metadata.stream_seq)
                    if len(numbers) == 3:
                        break
            assert numbers == [4, 5, 6]

    finish(main())


def test_a_wish_without_a_group_is_refused_before_it_is_sent(serve: Serve) -> None:
    async def main() -> None:
        async with group(serve, "overflow") as (jetstream, name):
            reader = jetstream.pull_consumer(name, "C")
            with pytest.raises(LocalProtocolError, match="min_pending"):
                await reader.fetch(1, min_pending=3)
            with pytest.raises(LocalProtocolError, match="priority"):
                reader.consume(1, priority=3)
            with pytest.raises(JetStreamError, match="Priority Group missing"):
                await reader.fetch(1)

    finish(main())


def test_blocking_programs_have_groups_too(serve: Serve) -> None:
    def blocking(url: str, name: str) -> None:
        with sync.connect(url) as client:
            jetstream = client.jetstream(timeout=LONG)
            jetstream.publish(f"{name}.a", b"1")
            first, second = (jetstream.pull_consumer(name, "C", group="A") for _ in range(2))
            assert [message.data for message in first.fetch(1)] == [b"1"]
            jetstream.publish(f"{name}.a", b"2")
            assert second.fetch(1, no_wait=True) == []
            jetstream.unpin_consumer(name, "C", "A")
            assert [message.data for message in second.fetch(1)] == [b"2"]

    async def main() -> None:
        async with group(serve, "pinned_client") as (jetstream, name):
            url = jetstream.client.connected_url  # type: ignore[attr-defined]
            await asyncio.to_thread(blocking, url, name)

    finish(main())


def test_a_refusal_of_an_older_pin_leaves_the_newer_one() -> None:
    def pinned(pin: str) -> headwater.Message:
        return headwater.Message("s", b"x", header_block=encode_header_block({"Nats-Pin-Id": pin}))

    lost = Status(423, "Nats-Pin-Id mismatch")
    place = PullGroup("A")
    assert not place.gives_up(lost, place.turn)  # it has never had one: an error for the program
    place.note(pinned("p1"))
    with_first = place.turn
    assert place.pin == {"id": "p1"}
    assert place.gives_up(lost, with_first)
    assert place.pin == {}
    place.note(pinned("p2"))
    assert place.gives_up(lost, with_first)
    assert place.pin == {"id": "p2"}
    assert not place.gives_up(Status(409, "Consumer Deleted"), place.turn)
    assert place.gives_up(lost, place.turn - 1)  # the request that has brought it
    assert place.pin == {}
