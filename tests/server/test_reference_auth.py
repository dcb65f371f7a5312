"""Who may connect: every way to prove it and every way to fail, against nats-server and ours with the same files.

A refusal says `-ERR 'Authorization Violation'`, closes, and tells nothing else; after each the server serves others.
"""

import base64
import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from nacl.signing import SigningKey
from support.configured_servers import KINDS, Running, ServerShelf, shelf
from support.raw_wire import Answer, RawLink, closed, connect_op, read_info, still_open

from headwater.model.nkey import NkeyKind, encode_nkey

__all__ = ["shelf"]

pytestmark = pytest.mark.interop

REFUSED = closed(b"-ERR 'Authorization Violation'\r\n")
WELCOME = still_open()
SECRET = "s3cr3t-Pa55"
HASH = "$2a$04$nmHDbNSnNOqu/2k8sPwce.PiN.oqvA6WgWGMEQGY.6ttInesGZpBe"  # of SECRET, made with bcrypt at its lowest cost


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    yield str(request.param)


class Try(NamedTuple):
    """What a client says in CONNECT to a server with this configuration, and what it receives."""

    title: str
    config: str
    shown: dict[str, object]
    received: Answer


def tries(config: str, accepted: dict[str, dict[str, object]], refused: dict[str, dict[str, object]]) -> list[Try]:
    rows = [Try(title, config, shown, WELCOME) for title, shown in accepted.items()]
    return rows + [Try(title, config, shown, REFUSED) for title, shown in refused.items()]


ONE_USER = f'authorization {{ user: derek, password: "{SECRET}" }}'
ONE_TOKEN = f'authorization {{ token: "{SECRET}" }}'
HASHED_USER = f'authorization {{ user: derek, password: "{HASH}" }}'
HASHED_TOKEN = f'authorization {{ token: "{HASH}" }}'
USERS = f"""authorization {{ users = [
    {{ user: alice, password: "{SECRET}" }}
    {{ user: bob, password: "{HASH}" }}
    {{ user: remote, password: "{SECRET}", allowed_connection_types: ["WEBSOCKET"] }}
] }}"""
DEFAULT_USER = f"""authorization {{ users = [ {{ user: alice, password: "{SECRET}" }}, {{ user: guest, password: g }} ] }}
no_auth_user: guest"""

NO_PASSWORD: dict[str, dict[str, object]] = {
    "nothing": {},
    "no password": {"user": "derek"},
    "an empty password": {"user": "derek", "pass": ""},
    "a wrong password": {"user": "derek", "pass": "wrong"},
    "the password with a NUL behind it": {"user": "derek", "pass": SECRET + "\0"},
    "the beginning of the password": {"user": "derek", "pass": SECRET[:-1]},
    "another case": {"user": "derek", "pass": SECRET.upper()},
    "another case of the name": {"user": "Derek", "pass": SECRET},
    "no name": {"pass": SECRET},
    "the password as a token": {"auth_token": SECRET},
    "the stored hash as password": {"user": "derek", "pass": HASH},
    "a junk nkey": {"nkey": "U" * 56, "sig": "junk"},
    "a junk JWT": {"jwt": "a.b.c", "sig": "junk"},
    "an account": {"user": "derek", "pass": SECRET, "account": "$SYS"},
    "a new account": {"user": "derek", "pass": SECRET, "new_account": True},
}
NO_TOKEN: dict[str, dict[str, object]] = {
    "nothing": {},
    "an empty token": {"auth_token": ""},
    "a wrong token": {"auth_token": "wrong"},
    "the token with a NUL behind it": {"auth_token": SECRET + "\0"},
    "the token as user": {"user": SECRET},
    "the token as user and password": {"user": SECRET, "pass": SECRET},
    "the stored hash as token": {"auth_token": HASH},
}
TRIES = [
    *tries("", {"nothing to show": {}, "credentials nobody asks for": {"user": "x", "pass": "y"}}, {}),
    *tries(ONE_USER, {"user and password": {"user": "derek", "pass": SECRET}}, NO_PASSWORD),
    *tries(HASHED_USER, {"user and password": {"user": "derek", "pass": SECRET}}, NO_PASSWORD),
    *tries(ONE_TOKEN, {"the token": {"auth_token": SECRET}}, NO_TOKEN),
    *tries(HASHED_TOKEN, {"the token": {"auth_token": SECRET}}, NO_TOKEN),
    *tries(
        USERS,
        {"a user": {"user": "alice", "pass": SECRET}, "one with a hash": {"user": "bob", "pass": SECRET}},
        {
            **NO_PASSWORD,
            "somebody else's way of connecting": {"user": "remote", "pass": SECRET},
            "another user's name": {"user": "carol", "pass": SECRET},
        },
    ),
    *tries(
        DEFAULT_USER,
        {"nothing": {}, "a user": {"user": "alice", "pass": SECRET}},
        {"a wrong password": {"user": "alice", "pass": "g"}, "an unknown user": {"user": "bob", "pass": "g"}},
    ),
]


