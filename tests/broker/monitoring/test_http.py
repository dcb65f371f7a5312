"""The HTTP server takes what is HTTP and survives what is not."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.monitored import Monitored, monitored

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bytes]]


async def exchange(server: Monitored, sent: bytes) -> bytes:
    """Everything that comes back until the server closes; we close our half at once."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.monitoring.port)
    try:
        writer.write(sent)
        await writer.drain()
        writer.write_eof()
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def test_requests_follow_each_other_on_one_connection() -> None:
    async def main() -> None:
        async with monitored() as server:
            one = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
            said = await exchange(server, one * 3 + one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            assert said.count(b"HTTP/1.1 200 OK\r\n") == 4
            assert said.count(b'{"status":"ok"}') == 4

    asyncio.run(main())


def test_head_has_no_body_and_http_1_0_closes() -> None:
    async def main() -> None:
        async with monitored() as server:
            answer = await server.ask("/healthz", "HEAD")
            assert (answer.status, answer.body) == (200, b"")
            said = await exchange(server, b"GET /healthz HTTP/1.0\r\n\r\n")
            assert said.endswith(b'\r\n\r\n{"status":"ok"}')

    asyncio.run(main())


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"POST /varz HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", b"405"),
        (b"GET /varz HTTP/1.1\r\n\r\n", b"400"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", b"431"),
        (b"GET /varz HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 200_000, b"431"),
        (b"GET http://[/varz HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
        (b"GET /connz?" + b"a=1&" * 100 + b" HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100, b"400"),
    ],
)
def test_what_is_no_request_of_ours_is_refused_and_the_next_is_served(sent: bytes, status: bytes) -> None:
    async def main() -> None:
        async with monitored() as server:
            said = await exchange(server, sent)
            assert said.startswith(b"HTTP/1.1 " + status) or (len(sent) > 100_000 and said == b"")
            assert (await server.ask("/healthz")).status == 200

    asyncio.run(main())


@settings(max_examples=40, deadline=None)
@given(st.one_of(st.binary(max_size=300), st.binary(max_size=60).map(lambda tail: b"GET /connz?" + tail)))
def test_any_bytes_leave_the_server_in_service(sent: bytes) -> None:
    async def main() -> None:
        async with monitored() as server:
            await exchange(server, sent)
            await exchange(server, b"GET /varz?" + sent.replace(b"\r", b"").replace(b"\n", b"") + b" HTTP/1.0\r\n\r\n")
            assert (await server.ask("/healthz")).status == 200

    asyncio.run(main())


def test_a_page_that_fails_is_status_500_and_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from headwater.broker.monitoring import pages

    def fail(*_: object) -> tuple[int, object]:
        raise ZeroDivisionError

    async def main() -> None:
        async with monitored() as server:
            monkeypatch.setitem(pages.PAGES, "/varz", ("", fail))
            assert (await server.ask("/varz")).status == 500
            assert (await server.ask("/healthz")).status == 200

    asyncio.run(main())
    assert "monitoring_failed path='/varz'" in caplog.text
