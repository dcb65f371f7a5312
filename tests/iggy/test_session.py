"""The TCP side by hand: framing, order, refusals, and what a bad peer cannot do to a good one."""

import asyncio
import json
import os
import random
import struct
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
from support.certificates import make_certificates
from support.iggy_frames import ERAS, exchanges
from support.iggy_service import Desk, S, T, at_desk

from headwater import TypedHeaders
from headwater.errors import IggyError
from headwater.iggy.clients import Client as ServedClient
from headwater.iggy.face import Iggy, IggyOptions
from headwater.iggy.service_options import ServiceOptions
from headwater.iggy.session import Session
from headwater.iggy_client.client import Client, connect
from headwater.iggy_wire import classic_codec, classic_frames, command_codec, eras, reply_codec, vsr_frames
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.batches import messages, of_messages, xxh3_64
from headwater.iggy_wire.commands import Code, Message
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.identifiers import Consumer, Identifier, Partitioning, PollingStrategy
from headwater.iggy_wire.seed_codec import SendMessages, decode_poll
from headwater.net.limits import DEFAULTS, IGGY
from headwater.net.link import Link
from headwater.net.tls import client_context
from headwater.wire.memory import OutputBuffer

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "iggy_seed.json").read_text(encoding="utf-8"))["other"]


