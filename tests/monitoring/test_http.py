"""The HTTP server takes what is HTTP and survives what is not."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.monitored import Monitored, monitored
from support.raw_wire import dial

from headwater.monitoring.connz import SLICE, connz
from headwater.monitoring.http import Response
from headwater.monitoring.steps import in_turns

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
            output = await exchange(server, one * 3 + one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            assert output.count(b"HTTP/1.1 200 OK\r\n") == 4
            assert output.count(b'{"status":"ok"}') == 4

    asyncio.run(main())


def test_head_has_no_body_and_http_1_0_closes() -> None:
    async def main() -> None:
        async with monitored() as server:
            answer = await server.ask("/healthz", "HEAD")
            assert (answer.status, answer.body) == (200, b"")
            output = await exchange(server, b"GET /healthz HTTP/1.0\r\n\r\n")
            assert output.endswith(b'\r\n\r\n{"status":"ok"}')

    asyncio.run(main())


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", b"405"),
        (b"GET /varz HTTP/1.1\r\n\r\n", b"400"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /" + b"a" * 1_200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", b"431"),
        (b"GET /varz HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 1_200_000, b"431"),
        (b"GET /varz HTTP/2.0\r\nHost: x\r\n\r\n", b"505"),
        (b"GET http://[/varz HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
        (b"GET /connz?" + b"a=1&" * 10_001 + b" HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100, b"400"),
    ],
)
def test_what_is_no_request_of_ours_is_refused_and_the_next_is_served(sent: bytes, status: bytes) -> None:
    async def main() -> None:
        async with monitored() as server:
            output = await exchange(server, sent)
            assert output.startswith(b"HTTP/1.1 " + status) or (len(sent) > 100_000 and output == b"")
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
    from headwater.monitoring import pages

    def fail(*_: object) -> tuple[int, object]:
        raise ZeroDivisionError

    async def main() -> None:
        async with monitored() as server:
            monkeypatch.setitem(pages.PAGES, "/varz", ("", fail))
            assert (await server.ask("/varz")).status == 500
            assert (await server.ask("/healthz")).status == 200

    asyncio.run(main())
    assert "monitoring_failed path='/varz'" in caplog.text


def test_a_request_of_http_1_0_is_answered_as_such() -> None:
    async def main() -> None:
        async with monitored() as server:
            for page, status in ((b"/healthz", b"200 OK"), (b"/nothing", b"404 Not Found")):
                output = await exchange(server, b"GET " + page + b" HTTP/1.0\r\n\r\n")
                assert output.startswith(b"HTTP/1.0 " + status + b"\r\n")

    asyncio.run(main())


@pytest.mark.parametrize(
    "request_of",
    [b"GET /healthz?x=" + b"y" * 70_000 + b" HTTP/1.1\r\n", b"GET /healthz HTTP/1.1\r\nX: " + b"y" * 900_000 + b"\r\n"],
)
def test_a_long_query_and_a_large_header_are_taken(request_of: bytes) -> None:
    async def main() -> None:
        async with monitored() as server:
            output = await exchange(server, request_of + b"Host: x\r\nConnection: close\r\n\r\n")
            assert output.startswith(b"HTTP/1.1 200 OK")

    asyncio.run(main())


def test_requests_sent_ahead_are_answered_one_a_turn_and_wait_for_a_peer_that_does_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that requests a large page a thousand times, and reads nothing, delays no other and costs one page or two."""

    async def main() -> None:
        async with monitored() as server:
            page = b"x" * 700_000
            turns = 0
            answered: list[int] = []

            def answer() -> Response:
                answered.append(turns)
                return Response(page)

            monkeypatch.setattr(server.monitoring, "_index", answer)
            reader, writer = await asyncio.open_connection("127.0.0.1", server.monitoring.port, limit=1)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 1000)
            while turns < 3000:
                await asyncio.sleep(0)
                turns += 1
            assert len(set(answered)) == len(answered) < 20  # what sockets hold, and a megabyte
            before = len(answered)
            writer.transport.resume_reading()  # type: ignore[attr-defined]
            await reader.readexactly((before + 3) * len(page))  # it goes on
            writer.close()

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_page_of_many_clients_leaves_turns_of_the_loop_to_others() -> None:
    async def main() -> None:
        async with monitored() as server:
            links = await asyncio.to_thread(lambda: [dial(server.broker.port) for _ in range(4 * SLICE)])
            turns = 0

            async def count() -> None:
                nonlocal turns
                while True:
                    await asyncio.sleep(0)
                    turns += 1

            counting = asyncio.ensure_future(count())
            document = await in_turns(connz(server.monitoring.view, {}))
            counting.cancel()
            assert len(document["connections"]) == len(links)
            assert turns >= 4
            assert len((await server.ask("/connz")).document["connections"]) == len(links)
            assert (await server.ask("/connz?limit=x")).status == 400
            for link in links:
                link.close()

    asyncio.run(asyncio.wait_for(main(), 20))
