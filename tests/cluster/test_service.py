"""Whole clusters: our brokers in this process, alone and with real nats-servers; the clients are nats-py, unmodified.

Every node has a client, and each kind of message is published at every node for subscribers at every other.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import bcrypt
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError
from support.certificates import make_certificates
from support.clusters import (
    HELLO,
    Inbox,
    agreed,
    cluster_of,
    connect,
    meshed,
    received_by_all,
    route_url,
    run,
    spread,
    start_node,
    start_nodes,
    until,
)
from support.forwarding_bench import peers_want
from support.nats_server import gnatsd_binaries, start_nats_server
from support.raw_wire import RawLink

import headwater
from headwater import Broker
from headwater.cluster.mesh import Protocol
from headwater.net.listener_options import TlsOptions, WebSocketOptions
from headwater.options.access import AccountOptions, AuthorizationOptions, SubjectRules, UserOptions
from headwater.testing.ports import free_port

PROTOCOLS = pytest.mark.parametrize("protocol", ["v1", "v2", "auto"])


async def answer(message: Msg) -> None:
    await message.respond(b"answer to " + message.data)


def knows_headers(client: Client) -> bool:
    """Whether the client's server supports headers; those that do also report at once that there are no responders."""
    return bool(client._server_info.get("headers"))


async def exchange(
    clients: list[Client], brokers: list[Broker], settle: Callable[[], Awaitable[None]], headers: bool
) -> None:
    """The matrix: plain, wildcard, queue, request and reply, headers, unsubscribe, 1 MiB, odd subjects, everywhere."""
    plain, wild = [Inbox() for _ in clients], [Inbox() for _ in clients]
    members = [Inbox() for _ in clients]
    odd = "odd.caf\u00e9!-_~"
    for at, client in enumerate(clients):
        await client.subscribe("plain", cb=plain[at].take)
        await client.subscribe(odd, cb=plain[at].take)
        await client.subscribe("wild.*.x", cb=wild[at].take)
        await client.subscribe("work", queue="wkrs", cb=members[at].take)
        await client.subscribe(f"ask.{at}", cb=answer)
        await client.flush()
    await settle()
    for at, client in enumerate(clients):
        data = str(at).encode()
        await client.publish("plain", data, headers={"Trace": str(at)} if knows_headers(client) else None)
        await client.publish(odd, data)
        await client.publish(f"wild.{at}.x", data)
        await client.publish("plain", b"%d" % at + b"x" * ((1 << 20) - 1))
        for number in range(30):
            await client.publish("work", b"%d-%d" % (at, number))
        await client.flush()
        for other in range(len(clients)):
            reply = await client.request(f"ask.{other}", data, timeout=10)
            assert reply.data == b"answer to " + data
        if knows_headers(client):
            with pytest.raises(NoRespondersError):
                await client.request("nobody.answers", b"", timeout=10)
    count = len(clients)
    await until(lambda: all(len(inbox.got) == 3 * count for inbox in plain), "every plain message at every node")
    await until(lambda: all(len(inbox.got) == count for inbox in wild), "every wildcard match at every node")
    await until(lambda: sum(len(inbox.got) for inbox in members) == 30 * count, "every queue message once")
    done = Counter(data for inbox in members for _, data in inbox.got)
    assert set(done.values()) == {1}
    assert sum(1 for inbox in members if inbox.got) > 1
    for inbox in plain:
        assert sorted(len(data) for _, data in inbox.got) == [1] * 2 * count + [1 << 20] * count
        for at in range(count):  # in one publisher's order
            mine = [(subject, len(data)) for subject, data in inbox.got if data[:1] == b"%d" % at]
            assert mine == [("plain", 1), (odd, 1), ("plain", 1 << 20)]
    if headers:
        found = {(head or {}).get("Trace") for inbox in plain for head in inbox.headers}
        assert found == {None, *(str(at) for at in range(count))}


@PROTOCOLS
def test_three_brokers_of_ours_are_one_server_to_their_clients(protocol: Protocol) -> None:
    async def test(stack: AsyncExitStack) -> None:
        brokers = await start_nodes(stack, 3, protocol=protocol)
        clients = [await connect(stack, broker.url) for broker in brokers]
        await exchange(clients, brokers, lambda: agreed(brokers), headers=protocol == "v2")

    run(test)


