"""How leaf nodes join, each side real or ours: accounts, credentials, TLS, WebSocket, loops, chains."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError
from support.certificates import Certificates, make_certificates
from support.clusters import connect, run
from support.leafs import (
    OURS,
    PAIR_NAMES,
    PAIRS,
    REAL,
    Inbox,
    LeafServer,
    both_cross,
    crosses,
    serve,
    spoke_config,
    until,
)
from support.operator_chain import Chain, Key

import headwater
from headwater.model.nkey import NkeyKind
from headwater.testing.ports import free_ports

pytestmark = pytest.mark.interop
pairs = pytest.mark.parametrize(("hub_kind", "leaf_kind"), PAIRS, ids=PAIR_NAMES)

SEED = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
PUBLIC = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"


@contextmanager
def pair(
    directory: Path, kinds: tuple[str, str], hub_config: str, remote: str = "", leaf_config: str = ""
) -> Iterator[tuple[LeafServer, LeafServer]]:
    """A hub with this configuration, and a leaf node with `remote` in its remote."""
    with serve(kinds[0], directory / "hub", f"server_name: H\n{hub_config}") as hub:
        with serve(kinds[1], directory / "leaf", spoke_config(hub, remote, leaf_config)) as leaf:
            yield hub, leaf


def meets(hub: LeafServer, leaf: LeafServer, **options: object) -> None:
    """Check that messages cross in both directions; `options` are those of the client at the hub."""

    async def test(stack: AsyncExitStack) -> None:
        await both_cross(await connect(stack, hub.url, **options), await connect(stack, leaf.url))

    run(test)


LISTEN = 'listen: "127.0.0.1:-1", compression: off'
TWO_ACCOUNTS = "accounts { A { users: [{user: a, password: p}] }, B { users: [{user: b, password: p}] } }\n"


@pairs
def test_each_remote_joins_one_account_to_one_account(tmp_path: Path, hub_kind: str, leaf_kind: str) -> None:
    users = "authorization { users: [ {user: la, password: x, account: A}, {user: lb, password: x, account: B} ] }"
    with serve(hub_kind, tmp_path / "hub", f"server_name: H\n{TWO_ACCOUNTS}leafnodes {{ {LISTEN}, {users} }}") as hub:
        address = hub.leaf_url.partition("://")[2]
        remotes = ", ".join(
            f'{{ url: "nats-leaf://l{name}:x@{address}", account: {account}, compression: off }}'
            for name, account in (("a", "B"), ("b", "A"))
        )
        config = f"server_name: L\n{TWO_ACCOUNTS}leafnodes {{ remotes: [ {remotes} ] }}"
        with serve(leaf_kind, tmp_path / "leaf", config) as leaf:

            async def test(stack: AsyncExitStack) -> None:
                clients = {
                    (side, user): await connect(stack, server.url, user=user, password="p")
                    for side, server in (("hub", hub), ("leaf", leaf))
                    for user in "ab"
                }
                inboxes = {key: Inbox() for key in clients}
                for key, client in clients.items():
                    await client.subscribe("who", cb=inboxes[key].take)
                await both_cross(clients["hub", "a"], clients["leaf", "b"])
                await both_cross(clients["hub", "b"], clients["leaf", "a"])
                await clients["leaf", "a"].publish("who", b"from a")
                await clients["leaf", "a"].flush()
                await until(lambda: bool(inboxes["hub", "b"].got), "it is in the account that it is joined to")
                await both_cross(clients["hub", "a"], clients["leaf", "b"])
                assert {key: inbox.data for key, inbox in inboxes.items()} == {
                    ("leaf", "a"): [b"from a"],
                    ("hub", "b"): [b"from a"],
                    ("hub", "a"): [],
                    ("leaf", "b"): [],
                }

            run(test)


@pairs
def test_a_leaf_node_authenticates_with_an_nkey(tmp_path: Path, hub_kind: str, leaf_kind: str) -> None:
    config = f"leafnodes {{ {LISTEN}, authorization {{ nkey: {PUBLIC} }} }}"
    with pair(tmp_path, (hub_kind, leaf_kind), config, f'nkey: "{SEED}"') as (hub, leaf):
        meets(hub, leaf)


@pairs
def test_a_leaf_node_authenticates_with_a_creds_file(tmp_path: Path, hub_kind: str, leaf_kind: str) -> None:
    chain = Chain()
    creds = credentials_of(Key(NkeyKind.USER, 77), chain, tmp_path)
    config = f"{chain.config()}leafnodes {{ {LISTEN} }}"
    with pair(tmp_path, (hub_kind, leaf_kind), config, f'credentials: "{creds}"') as (hub, leaf):

        async def test(stack: AsyncExitStack) -> None:
            there = await headwater.connect(hub.url, creds=str(creds))
            stack.push_async_callback(there.close)
            here = await connect(stack, leaf.url)
            inbox = Inbox()
            await here.subscribe("from.hub", cb=inbox.take)
            await here.flush()
            async with asyncio.timeout(20):
                while not inbox.got:
                    await there.publish("from.hub", b"")
                    await there.flush()
                    await asyncio.sleep(0.005)

        run(test)


def credentials_of(user: Key, chain: Chain, directory: Path) -> Path:
    """A .creds file of this user of account A."""
    file = directory / "leaf.creds"
    file.write_text(
        f"-----BEGIN NATS USER JWT-----\n{chain.user(user, chain.a)}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed_of(user)}\n------END USER NKEY SEED------\n"
    )
    return file


def seed_of(key: Key) -> str:
    """The seed of a user's key as text."""
    import base64
    import binascii

    raw = bytes([(18 << 3) | (NkeyKind.USER >> 5), (NkeyKind.USER & 31) << 3]) + bytes(key.signing)
    return base64.b32encode(raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")).decode().rstrip("=")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pairs
@pytest.mark.parametrize("first", ["", "handshake_first: true"])
def test_tls_with_certificates_of_both_sides(
    tmp_path: Path, certificates: Certificates, hub_kind: str, leaf_kind: str, first: str
) -> None:
    made = certificates
    listen = (
        f'leafnodes {{ {LISTEN}, tls {{ cert_file: "{made.server_cert}", key_file: "{made.server_key}", '
        f'ca_file: "{made.ca}", verify: true, {first} }} }}'
    )
    ours = f'cert_file: "{made.client_cert}", key_file: "{made.client_key}"'
    remote = f'tls {{ ca_file: "{made.ca}", {ours}, timeout: 5, {first} }}'
    with pair(tmp_path, (hub_kind, leaf_kind), listen, remote) as (hub, leaf):
        meets(hub, leaf)


@pytest.mark.parametrize("hub_kind", [REAL, OURS])
def test_a_hub_with_an_untrusted_certificate_is_not_joined(
    tmp_path: Path, certificates: Certificates, hub_kind: str
) -> None:
    made = certificates
    listen = f'leafnodes {{ {LISTEN}, tls {{ cert_file: "{made.server_cert}", key_file: "{made.server_key}" }} }}'
    with pair(tmp_path, (hub_kind, OURS), listen, f'tls {{ ca_file: "{made.stranger_ca}" }}') as (_, leaf):
        assert leaf.embedded is not None
        nodes = leaf.embedded.broker.leafnodes
        assert nodes is not None
        run(lambda stack: until(lambda: "certificate" in nodes.dialler.remotes[0].reason, "the reason"))
        assert nodes.joined() == []


@pairs
def test_subjects_denied_by_the_remote_do_not_cross(tmp_path: Path, hub_kind: str, leaf_kind: str) -> None:
    config = f"leafnodes {{ {LISTEN} }}"
    remote = 'deny_imports: ["down.no"], deny_exports: ["up.no"]'
    with pair(tmp_path, (hub_kind, leaf_kind), config, remote) as (hub, leaf):

        async def test(stack: AsyncExitStack) -> None:
            there, here = await connect(stack, hub.url), await connect(stack, leaf.url)
            up, down = Inbox(), Inbox()
            await there.subscribe("up.>", cb=up.take)
            await here.subscribe("down.>", cb=down.take)
            await both_cross(there, here)
            for subject in ("no", "yes"):
                await here.publish(f"up.{subject}", b"")
                await there.publish(f"down.{subject}", b"")
            await both_cross(there, here)
            assert [message.subject for message in up.got] == ["up.yes"]
            assert [message.subject for message in down.got] == ["down.yes"]

        run(test)
        if leaf.embedded is not None:
            nodes = leaf.embedded.broker.leafnodes
            assert nodes is not None
            assert nodes.spaces["$G"].kept_back() == 1


@pairs
def test_a_service_that_an_account_imports_is_asked_by_its_leaf_nodes(
    tmp_path: Path, hub_kind: str, leaf_kind: str
) -> None:
    config = (
        "accounts { A { users: [{user: a, password: p}], imports: [{service: {account: B, subject: ask}}] }\n"
        "B { users: [{user: b, password: p}], exports: [{service: ask}] } }\n"
        f"leafnodes {{ {LISTEN}, authorization {{ user: shop, password: p, account: A }} }}"
    )
    with serve(hub_kind, tmp_path / "hub", f"server_name: H\n{config}") as hub, ExitStack() as leafs:
        spoke = spoke_config(hub).replace("nats-leaf://", "nats-leaf://shop:p@")
        leaf = leafs.enter_context(serve(leaf_kind, tmp_path / "leaf", spoke))

        async def answer(message: Msg) -> None:
            await message.respond(b"answer to " + message.data)

        async def test(stack: AsyncExitStack) -> None:
            there, here = await connect(stack, hub.url, user="a", password="p"), await connect(stack, leaf.url)
            service = await connect(stack, hub.url, user="b", password="p")
            await service.subscribe("ask", cb=answer)
            await service.flush()
            await both_cross(there, here)
            assert (await here.request("ask", b"1", timeout=10)).data == b"answer to 1"

        run(test)


@pairs
def test_permissions_of_the_hubs_user_apply_to_crossing_messages(tmp_path: Path, hub_kind: str, leaf_kind: str) -> None:
    config = (
        "accounts { A { users: [ {user: c, password: p}, {user: leaf, password: p, permissions {\n"
        'publish { allow: ["up.>", "_INBOX.>"], deny: ["up.no"] }\n'
        'subscribe { allow: ["down.>", "_INBOX.>"], deny: ["down.no"] } }} ] } }\n'
        f"leafnodes {{ {LISTEN} }}"
    )
    with serve(hub_kind, tmp_path / "hub", f"server_name: H\n{config}") as hub:
        url = hub.leaf_url.replace("://", "://leaf:p@")
        with serve(leaf_kind, tmp_path / "leaf", spoke_config(hub).replace(hub.leaf_url, url)) as leaf:

            async def test(stack: AsyncExitStack) -> None:
                there, here = await connect(stack, hub.url, user="c", password="p"), await connect(stack, leaf.url)
                up, down = Inbox(), Inbox()
                for pattern in ("up.*", "other"):
                    await there.subscribe(pattern, cb=up.take)
                for pattern in ("down.*", "elsewhere"):
                    await here.subscribe(pattern, cb=down.take)
                await both_cross(there, here)
                for subject in ("up.no", "other", "up.yes"):
                    await here.publish(subject, b"")
                for subject in ("down.no", "elsewhere", "down.yes"):
                    await there.publish(subject, b"")
                await both_cross(there, here)
                assert [message.subject for message in up.got] == ["up.yes"]
                assert [message.subject for message in down.got] == ["down.yes"]
                with pytest.raises(NoRespondersError):
                    await here.request("other", b"", timeout=10)

            run(test)


@pairs
def test_messages_go_all_the_way_along_a_chain(tmp_path: Path, hub_kind: str, leaf_kind: str) -> None:
    """leaf ─▶ middle ─▶ hub: the middle is ours or real, like the leaf."""
    config = f"leafnodes {{ {LISTEN} }}"
    with serve(hub_kind, tmp_path / "hub", f"server_name: H\n{config}") as hub:
        middle_config = spoke_config(hub).replace("server_name: L", "server_name: M")
        middle_config = middle_config.replace("leafnodes {", f"leafnodes {{ {LISTEN},", 1)
        with serve(leaf_kind, tmp_path / "middle", middle_config) as middle:
            with serve(hub_kind, tmp_path / "leaf", spoke_config(middle)) as leaf:

                async def test(stack: AsyncExitStack) -> None:
                    clients = [await connect(stack, server.url) for server in (hub, middle, leaf)]
                    for one in clients:
                        for other in clients:
                            if one is not other:
                                await crosses(one, other)
                    inboxes = [Inbox() for _ in clients]
                    for client, inbox in zip(clients, inboxes, strict=True):
                        await client.subscribe("far", cb=inbox.take)
                        await client.subscribe("group", "g", cb=inbox.take)
                    await everybody_knows(clients)
                    for number, client in enumerate(clients):
                        await client.publish("far", b"%d" % number)
                        await client.flush()
                    await until(lambda: all(len(inbox.got) == 3 for inbox in inboxes), "all at all")
                    for client in clients:
                        await client.publish("group", b"local")
                        await client.flush()
                    await until(lambda: all(len(inbox.got) == 4 for inbox in inboxes), "each member its own")
                    await everybody_knows(clients)
                    assert [sorted(inbox.data) for inbox in inboxes] == [[b"0", b"1", b"2", b"local"]] * 3

                run(test)


async def everybody_knows(clients: list[Client]) -> None:
    for one in clients:
        for other in clients:
            if one is not other:
                await crosses(one, other)


@pytest.mark.parametrize(("hub_kind", "leaf_kind"), [(OURS, OURS)])
def test_two_that_dial_each_other_are_joined_once(tmp_path: Path, hub_kind: str, leaf_kind: str) -> None:
    """The second connection would be a loop: it is closed, and the first stays. A nats-server may need 30 s for it."""
    ports = free_ports(2)
    configs = [
        f'server_name: {name}\nleafnodes {{ listen: "127.0.0.1:{own}", compression: off, reconnect: "100ms",\n'
        f'remotes: [ {{ url: "nats-leaf://127.0.0.1:{other}", compression: off }} ] }}'
        for name, own, other in (("one", *ports), ("two", *ports[::-1]))
    ]
    with serve(hub_kind, tmp_path / "one", configs[0]) as one, serve(leaf_kind, tmp_path / "two", configs[1]) as two:

        async def test(stack: AsyncExitStack) -> None:
            clients = [await connect(stack, server.url) for server in (one, two)]
            await both_cross(*clients)
            await asyncio.sleep(0)
            inbox = Inbox()
            await clients[1].subscribe("once", cb=inbox.take)
            await both_cross(*clients)
            for number in range(20):
                await clients[0].publish("once", b"%d" % number)
                await both_cross(*clients)
            assert inbox.data == [b"%d" % number for number in range(20)]

        run(test)


@pytest.mark.parametrize("hub_kind", [REAL, OURS])
def test_a_second_remote_to_the_same_accounts_is_given_up_by_us(tmp_path: Path, hub_kind: str) -> None:
    """nats-server's two remotes close each other every second without end."""
    with serve(hub_kind, tmp_path / "hub", f"server_name: H\nleafnodes {{ {LISTEN} }}") as hub:
        port = hub.leaf_port
        remotes = ", ".join(f'{{ url: "nats-leaf://{host}:{port}" }}' for host in ("127.0.0.1", "localhost"))
        with serve(OURS, tmp_path / "leaf", f"server_name: L\nleafnodes {{ remotes: [ {remotes} ] }}") as leaf:
            assert leaf.embedded is not None
            nodes = leaf.embedded.broker.leafnodes
            assert nodes is not None

            def settled() -> bool:
                reasons = sorted(remote.reason for remote in nodes.dialler.remotes)
                return reasons[0] == "" and "another remote leads to the same account" in reasons[1]

            run(lambda stack: until(settled, "one of two"))


@pytest.mark.parametrize("hub_kind", [REAL, OURS])
def test_a_refused_spoke_shows_the_reason_and_retries(tmp_path: Path, hub_kind: str) -> None:
    config = f"leafnodes {{ {LISTEN}, authorization {{ user: u, password: p }} }}"
    with pair(tmp_path, (hub_kind, OURS), config) as (_, leaf):
        assert leaf.embedded is not None
        broker = leaf.embedded.broker
        nodes = broker.leafnodes
        assert nodes is not None
        run(lambda stack: until(lambda: nodes.dialler.remotes[0].reason == "Authorization Violation", "the reason"))
        run(lambda stack: until(lambda: broker.journal.counts["leafnode_not_joined"] >= 2, "another try"))
        assert nodes.joined() == []


LOGINS = "accounts { A { users: [{user: a, password: p}] }, B { users: [{user: b, password: p}] } }"
REFUSED = "Authorization Violation"


@pytest.mark.parametrize("hub_kind", [REAL, OURS])
@pytest.mark.parametrize(
    ("config", "user", "outcome"),
    [
        ("accounts { A {}, B {} }", "", "A"),
        ("accounts { A {}, B {} }", "b:x@", "A"),
        (LOGINS, "", REFUSED),
        (LOGINS, "b:x@", REFUSED),
        (LOGINS, "b:p@", "B"),
        (f"no_auth_user: b\n{LOGINS}", "", "B"),
        ("authorization { user: u, password: p }\naccounts { A {} }", "", REFUSED),
        ("authorization { user: u, password: p }\naccounts { A {} }", "u:p@", "$G"),
        ("authorization { token: t }\naccounts { A {} }", "", REFUSED),
        ("authorization { token: t }\naccounts { A {} }", "t@", "$G"),
        ("accounts { A {}, $SYS { users: [{user: s, password: p}] } }", "", REFUSED),
    ],
)
def test_an_account_for_leaf_nodes_lets_nobody_in_where_users_log_in(
    tmp_path: Path, hub_kind: str, config: str, user: str, outcome: str
) -> None:
    hub_config = f"server_name: H\n{config}\nleafnodes {{ {LISTEN}, authorization {{ account: A }} }}"
    with serve(hub_kind, tmp_path / "hub", hub_config) as hub:
        spoke = spoke_config(hub).replace("nats-leaf://", f"nats-leaf://{user}")
        with serve(OURS, tmp_path / "leaf", spoke) as leaf:
            assert leaf.embedded is not None
            nodes = leaf.embedded.broker.leafnodes
            assert nodes is not None
            (remote,) = nodes.dialler.remotes
            run(lambda stack: until(lambda: remote.reason in ("", REFUSED), "joined or refused"))
            assert [one.far_end.remote_account for one in nodes.joined()] == ([outcome] if outcome != REFUSED else [])


def test_a_user_of_an_account_with_a_callout_may_not_join_while_no_service_listens(tmp_path: Path) -> None:
    service, user = Key(NkeyKind.USER, 61), Key(NkeyKind.USER, 77)
    chain = Chain(authorization={"auth_users": [service.public]})
    config = f"{chain.config()}leafnodes {{ {LISTEN} }}"
    remote = f'credentials: "{credentials_of(user, chain, tmp_path)}"'
    with pair(tmp_path, (OURS, OURS), config, remote) as (hub, leaf):
        assert hub.embedded is not None and leaf.embedded is not None
        nodes = leaf.embedded.broker.leafnodes
        assert nodes is not None
        run(lambda stack: until(lambda: nodes.dialler.remotes[0].reason == "Authorization Violation", "the reason"))
        assert nodes.joined() == []
    remote = f'credentials: "{credentials_of(service, chain, tmp_path)}"'
    with pair(tmp_path / "again", (OURS, OURS), config, remote) as (hub, leaf):
        assert leaf.embedded is not None
        joined = leaf.embedded.broker.leafnodes
        assert joined is not None
        run(lambda stack: until(lambda: bool(joined.joined()), "the service's own leaf node"))


def test_a_port_for_clients_is_no_hub(tmp_path: Path) -> None:
    with serve(REAL, tmp_path / "hub", "server_name: H") as hub:
        config = f'leafnodes {{ remotes: [ {{ url: "nats-leaf://127.0.0.1:{hub.port}" }} ] }}'
        with serve(OURS, tmp_path / "leaf", config) as leaf:
            assert leaf.embedded is not None
            nodes = leaf.embedded.broker.leafnodes
            assert nodes is not None
            run(lambda stack: until(lambda: "wrong port" in nodes.dialler.remotes[0].reason, "the reason"))


@pairs
def test_equal_names_are_refused_by_the_hub(tmp_path: Path, hub_kind: str, leaf_kind: str) -> None:
    """A hub that has remotes itself, or is part of a cluster, has a cluster name: its server name, if none is
    configured.
    """
    remote = '{ url: "nats-leaf://127.0.0.1:1", compression: off }'
    config = f"server_name: same\nleafnodes {{ {LISTEN}, remotes: [ {remote} ] }}"
    with serve(hub_kind, tmp_path / "hub", config) as hub:
        spoke = spoke_config(hub).replace("server_name: L", "server_name: same")
        with serve(leaf_kind, tmp_path / "leaf", spoke) as leaf:
            if leaf.embedded is not None:
                nodes = leaf.embedded.broker.leafnodes
                assert nodes is not None
                text = "remote leafnode has same cluster name"
                run(lambda stack: until(lambda: nodes.dialler.remotes[0].reason == text, "the reason"))
            else:
                run(lambda stack: until(lambda: "same cluster name" in leaf.log(), "the reason"))
