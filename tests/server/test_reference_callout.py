"""`auth_callout`: one service decides who comes in, at nats-server and at ours with the same configuration file.

The service (`support.callout_service`) answers as the test says.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.callout_service import ISSUER, STRANGER, SUBSCRIBE, XKEY, Service
from support.configured_servers import KINDS, ServerShelf, shelf
from support.operator_chain import Chain, Key
from support.raw_wire import Answer, RawLink, closed, connect_op, read_info, still_open

from headwater.model.nkey import NkeyKind, decode_nkey

__all__ = ["shelf"]

pytestmark = pytest.mark.interop

REFUSED = closed(b"-ERR 'Authorization Violation'\r\n")


def configured(more: str = "") -> str:
    return f"""
        accounts {{
            AUTH {{ users: [ {{ user: auth, password: auth }}, {{ user: idle, password: idle }} ] }}
            APP {{ users: [ {{ user: app, password: app }} ] }}
        }}
        authorization {{
            timeout: 5
            auth_callout {{ issuer: {ISSUER.public}, account: AUTH, auth_users: [ auth ]{more} }}
        }}
    """


PLAIN, SEALED = configured(), configured(f", xkey: {XKEY}")
ONLY_AUTH = configured(", allowed_accounts: [ AUTH ]")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    yield str(request.param)


def log_in(port: int, service: Service, make: Callable[[], bytes], shown: dict[str, Any], sent: bytes = b"") -> Answer:
    """A client's CONNECT, the service's answer, and what the client receives for `sent` and a PING."""
    with RawLink(port) as link:
        link.send(connect_op(**shown))
        reply = service.request()
        service.answer(reply, make())
        return link.answer(sent)


ANN: dict[str, Any] = {"user": "ann"}


@pytest.mark.parametrize("config", [PLAIN, SEALED])
def test_a_service_says_who_a_client_is(shelf: ServerShelf, kind: str, config: str) -> None:
    port = shelf.get(kind, config).port
    with Service(port) as service:
        jwt = lambda: service.response(nats={"jwt": service.user(pub={"allow": ["mine"]})})  # noqa: E731
        sent = b"PUB mine 1\r\nx\r\nPUB other 1\r\nx\r\n"
        received = log_in(port, service, jwt, {**ANN, "pass": "secret", "name": "a client"}, sent)
        assert received == still_open(b"-ERR 'Permissions Violation for Publish to \"other\"'\r\n")


def test_the_request_tells_what_the_client_has_shown(shelf: ServerShelf, kind: str) -> None:
    port = shelf.get(kind, PLAIN).port
    with Service(port) as service, RawLink(port) as link:
        link.send(connect_op(user="ann", **{"pass": "pw", "name": "n", "lang": "l", "version": "1", "auth_token": "t"}))
        service.answer(service.request(), b"")
        info, parsed = read_info(link.greeting), service.authorization
        assert link.receive_end() == b"-ERR 'Authorization Violation'\r\n"
    nats = parsed["nats"]
    server, client = nats["server_id"], nats["client_info"]
    assert (parsed["aud"], parsed["sub"]) == ("nats-authorization-request", ISSUER.public)
    assert parsed["iss"] == server["id"] == info["server_id"]
    assert decode_nkey(nats["user_nkey"], NkeyKind.USER) is not None
    assert {"name", "host", "id", "version"} == set(server)
    assert (client["host"], client["id"], client["user"], client["kind"], client["type"]) == (
        "127.0.0.1", info["client_id"], "ann", "Client", "nats",
    )  # fmt: skip
    assert set(client) == {"host", "id", "user", "name", "kind", "type"}
    assert nats["connect_opts"] == {
        "auth_token": "t", "user": "ann", "pass": "pw", "name": "n", "lang": "l", "version": "1", "protocol": 0,
    }  # fmt: skip
    assert (nats["type"], nats["version"]) == ("authorization_request", 2)


BAD: dict[str, Callable[[Service], bytes]] = {
    "nothing": lambda service: b"",
    "junk": lambda service: b"junk",
    "an error": lambda service: service.response(nats={"error": "no such user"}),
    "an error and a user": lambda service: service.response(nats={"error": "x", "jwt": service.user()}),
    "neither": lambda service: service.response(),
    "signed by another": lambda service: service.response(STRANGER, nats={"jwt": service.user()}),
    "a user signed by another": lambda service: service.response(nats={"jwt": service.user(STRANGER)}),
    "for another user": lambda service: service.response(
        sub=Key(NkeyKind.USER, 9).public, nats={"jwt": service.user()}
    ),
    "another user": lambda service: service.response(
        nats={"jwt": service.user(claims={"sub": Key(NkeyKind.USER, 9).public})}
    ),
    "for another server": lambda service: service.response(
        aud=Key(NkeyKind.SERVER, 9).public, nats={"jwt": service.user()}
    ),
    "an expired answer": lambda service: service.response(exp=1_700_000_001, nats={"jwt": service.user()}),
    "an expired user": lambda service: service.response(nats={"jwt": service.user(claims={"exp": 1_700_000_001})}),
    "an unknown account": lambda service: service.response(nats={"jwt": service.user(account="NONE")}),
    "no account": lambda service: service.response(nats={"jwt": service.user(account="")}),
    "an issuer account": lambda service: service.response(nats={"jwt": service.user(issuer_account=ISSUER.public)}),
    "by a way nobody knows": lambda service: service.response(
        nats={"jwt": service.user(allowed_connection_types=["PIGEON"])}
    ),
}


@pytest.mark.parametrize("title", BAD)
def test_any_other_answer_refuses_the_client(shelf: ServerShelf, kind: str, title: str) -> None:
    port = shelf.get(kind, PLAIN).port
    with Service(port) as service:
        assert log_in(port, service, lambda: BAD[title](service), ANN) == REFUSED


def test_a_user_for_another_kind_of_connection_is_refused_where_nats_server_looks_away(
    shelf: ServerShelf, kind: str
) -> None:
    port = shelf.get(kind, PLAIN).port
    with Service(port) as service:
        made = lambda: service.response(nats={"jwt": service.user(allowed_connection_types=["WEBSOCKET"])})  # noqa: E731
        assert log_in(port, service, made, ANN) == (still_open() if kind == "nats-server" else REFUSED)


def test_an_answer_that_is_sealed_need_not_be_signed_by_the_issuer(shelf: ServerShelf, kind: str) -> None:
    port = shelf.get(kind, SEALED).port
    with Service(port) as service:
        made = lambda: service.response(STRANGER, nats={"jwt": service.user()})  # noqa: E731
        assert log_in(port, service, made, ANN) == still_open()


def test_the_service_itself_is_judged_by_the_configuration(shelf: ServerShelf, kind: str) -> None:
    port = shelf.get(kind, PLAIN).port
    with RawLink(port) as link:
        assert link.answer(connect_op(user="auth", **{"pass": "wrong"})) == REFUSED
    with Service(port) as service:
        made = lambda: service.response(nats={"error": "no"})  # noqa: E731
        assert log_in(port, service, made, {"user": "app", "pass": "app"}) == REFUSED  # a user, but no auth_user
        assert log_in(port, service, made, {}) == REFUSED  # nothing was shown at all


def test_users_of_other_accounts_may_be_left_to_the_configuration(shelf: ServerShelf, kind: str) -> None:
    port = shelf.get(kind, ONLY_AUTH).port
    with Service(port) as service:
        with RawLink(port) as link:
            assert link.answer(connect_op(user="app", **{"pass": "app"})) == still_open()
        made = lambda: service.response(nats={"jwt": service.user()})  # noqa: E731
        assert log_in(port, service, made, {"user": "app", "pass": "wrong"}) == still_open()
        assert log_in(port, service, made, {"user": "idle", "pass": "idle"}) == still_open()


def test_nobody_but_the_server_sends_requests_to_the_service(shelf: ServerShelf, kind: str) -> None:
    port = shelf.get(kind, PLAIN).port
    forged = b"PUB $SYS.REQ.USER.AUTH 1\r\nx\r\n"
    violation = still_open(b"-ERR 'Permissions Violation for Publish to \"$SYS.REQ.USER.AUTH\"'\r\n")
    with Service(port) as service:
        made = lambda: service.response(nats={"jwt": service.user(account="AUTH")})  # noqa: E731
        assert log_in(port, service, made, ANN, forged) == violation
        assert service.link.answer(forged) == violation


# ── with an operator: the account names the service ──

SENTINEL = Key(NkeyKind.USER, 60)
AGENT = Key(NkeyKind.USER, 61)
CHAIN = Chain(authorization={"auth_users": [AGENT.public], "allowed_accounts": [Chain().b.public]})
SENTINEL_JWT = CHAIN.user(SENTINEL, CHAIN.a, bearer_token=True, pub={"deny": [">"]}, sub={"deny": [">"]})
OPERATOR = CHAIN.config() + f"authorization {{ timeout: 5 }}\ndefault_sentinel: {SENTINEL_JWT}\n"


def agent(port: int) -> Service:
    """The service logs in with a JWT and a signature, which needs the nonce."""
    service = Service.__new__(Service)
    service.link, service.authorization, service.received = RawLink(port), {}, b""
    nonce = read_info(service.link.greeting)["nonce"]
    service.link.send(connect_op(jwt=CHAIN.user(AGENT, CHAIN.a), sig=AGENT.sign(nonce)) + SUBSCRIBE)
    assert service.link.settle() == b""
    return service


@pytest.mark.parametrize("shown", [{"jwt": SENTINEL_JWT}, {}, {"user": "ann", "jwt": "no.jwt.of_ours"}])
def test_an_account_of_an_operator_has_a_callout_of_its_own(
    shelf: ServerShelf, kind: str, shown: dict[str, str]
) -> None:
    port = shelf.get(kind, OPERATOR).port
    with agent(port) as service:
        made = lambda: service.response(CHAIN.a, nats={"jwt": service.user(CHAIN.b, "")})  # noqa: E731
        assert log_in(port, service, made, shown, b"PUB x 1\r\nx\r\n") == still_open()
        assert service.authorization["sub"] == CHAIN.a.public
        strange = lambda: service.response(CHAIN.a, nats={"jwt": service.user(CHAIN.system, "")})  # noqa: E731
        assert log_in(port, service, strange, shown) == REFUSED
        forged = lambda: service.response(CHAIN.b, nats={"jwt": service.user(CHAIN.b, "")})  # noqa: E731
        assert log_in(port, service, forged, shown) == REFUSED