@pytest.mark.interop
@pytest.mark.parametrize("role", ["dials us", "is dialled"])
def test_real_nats_servers_with_their_default_settings_are_part_of_the_cluster(role: str, tmp_path: Path) -> None:
    async def test(stack: AsyncExitStack) -> None:
        port = free_port()
        cluster = ["--cluster_name", "hw", "--cluster", f"nats://127.0.0.1:{port}"]
        if role == "dials us":
            brokers = await start_nodes(stack, 2)
            real = await asyncio.to_thread(
                start_nats_server, tmp_path, *cluster, "--routes", route_url(brokers[0]), jetstream=False
            )
        else:
            real = await asyncio.to_thread(start_nats_server, tmp_path, *cluster, jetstream=False)
            brokers = [await start_node(stack, "n0", [f"nats://127.0.0.1:{port}"])]
            brokers.append(await start_node(stack, "n1", [route_url(brokers[0])]))
        stack.callback(real.stop)
        await meshed(brokers, 2)
        clients = [await connect(stack, url) for url in (brokers[0].url, brokers[1].url, real.url)]
        subjects = {b"plain", b"wild.*.x", b"work"}

        async def settle() -> None:
            await spread(subjects, brokers, 2)
            await received_by_all(clients[2:], clients)

        await exchange(clients, brokers, settle, headers=True)

    run(test)


@pytest.mark.interop
@pytest.mark.skipif(not gnatsd_binaries(), reason="HEADWATER_GNATSD names no gnatsd")
@pytest.mark.parametrize("ours", [1, 2])
@pytest.mark.parametrize("role", ["dials us", "is dialled"])
def test_real_gnatsd_are_part_of_a_cluster_that_speaks_v1(role: str, ours: int, tmp_path: Path) -> None:
    """All binaries in HEADWATER_GNATSD form one cluster."""

    async def test(stack: AsyncExitStack) -> None:
        brokers = [await start_node(stack, "n0", protocol="v1")] if role == "dials us" else []
        seed = route_url(brokers[0]) if brokers else ""
        urls: list[str] = []
        for binary in gnatsd_binaries():
            route = f"nats://127.0.0.1:{free_port()}"
            flags = ["--cluster", route, *(["--routes", seed] if seed else [])]
            real = await asyncio.to_thread(  # gnatsd 0.9 does not report the port that it was given
                start_nats_server,
                tmp_path / binary.name,
                *flags,
                jetstream=False,
                binary=binary,
                port=free_port(),
            )
            stack.callback(real.stop)
            seed = seed or route
            urls.append(real.url)
        while len(brokers) < ours:
            brokers.append(await start_node(stack, f"n{len(brokers)}", [seed], protocol="v1"))
        others = ours + len(urls) - 1
        await meshed(brokers, others)
        clients = [await connect(stack, url) for url in (*(broker.url for broker in brokers), *urls)]

        async def settle() -> None:
            await spread({b"plain", b"wild.*.x", b"work"}, brokers, others)
            await received_by_all(clients[ours:], clients)

        await exchange(clients, brokers, settle, headers=False)

    run(test)


def test_both_dial_at_once_and_one_route_remains() -> None:
    async def test(stack: AsyncExitStack) -> None:
        for _ in range(10):
            async with AsyncExitStack() as round:
                ports = [free_port(), free_port()]
                urls = [f"nats-route://127.0.0.1:{port}" for port in ports]
                brokers = await asyncio.gather(
                    *(start_node(round, f"n{at}", urls, port=port) for at, port in enumerate(ports))
                )
                await meshed(brokers, 1)
                links = [{cluster_of(broker).peers[0].link for broker in brokers}]
                assert links

    run(test)


def test_requests_get_no_responders_at_once_in_the_whole_cluster() -> None:
    async def test(stack: AsyncExitStack) -> None:
        brokers = await start_nodes(stack, 2)
        client = await connect(stack, brokers[0].url)
        with pytest.raises(NoRespondersError):
            await client.request("nobody", b"", timeout=20)

    run(test)


@PROTOCOLS
def test_max_messages_of_a_subscription_hold_across_a_route(protocol: Protocol) -> None:
    async def test(stack: AsyncExitStack) -> None:
        brokers = await start_nodes(stack, 2, protocol=protocol)
        here, there = [await connect(stack, broker.url) for broker in brokers]
        inbox, all_of_them = Inbox(), Inbox()
        limited = await there.subscribe("few", cb=inbox.take)
        await there.subscribe("few", cb=all_of_them.take)
        await limited.unsubscribe(3)
        await there.flush()
        await agreed(brokers)
        for _ in range(8):
            await here.publish("few", b"")
        await until(lambda: len(all_of_them.got) == 8, "all eight")
        assert len(inbox.got) == 3

    run(test)


