"""Counters from the client, with the real nats-server and with ours."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator

import pytest
from support.both_servers import Serve
from support.scripted_server import finish

import headwater
from headwater.client import sync
from headwater.client.jetstream import JetStream
from headwater.client.jetstream_types import StreamConfig, StreamSource
from headwater.errors import JetStreamError, LocalProtocolError, NoResponders, RemoteProtocolError


@contextlib.asynccontextmanager
async def counting(serve: Serve, **fields: object) -> AsyncIterator[tuple[JetStream, str]]:
    """A JetStream, and the name of a stream of counters on `<name>.>`."""
    name = f"N{secrets.token_hex(4)}"
    fields = {"allow_msg_counter": True, **fields}
    async with serve() as url, await headwater.connect(url) as client:
        jetstream = client.jetstream(timeout=30)
        await jetstream.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], **fields))  # type: ignore[arg-type]
        try:
            yield jetstream, name
        finally:
            await jetstream.delete_stream(name)


def test_each_addition_answers_the_sum_so_far(serve: Serve) -> None:
    async def main() -> None:
        async with counting(serve, allow_direct=True) as (jetstream, name):
            counters = jetstream.counters(name)
            assert await counters.get(f"{name}.a") is None
            assert await counters.get(f"{name}.a", direct=True) is None
            sums = [await counters.add(f"{name}.a", by) for by in (1, 41, 0, -50)]
            assert sums == [1, 42, 42, -8]
            assert await counters.add(f"{name}.b", headers={"Why": "test"}) == 1
            assert (await counters.get(f"{name}.a"), await counters.get(f"{name}.a", direct=True)) == (-8, -8)
            assert (await jetstream.get_message(name, last_on=f"{name}.b")).headers["Why"] == "test"
            assert await counters.sources(f"{name}.a") == {}
            await jetstream.purge_stream(name)
            assert await counters.get(f"{name}.a") is None

    finish(main())


def test_a_sum_is_as_long_as_it_must_be(serve: Serve) -> None:
    async def main() -> None:
        async with counting(serve) as (jetstream, name):
            counters = jetstream.counters(name)
            large = 10**9000  # digits that int() refuses
            assert await counters.add(f"{name}.a", large) == large
            assert await counters.add(f"{name}.a", -1) == large - 1
            assert await counters.get(f"{name}.a") == large - 1
            assert await counters.add(f"{name}.a", 1 - large) == 0
            assert await counters.get(f"{name}.a") == 0

    finish(main())


def test_an_increment_with_an_id_counts_once(serve: Serve) -> None:
    async def main() -> None:
        async with counting(serve) as (jetstream, name):
            counters = jetstream.counters(name)
            assert await counters.add(f"{name}.a", 5, msg_id="one") == 5
            assert await counters.add(f"{name}.a", 2) == 7
            assert await counters.add(f"{name}.a", 5, msg_id="one") == 7

    finish(main())


def test_a_stream_that_does_not_count_refuses(serve: Serve) -> None:
    async def main() -> None:
        async with counting(serve, allow_msg_counter=False) as (jetstream, name):
            with pytest.raises(JetStreamError) as off:
                await jetstream.counters(name).add(f"{name}.a")
            assert off.value.err_code == 10168
            await jetstream.publish(f"{name}.a", b"plain")
            with pytest.raises(RemoteProtocolError, match="holds no sum"):
                await jetstream.counters(name).get(f"{name}.a")
            with pytest.raises(NoResponders):
                await jetstream.counters(name).add("nowhere.a")

    finish(main())


def test_counting_in_another_stream_than_meant_is_told(serve: Serve) -> None:
    async def main() -> None:
        async with counting(serve) as (jetstream, name):
            with pytest.raises(LocalProtocolError, match="was counted in"):
                await jetstream.counters("OTHER").add(f"{name}.a")

    finish(main())


def test_a_sum_of_sums_says_what_it_is_made_of(serve: Serve) -> None:
    async def main() -> None:
        async with counting(serve) as (jetstream, name):
            total = StreamConfig(name=f"{name}T", allow_msg_counter=True, sources=[StreamSource(name=name)])
            await jetstream.create_stream(total)
            try:
                for by in (4, 5):
                    await jetstream.counters(name).add(f"{name}.a", by)
                counters = jetstream.counters(total.name)
                bodies = []
                async with asyncio.timeout(60):
                    async for message in jetstream.ordered_consumer(total.name):
                        bodies.append(message.data)
                        if len(bodies) == 2:
                            break
                assert bodies == [b'{"val":"4"}', b'{"val":"9"}']
                assert await counters.get(f"{name}.a") == 9
                assert await counters.sources(f"{name}.a") == {name: {f"{name}.a": 9}}
            finally:
                await jetstream.delete_stream(total.name)

    finish(main())


def test_sources_that_a_publisher_made_up_are_told_apart(serve: Serve) -> None:
    async def main() -> None:
        async with counting(serve) as (jetstream, name):
            counters = jetstream.counters(name)
            assert await counters.add(f"{name}.a", headers={"Nats-Counter-Sources": "nonsense"}) == 1
            with pytest.raises(RemoteProtocolError, match="sources"):
                await counters.sources(f"{name}.a")
            assert await counters.add(f"{name}.b", headers={"Nats-Counter-Sources": '{"E":{"e":"x"}}'}) == 1
            with pytest.raises(RemoteProtocolError, match="holds no sum"):
                await counters.sources(f"{name}.b")

    finish(main())


def test_blocking_programs_count_too(serve: Serve) -> None:
    name = f"N{secrets.token_hex(4)}"

    def blocking(url: str) -> None:
        with sync.connect(url) as client:
            jetstream = client.jetstream(timeout=30)
            jetstream.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], allow_msg_counter=True))
            counters = jetstream.counters(name)
            assert (counters.add(f"{name}.a", 3), counters.get(f"{name}.a"), counters.stream) == (3, 3, name)
            jetstream.delete_stream(name)

    async def main() -> None:
        async with serve() as url:
            await asyncio.to_thread(blocking, url)

    finish(main())
