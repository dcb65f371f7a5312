"""Fast-ingest batches from the client, with the real nats-server and with ours."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from headwater.client import sync
from headwater.client.client import connect
from headwater.client.jetstream import JetStream
from headwater.client.jetstream_types import StreamConfig
from headwater.errors import JetStreamError, LocalProtocolError, NoResponders, TransportError

pytestmark = pytest.mark.interop

TIMEOUT = 60.0


@asynccontextmanager
async def stream(url: str, name: str, max_msg_size: int = -1) -> AsyncIterator[JetStream]:
    """A JetStream with a new stream on `name.>`."""
    async with asyncio.timeout(TIMEOUT), await connect(url) as client:
        jetstream = client.jetstream(timeout=20)
        config = StreamConfig(name=name, subjects=[f"{name}.>"], allow_batched=True, max_msg_size=max_msg_size)
        await jetstream.create_stream(config)
        yield jetstream


def test_all_is_stored_in_order_at_the_end_of_the_block(url: str) -> None:
    async def main() -> None:
        async with stream(url, "ALL") as jetstream:
            before = 0
            for count, flow in ((1, 10), (2, 1), (2000, 100), (30, 7)):
                async with jetstream.fast_publisher(flow) as publisher:
                    for number in range(count):
                        await publisher.publish("ALL.a", b"%d" % number, headers={"X": "y"})
                before += count
                assert publisher.ack is not None
                assert (publisher.ack.stream, publisher.ack.seq, publisher.ack.count) == ("ALL", before, count)
                assert publisher.acknowledged == count
            last = await jetstream.get_message("ALL", before)
            assert (last.data, last.headers["X"]) == (b"29", "y")
            async with jetstream.fast_publisher() as empty:
                pass
            assert empty.ack is None

    asyncio.run(main())


def test_a_message_with_a_known_id_is_taken_once(url: str) -> None:
    async def main() -> None:
        async with stream(url, "IDS") as jetstream:
            async with jetstream.fast_publisher() as publisher:
                for number in (1, 2, 2, 1, 3):
                    await publisher.publish("IDS.a", b"", msg_id=str(number))
            assert publisher.ack is not None
            assert publisher.ack.count == 5
            assert (await jetstream.stream_info("IDS")).state.messages == 3

    asyncio.run(main())


def test_a_refusal_ends_the_batch_or_is_counted(url: str) -> None:
    async def main() -> None:
        async with stream(url, "SMALL", max_msg_size=50) as jetstream:
            wrong = {"Nats-Expected-Last-Sequence": "77"}
            with pytest.raises(JetStreamError, match="wrong last sequence") as caught:
                async with jetstream.fast_publisher() as publisher:
                    for number in range(1000):
                        subject = f"SMALL.{number}"
                        await publisher.publish(subject, b"", headers=wrong if number == 10 else None)
            held = (await jetstream.stream_info("SMALL")).state.messages
            assert held == 10
            assert caught.value.value == "SMALL.10"
            assert caught.value.__notes__[0].startswith("It was message 11 of ")
            async with jetstream.fast_publisher(gaps_allowed=True) as publisher:
                for number in range(20):
                    await publisher.publish("SMALL.a", b"", headers=wrong if number in (0, 10) else None)
            assert (publisher.refused, publisher.lost) == (2, 0)
            assert publisher.refusal is not None
            assert publisher.refusal.err_code == 10071
            assert (await jetstream.stream_info("SMALL")).state.messages == held + 18

    asyncio.run(main())


def test_a_stream_without_batches_and_no_stream_at_all_are_errors(url: str) -> None:
    async def main() -> None:
        async with asyncio.timeout(TIMEOUT), await connect(url) as client:
            jetstream = client.jetstream(timeout=20)
            await jetstream.create_stream(StreamConfig(name="PLAIN", subjects=["PLAIN.>"]))
            for subject, expected in (("PLAIN.a", JetStreamError), ("nowhere", NoResponders)):
                with pytest.raises(expected):
                    async with jetstream.fast_publisher() as publisher:
                        await publisher.publish(subject, b"1")
                        await publisher.publish(subject, b"2")
            with pytest.raises(LocalProtocolError):
                await publisher.publish("PLAIN.a", b"")
            with pytest.raises(LocalProtocolError):
                jetstream.fast_publisher(0)

    asyncio.run(main())


def test_an_exception_in_the_block_passes_and_what_was_published_stays(url: str) -> None:
    async def main() -> None:
        async with stream(url, "STAYS") as jetstream:
            with pytest.raises(ZeroDivisionError):
                async with jetstream.fast_publisher(1) as publisher:
                    for _ in range(3):
                        await publisher.publish("STAYS.a", b"")
                    raise ZeroDivisionError
            while (await jetstream.stream_info("STAYS")).state.messages < 3:  # noqa: ASYNC110  (no event says so)
                await asyncio.sleep(0.01)

    asyncio.run(main())


def test_a_lost_connection_is_an_error(url: str) -> None:
    async def main() -> None:
        async with stream(url, "CUT") as jetstream, await connect(url) as other:
            with pytest.raises(TransportError):
                async with other.jetstream(timeout=20).fast_publisher() as publisher:
                    await publisher.publish("CUT.a", b"1")
                    await publisher.publish("CUT.a", b"2")
                    await other.close()
                    await publisher.publish("CUT.a", b"3")
            assert (await jetstream.stream_info("CUT")).config.allow_batched

    asyncio.run(main())


def test_a_blocking_program_publishes_fast_too(url: str) -> None:
    with sync.connect(url) as client:
        jetstream = client.jetstream(timeout=20)
        jetstream.create_stream(StreamConfig(name="SYNC", subjects=["SYNC.>"], allow_batched=True))
        with jetstream.fast_publisher() as publisher:
            for number in range(300):
                publisher.publish("SYNC.a", b"%d" % number)
        assert publisher.ack is not None
        assert publisher.ack.count == 300