@pytest.mark.parametrize("protocol", ["v1", "v2"])
def test_subscription_at_a_peer_wakes_consumers_that_wait_here(protocol: Protocol) -> None:
    async def test(stack: AsyncExitStack) -> None:
        brokers = await start_nodes(stack, 2, protocol=protocol)
        assert brokers[0].router is not None
        woken = asyncio.Event()
        brokers[0].router.awaited.add(b"to.me", woken.set)
        client = await connect(stack, brokers[1].url)
        await client.subscribe("elsewhere.*")
        await client.subscribe("to.*")
        await client.flush()
        await asyncio.wait_for(woken.wait(), 10)
        assert not brokers[0].router.awaited

    run(test)


def test_two_brokers_with_streams_in_one_cluster_are_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(stack: AsyncExitStack) -> None:
        first = await start_node(stack, "n0", jetstream=True, store_dir=tmp_path / "n0")
        second = await start_node(stack, "n1", [route_url(first)], jetstream=True, store_dir=tmp_path / "n1")
        third = await start_node(stack, "n2", [route_url(first)])
        await meshed([first, second, third], 2)
        await until(lambda: caplog.text.count("streams_at_two_brokers") == 2, "each of the two is told")

    run(test)
    assert caplog.text.count("streams_at_two_brokers") == 2


def test_wrong_password_and_wrong_name_are_kept_out_and_the_right_ones_come_in() -> None:
    async def test(stack: AsyncExitStack) -> None:
        first = await start_node(stack, "n0", username="route", password="s3cret")
        address = f"127.0.0.1:{cluster_of(first).port}"
        await start_node(stack, "wrong", [f"nats-route://route:guess@{address}"], username="route", password="guess")
        await start_node(stack, "stranger", [f"nats-route://route:s3cret@{address}"], cluster_name="other")
        await start_node(stack, "n1", [f"nats-route://route:s3cret@{address}"], username="route", password="s3cret")
        await meshed([first], 1)
        assert [peer.name for peer in cluster_of(first).peers] == ["n1"]

    run(test)


@pytest.mark.parametrize("protocol", ["v1", "v2"])
def test_route_passwords_may_be_bcrypt_hashes(protocol: Protocol) -> None:
    hashed = bcrypt.hashpw(b"s3cret", bcrypt.gensalt(4)).decode()

    async def test(stack: AsyncExitStack) -> None:
        fields: dict[str, Any] = {"username": "route", "password": hashed, "protocol": protocol}
        first = await start_node(stack, "n0", **fields)
        address = f"127.0.0.1:{cluster_of(first).port}"
        await start_node(stack, "wrong", [f"nats-route://route:guess@{address}"], **fields)
        await start_node(stack, "hash", [f"nats-route://{address}"], **fields)  # a hash is no password
        brokers = [
            first,
            await start_node(stack, "n1", [f"nats-route://route:s3cret@{address}"], **fields),
            await start_node(stack, "n2", [f"nats-route://route:s3cret@{address}"], **fields),
        ]
        await meshed(brokers, 2)
        ids = {broker.server_id for broker in brokers}
        assert {peer.server_id for broker in brokers for peer in cluster_of(broker).peers} == ids

    run(test)


