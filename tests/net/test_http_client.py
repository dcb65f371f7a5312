"""Connections are reused, carry one request at a time, and are not reused if their server may have closed them."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from headwater.errors import ConnectionClosed, RequestTimeout, TransportError
from headwater.net.http_client import Answer, HttpConnections

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Peer:
    """Answers each request with `answer`; counts connections."""

    def __init__(self, answer: bytes, ends: bool) -> None:
        self.answer = answer
        self.ends = ends
        self.connections = 0
        self.heads: list[bytes] = []
        self.tasks: list[asyncio.Task[None] | None] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.three_came = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.tasks.append(asyncio.current_task())
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.heads.append(head)
                if len(self.heads) == 3:
                    self.three_came.set()
                await self.may_answer.wait()
                writer.write(self.answer)
                if self.ends:
                    break
        except asyncio.IncompleteReadError:
            pass
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def with_peer(
    work: Callable[[Peer, HttpConnections], Awaitable[None]],
    answer: bytes = OK,
    ends: bool = False,
    seconds: float = 30,
) -> None:
    async def main() -> None:
        peer = Peer(answer, ends)
        async with asyncio.timeout(60), await asyncio.start_server(peer.serve, "127.0.0.1", 0) as server:
            http = HttpConnections("127.0.0.1", server.sockets[0].getsockname()[1], seconds, None, "")
            try:
                await work(peer, http)
            finally:
                peer.may_answer.set()
                await http.close()
                await asyncio.gather(*filter(None, peer.tasks), return_exceptions=True)

    asyncio.run(main())


def test_one_connection_serves_requests_that_follow_each_other() -> None:
    async def work(peer: Peer, http: HttpConnections) -> None:
        for _ in range(5):
            assert await http.ask("GET", "/a?b=c", {"Authorization": "Bearer x"}) == Answer(200, b"ok")
        assert peer.connections == 1
        assert peer.heads[0].startswith(b"GET /a?b=c HTTP/1.1\r\n") and b"Authorization: Bearer x" in peer.heads[0]

    with_peer(work)


def test_requests_that_run_at_once_have_a_connection_each() -> None:
    async def work(peer: Peer, http: HttpConnections) -> None:
        peer.may_answer.clear()
        pending = [asyncio.create_task(http.ask("POST", "/", {})) for _ in range(3)]
        await peer.three_came.wait()
        peer.may_answer.set()
        assert await asyncio.gather(*pending) == [Answer(200, b"ok")] * 3
        assert peer.connections == 3

    with_peer(work)


def test_a_connection_that_the_server_closed_is_not_used_again() -> None:
    async def work(peer: Peer, http: HttpConnections) -> None:
        for _ in range(3):
            assert (await http.ask("GET", "/", {})).status == 200
        assert peer.connections == 3

    with_peer(work, b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", ends=True)


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"])
def test_an_invalid_answer_ends_the_connection(answer: bytes) -> None:
    async def work(peer: Peer, http: HttpConnections) -> None:
        with pytest.raises(ConnectionClosed):
            await http.ask("GET", "/", {})

    with_peer(work, answer, ends=True)


def test_no_answer_in_time_and_no_server_are_errors() -> None:
    async def work(peer: Peer, http: HttpConnections) -> None:
        peer.may_answer.clear()
        with pytest.raises(RequestTimeout, match=r"no answer to GET /slow within 0\.2 s"):
            await http.ask("GET", "/slow?secret=1", {})
        await http.close()
        with pytest.raises(ConnectionClosed, match="the client was closed"):
            await http.ask("GET", "/", {})

    with_peer(work, seconds=0.2)

    async def no_server() -> None:
        async with await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
        with pytest.raises(TransportError, match="cannot connect"):
            await HttpConnections("127.0.0.1", port, 30, None, "").ask("GET", "/", {})

    asyncio.run(no_server())