def name_of(row: Try) -> str:
    return f"{TRIES_CONFIGS[row.config]}-{row.title}"


TRIES_CONFIGS = {
    "": "open",
    ONE_USER: "user",
    HASHED_USER: "hashed user",
    ONE_TOKEN: "token",
    HASHED_TOKEN: "hashed token",
    USERS: "users",
    DEFAULT_USER: "default user",
}


@pytest.mark.parametrize("row", TRIES, ids=name_of)
def test_credentials(shelf: ServerShelf, kind: str, row: Try) -> None:
    with RawLink(shelf.get(kind, row.config).port) as link:
        assert link.answer(connect_op(**row.shown)) == row.received


@pytest.mark.parametrize("config", [ONE_USER, ONE_TOKEN, USERS], ids=TRIES_CONFIGS.get)
def test_info_says_that_credentials_are_required(shelf: ServerShelf, kind: str, config: str) -> None:
    with RawLink(shelf.get(kind, config).port) as link:
        info = read_info(link.greeting)
        assert info["auth_required"] is True
        assert "nonce" not in info


BEFORE_CONNECT = [b"PING\r\n", b"SUB > 1\r\n", b"PUB a 1\r\nx\r\n", b"+OK\r\n", b"x" * 100_000, b"\x00", b"\r\n", b" "]


@pytest.mark.parametrize("sent", BEFORE_CONNECT, ids=lambda sent: repr(sent[:8]))
def test_anything_but_connect_is_a_violation_first(shelf: ServerShelf, kind: str, sent: bytes) -> None:
    with RawLink(shelf.get(kind, ONE_USER).port) as link:
        link.send(sent)
        assert link.receive_end() == b"-ERR 'Authorization Violation'\r\n"


def test_a_connect_without_end_is_bounded(shelf: ServerShelf, kind: str) -> None:
    port = shelf.get(kind, ONE_USER).port
    with RawLink(port) as link:
        link.send(b'CONNECT {"user":"' + b"x" * (1 << 20))
        assert link.receive_end() == b"-ERR 'maximum control line exceeded'\r\n"
    with RawLink(port) as link:
        assert link.answer(connect_op(**{"user": "derek", "pass": SECRET})) == WELCOME


def test_where_there_is_a_default_user_no_connect_is_needed(shelf: ServerShelf, kind: str) -> None:
    with RawLink(shelf.get(kind, DEFAULT_USER).port) as link:
        link.send(b"SUB a 1\r\nPUB a 1\r\nx\r\n")
        assert link.settle() == b"+OK\r\n+OK\r\nMSG a 1 1\r\nx\r\n"


def test_a_second_connect_is_judged_again(shelf: ServerShelf, kind: str) -> None:
    with RawLink(shelf.get(kind, USERS).port) as link:
        assert link.answer(connect_op(**{"user": "alice", "pass": SECRET})) == WELCOME
        assert link.answer(connect_op(**{"user": "bob", "pass": SECRET})) == WELCOME
        assert link.answer(connect_op(**{"user": "bob", "pass": "wrong"})) == REFUSED


