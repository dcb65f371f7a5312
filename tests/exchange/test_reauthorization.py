"""Which clients may stay when the users change."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from support.configured_servers import KINDS
from support.embedded_broker import EmbeddedBroker, options_of
from support.nats_server import start_nats_server
from support.raw_wire import RawLink, closed, connect_op, dial, read_info, still_open

from headwater.authorization.identity import Identity
from headwater.exchange.reauthorization import Reauthorization, accounts_can_change
from headwater.model.nkey import NkeyKind, encode_nkey
from headwater.options.access import (
    AccountOptions,
    AuthCalloutOptions,
    AuthorizationOptions,
    OperatorOptions,
    Permissions,
    SubjectRules,
    UserOptions,
)
from headwater.options.broker import BrokerOptions
from headwater.server.broker import Broker

ANN = UserOptions(username="ann", password="a")
BOB = UserOptions(username="bob", password="b")


def options(*users: UserOptions, **authorization: object) -> BrokerOptions:
    return BrokerOptions(authorization=AuthorizationOptions(users=users, **authorization))  # type: ignore[arg-type]


def accounts(*users: UserOptions, name: str = "A", **fields: object) -> BrokerOptions:
    return BrokerOptions(accounts=(AccountOptions(name=name, users=users, **fields),))  # type: ignore[arg-type]


DENIED = Permissions(publish=SubjectRules(deny=("x",)))


@pytest.mark.parametrize(
    ("identity", "before", "after", "stays"),
    [
        (Identity(user="ann"), options(ANN), options(ANN, BOB), True),
        (Identity(user="ann"), options(ANN, BOB), options(BOB), False),
        (Identity(user="ann"), options(ANN), options(replace(ANN, password="new")), False),
        (Identity(user="ann"), options(ANN), options(replace(ANN, password="new", permissions=DENIED)), False),
        (Identity(user="ann"), options(ANN), BrokerOptions(), False),
        (Identity(), BrokerOptions(), options(ANN), False),
        (Identity(), BrokerOptions(), BrokerOptions(max_payload=5), True),
        (Identity(), options(token="t"), options(token="t"), True),
        (Identity(), options(token="t"), options(token="u"), False),
        (Identity(), options(token="t"), BrokerOptions(), False),
        (Identity(user="ann"), options(username="ann", password="a"), options(username="ann", password="a"), True),
        (Identity(user="ann"), options(username="ann", password="a"), options(username="ann", password="b"), False),
        (Identity(user="ann", account="A"), accounts(ANN), accounts(ANN, BOB), True),
        (Identity(user="ann", account="A"), accounts(ANN), options(ANN), False),
    ],
)
def test_a_client_stays_if_its_user_is_unchanged(
    identity: Identity, before: BrokerOptions, after: BrokerOptions, stays: bool
) -> None:
    assert Reauthorization(before, after).renewed(identity) is (identity if stays else None)


@pytest.mark.parametrize(
    ("identity", "before", "after"),
    [
        (Identity(user="ann"), options(ANN), options(replace(ANN, permissions=DENIED))),
        (Identity(user="ann"), options(ANN), options(ANN, default_permissions=DENIED)),
        (Identity(user="ann", account="A"), accounts(ANN), accounts(ANN, default_permissions=DENIED)),
        (
            Identity(user="ann"),
            options(username="ann", password="a"),
            options(username="ann", password="a", default_permissions=DENIED),
        ),
    ],
)
def test_a_client_whose_permissions_only_have_changed_stays_with_the_new_ones(
    identity: Identity, before: BrokerOptions, after: BrokerOptions
) -> None:
    renewed = Reauthorization(before, after).renewed(identity)
    assert renewed is not None
    assert renewed.rules is not None
    assert renewed.replace(rules=None) == identity
    freed = Reauthorization(after, before).renewed(renewed)
    assert freed == identity


def test_a_client_with_a_jwt_stays_its_rights_are_not_in_the_configuration() -> None:
    operator = OperatorOptions(operators=("jwt",))
    before = BrokerOptions(operator=operator)
    guest = Identity(user="U" * 56, account="A" * 56)
    assert Reauthorization(before, before.replace(max_payload=100)).renewed(guest) is guest


def test_a_client_accepted_by_a_callout_service_stays_while_the_callout_is_unchanged() -> None:
    callout = AuthCalloutOptions(issuer=encode_nkey(NkeyKind.ACCOUNT, bytes(32)), auth_users=("ann",))
    before = BrokerOptions(authorization=AuthorizationOptions(users=(ANN,), callout=callout))
    other = callout.replace(issuer=encode_nkey(NkeyKind.ACCOUNT, bytes(31) + b"1"))
    after = BrokerOptions(authorization=AuthorizationOptions(users=(ANN,), callout=other))
    guest = Identity(user="guest")
    assert Reauthorization(before, before.replace(max_payload=100)).renewed(guest) is guest
    assert Reauthorization(before, after).renewed(guest) is None
    changed = AuthorizationOptions(users=(replace(ANN, password="new"),), callout=callout)
    assert Reauthorization(before, before.replace(authorization=changed)).renewed(Identity(user="ann")) is None
    assert accounts_can_change(before, after)
    assert not accounts_can_change(options(ANN), after)  # its key pair is generated at the start


def test_accounts_can_change_but_not_go() -> None:
    assert accounts_can_change(accounts(ANN), accounts(BOB))
    assert accounts_can_change(accounts(ANN), accounts(ANN, max_connections=5))
    assert not accounts_can_change(accounts(ANN), accounts(ANN, name="B"))


def test_a_running_broker_disconnects_clients_that_may_not_stay() -> None:
    async def main() -> None:
        async with asyncio.timeout(20), Broker(options=options(ANN, BOB)) as broker:

            def come(user: UserOptions) -> RawLink:
                return dial(broker.port, **{"user": user.username, "pass": user.password})

            def refused() -> bytes:
                with RawLink(broker.port) as link:
                    link.send(connect_op(**{"user": "bob", "pass": "b"}))
                    return link.receive_end()

            ann, bob = await asyncio.to_thread(come, ANN), await asyncio.to_thread(come, BOB)
            assert broker.sessions is not None
            assert broker.sessions.reload(options(ANN, replace(BOB, password="new"))) == 1
            assert await asyncio.to_thread(bob.receive_end) == b"-ERR 'Authorization Violation'\r\n"
            assert await asyncio.to_thread(ann.settle) == b""
            assert (await asyncio.to_thread(refused)).endswith(b"-ERR 'Authorization Violation'\r\n")
            (await asyncio.to_thread(come, replace(BOB, password="new"))).close()
            ann.close()
            bob.close()

    asyncio.run(main())


BEFORE = """
listen: 127.0.0.1:-1
jetstream {{ store_dir: "{store}" }}
accounts {{ A {{ users: [{{user: a, password: p}}], exports: [{{stream: "s.>"}}, {{stream: "t.>"}}] }} }}
"""
AFTER = """
listen: 127.0.0.1:-1
jetstream {{ store_dir: "{store}" }}
accounts {{
    A {{ users: [{{user: a, password: p}}], exports: [{{stream: "s.>"}}, {{stream: "t.>"}}], mappings: {{old: new}} }}
    B {{ jetstream: enabled, users: [{{user: b, password: p}}], imports: [{{stream: {{account: A, subject: "s.>"}}}}] }}
}}
"""


ATTEMPTS = 5000  # each takes half a millisecond or more


@contextmanager
def reloadable(kind: str, directory: Path) -> Iterator[tuple[int, Callable[[], object]]]:
    """The port of a server with the configuration BEFORE, and a function that makes it load AFTER."""
    file = directory / "server.conf"
    file.write_text(BEFORE.format(store=directory / "store"))
    if kind == "headwater":
        with EmbeddedBroker(options_of(file)) as ours:

            async def read_again() -> None:
                ours.broker.reload(options_of(file))

            yield ours.port, lambda: ours.run(read_again)
    else:
        with start_nats_server(directory, "-c", str(file), jetstream=False) as real:
            yield real.port, lambda: os.kill(real.pid, signal.SIGHUP)


@pytest.mark.interop
@pytest.mark.parametrize("kind", KINDS)
def test_a_new_account_is_there_after_a_reload_with_its_streams_and_imports(kind: str, tmp_path: Path) -> None:
    with reloadable(kind, tmp_path) as (port, reload), dial(port, user="a", **{"pass": "p"}) as a:
        a.send(b"SUB new 1\r\n")
        assert a.settle() == b""
        (tmp_path / "server.conf").write_text(AFTER.format(store=tmp_path / "store"))
        reload()
        with enter_when_known(port) as b:
            b.send(b"SUB s.* 1\r\nSUB in 2\r\n")
            b.settle()
            a.send(b"PUB s.x 2\r\nhi\r\nPUB old 0\r\n\r\n")
            assert a.settle() == b"MSG new 1 0\r\n\r\n", "who was there before is still there, and mapped"
            assert b.settle() == b"MSG s.x 1 2\r\nhi\r\n"
            for _ in range(ATTEMPTS):  # streams are ready a moment later
                b.send(b"PUB $JS.API.INFO in 0\r\n\r\n")
                if b'"limits"' in b.settle():
                    break
            else:
                pytest.fail("the streams of the new account did not come")


def enter_when_known(port: int) -> RawLink:
    """A link of the user that the reload adds."""
    for _ in range(ATTEMPTS):
        with suppress(EOFError, AssertionError):
            return dial(port, user="b", **{"pass": "p"})
    raise AssertionError("the new user was never known")


def test_a_reload_with_thousands_of_users_and_clients_looks_at_each_user_once() -> None:
    """It once compared all users for each client, three times: a minute with a thousand users."""
    users = [UserOptions(username=f"u{number}", password="p") for number in range(2000)]
    before, after = accounts(*users), accounts(*users[:-1], replace(users[-1], password="q"))
    judge = Reauthorization(before, after)
    started = time.process_time()
    stays = [judge.renewed(Identity(account="A", user=f"u{number % 2000}")) for number in range(20_000)]
    assert stays.count(None) == 10
    assert time.process_time() - started < 2


OPEN = "listen: 127.0.0.1:-1\nauthorization {{ users [ {{ user: a, password: a {permissions} }} ] }}\n"
DENIES = ', permissions: { subscribe: { deny: ["_INBOX.>", "part.secret"] }, publish: { deny: "p.>" } }'


@contextmanager
def with_permissions(kind: str, directory: Path) -> Iterator[tuple[int, Callable[[], object]]]:
    """The port of a server whose user may do everything, and a function that makes it load DENIES."""
    file = directory / "server.conf"
    file.write_text(OPEN.format(permissions=""))

    def tighten() -> None:
        file.write_text(OPEN.format(permissions=DENIES))

    if kind == "headwater":
        with EmbeddedBroker(options_of(file)) as ours:

            async def read_again() -> None:
                tighten()
                ours.broker.reload(options_of(file))

            yield ours.port, lambda: ours.run(read_again)
    else:
        with start_nats_server(directory, "-c", str(file), jetstream=False) as real:

            def signal_it() -> None:
                tighten()
                os.kill(real.pid, signal.SIGHUP)

            yield real.port, signal_it


@pytest.mark.interop
@pytest.mark.parametrize("kind", KINDS)
def test_a_reload_ends_the_subscriptions_that_new_permissions_forbid_and_the_client_stays(
    kind: str, tmp_path: Path
) -> None:
    with with_permissions(kind, tmp_path) as (port, reload), dial(port, user="a", **{"pass": "a"}) as link:
        link.send(b"SUB _INBOX.x.* 1\r\nSUB part.* 3\r\nSUB free 4\r\nSUB _INBOX.q group 5\r\n")
        assert link.settle() == b""
        reload()
        errors: set[bytes] = set()
        while len(errors) < 2:  # in any order: nats-server keeps subscriptions in a map
            line = link.receive_line()
            if line != b"PING\r\n":
                errors.add(line)
        assert errors == {
            b"""-ERR 'Permissions Violation for Subscription to "_INBOX.x.*" (sid "1")'\r\n""",
            b"""-ERR 'Permissions Violation for Subscription to "_INBOX.q" using queue "group" (sid "5")'\r\n""",
        }
        for subject in (b"_INBOX.x.y", b"part.secret", b"part.of", b"free", b"p.x"):
            link.send(b"PUB %b 0\r\n\r\n" % subject)
        assert link.settle().splitlines() == [
            *[b"MSG part.of 3 0", b"", b"MSG free 4 0", b""],
            b"""-ERR 'Permissions Violation for Publish to "p.x"'""",
        ]


LIMITED = "listen: 127.0.0.1:-1\naccounts {{ A {{ users [ {{ user: b, password: p }} ]\n{account} }} }}\n{server}\n"
TIGHT = "limits: { max_subscriptions: 2, max_payload: 4 }"


@pytest.mark.interop
@pytest.mark.parametrize("kind", KINDS)
def test_limits_hold_for_the_clients_that_are_there_when_they_are_loaded(kind: str, tmp_path: Path) -> None:
    """A client was announced the larger payload that a reload allows, and ended when it sent one."""
    with configurable(kind, tmp_path, LIMITED.format(account="", server="max_payload: 10")) as (port, load):
        with dial(port, user="b", **{"pass": "p"}) as link:
            assert link.answer(b"SUB a 1\r\nPUB x 9\r\nlarge one\r\n") == still_open()
            load(LIMITED.format(account="", server="max_payload: 20"))
            wait_until_announced(port, 20)
            assert link.answer(b"PUB x 12\r\nlarger still\r\n") == still_open()
            load(LIMITED.format(account=TIGHT, server="max_payload: 30"))
            wait_until_announced(port, 30)
            assert link.answer(b"SUB b 2\r\nSUB c 3\r\n") == still_open(b"-ERR 'maximum subscriptions exceeded'\r\n")
            assert link.answer(b"PUB x 5\r\nlarge\r\n") == closed(b"-ERR 'Maximum Payload Violation'\r\n")


def wait_until_announced(port: int, payload: int) -> None:
    for _ in range(ATTEMPTS):
        with RawLink(port) as link:
            if read_info(link.greeting)["max_payload"] == payload:
                return
    raise AssertionError("the configuration was never loaded")


@contextmanager
def configurable(kind: str, directory: Path, text: str) -> Iterator[tuple[int, Callable[[str], object]]]:
    """The port of a server with this configuration, and a function that makes it load another one."""
    file = directory / "server.conf"
    file.write_text(text)
    if kind == "headwater":
        with EmbeddedBroker(options_of(file)) as ours:

            async def read_again(changed: str) -> None:
                file.write_text(changed)
                ours.broker.reload(options_of(file))

            yield ours.port, lambda changed: ours.run(lambda: read_again(changed))
    else:
        with start_nats_server(directory, "-c", str(file), jetstream=False) as real:

            def signal_it(changed: str) -> None:
                file.write_text(changed)
                os.kill(real.pid, signal.SIGHUP)

            yield real.port, signal_it


STORING = """
listen: 127.0.0.1:-1
jetstream {{ store_dir: "{store}" }}
accounts {{ A {{ users: [ {{ user: b, password: p }} ], jetstream: {limits} }} }}
max_payload: {payload}
"""
CREATE = b'{"name":"S","subjects":["s"],"retention":"limits","storage":"file","num_replicas":1}'


@pytest.mark.interop
@pytest.mark.parametrize("kind", KINDS)
def test_what_an_account_may_store_holds_for_the_streams_that_are_there(kind: str, tmp_path: Path) -> None:
    def text(limits: str, payload: int) -> str:
        return STORING.format(store=tmp_path / "store", limits=limits, payload=payload)

    def published(link: RawLink) -> bytes:
        link.send(b"PUB s in 1000\r\n%b\r\n" % bytes(1000))
        while not (line := link.receive_line()).startswith((b'{"stream"', b'{"error"')):
            pass
        return line

    with (
        configurable(kind, tmp_path, text("enabled", 2000)) as (port, load),
        dial(port, user="b", **{"pass": "p"}) as link,
    ):
        link.send(b"SUB in 1\r\n")
        for _ in range(ATTEMPTS):  # streams are ready a moment later
            link.send(b"PUB $JS.API.STREAM.CREATE.S in %d\r\n%b\r\n" % (len(CREATE), CREATE))
            if b"state" in link.settle():
                break
        assert [b"seq" in published(link) for _ in range(3)] == [True] * 3
        load(text("{ max_file: 3500 }", 3000))
        wait_until_announced(port, 3000)
        assert b"10002" in published(link)
        load(text("{ max_file: 9000 }", 4000))
        wait_until_announced(port, 4000)
        assert b'"seq":4' in published(link)
