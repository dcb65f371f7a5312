"""uvicorn behind our listener: connections, addresses and slow requests have the limits of every other listener."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.certificates import make_certificates

from headwater.net.http_server import HttpServer, serve
from headwater.net.limits import Limits

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def hello(scope: Any, receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


def with_server(limits: Limits, work: Callable[[HttpServer], Awaitable[None]], **tls: str) -> None:
    async def main() -> None:
        async with asyncio.timeout(20):
            server = await serve(hello, "127.0.0.1", 0, limits, **tls)
            try:
                await work(server)
            finally:
                await server.end()
            assert server.listener.places.connections == 0

    asyncio.run(main())


async def talk(server: HttpServer, sent: bytes, source: str = "127.0.0.1") -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.listener.port, local_addr=(source, 0))
    writer.write(sent)
    received = await reader.read()
    writer.close()
    return received


def test_connections_from_one_address_are_bounded_and_those_of_others_are_not() -> None:
    async def work(server: HttpServer) -> None:
        reported: list[str] = []
        server.listener.places.on_turned_away = lambda address, reason: reported.append(reason)
        port = server.listener.port
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        for reader, writer in held:
            writer.write(REQUEST)
            assert (await reader.readuntil(b"hello")).startswith(b"HTTP/1.1 200")
        assert (await talk(server, b"")).startswith(b"HTTP/1.1 503")
        assert b"hello" in await talk(
            server, REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), "127.0.0.2"
        )
        assert reported == ["there are 2 from this address"]
        for _, writer in held:
            writer.close()

    with_server(Limits(per_address=2), work)


TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize("sent", [b"", b"GET / HT"])
def test_a_request_with_an_incomplete_head_times_out(sent: bytes) -> None:
    async def work(server: HttpServer) -> None:
        assert await talk(server, sent) == TOO_LATE

    with_server(Limits(login_seconds=0.2), work)


def test_the_second_request_of_a_connection_has_to_come_as_fast_as_the_first() -> None:
    async def work(server: HttpServer) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.listener.port)
        writer.write(REQUEST)
        await reader.readuntil(b"hello")
        writer.write(REQUEST[:10])
        assert await reader.read() == TOO_LATE
        writer.close()

    with_server(Limits(login_seconds=0.2), work)


def test_a_head_above_the_limit_is_refused() -> None:
    async def work(server: HttpServer) -> None:
        assert (await talk(server, b"GET /" + b"x" * 5000)).startswith(b"HTTP/1.1 400")

    with_server(Limits(login_bytes=4096), work)


def test_over_tls_an_incomplete_handshake_times_out(tmp_path: Path) -> None:
    async def work(server: HttpServer) -> None:
        assert await talk(server, b"") == b""

    files = make_certificates(tmp_path)
    with_server(Limits(login_seconds=0.2), work, cert_file=str(files.server_cert), key_file=str(files.server_key))