def test_what_follows_a_slow_password_waits_for_the_verdict(shelf: ServerShelf, kind: str) -> None:
    port = shelf.get(kind, HASHED_USER).port
    ops = b"SUB a 1\r\nPUB a 2\r\nhi\r\n"
    with RawLink(port) as link:
        link.send(connect_op(**{"user": "derek", "pass": SECRET}) + ops)
        assert link.settle() == b"MSG a 1 2\r\nhi\r\n"
    with RawLink(port) as link:
        link.send(connect_op(**{"user": "derek", "pass": "no"}) + ops)
        assert link.receive_end() == b"-ERR 'Authorization Violation'\r\n"


@pytest.mark.parametrize("drip", [False, True], ids=["silence", "drip"])
def test_who_does_not_connect_in_time_is_told_and_cut_off(shelf: ServerShelf, kind: str, drip: bool) -> None:
    config = f'authorization {{ user: derek, password: "{SECRET}", timeout: 0.3 }}'
    with RawLink(shelf.get(kind, config).port) as link:
        if drip:
            link.send_in_pieces(b'CONNECT {"user":', range(1, 16))
        assert link.receive_end() == b"-ERR 'Authentication Timeout'\r\n"


# --- nkeys -----------------------------------------------------------------------------------------------------------

KEY = SigningKey(bytes(range(32)))
OTHER_KEY = SigningKey(bytes(range(1, 33)))
PUBLIC = encode_nkey(NkeyKind.USER, bytes(KEY.verify_key))
OTHER_PUBLIC = encode_nkey(NkeyKind.USER, bytes(OTHER_KEY.verify_key))
NKEYS = f"authorization {{ users = [ {{ nkey: {PUBLIC} }}, {{ user: alice, password: {SECRET} }} ] }}"


def signed(key: SigningKey, nonce: str) -> str:
    return base64.urlsafe_b64encode(key.sign(nonce.encode()).signature).decode().rstrip("=")


def test_the_nonce_is_new_for_each_connection(shelf: ServerShelf, kind: str) -> None:
    port = shelf.get(kind, NKEYS).port
    with RawLink(port) as first, RawLink(port) as second:
        nonces = [read_info(link.greeting)["nonce"] for link in (first, second)]
    assert nonces[0] != nonces[1]
    assert [len(nonce) for nonce in nonces] == [15, 15]


def test_a_signed_nonce_lets_its_owner_in(shelf: ServerShelf, kind: str) -> None:
    with RawLink(shelf.get(kind, NKEYS).port) as link:
        nonce = read_info(link.greeting)["nonce"]
        assert link.answer(connect_op(nkey=PUBLIC, sig=signed(KEY, nonce))) == WELCOME
    with RawLink(shelf.get(kind, NKEYS).port) as link:
        padded = base64.b64encode(KEY.sign(read_info(link.greeting)["nonce"].encode()).signature).decode()
        assert link.answer(connect_op(nkey=PUBLIC, sig=padded)) == WELCOME, "plain base64 is taken too"
    with RawLink(shelf.get(kind, NKEYS).port) as link:
        assert link.answer(connect_op(**{"user": "alice", "pass": SECRET})) == WELCOME


@pytest.mark.parametrize(
    "why",
    [
        "no signature",
        "junk",
        "another key's",
        "an old nonce's",
        "unknown key",
        "key cut short",
        "lower case",
        "not base64",
    ],
)
def test_any_other_signature_does_not(shelf: ServerShelf, kind: str, why: str) -> None:
    port = shelf.get(kind, NKEYS).port
    with RawLink(port) as earlier:
        old = signed(KEY, read_info(earlier.greeting)["nonce"])
    with RawLink(port) as link:
        good = signed(KEY, read_info(link.greeting)["nonce"])
        shown: dict[str, dict[str, object]] = {
            "no signature": {"nkey": PUBLIC},
            "junk": {"nkey": PUBLIC, "sig": base64.urlsafe_b64encode(bytes(64)).decode()},
            "another key's": {"nkey": PUBLIC, "sig": signed(OTHER_KEY, read_info(link.greeting)["nonce"])},
            "an old nonce's": {"nkey": PUBLIC, "sig": old},
            "unknown key": {"nkey": OTHER_PUBLIC, "sig": signed(OTHER_KEY, read_info(link.greeting)["nonce"])},
            "key cut short": {"nkey": PUBLIC[:-1], "sig": good},
            "lower case": {"nkey": PUBLIC.lower(), "sig": good},
            "not base64": {"nkey": PUBLIC, "sig": "%%%"},
        }
        assert link.answer(connect_op(**shown[why])) == REFUSED