class Wire:
    """A connection that speaks classic frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, era: Era) -> None:
        self.reader, self.writer, self.era = reader, writer, era

    async def ask(self, code: int, body: bytes = b"") -> tuple[int, bytes]:
        self.writer.write(classic_frames.request(code, body))
        return await self.answer()

    async def answer(self) -> tuple[int, bytes]:
        status, size = classic_frames.HEAD.unpack(await self.reader.readexactly(8))
        return status, await self.reader.readexactly(size)

    async def do(self, command: c.Command) -> Any:
        code, body = command_codec.encode(command, self.era)
        status, answer = await self.ask(code, body)
        assert status == 0, (command, status)
        return reply_codec.decode(code, answer, self.era)


async def wire(port: int, era: Era = Era.S) -> Wire:
    return Wire(*await asyncio.open_connection("127.0.0.1", port), era)


def serving(tmp_path: Path, work: Callable[[Iggy], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        wanted = IggyOptions(tcp=("127.0.0.1", 0), seed=("127.0.0.1", 0), **options)
        async with asyncio.timeout(30), Iggy(wanted, tmp_path) as iggy:
            await work(iggy)

    asyncio.run(main())


def test_the_seeds_clients_need_no_login_and_get_the_seeds_layout(tmp_path: Path) -> None:
    async def work(iggy: Iggy) -> None:
        link = await wire(iggy.seed_port)
        await link.do(c.CreateStream("Sample Stream", id=1))
        await link.do(c.CreateTopic(Identifier(1), "sample", 2, id=1))
        for name in ("SEND balanced nohdr", "SEND pid1 hdr", "SEND pid1 two msgs"):
            assert await link.ask(Code.SEND_MESSAGES, bytes.fromhex(VECTORS[name])) == (0, b"")
        _, answer = await link.ask(Code.POLL_MESSAGES, bytes.fromhex(VECTORS["POLL"]))
        found = decode_poll(answer)
        assert [(m.offset, m.id, m.payload) for m in found] == [
            (0, 0, b"hello-world"),
            (1, 7, b"hello-world"),
            (2, 0, b"hello"),
            (3, 7, b"world"),
        ]
        assert found[1].headers == TypedHeaders({"key 1": "value1"}) and found[0].headers is None
        stream = await link.do(c.GetStream(Identifier("sample.stream")))
        assert (stream.id, stream.messages, stream.details[0].name) == (1, 4, "sample")
        await link.do(c.StoreOffset(Consumer.single(1), Identifier(1), Identifier(1), 1, 2))
        view = await link.do(c.GetOffset(Consumer.single(1), Identifier(1), Identifier(1), 1))
        assert view == reply_codec.SeedOffset(1, 2)
        await link.do(c.CreateGroup(Identifier(1), Identifier(1), id=1))
        await link.do(c.JoinGroup(Identifier(1), Identifier(1), Identifier(1)))
        group = await link.do(c.GetGroup(Identifier(1), Identifier(1), Identifier(1)))
        assert [member.partitions for member in group.details] == [[1, 2]]
        link.writer.close()

    serving(tmp_path, work)


def test_errors_have_the_numbers_of_their_era(tmp_path: Path) -> None:
    async def work(iggy: Iggy) -> None:
        seed, today = await wire(iggy.seed_port), await wire(iggy.tcp_port, Era.C3)
        assert await today.ask(Code.GET_STREAMS) == (40, b"")
        await today.do(c.Login("iggy", "iggy", "0.10.0"))
        await seed.do(c.CreateStream("s", id=1))
        await seed.do(c.CreateTopic(Identifier(1), "t", 1, id=1))
        big = TypedHeaders({f"k{number}": "v" * 255 for number in range(402)})
        send = SendMessages(Identifier(1), Identifier(1), Partitioning.balanced(), (Message(b"x", big),))
        assert (await seed.ask(Code.SEND_MESSAGES, send.encode()))[0] == 4016
        empty = SendMessages(Identifier(1), Identifier(1), Partitioning.balanced(), (Message(b""),))
        assert (await seed.ask(Code.SEND_MESSAGES, empty.encode()))[0] == 4023
        unknown = bytes.fromhex(VECTORS["SEND pid1 hdr"]).replace(b"sample", b"t")[:0]
        assert (await seed.ask(Code.SEND_MESSAGES, unknown))[0] == 3
        assert (await seed.ask(Code.GET_STREAM, Identifier(9).encode()))[0] == 1009
        assert await today.ask(Code.GET_STREAM, Identifier(9).encode()) == (0, b"")
        assert (await seed.ask(Code.LOGIN_USER, b""))[0] == 3
        assert (await today.ask(7777))[0] == 3
        for link in (seed, today):
            link.writer.close()

    serving(tmp_path, work)


@pytest.mark.parametrize("client", [name for name, era in ERAS.items() if era is not Era.V])
def test_a_captured_conversation_is_answered_in_the_layout_of_its_era(tmp_path: Path, client: str) -> None:
    async def work(iggy: Iggy) -> None:
        link = await wire(iggy.tcp_port, ERAS[client])
        # The captured test server listed no topics in a stream, gave no login's context, and had no cluster metadata.
        sizes_differ = {Code.POLL_MESSAGES, Code.LOGIN_USER, Code.GET_STREAM, Code.GET_CLUSTER_METADATA}
        sizes_differ.add(Code.CREATE_GROUP)
        for exchange in exchanges(client):
            link.writer.write(exchange.request[:5])
            link.writer.write(exchange.request[5:])
            status, answer = await link.answer()
            assert status == 0, exchange.code
            if exchange.code not in sizes_differ:
                assert len(answer) == len(exchange.reply) - 8, exchange.code
        link.writer.close()

    serving(tmp_path, work)


def test_requests_in_one_breath_are_answered_in_order(tmp_path: Path) -> None:
    async def work(iggy: Iggy) -> None:
        link = await wire(iggy.tcp_port, Era.C3)
        await link.do(c.Login("iggy", "iggy", "0.10.0"))
        s, t = Identifier("s"), Identifier("t")
        making = (c.CreateStream("s"), c.CreateTopic(s, "t", 1))
        frames = [classic_frames.request(*command_codec.encode(command, Era.C3)) for command in making]
        head = classic_codec.head_of(Era.C3)
        for number in range(20):
            payload = b"%d" % number
            message = head.pack(0, bytes(16), 0, 0, 1, 0, len(payload), 0) + payload
            address = classic_codec.write_address(c.SendMessages(s, t, Partitioning.partition(0), 1))
            body = address + classic_codec.INDEX.pack(0, len(message), 0) + message
            frames.append(classic_frames.request(Code.SEND_MESSAGES, body))
        poll = c.PollMessages(Consumer.single(), s, t, 0, PollingStrategy.first(), 100)
        frames.append(classic_frames.request(*command_codec.encode(poll, Era.C3)))
        link.writer.write(b"".join(frames))
        for _ in range(22):
            assert (await link.answer())[0] == 0
        _, polled = await link.answer()
        assert classic_codec.PREFIX.unpack_from(polled) == (0, 19, 20)
        link.writer.close()

    serving(tmp_path, work)


BATCH = bytes(of_messages([Message(b"payload", TypedHeaders({"key": "value"})), Message(b"two")], 1)[0])


def test_a_bad_batch_is_refused_and_never_poisons_a_partition(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)

    async def work(iggy: Iggy) -> None:
        s, t = Identifier("s"), Identifier("t")
        address = classic_codec.write_address(c.SendMessages(s, t, Partitioning.partition(0), 2))
        async with await connect(f"iggy://iggy:iggy@127.0.0.1:{iggy.tcp_port}") as client:
            await client.create_stream("s")
            await client.create_topic("s", "t")
            await client.send("s", "t", [Message(b"before")], 0)
            taken, refused = 1, 0
            for _ in range(300):
                body = bytearray(BATCH[: chance.choice([len(BATCH)] * 3 + [chance.randrange(len(BATCH))])])
                for _ in range(chance.randrange(4)):
                    if body:
                        body[chance.randrange(len(body))] = chance.randrange(256)
                try:
                    await client.request(Code.SEND_MESSAGES, address, body)
                    taken += 2
                except IggyError:
                    refused += 1
            await client.send("s", "t", [Message(b"after")], 0)
            found = await client.poll("s", "t", strategy=PollingStrategy.first())
            assert [message.offset for message in found] == list(range(taken + 1)), f"seed {seed}"
            assert (found[0].payload, found[-1].payload) == (b"before", b"after")
            assert refused > 0 and taken > 1

    serving(tmp_path, work)


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x02\0\0\0" + bytes(8),
        b"\xff\xff\xff\xff" + bytes(8),
        bytes(256),
        bytes(48) + struct.pack("<I8xB", 1 << 31, 5) + bytes(200),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_frame_ends_its_connection_and_no_other(tmp_path: Path, garbage: bytes) -> None:
    async def work(iggy: Iggy) -> None:
        good = await wire(iggy.tcp_port, Era.C3)
        bad = await wire(iggy.tcp_port)
        bad.writer.write(garbage)
        await bad.reader.read()
        assert bad.reader.at_eof()
        await good.do(c.Ping())
        for link in (good, bad):
            link.writer.close()

    serving(tmp_path, work)


async def large_topic(client: Client, batches: int, size: int) -> list[bytes]:
    """A topic of large batches; their payloads, each another."""
    await client.create_stream("s")
    await client.create_topic("s", "t")
    payloads = [bytes([number]) * size for number in range(batches)]
    for payload in payloads:
        await client.send("s", "t", [Message(payload)], 0)
    return payloads


def poll_request(offset: int, number: int, login: int, count: int = 1) -> bytes:
    s, t = Identifier("s"), Identifier("t")
    command = c.PollMessages(Consumer.single(), s, t, 0, PollingStrategy.offset(offset), count)
    code, body = command_codec.encode(command, Era.V)
    return vsr_frames.request(code, len(body), b"c" * 16, number, login) + body


async def modern_login(link: Wire) -> int:
    """Log in with frames of today; returns the login's number."""
    code, body = command_codec.encode(c.Login("iggy", "iggy", "0.11.0", "", eras.PROTOCOL, "x"), Era.V)
    link.writer.write(vsr_frames.request(code, len(body), b"c" * 16, 0, 0, xxh3_64(body)) + body)
    head, body = await modern_answer(link)
    assert head.status == 0
    return 1


