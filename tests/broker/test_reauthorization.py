"""Who may stay when the users change."""

import asyncio
from dataclasses import replace

import pytest
from support.raw_wire import RawLink, connect_op, dial

from headwater.broker.auth.identity import Identity
from headwater.broker.broker import Broker
from headwater.broker.options import (
    AccountOptions,
    AuthorizationOptions,
    BrokerOptions,
    Permissions,
    SubjectRules,
    UserOptions,
)
from headwater.broker.reauthorization import may_stay, only_users_differ

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
        (Identity(user="ann"), options(ANN), options(replace(ANN, permissions=DENIED)), False),
        (Identity(user="ann"), options(ANN), options(ANN, default_permissions=DENIED), False),
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
        (Identity(user="ann", account="A"), accounts(ANN), accounts(ANN, default_permissions=DENIED), False),
    ],
)
def test_a_client_stays_if_its_user_is_what_it_was(
    identity: Identity, before: BrokerOptions, after: BrokerOptions, stays: bool
) -> None:
    assert may_stay(identity, before, after) is stays


def test_only_users_of_accounts_may_differ() -> None:
    assert only_users_differ(accounts(ANN), accounts(BOB))
    assert not only_users_differ(accounts(ANN), accounts(ANN, name="B"))
    assert not only_users_differ(accounts(ANN), accounts(ANN, max_connections=5))


def test_a_running_broker_sends_away_who_may_not_stay() -> None:
    async def main() -> None:
        async with asyncio.timeout(20), Broker(options=options(ANN, BOB)) as broker:

            def come(user: UserOptions) -> RawLink:
                return dial(broker.port, **{"user": user.username, "pass": user.password})

            def refused() -> bytes:
                with RawLink(broker.port) as link:
                    link.say(connect_op(**{"user": "bob", "pass": "b"}))
                    return link.hear_end()

            ann, bob = await asyncio.to_thread(come, ANN), await asyncio.to_thread(come, BOB)
            assert broker.sessions is not None
            assert broker.sessions.reload(options(ANN, replace(BOB, password="new"))) == 1
            assert await asyncio.to_thread(bob.hear_end) == b"-ERR 'Authorization Violation'\r\n"
            assert await asyncio.to_thread(ann.settle) == b""
            assert (await asyncio.to_thread(refused)).endswith(b"-ERR 'Authorization Violation'\r\n")
            (await asyncio.to_thread(come, replace(BOB, password="new"))).close()
            ann.close()
            bob.close()

    asyncio.run(main())
