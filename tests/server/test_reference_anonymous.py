"""Every shape that a configuration can have, and whether a client that shows nothing gets in: deny by default.

nats-server proves each row; its own history has a shape that fell back to letting everybody in (CVE-2023-47090).
"""

from collections.abc import Iterator

import pytest
from nacl.signing import SigningKey
from support.configured_servers import KINDS, ServerShelf, shelf
from support.operator_chain import Chain
from support.raw_wire import RawLink, closed, connect_op, read_info, still_open

from headwater.model.nkey import NkeyKind, encode_nkey

__all__ = ["shelf"]

pytestmark = pytest.mark.interop

NKEY = encode_nkey(NkeyKind.USER, bytes(SigningKey(bytes(32)).verify_key))
SHAPES: dict[str, tuple[str, bool]] = {
    "nothing": ("", True),
    "an empty authorization": ("authorization {}", True),
    "only a time-out": ("authorization { timeout: 1 }", True),
    "only default permissions": ('authorization { default_permissions { publish: "a" } }', True),
    "user": ("authorization { user: a, password: p }", False),
    "token": ("authorization { token: t }", False),
    "users": ("authorization { users: [ { user: a, password: p } ] }", False),
    "a user without a password": ("authorization { users: [ { user: a } ] }", False),
    "nkeys": (f"authorization {{ users: [ {{ nkey: {NKEY} }} ] }}", False),
    "a default user": ("authorization { users: [ { user: a, password: p } ] }\nno_auth_user: a", True),
    "a default user with an nkey": (f"authorization {{ users: [ {{ nkey: {NKEY} }} ] }}\nno_auth_user: {NKEY}", True),
    "a default user that may come another way only": (
        "authorization { users: [ { user: a, password: p, allowed_connection_types: [WEBSOCKET] } ] }\nno_auth_user: a",
        False,
    ),
    "an account without users": ("accounts { A: {} }", True),
    "an account with users": ("accounts { A: { users: [ { user: a, password: p } ] } }", False),
    "an account with an nkey": (f"accounts {{ A: {{ users: [ {{ nkey: {NKEY} }} ] }} }}", False),
    "an account with a default user": (
        "accounts { A: { users: [ { user: a, password: p } ] } }\nno_auth_user: a",
        True,
    ),
    "the system account alone": ("accounts { $SYS: { users: [ { user: s, password: p } ] } }", True),
    "a system account of another name alone": (
        "accounts { SYS: { users: [ { user: s, password: p } ] } }\nsystem_account: SYS",
        True,
    ),
    "the system account and another": (
        "accounts { $SYS: { users: [ { user: s, password: p } ] }, A: { users: [ { user: a, password: p } ] } }",
        False,
    ),
    "an operator": (Chain().config(), False),
}


# INFO says nothing of credentials where none are needed, and where there is a default user.
QUIET = {
    "nothing",
    "an empty authorization",
    "only a time-out",
    "only default permissions",
    "an account without users",
    "a default user",
    "a default user with an nkey",
    "a default user that may come another way only",
    "an account with a default user",
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    yield str(request.param)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_client_that_shows_nothing(kind: str, shelf: ServerShelf, shape: str) -> None:
    config, welcome = SHAPES[shape]
    port = shelf.get(kind, config).port
    refused = closed(b"-ERR 'Authorization Violation'\r\n")
    with RawLink(port) as link:
        assert read_info(link.greeting).get("auth_required", False) is (shape not in QUIET)
        assert link.answer(connect_op()) == (still_open() if welcome else refused)
    with RawLink(port) as link:
        needs_connect = not welcome or shape == "a default user with an nkey"
        assert link.answer(b"").closed == needs_connect
