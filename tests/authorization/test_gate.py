"""The gate alone: who must authenticate, whose users apply to the WebSocket listener, and what `repr` never shows.

Every way to authenticate: test_reference_auth.
"""

from pathlib import Path

import pytest

from headwater.authorization.gate import Gate
from headwater.authorization.identity import WEBSOCKET, Credentials, Identity, PasswordCheck, Refusal, shown_in
from headwater.errors import ConfigError
from headwater.net.listener_options import TlsOptions, WebSocketOptions
from headwater.options.access import AccountOptions, AuthorizationOptions, UserOptions
from headwater.options.broker import BrokerOptions
from headwater.wire.handshake import ConnectOptions

SECRET = "hunter2"


def test_without_users_every_client_is_in_the_global_account() -> None:
    gate = Gate(BrokerOptions())
    assert not gate.required
    assert gate.decide(Credentials(user="x", password="y"), 0.0) == Identity() == gate.unasked("STANDARD")


def test_only_a_client_that_shows_nothing_is_the_user_for_such_clients() -> None:
    users = (UserOptions(username="a", password="p"), UserOptions(username="guest", password="g"))
    gate = Gate(BrokerOptions(authorization=AuthorizationOptions(users=users), no_auth_user="guest"))
    assert gate.named(Credentials()) == "guest"
    assert gate.named(Credentials(user="a", password="wrong")) == "a"


def test_a_hashed_password_is_not_checked_in_the_callers_thread() -> None:
    hashed = "$2a$04$nmHDbNSnNOqu/2k8sPwce.PiN.oqvA6WgWGMEQGY.6ttInesGZpBe"
    gate = Gate(BrokerOptions(authorization=AuthorizationOptions(username="u", password=hashed)))
    verdict = gate.decide(Credentials(user="u", password="s3cr3t-Pa55"), 0.0)
    assert isinstance(verdict, PasswordCheck)
    assert isinstance(verdict.decide(), Identity)
    assert isinstance(gate.decide(Credentials(user="other", password="x"), 0.0), Refusal), "no work for a wrong name"


def test_the_log_tells_a_wrong_name_from_none() -> None:
    gate = Gate(BrokerOptions(authorization=AuthorizationOptions(username="u", password="p")))
    for shown, reason in ((Credentials(), "no user was named"), (Credentials(user="x"), "an unknown user")):
        verdict = gate.decide(shown, 0.0)
        assert isinstance(verdict, Refusal)
        assert verdict.reason == reason


def test_the_websocket_listener_may_have_its_own_users() -> None:
    users = (UserOptions(username="a", password="p"), UserOptions(username="guest", password="g"))
    options = BrokerOptions(
        authorization=AuthorizationOptions(users=users),
        websocket=WebSocketOptions(no_tls=True, no_auth_user="guest"),
    )
    gate = Gate(options)
    web = gate.for_websocket()
    assert gate.unasked("STANDARD") is None
    found = web.unasked(WEBSOCKET)
    assert found is not None
    assert found.user == "guest"
    assert isinstance(web.decide(Credentials(user="a", password="p"), 0.0), Identity)
    assert Gate(BrokerOptions()).for_websocket().required is False


def test_users_are_in_the_account_that_lists_them() -> None:
    accounts = (AccountOptions(name="A", users=(UserOptions(username="a", password="p"),)),)
    verdict = Gate(BrokerOptions(accounts=accounts)).decide(Credentials(user="a", password="p"), 0.0)
    assert isinstance(verdict, Identity)
    assert verdict.account == "A"


@pytest.mark.parametrize(
    "options",
    [
        lambda: AuthorizationOptions(username="u", token="t"),
        lambda: AuthorizationOptions(password="p"),
        lambda: UserOptions(password="p"),
        lambda: UserOptions(username="u", nkey="U"),
        lambda: AccountOptions(name="$G"),
        lambda: BrokerOptions(no_auth_user="nobody"),
        lambda: WebSocketOptions(),
        lambda: TlsOptions(cert_file=Path("c"), key_file=Path("k"), timeout=0.0),
        lambda: BrokerOptions(
            authorization=AuthorizationOptions(users=(UserOptions(username="u"), UserOptions(username="u")))
        ),
    ],
)
def test_options_that_contradict_themselves_are_refused(options: object) -> None:
    with pytest.raises(ConfigError):
        options()  # type: ignore[operator]


def test_no_repr_and_no_error_holds_a_secret() -> None:
    connect = ConnectOptions(user="u", password=SECRET, auth_token=SECRET, jwt=SECRET, sig=SECRET)
    options = BrokerOptions(
        authorization=AuthorizationOptions(username="u", password=SECRET),
        websocket=WebSocketOptions(no_tls=True, username="w", password=SECRET, token=SECRET),
        accounts=(AccountOptions(name="A", users=(UserOptions(username="a", password=SECRET),)),),
    )
    gate = Gate(options)
    shown = shown_in(connect)
    values = [connect, options, shown, AuthorizationOptions(token=SECRET), gate, gate.decide(shown, 0.0)]
    assert not [value for value in values if SECRET in repr(value)]
    with pytest.raises(ConfigError) as caught:
        AuthorizationOptions(username="u", password=SECRET, token=SECRET)
    assert SECRET not in repr(caught.value) + str(caught.value)