@pytest.mark.interop
@pytest.mark.parametrize("hash_kept_by", ["ours", "a real server"])
def test_real_server_and_ours_prove_themselves_to_each_others_hash(hash_kept_by: str, tmp_path: Path) -> None:
    """With a password that must be escaped in a URL."""
    hashed = bcrypt.hashpw(b"s3cr@t", bcrypt.gensalt(4)).decode()
    keeps = {"username": "route", "password": hashed}
    shows = {"username": "route", "password": "other"}  # the URL's credentials are sent

    async def test(stack: AsyncExitStack) -> None:
        port, routes = free_port(), ""
        if hash_kept_by == "ours":
            first = await start_node(stack, "n0", **keeps)
            routes = f'routes: ["nats-route://route:s3cr%40t@127.0.0.1:{cluster_of(first).port}"]'
        password = "other" if routes else hashed
        config = tmp_path / "real.conf"
        config.write_text(
            f"""cluster {{ name: hw, listen: "127.0.0.1:{port}", {routes}
            authorization {{ user: route, password: "{password}" }} }}"""
        )
        real = await asyncio.to_thread(start_nats_server, tmp_path, "-c", str(config), jetstream=False)
        stack.callback(real.stop)
        if not routes:
            first = await start_node(stack, "n0", [f"nats-route://route:s3cr%40t@127.0.0.1:{port}"], **shows)
        await meshed([first], 1)
        assert not cluster_of(first).peers[0].ours
        here, there = await connect(stack, first.url), await connect(stack, real.url)
        inbox = Inbox()
        await there.subscribe("proved", cb=inbox.take)
        await there.flush()
        await spread({b"proved"}, [first], 1)  # a peer that refuses us would not send it
        await here.publish("proved", b"")
        await until(lambda: bool(inbox.got), "the message across the route")

    run(test)


@pytest.mark.interop
@pytest.mark.parametrize("other_is", ["ours", "a real server"])
def test_queue_message_for_a_member_that_has_left_reaches_one_elsewhere_once(other_is: str, tmp_path: Path) -> None:
    """A peer sends the message to a broker whose only member has just left; another broker has one."""

    async def test(stack: AsyncExitStack) -> None:
        first = await start_node(stack, "n0")
        if other_is == "ours":
            url = (await start_node(stack, "n1", [route_url(first)])).url
        else:
            flags = ["--cluster_name", "hw", "--cluster", "nats://127.0.0.1:-1", "--routes", route_url(first)]
            real = await asyncio.to_thread(start_nats_server, tmp_path, *flags, jetstream=False)
            stack.callback(real.stop)
            url = real.url
        await meshed([first], 1)
        here, there = await connect(stack, first.url), await connect(stack, url)
        inbox, plain = Inbox(), Inbox()
        await there.subscribe("work", queue="wkrs", cb=inbox.take)
        if other_is == "ours":
            await there.subscribe("work", cb=plain.take)
        await there.flush()
        leaving = await here.subscribe("work", queue="wkrs")
        await here.flush()
        await spread({b"work"}, [first], 1)
        await leaving.unsubscribe()
        await here.flush()

        def talk() -> None:
            with RawLink(cluster_of(first).port) as link:
                link.send(
                    HELLO + b"RMSG $G work | wkrs 5\r\nfirst\r\nRMSG $G work + answer wkrs 6\r\nsecond\r\nPING\r\n"
                )
                link.receive_until(b"PONG\r\n")

        await asyncio.to_thread(talk)
        await here.publish("work", b"last")
        await until(lambda: ("work", b"last") in inbox.got, "the message behind them")
        assert [data for _, data in inbox.got] == [b"first", b"second", b"last"]
        assert [data for _, data in plain.got] == ([b"last"] if other_is == "ours" else [])
        arrivals = cluster_of(first).space("$G").arrivals
        assert (arrivals.passed_on, arrivals.groups_missed) == (2, 0)

    run(test)


def test_clients_learn_of_servers_that_come_and_go() -> None:
    async def test(stack: AsyncExitStack) -> None:
        first = await start_node(stack, "n0")
        client = await connect(stack, first.url)
        async with AsyncExitStack() as visit:
            second = await start_node(visit, "n1", [route_url(first)])
            await until(
                lambda: any(str(second.port) in url.netloc for url in client.discovered_servers), "the second's address"
            )
        await meshed([first], 0)
        assert first.sessions is not None
        assert list(first.sessions.greetings.info.connect_urls) == [f"127.0.0.1:{first.port}"]

    run(test)


def test_client_gets_other_servers_addresses_after_its_first_pong_and_not_before() -> None:
    async def test(stack: AsyncExitStack) -> None:
        first = await start_node(stack, "n0")
        reader, writer = await asyncio.open_connection("127.0.0.1", first.port)
        stack.push_async_callback(writer.wait_closed)
        stack.callback(writer.close)
        assert (await reader.readline()).startswith(b"INFO ")
        writer.write(b'CONNECT {"protocol":1,"verbose":true,"name":"slow"}\r\n')
        assert await reader.readline() == b"+OK\r\n"
        second = await start_node(stack, "n1", [route_url(first)])
        await meshed([first, second], 1)
        writer.write(b"PING\r\n")
        assert await reader.readline() == b"PONG\r\n"
        assert str(second.port).encode() in await reader.readline()

    run(test)


