"""The client over HTTP does what it does over TCP, but for membership in groups; its answers are those of TCP."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from support.certificates import make_certificates

from headwater import TypedHeaders
from headwater.errors import ConnectionClosed, IggyError, TransportError
from headwater.iggy.face import Iggy, IggyOptions
from headwater.iggy.http_face import HttpFace
from headwater.iggy_client.auto_commit import AutoCommit, Moment
from headwater.iggy_client.client import Client, connect
from headwater.iggy_client.consumer import ConsumerOptions
from headwater.iggy_client.http_session import HttpClient
from headwater.iggy_client.sync import connect as connect_blocking
from headwater.iggy_client.values import TopicOptions, UserStatus
from headwater.iggy_wire.commands import Code, Message, Permissions, StreamPermissions
from headwater.iggy_wire.identifiers import Consumer, Partitioning, PollingStrategy
from headwater.model.typed_headers import HeaderForm

ANY = ("127.0.0.1", 0)
HEADERS = TypedHeaders([("key 1", "value1"), ("n", 7), ("raw", b"\0\1")])


def with_both(tmp_path: Path, work: Callable[[Client, Client], Awaitable[None]]) -> None:
    """A client over HTTP and one over TCP of the same server."""

    async def main() -> None:
        async with asyncio.timeout(60), Iggy(IggyOptions(tcp=ANY, http=ANY), tmp_path) as iggy:
            async with await connect(f"iggy+http://iggy:iggy@127.0.0.1:{iggy.http_port}") as http:
                async with await connect(f"iggy://iggy:iggy@127.0.0.1:{iggy.tcp_port}") as tcp:
                    await work(http, tcp)

    asyncio.run(main())


def test_messages_go_there_and_back(tmp_path: Path) -> None:
    async def work(http: Client, tcp: Client) -> None:
        await http.create_stream("s /1")
        await http.create_topic("s /1", "t", partitions=3)
        sent = await http.send("s /1", "t", [Message(b"first", HEADERS, id=2**100), Message(b"second")], 1)
        assert (sent.partition, sent.base_offset) == (1, 0)
        await tcp.send("s /1", "t", [Message(b"third", HEADERS)], 1)
        for client in (http, tcp):
            found = await client.poll("s /1", "t", 1, strategy=PollingStrategy.first())
            assert [(m.payload, m.headers, m.offset, m.partition) for m in found] == [
                (b"first", HEADERS, 0, 1),
                (b"second", None, 1, 1),
                (b"third", HEADERS, 2, 1),
            ]
            assert found[0].id == 2**100
            assert found[0].timestamp and found[0].origin_timestamp
        first, second = [await client.poll("s /1", "t", 1, strategy=PollingStrategy.first()) for client in (http, tcp)]
        assert [(m.timestamp, m.id) for m in first] == [(m.timestamp, m.id) for m in second]
        by_key = await http.send("s /1", "t", [Message(b"x")], Partitioning.key("k"))
        assert by_key.partition == (await tcp.send("s /1", "t", [Message(b"x")], Partitioning.key("k"))).partition
        assert {(await http.send("s /1", "t", [Message(b"x")])).partition for _ in range(3)} == {0, 1, 2}

    with_both(tmp_path, work)


def test_what_is_described_is_what_tcp_describes(tmp_path: Path) -> None:
    async def work(http: Client, tcp: Client) -> None:
        await http.create_stream("s")
        options = TopicOptions(
            compression="gzip", message_expiry=timedelta(hours=2), max_size=1 << 26, segment_size=1 << 24
        )
        made = await http.create_topic("s", "t", 2, options)
        assert made.compression == 2
        await http.send("s", "t", [Message(b"x")], 0)
        await http.create_group("s", "t", "g")
        calls: list[Callable[[Client], Awaitable[object]]] = [
            lambda client: client.groups("s", "t"),
            lambda client: client.group("s", "t", "g"),
            lambda client: client.user("iggy"),
            lambda client: client.describe_options(),
            lambda client: client.cluster(),
        ]
        for ask in calls:
            assert await ask(http) == await ask(tcp)
        over_http, over_tcp = [await client.topic("s", "t") for client in (http, tcp)]
        assert over_http is not None and over_tcp is not None
        for name in (
            "id",
            "created",
            "partitions",
            "name",
            "message_expiry",
            "compression",
            "max_size",
            "size",
            "messages",
        ):
            assert getattr(over_http, name) == getattr(over_tcp, name), name
        assert [part.id for part in over_http.parts] == [0, 1]
        chosen = TypedHeaders.decode(over_http.options, form=HeaderForm.TYPED)
        assert chosen["segment_size"].as_str() == str(1 << 24)
        (stream,) = await http.streams()
        assert (stream.name, stream.topics, stream.messages) == ("s", 1, 1)
        assert (await http.stats()).messages == (await tcp.stats()).messages == 1
        (other,) = await http.clients()
        assert (other.transport, other.id) == (1, (await tcp.me()).id)

    with_both(tmp_path, work)


def test_everything_can_be_altered_and_removed(tmp_path: Path) -> None:
    async def work(http: Client, tcp: Client) -> None:
        await http.create_stream("s")
        await http.update_stream("s", "s2")
        await http.create_topic("s2", "t", 2)
        await http.update_topic("s2", "t", "t2", TopicOptions(message_expiry=timedelta(days=1)))
        await http.create_partitions("s2", "t2", 2)
        await http.delete_partitions("s2", "t2", 1)
        topic = await tcp.topic("s2", "t2")
        assert topic is not None and (topic.partitions, topic.message_expiry) == (3, 86_400_000_000)
        await http.send("s2", "t2", [Message(b"x"), Message(b"y")], 0)
        await http.store_offset("s2", "t2", 0, 1, Consumer.single("me"))
        stored = await http.offset("s2", "t2", 0, Consumer.single("me"))
        assert stored is not None and stored.stored_offset == 1
        await http.delete_offset("s2", "t2", 0, Consumer.single("me"))
        assert await http.offset("s2", "t2", 0, Consumer.single("me")) is None
        await http.delete_segments("s2", "t2", 0, 1)
        await http.purge_topic("s2", "t2")
        assert await http.poll("s2", "t2", strategy=PollingStrategy.first()) == []
        await http.create_group("s2", "t2", "g")
        await http.delete_group("s2", "t2", "g")
        assert await http.group("s2", "t2", "g") is None
        await http.purge_stream("s2")
        await http.delete_topic("s2", "t2")
        assert await http.topic("s2", "t2") is None
        await http.delete_stream("s2")
        assert await http.streams() == []
        with pytest.raises(IggyError, match="stream_id_not_found") as refused:
            await http.delete_stream("s2")
        assert refused.value.number == 1009
        assert (await http.snapshot())[:2] == b"PK"

    with_both(tmp_path, work)


def test_users_and_tokens_log_in(tmp_path: Path) -> None:
    async def work(http: Client, tcp: Client) -> None:
        granted = Permissions(read_streams=True, streams={3: StreamPermissions(read_stream=True)})
        made = await http.create_user("alice", "secret", UserStatus.ACTIVE, granted)
        assert made.permissions == granted == (await tcp.user("alice")).permissions  # type: ignore[union-attr]
        await http.update_user("alice", username="alicia")
        await http.change_password("alicia", "secret", "other")
        await http.update_permissions("alicia", None)
        token = await http.create_token("ci-token")
        assert (
            [(it.name, it.expiry) for it in await http.tokens()]
            == [("ci-token", 0)]
            == [(it.name, it.expiry) for it in await tcp.tokens()]
        )
        port = http._session.options.port
        async with await connect(f"iggy+http://{token}@127.0.0.1:{port}") as by_token:
            assert by_token.user_id == http.user_id
        async with await connect(f"iggy+http://alicia:other@127.0.0.1:{port}") as alicia:
            with pytest.raises(IggyError, match="unauthorized"):
                await alicia.create_stream("s")
            await alicia.log_out()
            with pytest.raises(IggyError, match="unauthenticated"):
                await alicia.streams()
        await http.delete_token("ci-token")
        await http.delete_user("alicia")
        with pytest.raises(IggyError, match="invalid_credentials"):
            await connect(f"iggy+http://alicia:other@127.0.0.1:{port}")

    with_both(tmp_path, work)


def test_a_consumer_reads_a_partition_and_a_group_is_refused(tmp_path: Path) -> None:
    async def work(http: Client, tcp: Client) -> None:
        async with http.producer("s", "t") as producer:
            await producer.send([Message(b"%d" % number) for number in range(5)])
        rule = ConsumerOptions(auto_commit=AutoCommit(at=Moment.EACH, after=True), start=PollingStrategy.first())
        got = []
        async for message in http.consumer("s", "t", name="me", options=rule):
            got.append(message.payload)
            if len(got) == 5:
                break
        assert got == [b"0", b"1", b"2", b"3", b"4"]
        stored = await http.offset("s", "t", 0, Consumer.single("me"))
        assert stored is not None and stored.stored_offset == 3
        for refused in (http.join_group("s", "t", "g"), http.me(), http.request(Code.PING)):
            with pytest.raises(IggyError, match="feature_unavailable"):
                await refused
        with pytest.raises(IggyError, match="feature_unavailable"):
            await http.poll("s", "t", consumer=Consumer.group("g"))

    with_both(tmp_path, work)


def test_a_server_that_forgot_the_token_is_logged_in_to_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(60), Iggy(IggyOptions(tcp=None, http=ANY), tmp_path) as iggy:
            async with await connect(f"iggy+http://iggy:iggy@127.0.0.1:{iggy.http_port}") as http:
                await http.create_stream("s")
                (face,) = iggy._others
                assert isinstance(face, HttpFace)
                face._tokens.clear()
                assert [stream.name for stream in await http.streams()] == ["s"]
        with pytest.raises(TransportError):
            await connect(f"iggy+http://iggy:iggy@127.0.0.1:{http._session.options.port}")
        with pytest.raises(ConnectionClosed, match="the client was closed"):
            await http.streams()

    asyncio.run(main())


@pytest.mark.busy_loop  # each client reads the system's authorities, 30 ms and more
def test_tls_is_checked_and_the_blocking_client_speaks_http(tmp_path: Path) -> None:
    made = make_certificates(tmp_path / "tls")

    def work(url: str) -> None:
        with connect_blocking(f"{url}&tls_ca_file={made.ca}") as client:
            client.create_stream("s")
            assert [stream.name for stream in client.streams()] == ["s"]
        with pytest.raises(TransportError):
            connect_blocking(url)

    async def main() -> None:
        options = IggyOptions(tcp=None, http=ANY, cert_file=made.server_cert, key_file=made.server_key)
        async with asyncio.timeout(60), Iggy(options, tmp_path / "store") as iggy:
            await asyncio.to_thread(work, f"iggy+http://iggy:iggy@localhost:{iggy.http_port}?tls=true")

    asyncio.run(main())


def test_what_is_no_iggy_server_is_an_error(tmp_path: Path) -> None:
    answers = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"garbage\r\n\r\n",
        b"",
        b"HTTP/1.1 500 No\r\n\r\n",
    ]

    async def main(answer: bytes) -> None:
        done = asyncio.Event()

        async def stranger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            done.set()

        async with asyncio.timeout(60), await asyncio.start_server(stranger, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises((IggyError, TransportError)):
                await connect(f"iggy+http://iggy:iggy@127.0.0.1:{port}")
            await done.wait()

    for answer in answers:
        asyncio.run(main(answer))


def test_a_client_over_http_is_a_client(tmp_path: Path) -> None:
    async def work(http: Client, tcp: Client) -> None:
        assert isinstance(http, HttpClient) and http.is_connected and http.reconnects == 0
        await http.ping()

    with_both(tmp_path, work)
