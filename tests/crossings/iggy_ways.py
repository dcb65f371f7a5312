"""Iggy's ways in, era by era, and its two ways out.

What clients of an era put on the wire is written here with the product's codecs, which the captured conversations of those
clients hold to their bytes (tests/iggy/test_captured_frames.py), so that every era runs without installing its client.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from crossings.messages import Got, Pairs, Sample, Sent, samples
from crossings.world import IGGY_STREAM, IGGY_TOPIC, World

from headwater import HeaderValue, TypedHeaders
from headwater.iggy_client.consumer import ConsumerOptions
from headwater.iggy_wire import classic_codec, classic_frames, command_codec
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Code, Message
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.identifiers import Identifier, Partitioning, PollingStrategy
from headwater.iggy_wire.message_codec import ReceivedMessage
from headwater.iggy_wire.seed_codec import SendMessages
from headwater.model.header_mapping import typed_to_nats
from headwater.model.typed_headers import HeaderForm

NATS = "nats"  # the Iggy stream whose topics are JetStream's streams
VERSIONS = {Era.A: None, Era.A2: None, Era.B: "0.6.0", Era.C1: "0.7.0", Era.C2: "0.8.0", Era.C3: "0.10.0"}
# Later eras send the same bytes as V; tests/iggy/test_peers.py has their client.
ERAS = {f"iggy-{era.name.lower()}": era for era in Era if era <= Era.V}

# As an Iggy program writes them, and as a NATS program reads them (docs/header-mapping.md).
TYPED = (
    ("Alpha", "first"),
    ("beta", "words: and a colon"),
    ("Alpha#2", "second"),
    ("ALPHA", "other case"),
    ("Text", "grüße ☃ 日本語"),
    ("count", HeaderValue.from_uint64(5)),
)
READ: Pairs = (
    *((name.removesuffix("#2"), value) for name, value in TYPED if isinstance(value, str)),
    ("count", "5"),
    ("Iggy-Typed", "count uint64"),
)

Send = Callable[[World, str, str, str], Awaitable[list[Sent]]]


def message_of(sample: Sample, subject: str) -> Message:
    headers: list[tuple[str, Any]] = [*TYPED] if sample.headers else []
    if subject:
        headers.append(("Nats-Subject", f"{subject}.{sample.number}"))
    return Message(sample.payload, TypedHeaders(headers) if headers else None, id=sample.number)


def _sent(sample: Sample, tag: str, subject: str) -> Sent:
    identity = (("Iggy-Message-Id", str(sample.number)),) if sample.number else ()
    return Sent(f"{tag}/{sample.number}", subject, sample.payload, (*(READ if sample.headers else ()), *identity))


def sending(era: Era) -> Send:
    """A send of this era into a stream of JetStream's."""

    async def send(world: World, stream: str, subject: str, tag: str) -> list[Sent]:
        chosen = samples(tag, empty=False)
        messages = [message_of(sample, subject) for sample in chosen]
        if era is Era.V:
            await (await world.iggy_client()).send(NATS, stream, messages, 0)
        else:
            await _send_classic(world, era, stream, messages)
        return [_sent(sample, tag, f"{subject}.{sample.number}") for sample in chosen]

    return send


async def send_to_own_topic(world: World, subject: str, tag: str) -> list[Sent]:
    """Into a topic that is Iggy's; JetStream shows all of it under one subject."""
    chosen = samples(tag, empty=False)
    await (await world.iggy_client()).send(IGGY_STREAM, IGGY_TOPIC, [message_of(one, "") for one in chosen], 0)
    return [_sent(sample, tag, subject) for sample in chosen]


async def _send_classic(world: World, era: Era, stream: str, messages: list[Message]) -> None:
    face = world.face
    port = face.seed_port if era is Era.S else face.tcp_port
    secure = world.tls
    name = "localhost" if secure else None
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=secure, server_hostname=name)

    async def ask(code: int, body: bytes) -> None:
        writer.write(classic_frames.request(code, body))
        status, size = classic_frames.HEAD.unpack(await reader.readexactly(classic_frames.HEAD.size))
        await reader.readexactly(size if status == 0 else 0)
        assert status == 0, f"era {era.name}: command {code} is refused with {status}"

    try:
        if era is not Era.S:
            login = c.Login("iggy", "iggy", VERSIONS[era] or "")
            code, body = command_codec.encode(login, era)
            await ask(code, body)
        await ask(Code.SEND_MESSAGES, _body(era, stream, messages))
    finally:
        writer.close()


def _body(era: Era, stream: str, messages: list[Message]) -> bytes:
    where = Partitioning.partition(era.first_id)
    to, topic = Identifier(NATS), Identifier(stream)
    if not era.has_index_table:
        return SendMessages(to, topic, where, tuple(messages)).encode()
    head, reserved = classic_codec.head_of(era), (0,) if era is Era.C3 else ()
    form = HeaderForm.TYPED if era.typed_keys else HeaderForm.SEED
    blocks, table, end = [], [], 0
    for one in messages:
        headers = one.headers.encode(form) if one.headers else b""
        fields = (0, one.id.to_bytes(16, "little"), 0, 0, 1, len(headers), len(one.payload), *reserved)
        blocks.append(head.pack(*fields) + one.payload + headers)
        end += len(blocks[-1])
        table.append(classic_codec.INDEX.pack(0, end, 0))
    address = classic_codec.write_address(c.SendMessages(to, topic, where, len(messages)))
    return b"".join([address, *table, *blocks])


# ── out ──


def place_of(stream: str, own: str) -> tuple[str, str]:
    """(stream, topic) of Iggy's in which a stream of JetStream's is."""
    return (IGGY_STREAM, IGGY_TOPIC) if stream == own else (NATS, stream)


def got_of(message: ReceivedMessage, own_subject: str) -> Got:
    """A polled message by the table of header mapping."""
    headers = typed_to_nats(message.headers) if message.headers else None
    shown = headers.multi_items() if headers is not None else []
    subject = headers.first("Nats-Subject") if headers is not None else ""
    if subject:
        shown.remove(("Nats-Subject", subject))  # a republished message has one of its own behind it
    identity = (("Iggy-Message-Id", str(message.id)),) if message.id else ()
    return Got(subject or own_subject, message.payload, (*shown, *identity), sequence=message.offset + 1)


async def poll(world: World, stream: str, topic: str) -> AsyncIterator[ReceivedMessage]:
    """Everything that is there, from the first on."""
    client, offset = await world.iggy_client(), 0
    while True:
        found = await client.poll(stream, topic, strategy=PollingStrategy.offset(offset), count=10)
        for message in found:
            yield message
        if not found:
            return
        offset = found[-1].offset + 1


async def group(world: World, stream: str, topic: str) -> AsyncIterator[ReceivedMessage | None]:
    """None once the group has its member, then what comes."""
    client = await world.iggy_client(f"member of {topic}")
    await client.create_group(stream, topic, "crossing")
    consumer = client.consumer(stream, topic, group="crossing", options=ConsumerOptions(batch=10, idle=0.02))
    yield None
    async for message in consumer:
        yield message