# --- limits of accounts ----------------------------------------------------------------------------------------------

ACCOUNTS = """accounts {
    A { users = [ { user: a, password: p } ] }
    B { users = [ { user: b, password: p } ] }
    SYS { users = [ { user: s, password: p } ] }
}
system_account: SYS"""


def enter(server: Running, user: str) -> RawLink:
    link = RawLink(server.port)
    assert link.answer(connect_op(**{"user": user, "pass": "p"})) == WELCOME
    return link


def test_accounts_hear_nothing_of_each_other(shelf: ServerShelf, kind: str) -> None:
    server = shelf.get(kind, ACCOUNTS)
    with enter(server, "a") as a, enter(server, "a") as also_a, enter(server, "b") as b:
        for link in (a, b):
            link.send(b"SUB > 1\r\n")
            assert link.settle() == b""
        also_a.send(b"PUB x.y 2\r\nhi\r\n")
        assert also_a.settle() == b""
        assert a.settle() == b"MSG x.y 1 2\r\nhi\r\n"
        assert b.settle() == b""


def test_a_client_learns_which_account_it_is_in(shelf: ServerShelf, kind: str) -> None:
    server = shelf.get(kind, ACCOUNTS)
    for user, account in (("a", "A"), ("s", "SYS")):
        with RawLink(server.port) as link:
            link.send(connect_op(**{"user": user, "pass": "p", "protocol": 1}) + b"PING\r\n")
            assert link.receive_line() == b"PONG\r\n"
            info = read_info(link.receive_line())
        assert info["remote_account"] == account
        assert info.get("acc_is_sys", False) is (account == "SYS")


def test_a_second_connect_can_change_the_account(shelf: ServerShelf, kind: str) -> None:
    server = shelf.get(kind, ACCOUNTS)
    with enter(server, "a") as a, enter(server, "a") as mover:
        a.send(b"SUB > 1\r\n")
        assert a.settle() == b""
        mover.send(b"PUB x 1\r\n1\r\n" + connect_op(**{"user": "b", "pass": "p"}) + b"PUB x 1\r\n2\r\n")
        assert mover.settle() == b""
        assert a.settle() == b"MSG x 1 1\r\n1\r\n"


# --- secrets ---------------------------------------------------------------------------------------------------------


def test_no_log_line_and_no_answer_holds_a_secret(shelf: ServerShelf, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    for config in (ONE_USER, HASHED_USER, ONE_TOKEN, USERS):
        server = shelf.get("headwater", config)
        for password in (SECRET, "wr0ng-hunter2"):
            shown = {"user": "derek", "pass": password, "auth_token": password, "jwt": password, "sig": password}
            for sent in (
                connect_op(**shown),
                connect_op(**shown, protocol=99),
                b'CONNECT {"verbose":7,' + json.dumps(shown).encode()[1:] + b"\r\n",
                b'CONNECT {"pass":"' + password.encode() + b'"\r\n',
            ):
                with RawLink(server.port) as link:
                    link.send(sent)
                    link.end_sending()
                    received = link.greeting + link.receive_end()
                assert SECRET.encode() not in received
                assert b"hunter2" not in received
    logged = "\n".join(caplog.text.splitlines())
    assert "login_failed" in logged
    for secret in (SECRET, HASH, "hunter2"):
        assert secret not in logged
