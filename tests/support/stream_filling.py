"""Streams with messages in them, put there by nats-py: another make's client."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import nats
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, StreamConfig

Message = tuple[str, dict[str, str] | None, bytes]


def with_jetstream(url: str, work: Callable[[JetStreamContext], Coroutine[None, None, None]]) -> None:
    """Connect, do `work`, close."""

    async def main() -> None:
        async with asyncio.timeout(60):
            client = await nats.connect(url)
            try:
                await work(client.jetstream())
            finally:
                await client.close()

    asyncio.run(main())


def fill(url: str, stream: str, subjects: Sequence[str], messages: Sequence[Message], **config: Any) -> None:
    """Create `stream`, if it is not there, and publish `messages` to it in order."""

    async def work(jetstream: JetStreamContext) -> None:
        await jetstream.add_stream(StreamConfig(name=stream, subjects=list(subjects), **config))
        acks = [await jetstream.publish_async(s, payload, headers=headers) for s, headers, payload in messages]
        await asyncio.gather(*acks)

    with_jetstream(url, work)


def forget_ids(url: str, subject: str) -> None:
    """Publish empty messages of one id until one is stored a second time: the stream's duplicate window has passed."""

    async def work(jetstream: JetStreamContext) -> None:
        headers = {"Nats-Msg-Id": "probe"}
        await jetstream.publish(subject, b"", headers=headers)
        while (await jetstream.publish(subject, b"", headers=headers)).duplicate:
            pass

    with_jetstream(url, work)


def stored(url: str, stream: str) -> list[tuple[str, dict[str, str], bytes]]:
    """Subject, headers and payload of every message in a stream, in order."""
    messages: list[tuple[str, dict[str, str], bytes]] = []

    async def work(jetstream: JetStreamContext) -> None:
        held = (await jetstream.stream_info(stream)).state.messages
        if not held:
            return
        subscription = await jetstream.pull_subscribe(
            "", stream=stream, config=ConsumerConfig(ack_policy=AckPolicy.NONE)
        )
        while len(messages) < held:
            fetched = await subscription.fetch(min(500, held - len(messages)), timeout=10)
            messages.extend((message.subject, dict(message.headers or {}), message.data) for message in fetched)

    with_jetstream(url, work)
    return messages


def numbered(prefix: str, count: int, start: int = 0) -> list[Message]:
    """Messages whose payload is their number, on ten subjects in turn, two headers each."""
    return [
        (f"{prefix}.{number % 10}", {"Nats-Msg-Id": f"{prefix}-{number}", "kind": "test"}, b"%d" % number)
        for number in range(start, start + count)
    ]


def purge(url: str, stream: str, below: int) -> None:
    """Remove all messages before the sequence `below`."""

    async def work(jetstream: JetStreamContext) -> None:
        await jetstream.purge_stream(stream, seq=below)

    with_jetstream(url, work)


def delete_message(url: str, stream: str, sequence: int) -> None:
    async def work(jetstream: JetStreamContext) -> None:
        await jetstream.delete_msg(stream, sequence)

    with_jetstream(url, work)


def delete_stream(url: str, stream: str) -> None:
    async def work(jetstream: JetStreamContext) -> None:
        await jetstream.delete_stream(stream)

    with_jetstream(url, work)


def delete_consumers(url: str, stream: str) -> int:
    """Delete every consumer of a stream; returns how many there were."""
    deleted: list[str] = []

    async def work(jetstream: JetStreamContext) -> None:
        for consumer in await jetstream.consumers_info(stream):
            await jetstream.delete_consumer(stream, consumer.name)
            deleted.append(consumer.name)

    with_jetstream(url, work)
    return len(deleted)
