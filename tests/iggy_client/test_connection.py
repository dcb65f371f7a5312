"""The same work over every transport, and what a peer that is no server brings."""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trustme
from support.certificates import make_certificates

from headwater import TypedHeaders
from headwater.errors import HeadwaterError, IggyError, TransportError
from headwater.iggy.face import Iggy, IggyOptions
from headwater.iggy_client.auto_commit import AutoCommit, Moment
from headwater.iggy_client.client import Client, connect
from headwater.iggy_client.consumer import ConsumerOptions
from headwater.iggy_wire import command_codec, reply_codec, vsr_frames
from headwater.iggy_wire.commands import Code, Message
from headwater.iggy_wire.eras import PROTOCOL, Era
from headwater.iggy_wire.identifiers import PollingStrategy
from headwater.iggy_wire.reply_codec import LoginView
from headwater.iggy_wire.vsr_frames import HEADER_SIZE

ANY = ("127.0.0.1", 0)
LOGGED_IN = reply_codec.encode(Code.LOGIN_REGISTER, LoginView(1, 5, PROTOCOL, "0.9.0"), Era.V)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Certificate, key, and the authority that signed."""
    made = make_certificates(tmp_path_factory.mktemp("tls"))
    return made.server_cert, made.server_key, made.ca


async def everything(client: Client) -> None:
    """Management, a large batch, many at a time, a group, a refusal and a lost connection."""
    await client.create_stream("s")
    await client.create_topic("s", "t")
    headers = TypedHeaders([("key 1", "value1"), ("n", 7)])
    await client.send("s", "t", [Message(b"first", headers, id=2**100), Message(bytes(300_000))], 0)
    sends = [client.send("s", "t", [Message(b"%d" % number)], 0) for number in range(20)]
    assert sorted(sent.base_offset for sent in await asyncio.gather(*sends)) == list(range(2, 22))
    polled = await client.poll("s", "t", strategy=PollingStrategy.first())
    assert (len(polled), polled[0].headers, polled[0].id) == (22, headers, 2**100)
    rule = AutoCommit(at=Moment.EACH, after=True)
    consumer = client.consumer("s", "t", group="g", options=ConsumerOptions(auto_commit=rule))
    got = 0
    async for message in consumer:
        assert message.offset == got
        got += 1
        if got == 11:
            assert client._session._connection is not None
            channel = client._session._connection.channel
            (getattr(channel, "link", None) or channel._link).abort()  # type: ignore[union-attr]
        if got == 22:
            break
    assert client.reconnects == 1
    with pytest.raises(IggyError, match="stream_name_already_exists"):
        await client.create_stream("s")


def run(tmp_path: Path, url: str, files: tuple[Path, Path, Path] | None) -> None:
    async def main() -> None:
        cert, key = files[:2] if files else (None, None)
        options = IggyOptions(tcp=ANY, quic=ANY, websocket=ANY, cert_file=cert, key_file=key)
        async with asyncio.timeout(60), Iggy(options, tmp_path) as iggy:
            ports = {"tcp": iggy.tcp_port, "quic": iggy.quic_port, "websocket": iggy.websocket_port}
            ca = files[2] if files else ""
            async with await connect(url.format(ca=ca, **ports), reconnect_wait=0.01) as client:
                await everything(client)

    asyncio.run(main())


@pytest.mark.parametrize(
    "url",
    [
        "iggy+tcp://iggy:iggy@127.0.0.1:{tcp}",
        "iggy+ws://iggy:iggy@127.0.0.1:{websocket}",
        "iggy+quic://iggy:iggy@127.0.0.1:{quic}",
    ],
)
def test_everything_works_over_each_transport(tmp_path: Path, url: str) -> None:
    run(tmp_path, url, None)


@pytest.mark.parametrize(
    "url",
    [
        "iggy://iggy:iggy@127.0.0.1:{tcp}?tls=true&tls_ca_file={ca}",
        "iggy+ws://iggy:iggy@127.0.0.1:{websocket}?tls=true&tls_ca_file={ca}",
        "iggy+quic://iggy:iggy@127.0.0.1:{quic}?tls=true&tls_ca_file={ca}&tls_domain=localhost",
    ],
)
def test_and_with_a_certificate_that_is_checked(tmp_path: Path, url: str, files: tuple[Path, Path, Path]) -> None:
    run(tmp_path, url, files)


@pytest.mark.parametrize("scheme", ["iggy", "iggy+ws", "iggy+quic"])
def test_a_certificate_of_another_authority_is_refused(
    tmp_path: Path, scheme: str, files: tuple[Path, Path, Path]
) -> None:
    async def main() -> None:
        options = IggyOptions(tcp=ANY, quic=ANY, websocket=ANY, cert_file=files[0], key_file=files[1])
        async with asyncio.timeout(60), Iggy(options, tmp_path / "store") as iggy:
            port = {"iggy": iggy.tcp_port, "iggy+ws": iggy.websocket_port, "iggy+quic": iggy.quic_port}[scheme]
            other = tmp_path / "other.pem"
            trustme.CA().cert_pem.write_to_path(other)
            with pytest.raises(TransportError):
                await connect(f"{scheme}://iggy:iggy@127.0.0.1:{port}?tls=true&tls_ca_file={other}")

    asyncio.run(main())


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n" * 20, b"", bytes(300)])
def test_what_is_no_server_is_an_error_and_leaves_nothing_open(answer: bytes) -> None:
    async def stranger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(answer)
        writer.close()

    async def main() -> None:
        async with asyncio.timeout(60), await asyncio.start_server(stranger, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(HeadwaterError):
                await connect(f"iggy://iggy:iggy@127.0.0.1:{port}")

    asyncio.run(main())


def test_a_context_of_the_programs_own_is_used(tmp_path: Path, files: tuple[Path, Path, Path]) -> None:
    async def main() -> None:
        options = IggyOptions(tcp=ANY, cert_file=files[0], key_file=files[1])
        own = ssl.create_default_context(cafile=files[2])
        async with asyncio.timeout(60), Iggy(options, tmp_path) as iggy:
            async with await connect(f"iggy://iggy:iggy@localhost:{iggy.tcp_port}", tls=own) as client:
                await client.ping()

    asyncio.run(main())


async def request_from(reader: asyncio.StreamReader) -> vsr_frames.Request | None:
    """The next request; None at the end of input."""
    try:
        head = await reader.readexactly(HEADER_SIZE)
        frame = head + await reader.readexactly(int.from_bytes(head[48:52], "little") - HEADER_SIZE)
    except asyncio.IncompleteReadError:
        return None
    request = vsr_frames.find_request(frame, 0, len(frame))
    assert isinstance(request, vsr_frames.Request)
    return request


@asynccontextmanager
async def impostor(answer: Callable[[vsr_frames.Request], bytes]) -> AsyncIterator[str]:
    """The URL of a server that logs everybody in and then sends what `answer` returns."""
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (request := await request_from(reader)) is not None:
            login = request.operation == command_codec.REGISTER
            writer.write(reply_to(request, bytes(4) + LOGGED_IN) if login else answer(request))
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        over.set()

    async with asyncio.timeout(60), await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        yield f"iggy://iggy:iggy@127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        await over.wait()


def reply_to(request: vsr_frames.Request, body: bytes) -> bytes:
    return vsr_frames.reply(request, 1, len(body)) + body


def test_an_answer_that_overtakes_others_reaches_its_own_request() -> None:
    """Apache's server answers a ping before a send that is still being stored."""
    held: list[bytes] = []
    arrived = asyncio.Event()

    def answer(request: vsr_frames.Request) -> bytes:
        if request.operation == command_codec.SEND:
            held.append(reply_to(request, struct.pack("<IIIIQ", 1, 0, 0, 0, 77)))
            arrived.set()
            return b""
        return reply_to(request, b"") + b"".join(held)

    async def main() -> None:
        async with impostor(answer) as url, await connect(url, heartbeat=0) as client:
            sending = asyncio.create_task(client.send("s", "t", [Message(b"x")], 0))
            await arrived.wait()
            await client.ping()
            assert (await sending).base_offset == 77

    asyncio.run(main())


@pytest.mark.parametrize(
    ("number", "body", "expected"),
    [(99, b"", "request 99"), (1, b"", "does not say where"), (1, b"123", "invalid_command")],
)
def test_an_answer_that_is_none_is_an_error_of_its_call_at_once(number: int, body: bytes, expected: str) -> None:
    async def main() -> None:
        def answer(request: vsr_frames.Request) -> bytes:
            return reply_to(request._replace(number=number), body)

        async with impostor(answer) as url, await connect(url, heartbeat=0, reconnect_attempts=0) as client:
            with pytest.raises(IggyError, match=expected):
                await client.send("s", "t", [Message(b"x")], 0)

    asyncio.run(main())


def test_a_poll_that_is_cut_off_is_an_error_of_its_call() -> None:
    async def main() -> None:
        async with impostor(lambda request: reply_to(request, b"12")) as url, await connect(url, heartbeat=0) as client:
            with pytest.raises(IggyError, match="at least 16 bytes, not 2"):
                await client.poll("s", "t")

    asyncio.run(main())
