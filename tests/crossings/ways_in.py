"""How messages go in: one function for each row of `table.WAYS_IN`, by its key.

Each is given the world, the stream that is to have the messages, the subject below which they go and the tag that they
bear, sends its samples, and returns when the server has them: what was sent, as it has to come out.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import urldefrag

from crossings import spark_ways
from crossings.iggy_ways import ERAS, send_to_own_topic, sending
from crossings.messages import ANY, RICH, SINGLE, Pairs, Sample, Sent, samples
from crossings.world import SERVICE, World
from support.peers import NodePeer, connect_node

from headwater.cloudevents import CloudEvent, NATSMessage, to_binary, to_structured
from headwater.model.headers import Headers


class Errand(NamedTuple):
    """What a way in is to do."""

    world: World
    stream: str
    subject: str  # messages go to `<subject>.<number>`
    tag: str  # and are known by `<tag>/<number>`

    def samples(self, headers: Pairs = RICH, *, reply: str = "", empty: bool = True) -> list[Sample]:
        return samples(self.tag, headers, reply=reply, empty=empty and self.world.place.empty)


WayIn = Callable[[Errand], Awaitable[list[Sent]]]


def sent(errand: Errand, sample: Sample, headers: Pairs | None = None) -> Sent:
    wanted = sample.headers if headers is None else headers
    return Sent(
        f"{errand.tag}/{sample.number}", f"{errand.subject}.{sample.number}", sample.payload, wanted, sample.reply
    )


def block_of(pairs: Pairs) -> bytes:
    """A header block, written by hand."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in pairs)
    return f"NATS/1.0\r\n{lines}\r\n".encode() if pairs else b""


async def pub(errand: Errand) -> list[Sent]:
    wire = await errand.world.wire(errand.world.writer)
    chosen = [sample._replace(headers=()) for sample in errand.samples(reply="back.pub")]
    for one in chosen:
        reply = f" {one.reply}" if one.reply else ""
        op = f"PUB {errand.subject}.{one.number}{reply} {len(one.payload)}\r\n".encode()
        await wire.send(op + one.payload + b"\r\n")
    return [sent(errand, one) for one in chosen]


async def hpub(errand: Errand) -> list[Sent]:
    return await _hpub(errand, errand.subject)


async def _hpub(errand: Errand, subject: str, url: str = "") -> list[Sent]:
    wire = await errand.world.wire(url or errand.world.writer)
    chosen = errand.samples(reply="back.hpub")
    for one in chosen:
        block = block_of(one.headers)
        reply = f" {one.reply}" if one.reply else ""
        sizes = f"{len(block)} {len(block) + len(one.payload)}" if block else f"{len(one.payload)}"
        op = f"{'HPUB' if block else 'PUB'} {subject}.{one.number}{reply} {sizes}\r\n".encode()
        await wire.send(op + block + one.payload + b"\r\n")
    return [sent(errand, one) for one in chosen]


async def client(errand: Errand) -> list[Sent]:
    ours = await errand.world.client(errand.world.writer)
    chosen = errand.samples(reply="back.client")
    for one in chosen:
        await ours.publish(f"{errand.subject}.{one.number}", one.payload, headers=Headers(one.headers), reply=one.reply)
    await ours.flush()
    return [sent(errand, one) for one in chosen]


async def jetstream(errand: Errand) -> list[Sent]:
    context = await errand.world.jetstream(errand.world.writer)
    chosen = errand.samples()
    for one in chosen:
        subject = f"{errand.subject}.{one.number}"
        ack = await context.publish(subject, one.payload, headers=Headers(one.headers) if one.headers else None)
        assert (ack.stream, ack.duplicate) == (errand.stream, False)
    return [_acked(sent(errand, one)) for one in chosen]


async def publisher(errand: Errand) -> list[Sent]:
    context = await errand.world.jetstream(errand.world.writer)
    chosen = errand.samples()
    async with context.publisher() as many:
        for one in chosen:
            await many.publish(f"{errand.subject}.{one.number}", one.payload, headers=Headers(one.headers))
    return [_acked(sent(errand, one)) for one in chosen]


def _acked(one: Sent) -> Sent:
    """A publisher that waits for its acknowledgement has a reply subject of its own: any will do."""
    return replace(one, reply=ANY)


async def nats_py(errand: Errand) -> list[Sent]:
    context = (await errand.world.nats_py(errand.world.writer)).jetstream()
    chosen = errand.samples(SINGLE)
    for one in chosen:
        ack = await context.publish(f"{errand.subject}.{one.number}", one.payload, headers=dict(one.headers) or None)
        assert (ack.stream, bool(ack.duplicate)) == (errand.stream, False)
    return [_acked(sent(errand, one)) for one in chosen]


