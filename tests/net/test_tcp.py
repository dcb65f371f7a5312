"""Listening and dialling: errors name the address and a remedy."""

import asyncio
import socket

import pytest

from headwater.errors import EnvironmentProblem, TransportError
from headwater.net.link import Link
from headwater.net.tcp import dial, listen, reserve


class Silent:
    """An owner that is never connected."""

    def attach(self, link: Link) -> None:
        raise AssertionError("nothing can connect here")

    def receive(self, buffer: bytearray, filled: int) -> int:
        return filled

    def lost(self, error: Exception | None) -> None:
        raise AssertionError("nothing was connected here")


def test_a_port_in_use_is_an_environment_problem_that_names_the_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EnvironmentProblem, match=rf"127\.0\.0\.1:{port}.*port 0"):
            asyncio.run(listen("127.0.0.1", port, Silent))


def test_an_impossible_port_is_no_crash() -> None:
    with pytest.raises(EnvironmentProblem):
        asyncio.run(listen("127.0.0.1", 99_999, Silent))


def test_a_refused_connection_is_a_transport_error_that_may_be_retried() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(TransportError, match=str(port)) as caught:
        asyncio.run(dial("127.0.0.1", port, Silent(), 5.0))
    assert caught.value.retriable


def test_a_reserved_port_is_shared_only_with_reuse_port() -> None:
    async def share(port: int) -> None:
        servers = [await listen("127.0.0.1", port, Silent, reuse_port=True) for _ in range(2)]
        with pytest.raises(EnvironmentProblem):
            reserve("127.0.0.1", port)
        with pytest.raises(EnvironmentProblem):
            await listen("127.0.0.1", port, Silent)
        for server in servers:
            server.close()
            await server.wait_closed()

    with reserve("127.0.0.1", 0) as held:
        asyncio.run(share(held.getsockname()[1]))


def test_a_name_with_an_empty_label_is_a_transport_error() -> None:
    with pytest.raises(TransportError, match=r"cannot connect to hub\.\.example:1"):
        asyncio.run(dial("hub..example", 1, Silent(), 10))