async def modern_answer(link: Wire) -> tuple[vsr_frames.Reply, bytes]:
    head = await link.reader.readexactly(vsr_frames.HEADER_SIZE)
    size = int.from_bytes(head[48:52], "little")
    frame = head + await link.reader.readexactly(size - len(head))
    found = vsr_frames.find_reply(frame, 0, len(frame))
    assert isinstance(found, vsr_frames.Reply)
    return found, frame[found.start :]


def test_what_comes_behind_a_waiting_poll_does_not_wait(tmp_path: Path) -> None:
    async def work(iggy: Iggy) -> None:
        link = await wire(iggy.tcp_port, Era.V)
        login = c.Login("iggy", "iggy", "0.12", "", eras.NEWEST_PROTOCOL, "x", bytes(32))
        s, t, first = Identifier("s"), Identifier("t"), PollingStrategy.first()
        polls = [
            c.PollDeferred(Consumer.single(), s, t, 0, first, 10, False, 60_000_000, least, 4096, 90_000_000)
            for least in (1, 2)
        ]
        batch, count = of_messages([Message(b"hello")], 1)
        address = classic_codec.write_address(c.SendMessages(s, t, Partitioning.partition(0), count))
        commands = [login, c.CreateStream("s"), c.CreateTopic(s, "t", 1), *polls, c.Ping()]
        bodies = [command_codec.encode(command, Era.X) for command in commands]
        cancelled = (Code.CANCEL_DEFERRED, b"")
        numbered = [*enumerate(bodies), (6, (Code.SEND_MESSAGES, address + batch)), (4, cancelled)]
        order: list[int] = []
        for number, (code, body) in numbered:
            link.writer.write(vsr_frames.request(code, len(body), b"c" * 16, number, 1) + body)
            if number not in (3, 4):
                order.append((await modern_answer(link))[0].request)
        assert order == [0, 1, 2, 5, 6], "each is answered before the polls that came first"
        answers = {head.request: body for head, body in [await modern_answer(link), await modern_answer(link)]}
        assert [classic_codec.PREFIX.unpack_from(answers[number])[2] for number in (3, 4)] == [1, 0]
        assert answers[3].endswith(b"hello") and len(answers[4]) == 40
        link.writer.write(vsr_frames.request(Code.POLL_DEFERRED, len(bodies[4][1]), b"c" * 16, 9, 1) + bodies[4][1])
        link.writer.close()

    serving(tmp_path, work)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a link is read at each segment")
