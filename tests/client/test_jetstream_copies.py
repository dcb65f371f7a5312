"""Mirrors and sources as the client's types configure them, on the real nats-server and on our broker."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator

import pytest
from support.both_servers import Serve
from support.scripted_server import finish

import headwater
from headwater.client.jetstream import JetStream
from headwater.client.jetstream_types import (
    ConsumerConfig,
    ExternalStream,
    SourceConsumer,
    StreamConfig,
    StreamSource,
    SubjectTransform,
)
from headwater.client.stream_message import StreamMessage
from headwater.errors import JetStreamError

LONG = 60.0  # seconds


@contextlib.asynccontextmanager
async def origin(serve: Serve, **fields: object) -> AsyncIterator[tuple[JetStream, str]]:
    """A JetStream, and the name of a stream on `<name>.>` that holds `<name>.0` and `.1` in turn, sequences 1 to 6."""
    name = f"O{secrets.token_hex(4)}"
    async with serve() as url, await headwater.connect(url) as client:
        jetstream = client.jetstream(timeout=LONG)
        await jetstream.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], **fields))  # type: ignore[arg-type]
        for number in range(6):
            await jetstream.publish(f"{name}.{number % 2}", b"%d" % number)
        try:
            yield jetstream, name
        finally:
            for each in await jetstream.stream_names():
                if each.startswith(name):
                    await jetstream.delete_stream(each)


async def copied(jetstream: JetStream, stream: str, count: int) -> list[StreamMessage]:
    """The first messages of a copy, as soon as they are there."""
    found: list[StreamMessage] = []
    async with asyncio.timeout(LONG):
        async for message in jetstream.ordered_consumer(stream):
            found.append(message)
            if len(found) == count:
                break
    return found


def test_a_mirror_keeps_sequences_and_becomes_a_stream_of_its_own(serve: Serve) -> None:
    async def main() -> None:
        async with origin(serve) as (jetstream, name):
            config = StreamConfig(
                name=f"{name}M", mirror=StreamSource(name=name, opt_start_seq=2, filter_subject=f"{name}.1")
            )
            made = await jetstream.create_stream(config)
            assert made.config.mirror == config.mirror
            places = [(one.metadata.stream_seq, one.data) for one in await copied(jetstream, config.name, 3)]
            assert places == [(2, b"1"), (4, b"3"), (6, b"5")]
            reported = (await jetstream.stream_info(config.name)).mirror
            assert reported is not None
            assert (reported.name, reported.lag, reported.filter_subject, reported.error) == (
                name,
                0,
                f"{name}.1",
                None,
            )
            promoted = (await jetstream.stream_info(config.name)).config
            promoted.mirror, promoted.subjects = None, [f"{name}M.>"]
            await jetstream.update_stream(promoted)
            assert (await jetstream.publish(f"{name}M.x", b"own")).seq == 7

    finish(main(), LONG)


def test_sources_are_gathered_with_their_subjects_transformed(serve: Serve) -> None:
    async def main() -> None:
        async with origin(serve) as (jetstream, name):
            renamed = StreamSource(
                name=name, subject_transforms=[SubjectTransform(src=f"{name}.0", dest=f"{name}S.even")]
            )
            later = StreamSource(name=name, opt_start_seq=6, filter_subject=f"{name}.1")
            made = await jetstream.create_stream(StreamConfig(name=f"{name}S", sources=[renamed, later]))
            assert made.config.sources == [renamed, later]
            messages = await copied(jetstream, f"{name}S", 4)
            even, odd = f"{name}S.even", f"{name}.1"
            assert sorted((one.subject, one.data) for one in messages) == sorted(
                [(even, b"0"), (even, b"2"), (even, b"4"), (odd, b"5")]
            )
            assert all(one.headers["Nats-Stream-Source"].startswith(f"{name} ") for one in messages)
            reported = (await jetstream.stream_info(f"{name}S")).sources
            assert reported is not None
            assert sorted((one.name, one.lag, one.seq) for one in reported) == [(name, 0, 5), (name, 0, 6)]

    finish(main(), LONG)


def test_a_work_queue_is_emptied_through_a_consumer_of_ones_own(serve: Serve) -> None:
    async def main() -> None:
        async with origin(serve, retention="workqueue") as (jetstream, name):
            deliver = f"deliver.{name}"
            await jetstream.create_consumer(
                name,
                ConsumerConfig(
                    durable_name="COPY",
                    ack_policy="flow_control",
                    deliver_subject=deliver,
                    flow_control=True,
                    idle_heartbeat=1,
                    max_deliver=-1,
                ),
            )
            through = SourceConsumer(name="COPY", deliver_subject=deliver)
            made = await jetstream.create_stream(
                StreamConfig(name=f"{name}Q", sources=[StreamSource(name=name, consumer=through)])
            )
            assert made.config.sources is not None
            assert made.config.sources[0].consumer == through
            assert [one.data for one in await copied(jetstream, f"{name}Q", 6)] == [b"%d" % n for n in range(6)]

    finish(main(), LONG)


def test_an_origin_in_another_domain_is_named_by_its_api(serve: Serve) -> None:
    async def main() -> None:
        async with origin(serve) as (jetstream, name):
            away = StreamSource(name="EDGE", external=ExternalStream(api="$JS.edge.API", deliver=f"deliver.{name}"))
            made = await jetstream.create_stream(StreamConfig(name=f"{name}E", sources=[away]))
            assert made.config.sources == [away]
            assert made.sources is None or made.sources[0].external == away.external
            wrong = StreamSource(name="EDGE", external=ExternalStream(api="$JS.API"))
            with pytest.raises(JetStreamError) as refused:
                await jetstream.create_stream(StreamConfig(name=f"{name}F", mirror=wrong))
            assert refused.value.err_code == 10021

    finish(main(), LONG)