@pytest.mark.parametrize("other_is", ["ours", "a real server"])
def test_websocket_clients_learn_of_the_others_websocket_listeners(other_is: str, tmp_path: Path) -> None:
    async def test(stack: AsyncExitStack) -> None:
        listener = WebSocketOptions(no_tls=True, host="127.0.0.1")
        first = await start_node(stack, "n0", websocket=listener)
        client = await stack.enter_async_context(await headwater.connect(first.websocket_url))
        async with AsyncExitStack() as visit:
            if other_is == "ours":
                other = await start_node(visit, "n1", [route_url(first)], websocket=listener)
                place = f"127.0.0.1:{other.websocket_port}"
            else:
                place = f"127.0.0.1:{free_port()}"
                config = tmp_path / "real.conf"
                config.write_text(
                    f"websocket {{ listen: '{place}', no_tls: true }}\n"
                    f"cluster {{ name: hw, listen: '127.0.0.1:-1', routes: ['{route_url(first)}'] }}"
                )
                real = await asyncio.to_thread(start_nats_server, tmp_path, "-c", str(config), jetstream=False)
                visit.callback(real.stop)
            await until(lambda: place in (client.server_info.connect_urls or ()), "the other's WebSocket address")
            assert client.server_info.connect_urls == (f"127.0.0.1:{first.websocket_port}", place)
        await until(lambda: place not in client.server_info.connect_urls, "that it is gone")

    run(test)


def test_lame_duck_takes_its_address_from_the_other_brokers_clients() -> None:
    async def test(stack: AsyncExitStack) -> None:
        brokers = await start_nodes(stack, 2)
        sessions = brokers[0].sessions
        assert sessions is not None
        await until(lambda: len(sessions.greetings.info.connect_urls) == 2, "both addresses")
        await brokers[1].lame_duck()
        await until(lambda: len(sessions.greetings.info.connect_urls) == 1, "one address")

    run(test)


def test_cut_route_is_made_again_and_all_interest_is_back() -> None:
    async def test(stack: AsyncExitStack) -> None:
        brokers = await start_nodes(stack, 3)
        clients = [await connect(stack, broker.url) for broker in brokers]
        inboxes = [Inbox() for _ in clients]
        for client, inbox in zip(clients, inboxes, strict=True):
            await client.subscribe("after", cb=inbox.take)
            await client.flush()
        for _, route in cluster_of(brokers[0]).routes():
            assert route.link is not None
            route.link.abort()
        await until(lambda: not cluster_of(brokers[0]).peers, "the cut")
        await meshed(brokers, 2)
        await agreed(brokers)
        for client in clients:
            await client.publish("after", b"")
        await until(lambda: [len(inbox.got) for inbox in inboxes] == [3, 3, 3], "every message everywhere, once")

    run(test)


def test_accounts_stay_apart_across_routes() -> None:
    async def test(stack: AsyncExitStack) -> None:
        accounts = tuple(
            AccountOptions(name=name, users=(UserOptions(username=name.lower(), password="p"),)) for name in ("A", "B")
        )
        brokers = await start_nodes(stack, 2, accounts=accounts)
        inboxes = {name: Inbox() for name in ("a", "b")}
        for name, inbox in inboxes.items():
            there = await connect(stack, brokers[1].url, user=name, password="p")
            await there.subscribe("same", cb=inbox.take)
            await there.flush()
        for account in ("A", "B"):
            await agreed(brokers, account)
        for name in inboxes:
            here = await connect(stack, brokers[0].url, user=name, password="p")
            await here.publish("same", name.encode())
            await here.flush()
        await until(lambda: all(inbox.got for inbox in inboxes.values()), "a message for each")
        assert {name: inbox.got for name, inbox in inboxes.items()} == {n: [("same", n.encode())] for n in inboxes}

    run(test)