def test_the_rest_of_a_large_frame_does_not_wake_the_server_for_each_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []

    def receive(self: Session, buffer: bytearray, filled: int, inner: Callable[..., int] = Session.receive) -> int:
        reads.append(filled)
        return inner(self, buffer, filled)

    async def work(iggy: Iggy) -> None:
        async with await connect(f"iggy://iggy:iggy@127.0.0.1:{iggy.tcp_port}") as client:
            await large_topic(client, 1, 10)
            link = await wire(iggy.tcp_port, Era.V)
            login = await modern_login(link)
            batch, count = of_messages([Message(bytes(300_000))], 1)
            address = classic_codec.write_address(c.SendMessages(S, T, Partitioning.partition(0), count))
            body = address + batch
            frame = vsr_frames.request(Code.SEND_MESSAGES, len(body), b"c" * 16, 1, login) + body
            monkeypatch.setattr(Session, "receive", receive)
            pieces = [frame[at : at + 30_000] for at in range(0, len(frame), 30_000)]
            for piece in pieces:
                link.writer.write(piece)
                await client.ping()  # the loop has read what was ready
            assert (await modern_answer(link))[0].status == 0
            mine = [filled for filled in reads if filled >= 30_000]
            assert mine[0] == 30_000 and mine[-1] == len(frame) and len(mine) <= 4, "not once for each of eleven pieces"
            link.writer.write(poll_request(0, 2, login, 5))
            assert classic_codec.PREFIX.unpack_from((await modern_answer(link))[1])[2] == 2, (
                "a small frame wakes it again"
            )
            link.writer.close()

    serving(tmp_path, work)


GOING: list[Any] = [
    None,
    c.PurgeTopic(Identifier("s"), Identifier("t")),
    c.DeleteTopic(Identifier("s"), Identifier("t")),
]


@pytest.mark.parametrize("ends", [*GOING, c.DeleteStream(Identifier("s"))])
def test_a_slow_reader_gets_its_large_batches_whole_whatever_becomes_of_the_topic(
    tmp_path: Path, ends: c.Command | None
) -> None:
    """A dozen polls in one breath, 24 MB that no socket holds; the topic goes while they are being sent."""

    async def work(iggy: Iggy) -> None:
        async with await connect(f"iggy://iggy:iggy@127.0.0.1:{iggy.tcp_port}") as client:
            payloads = await large_topic(client, 12, 2_000_000)
            link = await wire(iggy.tcp_port, Era.V)
            login = await modern_login(link)
            link.writer.write(b"".join(poll_request(offset, offset + 1, login) for offset in range(12)))
            first = await modern_answer(link)
            if ends is not None:
                await client.execute(ends)
            answers = [first] + [await modern_answer(link) for _ in range(11)]
            assert [head.request for head, _ in answers] == list(range(1, 13))
            for (head, body), payload in zip(answers, payloads, strict=True):
                if head.status == 0 and len(body) > classic_codec.PREFIX.size:
                    (message,) = messages(body[classic_codec.PREFIX.size :])
                    assert message.payload == payload
                else:
                    assert ends is not None
            assert answers[0][0].status == 0 and len(answers[0][1]) > 2_000_000
            link.writer.close()

    serving(tmp_path, work)


