"""The INFO of a client is its own, whichever way it was made."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from headwater.exchange.greetings import Greetings
from headwater.exchange.session import Session
from headwater.options.broker import BrokerOptions
from headwater.wire.handshake import ServerInfo, decode_info


def session(number: int, host: str, account: str = "$G", *, login_required: bool = False, **login: Any) -> Session:
    gate = SimpleNamespace(announced=login_required, required=login_required)
    made = SimpleNamespace(
        client_id=number,
        link=SimpleNamespace(host=host) if host else None,
        login=SimpleNamespace(**{"gate": gate, "nonce": "", "connection_type": "STANDARD", **login}),
        membership=SimpleNamespace(account=SimpleNamespace(name=account, is_system=account == "$SYS")),
    )
    return cast(Session, made)


def test_each_client_is_told_its_own_number_address_and_account() -> None:
    greetings = Greetings(BrokerOptions(), ServerInfo(server_id="N", client_id=1, max_payload=7))
    for one, account in ((session(7, "127.0.0.1"), "$G"), (session(8, "::1", '"client_id":1'), '"client_id":1'),
                         (session(9, "127.0.0.1", "$SYS"), "$SYS"), (session(10, ""), "$G"),
                         (session(11, "10.0.0.1", nonce="once"), "$G")):  # fmt: skip
        for _ in range(2):  # made, then made from what was kept
            first = decode_info(greetings.first(one).removeprefix(b"INFO "))
            after = decode_info(greetings.after_login(one).removeprefix(b"INFO "))
            host = one.link.host if one.link is not None else ""
            assert (first.client_id, first.client_ip, first.nonce) == (one.client_id, host, one.login.nonce)
            assert (after.client_id, after.client_ip, after.remote_account) == (one.client_id, host, account)
            assert (first.connect_info, after.connect_info, after.acc_is_sys) == (False, True, account == "$SYS")
            assert first.server_id == "N"


@pytest.mark.parametrize("login_required", [False, True])
def test_what_changes_is_told_to_the_next_client(login_required: bool) -> None:
    greetings = Greetings(BrokerOptions(), ServerInfo(max_payload=7))
    assert not decode_info(greetings.first(session(1, "a")).removeprefix(b"INFO ")).auth_required
    greetings.info = greetings.info.replace(max_payload=9)
    found = decode_info(greetings.first(session(2, "b", login_required=login_required)).removeprefix(b"INFO "))
    assert (found.max_payload, found.auth_required, found.client_ip) == (9, login_required, "b")