async def npm(errand: Errand) -> list[Sent]:
    peer = await connect_node(urldefrag(errand.world.writer)[0], errand.world.authority)
    assert isinstance(peer, NodePeer)
    grouped = tuple(sorted(RICH, key=lambda pair: [name for name, _ in RICH].index(pair[0])))
    try:
        chosen = errand.samples(grouped, reply="back.npm")
        for one in chosen:
            await peer.publish(f"{errand.subject}.{one.number}", one.payload, one.headers, one.reply)
        await peer.flush()
    finally:
        await peer.close()
    return [sent(errand, one) for one in chosen]


def event_of(errand: Errand, one: Sample) -> CloudEvent:
    return CloudEvent(
        id=f"{errand.tag}/{one.number}",
        source="/crossings/%C3%A9",
        type="crossing",
        subject="grüße ☃",
        datacontenttype="text/plain; charset=utf-8",
        data=one.payload.decode("utf-8", "replace"),
        extensions={"yes": True, "count": 7},
    )


async def _events(errand: Errand, write: Callable[[CloudEvent], NATSMessage]) -> list[Sent]:
    context = await errand.world.jetstream(errand.world.writer)
    found = []
    for one in errand.samples(empty=False):
        message = write(event_of(errand, one))
        await context.publish(f"{errand.subject}.{one.number}", message.data, headers=message.headers)
        pairs = tuple(Headers(message.headers or {}).multi_items())
        found.append(Sent(f"{errand.tag}/{one.number}", f"{errand.subject}.{one.number}", message.data, pairs, ANY))
    return found


async def ce_binary(errand: Errand) -> list[Sent]:
    return await _events(errand, to_binary)


async def ce_structured(errand: Errand) -> list[Sent]:
    return await _events(errand, to_structured)


async def republish(errand: Errand) -> list[Sent]:
    """Published to another stream, at the writer; what is republished says where it came from."""
    source = await errand.world.make_republishing(errand.stream)
    context = await errand.world.jetstream(errand.world.writer)
    found = []
    for one in errand.samples():
        subject = f"{source}.{one.number}"
        ack = await context.publish(subject, one.payload, headers=Headers(one.headers))
        added = (
            ("Nats-Stream", ack.stream),
            ("Nats-Subject", subject),
            ("Nats-Sequence", str(ack.seq)),
            ("Nats-Time-Stamp", ANY),
            ("Nats-Last-Sequence", "0"),  # of the one before on that subject
        )
        found.append(_acked(sent(errand, one, (*one.headers, *added))))
    return found


async def service_import(errand: Errand) -> list[Sent]:
    """From the account that imports the subjects of the stream as services; subscribers get the requester in a header."""
    sent = await _hpub(errand, f"{SERVICE}.{errand.subject}", errand.world.importer)
    return [_acked(replace(one, added=(("Nats-Request-Info", ANY),))) for one in sent]


async def kv_put(errand: Errand) -> list[Sent]:
    bucket = await (await errand.world.jetstream(errand.world.writer)).key_value("CROSS")
    chosen = [sample._replace(headers=()) for sample in errand.samples()]
    for one in chosen:
        await bucket.put(f"kv-put.{one.number}", one.payload)
    return [_acked(sent(errand, one)) for one in chosen]


async def object_put(errand: Errand) -> list[Sent]:
    store = await (await errand.world.jetstream(errand.world.writer)).object_store("CROSS")
    found = []
    for one in errand.samples(empty=False):
        info = await store.put(f"{errand.tag}/{one.number}", one.payload)
        found.append(Sent(f"{errand.tag}/{one.number}", f"$O.CROSS.C.{info.nuid}", one.payload, (), ANY))
    return found


async def iggy_topic(errand: Errand) -> list[Sent]:
    return await send_to_own_topic(errand.world, errand.subject, errand.tag)


async def spark_sink(errand: Errand) -> list[Sent]:
    return await spark_ways.sink(errand.world, errand.stream, errand.subject, errand.tag)


def _iggy(era: str) -> WayIn:
    async def send(errand: Errand) -> list[Sent]:
        return await sending(ERAS[era])(errand.world, errand.stream, errand.subject, errand.tag)

    return send


FUNCTIONS: dict[str, WayIn] = {
    "pub": pub,
    "hpub": hpub,
    "client": client,
    "jetstream": jetstream,
    "publisher": publisher,
    "nats-py": nats_py,
    "npm": npm,
    "ce-binary": ce_binary,
    "ce-structured": ce_structured,
    "republish": republish,
    "service-import": service_import,
    "kv-put": kv_put,
    "object-put": object_put,
    "iggy-topic": iggy_topic,
    "spark-sink": spark_sink,
    **{key: _iggy(key) for key in ERAS},
}
