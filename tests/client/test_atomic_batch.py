"""Atomic batches from the client, with the real nats-server and with ours."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from headwater.client import sync
from headwater.client.client import connect
from headwater.client.jetstream import JetStream
from headwater.client.jetstream_types import BatchAck, StreamConfig
from headwater.errors import JetStreamError, LocalProtocolError, NoResponders

pytestmark = pytest.mark.interop

TIMEOUT = 60.0


@asynccontextmanager
async def stream(url: str, name: str, *, allow_atomic: bool = False) -> AsyncIterator[JetStream]:
    """A JetStream with a new stream on `name.>`."""
    async with asyncio.timeout(TIMEOUT), await connect(url) as client:
        jetstream = client.jetstream(timeout=20)
        await jetstream.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], allow_atomic=allow_atomic))
        yield jetstream


def test_a_batch_is_stored_at_the_end_of_its_block(url: str) -> None:
    async def main() -> None:
        async with stream(url, "WHOLE", allow_atomic=True) as jetstream:
            for count in (1, 2, 3, 250):
                before = (await jetstream.stream_info("WHOLE")).state.messages
                async with jetstream.atomic_batch() as batch:
                    for number in range(count):
                        await batch.publish("WHOLE.a", b"%d" % number, headers={"X": "y"})
                    assert (await jetstream.stream_info("WHOLE")).state.messages == before
                assert batch.ack is not None
                assert (batch.ack.stream, batch.ack.seq, batch.ack.count) == ("WHOLE", before + count, count)
            last = await jetstream.get_message("WHOLE", 256)
            assert (last.data, last.headers["X"], last.headers["Nats-Batch-Sequence"]) == (b"249", "y", "250")
            async with jetstream.atomic_batch() as empty:
                pass
            assert empty.ack is None

    asyncio.run(main())


def test_a_buffer_may_be_used_again_after_each_publish(url: str) -> None:
    async def main() -> None:
        async with stream(url, "BUFFER", allow_atomic=True) as jetstream:
            buffer = bytearray(1)
            async with jetstream.atomic_batch() as batch:
                for number in range(3):
                    buffer[0] = number
                    await batch.publish("BUFFER.a", buffer)
            stored = [(await jetstream.get_message("BUFFER", seq)).data for seq in (1, 2, 3)]
            assert stored == [b"\0", b"\1", b"\2"]

    asyncio.run(main())


def test_an_exception_abandons_the_batch(url: str) -> None:
    async def main() -> None:
        async with stream(url, "NONE", allow_atomic=True) as jetstream:
            with pytest.raises(ZeroDivisionError):
                async with jetstream.atomic_batch() as batch:
                    await batch.publish("NONE.a")
                    await batch.publish("NONE.a")
                    raise ZeroDivisionError
            assert (await jetstream.stream_info("NONE")).state.messages == 0
            with pytest.raises(LocalProtocolError):
                await batch.publish("NONE.a")

    asyncio.run(main())


def test_a_refusal_comes_early_or_at_the_commit(url: str) -> None:
    async def main() -> None:
        async with stream(url, "PLAIN") as jetstream:
            with pytest.raises(JetStreamError) as off:
                async with jetstream.atomic_batch() as batch:
                    await batch.publish("PLAIN.a")
                    await batch.publish("PLAIN.a")
                    raise AssertionError("the first message was not refused")
            assert off.value.err_code == 10174
        async with stream(url, "LATE", allow_atomic=True) as jetstream:
            with pytest.raises(JetStreamError) as wrong:
                async with jetstream.atomic_batch() as batch:
                    await batch.publish("LATE.a", expect_last_sequence=7)
                    await batch.publish("LATE.a", msg_id="m")
            assert wrong.value.err_code == 10071
            with pytest.raises(NoResponders):
                async with jetstream.atomic_batch() as batch:
                    await batch.publish("nowhere")

    asyncio.run(main())


def test_blocking_programs_have_batches_too(url: str) -> None:
    with sync.connect(url) as client:
        jetstream = client.jetstream(timeout=20)
        settings = StreamConfig(name="SYNC", subjects=["SYNC.>"], allow_atomic=True)
        jetstream.create_stream(settings)
        with jetstream.atomic_batch() as batch:
            batch.publish("SYNC.a", b"1")
            batch.publish("SYNC.a", b"2")
        assert isinstance(batch.ack, BatchAck)
        assert batch.ack.seq == 2
