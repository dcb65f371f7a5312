"""The face as a whole: TLS on every listener, and what happens when one of them cannot be opened."""

import asyncio
import json
import ssl
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aioquic.asyncio.client import connect as quic_connect
from aioquic.quic.configuration import QuicConfiguration
from support.certificates import make_certificates
from support.iggy_peers import talk, with_released_client

from headwater.errors import ConfigError, EnvironmentProblem, TransportError
from headwater.iggy.face import Iggy, IggyOptions
from headwater.iggy_client.client import connect
from headwater.iggy_wire import classic_frames
from headwater.iggy_wire.commands import Code, Message
from headwater.net.tls import client_context

ANY = ("127.0.0.1", 0)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Certificate, key, and the authority that signed."""
    made = make_certificates(tmp_path_factory.mktemp("tls"))
    return made.server_cert, made.server_key, made.ca


def with_tls(tmp_path: Path, files: tuple[Path, Path, Path], work: Callable[[Iggy], Awaitable[None]]) -> None:
    options = IggyOptions(tcp=ANY, seed=ANY, http=ANY, quic=ANY, cert_file=files[0], key_file=files[1])

    async def main() -> None:
        async with asyncio.timeout(60), Iggy(options, tmp_path) as iggy:
            await work(iggy)

    asyncio.run(main())


def call(url: str, trusted: Path, body: dict[str, Any] | None = None) -> Any:
    data = json.dumps(body).encode() if body is not None else None
    made = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(made, timeout=10, context=ssl.create_default_context(cafile=trusted)) as answer:
        text = answer.read().decode()
        return json.loads(text) if text[:1] == "{" else text


def test_every_listener_shows_the_certificate(tmp_path: Path, files: tuple[Path, Path, Path]) -> None:
    trusted = files[2]

    async def work(iggy: Iggy) -> None:
        async with await connect(f"iggy://iggy:iggy@localhost:{iggy.tcp_port}", tls=client_context(trusted)) as client:
            await client.create_stream("s")
            await client.create_topic("s", "t")
            await client.send("s", "t", [Message(bytes(300_000))], 0)
            assert len(await client.poll("s", "t")) == 1
        reader, writer = await asyncio.open_connection("localhost", iggy.seed_port, ssl=client_context(trusted))
        writer.write(classic_frames.request(Code.PING, b""))
        assert await reader.readexactly(8) == bytes(8)
        writer.close()
        await writer.wait_closed()
        web = f"https://localhost:{iggy.http_port}"
        assert await asyncio.to_thread(call, f"{web}/ping", trusted) == "pong"
        login = {"username": "iggy", "password": "iggy"}
        assert (await asyncio.to_thread(call, f"{web}/users/login", trusted, login))["user_id"] == 0
        careful = QuicConfiguration(is_client=True, cafile=str(trusted), server_name="localhost")
        async with quic_connect("127.0.0.1", iggy.quic_port, configuration=careful) as link:
            stream = await link.create_stream()
            stream[1].write(classic_frames.request(Code.PING, b""))
            stream[1].write_eof()
            assert await stream[0].read() == bytes(8)

    with_tls(tmp_path, files, work)


def test_who_speaks_in_the_clear_gets_nothing(tmp_path: Path, files: tuple[Path, Path, Path]) -> None:
    async def work(iggy: Iggy) -> None:
        with pytest.raises(TransportError):
            await connect(f"iggy://iggy:iggy@127.0.0.1:{iggy.tcp_port}", timeout=10)
        reader, writer = await asyncio.open_connection("127.0.0.1", iggy.http_port)
        writer.write(b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"pong" not in await reader.read()
        writer.close()

    with_tls(tmp_path, files, work)


@pytest.mark.interop
@with_released_client
def test_the_released_client_speaks_tls(tmp_path: Path, files: tuple[Path, Path, Path]) -> None:
    async def work(iggy: Iggy) -> None:
        more = f"?tls=true&tls_domain=localhost&tls_ca_file={files[2]}"
        steps = await talk(None, "apache_iggy", f"127.0.0.1:{iggy.tcp_port}{more}", 0, "x")
        assert {name for name, value in steps.items() if str(value).startswith("error")} == {"poll_nowhere"}
        assert steps["poll"] == [[number, f"x{number}"] for number in range(5)]

    with_tls(tmp_path, files, work)


def test_a_listener_that_cannot_be_opened_leaves_nothing_behind(tmp_path: Path) -> None:
    async def main() -> None:
        async with Iggy(IggyOptions(tcp=ANY, http=ANY, quic=ANY), tmp_path / "first") as first:
            for taken in (
                IggyOptions(tcp=("127.0.0.1", first.tcp_port)),
                IggyOptions(tcp=ANY, http=("127.0.0.1", first.http_port)),
                IggyOptions(tcp=ANY, quic=("127.0.0.1", first.quic_port)),
            ):
                with pytest.raises(EnvironmentProblem):
                    await Iggy(taken, tmp_path / "second").start()
        with pytest.raises(ConfigError):
            nothing = tmp_path / "none.pem"
            await Iggy(IggyOptions(tcp=ANY, cert_file=nothing, key_file=nothing), tmp_path / "second").start()
        async with Iggy(IggyOptions(tcp=ANY), tmp_path / "second") as second:
            assert second.tcp_port

    asyncio.run(main())