@pytest.mark.skipif(sys.platform != "linux", reason="ranges are for Linux")
def test_a_client_that_leaves_in_the_middle_of_a_large_answer_leaves_no_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_segments() -> int:
        found = 0
        for name in os.listdir("/proc/self/fd"):
            with suppress(FileNotFoundError):  # the descriptor of the listing itself
                found += os.readlink(f"/proc/self/fd/{name}").endswith(".log (deleted)")
        return found

    async def work(iggy: Iggy) -> None:
        async with await connect(f"iggy://iggy:iggy@127.0.0.1:{iggy.tcp_port}") as client:
            await large_topic(client, 12, 2_000_000)
            link = await wire(iggy.tcp_port, Era.V)
            login = await modern_login(link)
            link.writer.write(poll_request(0, 1, login) + poll_request(0, 2, login, 12))
            await modern_answer(link)
            await link.reader.readexactly(vsr_frames.HEADER_SIZE)
            await client.execute(GOING[-1])
            assert open_segments() > 0, "what is being sent is still there"
            gone = asyncio.Event()
            disconnect = iggy.service.disconnect

            def notice(client: ServedClient) -> None:
                disconnect(client)
                gone.set()

            monkeypatch.setattr(iggy.service, "disconnect", notice)
            link.writer.transport.abort()
            await gone.wait()
            assert open_segments() == 0

    serving(tmp_path, work)


def test_a_login_that_is_refused_is_told_in_the_eras_own_way(tmp_path: Path) -> None:
    async def work(iggy: Iggy) -> None:
        for era, version in ((Era.A2, ""), (Era.C3, "0.10.0")):
            link = await wire(iggy.tcp_port, era)
            assert (await link.ask(*command_codec.encode(c.Login("iggy", "no", version), era)))[0] == 42
            assert (await link.ask(*command_codec.encode(c.Login("iggy", "iggy", version), era)))[0] == 0
            link.writer.close()
        for protocol, reason in ((eras.PROTOCOL, 9), (eras.NEWEST_PROTOCOL + 1, 14)):
            link = await wire(iggy.tcp_port, Era.V)
            code, body = command_codec.encode(c.Login("iggy", "no", "0.11.0", "", protocol, "x"), Era.V)
            link.writer.write(vsr_frames.request(code, len(body), b"c" * 16, 0, 0) + body)
            frame = await link.reader.readexactly(256)
            assert (frame[60], frame[255]) == (vsr_frames.EVICTION, reason)
            assert await link.reader.read() == b""
            link.writer.close()

    serving(tmp_path, work)


def test_tls_before_the_first_byte(tmp_path: Path) -> None:
    files = make_certificates(tmp_path)

    async def work(iggy: Iggy) -> None:
        async with await connect(f"iggy://iggy:iggy@localhost:{iggy.tcp_port}", tls=client_context(files.ca)) as client:
            await client.create_stream("s")
            await client.create_topic("s", "t")
            big = bytes(300_000)
            await client.send("s", "t", [Message(big)] * 5, 0)
            assert [message.payload for message in await client.poll("s", "t")] == [big] * 5

    serving(tmp_path, work, cert_file=files.server_cert, key_file=files.server_key)


def test_a_stranger_may_not_announce_a_large_frame(tmp_path: Path) -> None:
    """Ten connections that announced 64 MiB each took 709 MB; the same frame is taken from a client that has logged in."""

    async def work(iggy: Iggy) -> None:
        modern = vsr_frames.request(Code.SEND_MESSAGES, 60 << 20, bytes(16), 1, 1)
        classic = struct.pack("<II", 60 << 20, Code.SEND_MESSAGES)
        for announced in (modern, classic):
            stranger = await wire(iggy.tcp_port, Era.C3)
            stranger.writer.write(announced)
            await asyncio.wait_for(stranger.reader.read(), 5)  # until it is closed
            stranger.writer.close()
        member = await wire(iggy.tcp_port, Era.C3)
        await member.do(c.Login("iggy", "iggy"))
        member.writer.write(classic)
        member.writer.write(bytes(1000))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(member.reader.read(1), 0.2)
        member.writer.close()

    serving(tmp_path, work)


def test_who_does_not_log_in_in_time_is_sent_away_and_who_did_stays(tmp_path: Path) -> None:
    async def work(iggy: Iggy) -> None:
        stranger, member = await wire(iggy.tcp_port, Era.C3), await wire(iggy.tcp_port, Era.C3)
        await member.do(c.Login("iggy", "iggy"))
        await member.do(c.Ping())
        assert await asyncio.wait_for(stranger.reader.read(), 5) == b""
        await member.do(c.Ping())
        seed = await wire(iggy.seed_port)
        await seed.do(c.GetStreams())
        for link in (stranger, member, seed):
            link.writer.close()

    serving(tmp_path, work, limits={**DEFAULTS, IGGY: DEFAULTS[IGGY].replace(login_seconds=1.5)})


