"""Operator mode: the chain from a user's JWT to the operator, against nats-server and ours with the same file."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.configured_servers import KINDS, ServerShelf, shelf
from support.operator_chain import Chain, Key, token
from support.raw_wire import RawLink, closed, connect_op, read_info, still_open

from headwater.model.nkey import NkeyKind

__all__ = ["shelf"]

pytestmark = pytest.mark.interop

REFUSED = closed(b"-ERR 'Authorization Violation'\r\n")
WELCOME = still_open()
NOW = int(time.time())
USER, OTHER, REVOKED = (Key(NkeyKind.USER, number) for number in (1, 2, 3))
STRANGER = Key(NkeyKind.ACCOUNT, 99)
FAKE_OPERATOR = Key(NkeyKind.OPERATOR, 99)

CHAIN = Chain(
    revocations={REVOKED.public: NOW},
    default_permissions={"pub": {"deny": ["closed"]}, "sub": {}},
    limits={"payload": 1000},
)
CHAIN.accounts[CHAIN.a.public] = CHAIN.account(
    CHAIN.a,
    revocations={REVOKED.public: NOW},
    default_permissions={"pub": {"deny": ["closed"]}, "sub": {}},
    limits={"payload": 1000},
    signing_keys=[
        CHAIN.signer.public,
        {
            "kind": "user_scope",
            "key": CHAIN.scoped.public,
            "role": "r",
            "template": {
                "subs": 1,
                "data": -1,
                "payload": 10,
                "pub": {"allow": ["own.{{subject()}}.>", "named.{{name()}}"]},
                "sub": {"allow": ["own.{{account-subject()}}.>", "free"]},
            },
        },
    ],
)
CONFIG = CHAIN.config()


@pytest.fixture(params=KINDS)
def port(request: pytest.FixtureRequest, shelf: ServerShelf) -> Iterator[int]:
    yield shelf.get(str(request.param), CONFIG).port


def shown(link: RawLink, jwt: str, key: Key = USER, **more: object) -> bytes:
    nonce = read_info(link.greeting)["nonce"]
    return connect_op(jwt=jwt, sig=key.sign(nonce), **more)


GOOD: dict[str, str] = {
    "signed by the account": CHAIN.user(USER, CHAIN.a),
    "signed by a signing key": CHAIN.user(USER, CHAIN.signer, issuer_account=CHAIN.a.public),
    "of the system account": CHAIN.user(USER, CHAIN.system),
    "not expired yet": CHAIN.user(USER, CHAIN.a, claims={"exp": NOW + 3600}),
    "from this network": CHAIN.user(USER, CHAIN.a, src=["10.0.0.0/8", "127.0.0.0/8"]),
    "by this way": CHAIN.user(USER, CHAIN.a, allowed_connection_types=["STANDARD", "MQTT"]),
}
BAD: dict[str, str] = {
    "none": "",
    "junk": "junk",
    "three parts of junk": "a.b.c",
    "dots": "..",
    "signed by a stranger": CHAIN.user(USER, STRANGER),
    "signed by a stranger for the account": CHAIN.user(USER, STRANGER, issuer_account=CHAIN.a.public),
    "signed by itself": CHAIN.user(USER, USER),
    "signed by the operator": CHAIN.user(USER, CHAIN.operator),
    "expired": CHAIN.user(USER, CHAIN.a, claims={"exp": NOW - 10}),
    "not valid yet": CHAIN.user(USER, CHAIN.a, claims={"nbf": NOW + 3600}),
    "from elsewhere": CHAIN.user(USER, CHAIN.a, src=["10.0.0.0/8"]),
    "by another way": CHAIN.user(USER, CHAIN.a, allowed_connection_types=["WEBSOCKET"]),
    "by a way nobody knows": CHAIN.user(USER, CHAIN.a, allowed_connection_types=["PIGEON"]),
    "of an account": CHAIN.accounts[CHAIN.a.public],
    "of the operator": CHAIN.operator_jwt,
    "a claim of a wrong type": token(CHAIN.a, USER.public, {"type": "user", "version": 2, "pub": 7}),
    "about a key cut short": token(CHAIN.a, USER.public[:-4], {"type": "user", "version": 2}),
    "an issuer cut short": token(CHAIN.a, USER.public, {"type": "user", "version": 2}, iss=CHAIN.a.public[:7]),
    "an empty issuer": token(CHAIN.a, USER.public, {"type": "user", "version": 2}, iss=""),
    "a scoped user with limits of its own": CHAIN.user(
        USER, CHAIN.scoped, issuer_account=CHAIN.a.public, pub={"allow": [">"]}
    ),
    "a denial that cannot be filled in": CHAIN.user(
        USER, CHAIN.a, claims={}, times=[{"start": "25:00:00", "end": "x"}]
    ),
}
CHANGED = GOOD["signed by the account"]
BAD["a changed claim"] = (
    CHANGED[: len(CHANGED) // 2]
    + ("A" if CHANGED[len(CHANGED) // 2] != "A" else "B")
    + CHANGED[len(CHANGED) // 2 + 1 :]
)
BAD["no signature"] = CHANGED.rpartition(".")[0] + "."
BAD["another algorithm"] = token(CHAIN.a, USER.public, {"type": "user"}).replace(
    CHANGED.split(".")[0], "eyJ0eXAiOiJKV1QiLCJhbGciOiJub25lIn0"
)


@pytest.mark.parametrize("title", GOOD)
def test_a_user_of_the_chain_is_let_in(port: int, title: str) -> None:
    with RawLink(port) as link:
        assert link.answer(shown(link, GOOD[title])) == WELCOME


@pytest.mark.parametrize("title", BAD)
def test_any_other_token_is_refused(port: int, title: str) -> None:
    with RawLink(port) as link:
        assert link.answer(shown(link, BAD[title])) == REFUSED
    with RawLink(port) as link:
        assert link.answer(shown(link, CHANGED)) == WELCOME


def test_without_the_users_own_signature_a_token_is_worth_nothing(port: int) -> None:
    jwt = GOOD["signed by the account"]
    with RawLink(port) as link:
        assert link.answer(shown(link, jwt, OTHER)) == REFUSED
    with RawLink(port) as link:
        assert link.answer(connect_op(jwt=jwt)) == REFUSED
    with RawLink(port) as link:
        assert link.answer(connect_op(jwt=jwt, sig=USER.sign("an old nonce"))) == REFUSED


def test_a_bearer_token_needs_no_signature(port: int) -> None:
    with RawLink(port) as link:
        assert link.answer(connect_op(jwt=CHAIN.user(USER, CHAIN.a, bearer_token=True))) == WELCOME


def test_a_revoked_user_is_refused_until_a_newer_token(port: int) -> None:
    with RawLink(port) as link:
        assert link.answer(shown(link, CHAIN.user(REVOKED, CHAIN.a), REVOKED)) == REFUSED
    with RawLink(port) as link:
        newer = CHAIN.user(REVOKED, CHAIN.a, claims={"iat": NOW + 1})
        assert link.answer(shown(link, newer, REVOKED)) == WELCOME


def test_a_token_that_expires_ends_the_connection(port: int) -> None:
    with RawLink(port) as link:
        expiring = CHAIN.user(USER, CHAIN.a, claims={"exp": int(time.time()) + 2})
        link.send(shown(link, expiring))
        assert link.settle() == b""
        assert link.receive_end().removeprefix(b"PING\r\n") == b"-ERR 'User Authentication Expired'\r\n"


def refused_publish(subject: str) -> bytes:
    return f"-ERR 'Permissions Violation for Publish to \"{subject}\"'\r\n".encode()


def test_permissions_come_from_the_token_or_from_the_account(port: int) -> None:
    own = CHAIN.user(USER, CHAIN.a, pub={"allow": ["a.>"], "deny": ["a.b"]}, sub={"allow": ["_INBOX.>"]})
    with RawLink(port) as link:
        link.send(shown(link, own))
        assert link.answer(b"PUB a.c 1\r\nx\r\nPUB a.b 1\r\nx\r\nPUB closed 1\r\nx\r\n") == still_open(
            refused_publish("a.b"), refused_publish("closed")
        )
        assert link.answer(b"SUB a.c 1\r\n") == still_open(
            b"-ERR 'Permissions Violation for Subscription to \"a.c\"'\r\n"
        )
    with RawLink(port) as link:
        link.send(shown(link, GOOD["signed by the account"]))
        assert link.answer(b"PUB a.b 1\r\nx\r\nPUB closed 1\r\nx\r\n") == still_open(refused_publish("closed"))


def test_responses_may_be_allowed_by_the_token(port: int) -> None:
    jwt = CHAIN.user(USER, CHAIN.a, resp={"max": 1, "ttl": 60_000_000_000})
    with RawLink(port) as service, RawLink(port) as requester:
        service.send(shown(service, jwt) + b"SUB s 1\r\n")
        assert service.settle() == b""
        requester.send(shown(requester, CHAIN.user(OTHER, CHAIN.a), OTHER) + b"PUB s r 1\r\nx\r\n")
        assert requester.settle() == b""
        service.settle()
        assert service.answer(b"PUB r 1\r\n1\r\nPUB r 1\r\n2\r\n") == still_open(refused_publish("r"))


def test_limits_come_from_the_token_and_the_account(port: int) -> None:
    with RawLink(port) as link:
        link.send(shown(link, CHAIN.user(USER, CHAIN.a, subs=2, payload=20)))
        assert link.answer(b"SUB a 1\r\nSUB b 2\r\nSUB c 3\r\n") == still_open(
            b"-ERR 'maximum subscriptions exceeded'\r\n"
        )
        assert link.answer(b"PUB z 21\r\n") == closed(b"-ERR 'Maximum Payload Violation'\r\n")
    with RawLink(port) as link:
        link.send(shown(link, CHAIN.user(USER, CHAIN.a)))
        assert link.answer(b"PUB z 1001\r\n") == closed(b"-ERR 'Maximum Payload Violation'\r\n")


def test_a_scoped_signing_key_says_what_its_users_may_do(port: int) -> None:
    bare: dict[str, Any] = {"subs": 0, "data": 0, "payload": 0}
    jwt = CHAIN.user(USER, CHAIN.scoped, issuer_account=CHAIN.a.public, **bare)
    own, named = f"own.{USER.public}.x", "named.n"
    with RawLink(port) as link:
        link.send(shown(link, jwt))
        for subject in (own, named):
            assert link.answer(f"PUB {subject} 1\r\nx\r\n".encode()) == still_open()
        assert link.answer(b"PUB other 1\r\nx\r\n") == still_open(refused_publish("other"))
        assert link.answer(f"SUB own.{CHAIN.a.public}.x 1\r\n".encode()) == still_open()
        assert link.answer(b"SUB free 2\r\n") == still_open(b"-ERR 'maximum subscriptions exceeded'\r\n")
        assert link.answer(b"PUB named.n 11\r\n") == closed(b"-ERR 'Maximum Payload Violation'\r\n")


def test_accounts_hear_nothing_of_each_other(port: int) -> None:
    with RawLink(port) as a, RawLink(port) as b:
        a.send(shown(a, CHAIN.user(USER, CHAIN.a)) + b"SUB > 1\r\n")
        assert a.settle() == b""
        b.send(shown(b, CHAIN.user(USER, CHAIN.b)) + b"PUB x 1\r\nx\r\n")
        assert b.settle() == b""
        assert a.settle() == b""


@pytest.mark.parametrize("kind", KINDS)
def test_an_account_may_forbid_bearer_tokens_and_bound_its_clients(shelf: ServerShelf, kind: str) -> None:
    chain = Chain(limits={"conn": 1, "disallow_bearer": True})
    port = shelf.get(kind, chain.config()).port
    with RawLink(port) as link:
        assert link.answer(connect_op(jwt=chain.user(USER, chain.a, bearer_token=True))) == REFUSED
    with RawLink(port) as first, RawLink(port) as second:
        assert first.answer(shown(first, chain.user(USER, chain.a))) == WELCOME
        full = closed(b"-ERR 'maximum account active connections exceeded'\r\n")
        assert second.answer(shown(second, chain.user(OTHER, chain.a), OTHER)) == full


@pytest.mark.parametrize("kind", KINDS)
def test_only_users_of_pinned_accounts_and_of_the_system_account_may_connect(shelf: ServerShelf, kind: str) -> None:
    port = shelf.get(kind, f"{CONFIG}resolver_pinned_accounts: [ {CHAIN.b.public} ]\n").port
    for account, received in ((CHAIN.a, REFUSED), (CHAIN.b, WELCOME), (CHAIN.system, WELCOME)):
        with RawLink(port) as link:
            assert link.answer(shown(link, CHAIN.user(USER, account))) == received


@pytest.mark.parametrize("kind", KINDS)
def test_a_sentinel_stands_in_for_a_token_that_is_missing_or_unreadable(shelf: ServerShelf, kind: str) -> None:
    sentinel = CHAIN.user(OTHER, CHAIN.a, bearer_token=True, pub={"deny": ["x"]})
    port = shelf.get(kind, f"{CONFIG}default_sentinel: {sentinel}\n").port
    for connect in (connect_op(), connect_op(jwt="junk"), connect_op(user="ann")):
        with RawLink(port) as link:
            assert link.answer(connect + b"PUB x 1\r\nx\r\n") == still_open(refused_publish("x"))


@pytest.mark.parametrize("kind", KINDS)
def test_limits_for_streams_with_one_replica_are_those_of_an_accounts_tier(
    shelf: ServerShelf, kind: str, tmp_path: Path
) -> None:
    tier = {"R1": {"disk_storage": 1 << 20, "streams": 3, "consumer": -1}, "R3": {"disk_storage": 1 << 30}}
    chain = Chain(limits={"tiered_limits": tier})
    config = f'jetstream {{ store_dir: "{tmp_path}" }}\n{chain.config()}'
    with RawLink(shelf.get(kind, config).port) as link:
        link.send(shown(link, chain.user(USER, chain.a)) + b"SUB in 1\r\nPUB $JS.API.INFO in 0\r\n\r\n")
        size = int(link.receive_until(b"{").rsplit(b"\r\n", 1)[0].rsplit(b" ", 1)[1])
        answer = json.loads(b"{" + link.receive(size - 1))
    nothing = {"max_memory": 0, "max_storage": 0, "max_streams": 0, "max_consumers": 0, "max_ack_pending": 0}
    unlimited = {"memory_max_stream_bytes": -1, "storage_max_stream_bytes": -1, "max_bytes_required": False}
    used = {"memory": 0, "storage": 0, "reserved_memory": 0, "reserved_storage": 0, "streams": 0, "consumers": 0}
    assert answer["limits"] == nothing | dict.fromkeys(unlimited, 0)
    own = {"max_memory": 0, "max_storage": 1 << 20, "max_streams": 3, "max_consumers": -1, "max_ack_pending": -1}
    assert answer["tiers"]["R1"] == {**used, "limits": own | unlimited}


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_of_replicas_for_which_an_account_has_no_tier_is_refused_so(
    shelf: ServerShelf, kind: str, tmp_path: Path
) -> None:
    """One for which there is a tier is refused because the server is alone."""
    tier = {"disk_storage": 1 << 20, "streams": 3, "consumer": -1}
    chain = Chain(limits={"tiered_limits": {"R1": tier, "R3": tier}})
    config = f'jetstream {{ store_dir: "{tmp_path}" }}\n{chain.config()}'
    codes = []
    with RawLink(shelf.get(kind, config).port) as link:
        link.send(shown(link, chain.user(USER, chain.a)) + b"SUB in 1\r\n")
        for replicas in (2, 3, 6):
            body = json.dumps({"name": "S", "subjects": ["s"], "num_replicas": replicas}).encode()
            link.send(b"PUB $JS.API.STREAM.CREATE.S in %d\r\n%b\r\n" % (len(body), body))
            size = int(link.receive_until(b"{").rsplit(b"\r\n", 1)[0].rsplit(b" ", 1)[1])
            codes.append(json.loads(b"{" + link.receive(size - 1))["error"]["err_code"])
            link.receive_until(b"\r\n")
    assert codes == [10120, 10074, 10120]
