"""A session outlives its connections: what is asked again, what fails, and what is joined again."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headwater.errors import ConnectionClosed, IggyError, RequestTimeout, TransportError
from headwater.iggy.face import Iggy, IggyOptions
from headwater.iggy_client.client import Client, connect
from headwater.iggy_wire.commands import Message
from headwater.iggy_wire.identifiers import Consumer
from headwater.net.tcp import reserve


async def lose(client: Client) -> None:
    """The connection breaks as it does when a peer is gone."""
    channel = client._session._connection.channel  # type: ignore[union-attr]
    channel._link.abort()  # type: ignore[union-attr]
    while client.is_connected:  # noqa: ASYNC110  (no event says so)
        await asyncio.sleep(0)


def with_server(tmp_path: Path, work: Callable[[str], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60), Iggy(IggyOptions(tcp=("127.0.0.1", 0)), tmp_path) as iggy:
            await work(f"iggy://iggy:iggy@127.0.0.1:{iggy.tcp_port}")

    asyncio.run(main())


def test_a_lost_connection_is_restored_and_its_groups_are_joined_again(tmp_path: Path) -> None:
    async def work(url: str) -> None:
        async with await connect(url, heartbeat=0) as client:
            await client.create_stream("s")
            await client.create_topic("s", "t", 2)
            await client.create_group("s", "t", "g")
            assert (await client.join_group("s", "t", "g")).partitions == [0, 1]
            for times in (1, 2):
                await lose(client)
                assert (await client.sync_group("s", "t", "g")).partitions == [0, 1]
                assert client.reconnects == times
            await client.leave_group("s", "t", "g")
            await lose(client)
            with pytest.raises(IggyError, match="consumer_group_member_not_found"):
                await client.sync_group("s", "t", "g")

    with_server(tmp_path, work)


def test_a_question_in_flight_is_asked_again_and_a_send_fails(tmp_path: Path) -> None:
    async def work(url: str) -> None:
        async with await connect(url, heartbeat=0) as client:
            await client.create_stream("s")
            await client.create_topic("s", "t")
            await client.send("s", "t", [Message(b"first")], 0)
            pending = asyncio.ensure_future(client.topic("s", "t"))
            sending = asyncio.ensure_future(client.send("s", "t", [Message(b"x")], 0))
            storing = asyncio.ensure_future(client.store_offset("s", "t", 0, 0, Consumer.single(9)))
            await asyncio.sleep(0)
            await lose(client)
            found = await pending
            assert found is not None and found.name == "t"
            with pytest.raises(ConnectionClosed):
                await sending
            await storing
            stored = await client.offset("s", "t", 0, Consumer.single(9))
            assert stored is not None and stored.stored_offset == 0

    with_server(tmp_path, work)


def test_without_reconnecting_a_lost_connection_is_the_end(tmp_path: Path) -> None:
    async def work(url: str) -> None:
        client = await connect(url, reconnect_attempts=0, heartbeat=0)
        await lose(client)
        with pytest.raises(ConnectionClosed):
            await client.ping()
        await client.close()

    with_server(tmp_path, work)


def test_a_server_that_is_gone_is_given_up_after_so_many_attempts(tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            async with Iggy(IggyOptions(tcp=("127.0.0.1", 0)), tmp_path) as iggy:
                url = f"iggy://iggy:iggy@127.0.0.1:{iggy.tcp_port}"
                client = await connect(url, reconnect_attempts=2, reconnect_wait=0.01)
                patient = await connect(url, reconnect_wait=0.01, timeout=0.3)
            with pytest.raises(TransportError, match="cannot connect"):
                await client.ping()
            with pytest.raises(RequestTimeout, match=r"no server within 0\.3 s"):
                await patient.ping()
            await client.close()
            await patient.close()
            with pytest.raises(ConnectionClosed, match="was closed"):
                await patient.ping()

    asyncio.run(main())


def test_a_server_that_comes_back_is_found_and_a_changed_password_ends_the_session(tmp_path: Path) -> None:
    async def main() -> None:
        with reserve("127.0.0.1", 0) as free:
            port = free.getsockname()[1]
        options = IggyOptions(tcp=("127.0.0.1", port))
        async with asyncio.timeout(60):
            async with Iggy(options, tmp_path):
                client = await connect(f"iggy://iggy:iggy@127.0.0.1:{port}", reconnect_wait=0.01)
                await client.create_stream("s")
            async with Iggy(options, tmp_path):
                found = await client.stream("s")
                assert found is not None and client.reconnects == 1
                await client.change_password("iggy", "iggy", "another")
                await lose(client)
                with pytest.raises(IggyError, match="invalid_credentials"):
                    await client.ping()
            await client.close()

    asyncio.run(main())


def test_a_silent_server_is_found_out_by_the_heartbeat(tmp_path: Path) -> None:
    arrived = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        arrived.set()
        writer.close()

    async def main() -> None:
        async with asyncio.timeout(60), await asyncio.start_server(silent, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            url = f"iggy://127.0.0.1:{port}?heartbeat_interval=10ms"
            client = await connect(url, timeout=0.1, log_in=False)
            await arrived.wait()
            with pytest.raises(ConnectionClosed, match="does not answer"):
                await client.ping()
            await client.close()

    asyncio.run(main())


def test_who_logs_in_later_is_that_user_and_who_logs_out_is_none(tmp_path: Path) -> None:
    async def work(url: str) -> None:
        async with await connect(url, log_in=False, heartbeat=0) as client:
            await client.ping()
            with pytest.raises(IggyError):
                await client.streams()
            await client.log_in("iggy", "iggy")
            token = await client.create_token("mine")
            await client.log_out()
            with pytest.raises(IggyError):
                await client.streams()
            await client.log_in_with_token(token)
            assert await client.streams() == []
            await lose(client)
            assert [one.name for one in await client.tokens()] == ["mine"]
        async with await connect(url.replace("iggy:iggy@", f"{token}@")) as client:
            await client.delete_token("mine")

    with_server(tmp_path, work)