def test_connections_above_the_limit_of_an_address_are_closed(tmp_path: Path) -> None:
    async def work(iggy: Iggy) -> None:
        links = [await wire(iggy.tcp_port, Era.C3) for _ in range(3)]
        assert await asyncio.wait_for(links[2].reader.read(), 5) == b""
        await links[0].do(c.Login("iggy", "iggy"))
        for link in links:
            link.writer.close()

    serving(tmp_path, work, limits={**DEFAULTS, IGGY: DEFAULTS[IGGY].replace(per_address=2)})


class OneLink:
    """A link that notes what each write has, and what the session expects."""

    takes_ranges, peer, pending = False, "somebody", 0

    def __init__(self) -> None:
        self.output = OutputBuffer()
        self.expected: list[int] = []
        self.written: list[bytes] = []

    def expect(self, size: int, missing: int = 0) -> None:
        self.expected.append(size)

    def push(self) -> int:
        if self.output.size:
            self.written.append(self.output.take())
        return 0

    def flush_soon(self) -> None:
        asyncio.get_running_loop().call_soon(self.push)

    def send(self, pieces: list[bytes]) -> None:
        self.output.append(b"".join(pieces))


async def written(desk: Desk) -> None:
    """Until the log has written and answered what was sent."""
    (topic,) = desk.service.topics.values()
    await topic.partitions[0].flush()


def seed_sending(*payloads: bytes) -> bytes:
    send = SendMessages(S, T, Partitioning.partition(1), tuple(Message(payload) for payload in payloads))
    return classic_frames.request(Code.SEND_MESSAGES, send.encode())


def test_a_frame_is_looked_at_when_its_size_is_known_and_when_it_is_complete(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        session, link = Session(desk.service, seed=True), OneLink()
        session.attach(cast(Link, link))
        frame = bytearray(seed_sending(bytes(1000)) + classic_frames.request(Code.PING, b""))
        size = len(frame) - 8
        assert [session.receive(frame, filled) for filled in (3, 8, 500, size - 1)] == [0] * 4
        assert link.expected[-1] == size and link.expected.count(size) == 1
        assert session.receive(frame, size) == size  # the ping waits for the send, which waits for the disk
        await written(desk)
        del frame[:size]
        assert session.receive(frame, 8) == 8
        assert link.written == [classic_frames.response(0)] * 2

    at_desk(tmp_path, work)


def test_answers_that_are_ready_together_are_written_together(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        session, link = Session(desk.service, seed=True), OneLink()
        session.attach(cast(Link, link))
        for frame, at_once in ((classic_frames.request(Code.PING, b""), True), (seed_sending(b"a", b"b"), False)):
            link.written.clear()
            assert session.receive(bytearray(3 * frame), 3 * len(frame)) == 3 * len(frame)
            assert bool(link.written) == at_once
            await written(desk)
            assert link.written == [classic_frames.response(0) * 3]

    at_desk(tmp_path, work)


@pytest.mark.parametrize("sync", ["always", "never"])
def test_large_sends_in_one_connection_are_stored_as_they_came_whatever_follows_them(tmp_path: Path, sync: Any) -> None:
    """Their bytes stay in the array of the connection until they are written, while it reads on."""

    async def work(iggy: Iggy) -> None:
        async with await connect(f"iggy://iggy:iggy@127.0.0.1:{iggy.tcp_port}") as client:
            await client.create_stream("s")
            await client.create_topic("s", "t")
            sizes = [40_000, 200_000, 100, 70_000, 1_500_000, 33_000, 200_000, 200_000, 5] * 3
            payloads = [bytes([number]) * size for number, size in enumerate(sizes)]
            sent = await asyncio.gather(*[client.send("s", "t", [Message(payload)], 0) for payload in payloads])
            order = sorted(range(len(sent)), key=lambda number: sent[number].base_offset)
            offset, found = 0, []
            while part := await client.poll("s", "t", strategy=PollingStrategy.offset(offset), count=3):
                found += [message.payload for message in part]
                offset = part[-1].offset + 1
            assert found == [payloads[number] for number in order]

    serving(tmp_path, work, service=ServiceOptions(sync=sync))