@pytest.mark.parametrize("other_is", ["ours", "a real server"])
def test_account_that_a_reload_brings_has_its_interest_in_both_directions(other_is: str, tmp_path: Path) -> None:
    """Also interest that a peer announced long before."""

    async def test(stack: AsyncExitStack) -> None:
        late = AccountOptions(name="LATE", users=(UserOptions(username="late", password="p"),))
        first = await start_node(stack, "n0", accounts=(AccountOptions(name="A"),))
        if other_is == "ours":
            url = (await start_node(stack, "n1", [route_url(first)], accounts=(late,))).url
        else:
            config = tmp_path / "real.conf"
            config.write_text(
                "accounts { LATE { users: [{user: late, password: p}] } }\n"
                f"cluster {{ name: hw, listen: '127.0.0.1:-1', routes: ['{route_url(first)}'] }}"
            )
            real = await asyncio.to_thread(start_nats_server, tmp_path, "-c", str(config), jetstream=False)
            stack.callback(real.stop)
            url = real.url
        await meshed([first], 1)
        there, inboxes = await connect(stack, url, user="late", password="p"), [Inbox() for _ in range(2)]
        await there.subscribe("to.there", cb=inboxes[0].take)
        gone = await there.subscribe("gone")
        await gone.unsubscribe()
        await there.flush()
        first.reload(first.options.replace(accounts=(*first.options.accounts, late)))
        here = await connect(stack, first.url, user="late", password="p")
        await here.subscribe("to.here", cb=inboxes[1].take)
        await here.flush()
        forwarding = cluster_of(first).space("LATE").forwarding
        await until(lambda: b"to.there" in {subject for subject, _, _ in peers_want(forwarding)}, "the old interest")
        assert b"gone" not in {subject for subject, _, _ in peers_want(forwarding)}
        await here.publish("to.there", b"1")
        await until(lambda: inboxes[0].got == [("to.there", b"1")], "the message to the other")
        async with asyncio.timeout(15):
            while not inboxes[1].got:
                await there.publish("to.here", b"2")
                await there.flush()
                await asyncio.sleep(0.005)

    run(test)


def test_subjects_that_every_broker_serves_itself_are_not_announced() -> None:
    async def test(stack: AsyncExitStack) -> None:
        broker = await start_node(stack, "n0")
        # Although requests to $SYS.REQ.> lead to its own $SYS.
        assert cluster_of(broker).space("$G").wanted.wanted() == []
        assert broker.router is not None
        assert broker.router.has_interest(b"$SYS.REQ.USER.INFO")

    run(test)


def test_client_users_do_not_open_the_route_port() -> None:
    async def test(stack: AsyncExitStack) -> None:
        broker = await start_node(
            stack, "n0", authorization=AuthorizationOptions(username="u", password="p"), username="r", password="q"
        )

        def talk() -> bytes:
            with RawLink(cluster_of(broker).port) as link:
                link.send(b'CONNECT {"user":"u","pass":"p","cluster":"hw"}\r\n')
                return link.receive_end()

        assert await asyncio.to_thread(talk) == b"-ERR 'Authorization Violation'\r\n"

    run(test)


@pytest.mark.interop
def test_routes_over_mutual_tls_join_ours_and_a_real_server_and_keep_strangers_out(tmp_path: Path) -> None:
    async def test(stack: AsyncExitStack) -> None:
        made = make_certificates(tmp_path / "certificates")
        tls = TlsOptions(cert_file=made.server_cert, key_file=made.server_key, ca_file=made.ca, verify=True)
        stranger = TlsOptions(cert_file=made.stranger_cert, key_file=made.stranger_key, ca_file=made.ca, verify=True)
        first = await start_node(stack, "n0", tls=tls)
        await start_node(stack, "n1", [route_url(first)], tls=tls)
        await start_node(stack, "stranger", [route_url(first)], tls=stranger)
        await start_node(stack, "in the clear", [route_url(first)])
        config = tmp_path / "real.conf"
        config.write_text(
            f"""cluster {{ name: hw, listen: "127.0.0.1:-1", routes: ["{route_url(first)}"]
            tls {{ cert_file: "{made.server_cert}", key_file: "{made.server_key}", ca_file: "{made.ca}" }} }}"""
        )
        real = await asyncio.to_thread(start_nats_server, tmp_path, "-c", str(config), jetstream=False)
        stack.callback(real.stop)
        await meshed([first], 2)
        assert {peer.name for peer in cluster_of(first).peers} > {"n1"}
        here, there = await connect(stack, first.url), await connect(stack, real.url)
        inbox = Inbox()
        await there.subscribe("secret", cb=inbox.take)
        await there.flush()
        await spread({b"secret"}, [first], 1)
        await here.publish("secret", b"kept")
        await until(lambda: inbox.got == [("secret", b"kept")], "the message over TLS")

    run(test)


IMPORTS = SubjectRules(allow=("in.>", "ready.>"))
EXPORTS = SubjectRules(allow=("out.>", "ready.>"), deny=("out.secret", "ready.secret"))


async def check_exchange(ruled: Client, free: Client, ruled_broker: Broker, free_wants: set[bytes]) -> None:
    """`ruled` is a client of a broker with the rules above, `free` of one without: the messages that each receives from
    the other.
    """
    received_by_ruled, received_by_free = Inbox(), Inbox()
    for subject in ("in.a", "out.a", "other", "ready.ruled"):
        await ruled.subscribe(subject, cb=received_by_ruled.take)
    for subject in ("in.a", "out.*", "other", "ready.free"):
        await free.subscribe(subject, cb=received_by_free.take)
    await ruled.flush()
    await free.flush()
    await spread(free_wants, [ruled_broker], 1)
    while not received_by_ruled.got:  # then `free`'s broker has received everything sent before
        await free.publish("ready.ruled", b"")
        await free.flush()
        await asyncio.sleep(0.005)
    for subject in ("in.a", "out.a", "other"):
        await free.publish(subject, b"free")
    for subject in ("in.a", "out.secret", "other", "out.a", "ready.free"):
        await ruled.publish(subject, b"ruled")
    await free.publish("ready.ruled", b"last")
    await until(lambda: ("ready.free", b"ruled") in received_by_free.got, "what is exported")
    await until(lambda: ("ready.ruled", b"last") in received_by_ruled.got, "what is imported")
    assert {each for each in received_by_ruled.got if each[1] == b"free"} == {("in.a", b"free")}
    from_ruled = [subject for subject, data in received_by_free.got if data == b"ruled"]
    assert from_ruled == ["out.a", "ready.free"]


@PROTOCOLS
def test_only_imported_subjects_are_announced_and_only_exported_ones_are_sent(protocol: Protocol) -> None:
    async def test(stack: AsyncExitStack) -> None:
        ruled = await start_node(stack, "n0", protocol=protocol, imports=IMPORTS, exports=EXPORTS)
        free = await start_node(stack, "n1", [route_url(ruled)], protocol=protocol)
        await meshed([ruled, free], 1)
        clients = [await connect(stack, broker.url) for broker in (ruled, free)]
        await check_exchange(clients[0], clients[1], ruled, {b"out.*", b"ready.free"})
        interest = {subject for subject, _, _ in peers_want(cluster_of(free).space("$G").forwarding)}
        assert interest == {b"in.a", b"ready.ruled"}
        taken = {subject for subject, _, _ in peers_want(cluster_of(ruled).space("$G").forwarding)}
        assert taken == {b"out.*", b"ready.free"}

    run(test)


@pytest.mark.interop
@pytest.mark.parametrize("ruled_is", ["ours", "the real server"])
def test_permissions_hold_towards_a_real_server_and_its_own_towards_us(ruled_is: str, tmp_path: Path) -> None:
    async def test(stack: AsyncExitStack) -> None:
        rules: dict[str, Any] = {"imports": IMPORTS, "exports": EXPORTS} if ruled_is == "ours" else {}
        ours = await start_node(stack, "n0", **rules)
        listed = """permissions { import: { allow: ["in.>", "ready.>"] }
            export: { allow: ["out.>", "ready.>"], deny: ["out.secret", "ready.secret"] } }"""
        config = tmp_path / "real.conf"
        config.write_text(
            f"""cluster {{ name: hw, listen: "127.0.0.1:-1", routes: ["{route_url(ours)}"]
            {listed if not rules else ""} }}"""
        )
        real = await asyncio.to_thread(start_nats_server, tmp_path, "-c", str(config), jetstream=False)
        stack.callback(real.stop)
        await meshed([ours], 1)
        here, there = await connect(stack, ours.url), await connect(stack, real.url)
        if rules:
            await check_exchange(here, there, ours, {b"out.*", b"ready.free"})
        else:
            exports = cluster_of(ours).peers[0].exports
            assert exports is not None
            assert exports.deny == ("out.secret", "ready.secret")
            await check_exchange(there, here, ours, {b"in.a", b"ready.ruled"})

    run(test)
