"""`auth_callout` decides on leaf nodes as on clients, in nats-server and ours with the same configuration file."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.callout_service import ISSUER, Service
from support.leafs import OURS, REAL, LeafServer, serve
from support.raw_wire import RawLink, connect_op

pytestmark = pytest.mark.interop
CONFIG = f"""
    server_name: H
    leafnodes {{ listen: "127.0.0.1:-1", compression: off }}
    accounts {{
        AUTH {{ users: [ {{ user: auth, password: auth }} ] }}
        APP {{ users: [ {{ user: app, password: app }} ] }}
    }}
    authorization {{ timeout: 4, auth_callout {{ issuer: {ISSUER.public}, account: AUTH, auth_users: [ auth ] }} }}
"""
SPOKE = {"name": "L", "cluster": "L", "server_id": "NX", "version": "2.15.1", "headers": True, "protocol": 3}
Answer = Callable[[Service], bytes]
REFUSED = b"-ERR 'Authorization Violation'\r\n"


@pytest.fixture(scope="module", params=[REAL, OURS])
def hub(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LeafServer]:
    with serve(request.param, tmp_path_factory.mktemp("hub"), CONFIG) as started:
        yield started


@contextmanager
def requesting(hub: LeafServer, answer: Answer, **shown: object) -> Iterator[tuple[RawLink, dict[str, Any]]]:
    """A spoke that has sent CONNECT, and the request that the service got about it."""
    with Service(hub.port) as service, RawLink(hub.leaf_port) as link:
        link.send(connect_op(**SPOKE, **shown))
        reply = service.request()
        service.answer(reply, answer(service))
        yield link, service.authorization["nats"]


def info_of(link: RawLink) -> dict[str, Any]:
    """The second INFO."""
    line = link.receive_line()
    assert line.startswith(b"INFO "), line
    info: dict[str, Any] = json.loads(line[5:])
    return info


def ann(**changes: Any) -> Answer:
    return lambda service: service.response(nats={"jwt": service.user(**changes)})


def test_the_service_decides_the_account_of_a_spoke_and_what_may_cross(hub: LeafServer) -> None:
    allowed = {"pub": {"allow": ["up.>"]}, "sub": {"deny": ["down.no"]}}
    with requesting(hub, ann(**allowed), user="ann", **{"pass": "secret"}) as (link, authorization):
        info = info_of(link)
        assert (info["connect_info"], info["remote_account"]) == (True, "APP")
        assert (info["export"], info["import"]) == ({"allow": ["up.>"]}, {"deny": ["down.no"]})
        client = authorization["client_info"]
        assert client.pop("id") == info["client_id"]
        assert client == {"host": "127.0.0.1", "user": "ann", "name": "L", "kind": "Leafnode"}
        shown = {"user": "ann", "pass": "secret", "name": "L", "version": "2.15.1", "protocol": 3}
        assert authorization["connect_opts"] == shown
        assert set(authorization["server_id"]) == {"name", "host", "id", "version"}


@pytest.mark.parametrize(
    "shown", [{}, {"user": "app", "pass": "app"}, {"user": "app", "pass": "wrong"}, {"auth_token": "t"}]
)
def test_it_decides_on_whatever_is_shown(hub: LeafServer, shown: dict[str, str]) -> None:
    with requesting(hub, ann(), **shown) as (link, _):
        assert info_of(link)["remote_account"] == "APP"


@pytest.mark.parametrize("title", ["an error", "junk", "an unknown account", "an expired user"])
def test_any_other_answer_refuses_the_spoke(hub: LeafServer, title: str) -> None:
    answers: dict[str, Answer] = {
        "an error": lambda service: service.response(nats={"error": "no"}),
        "junk": lambda service: b"junk",
        "an unknown account": ann(account="NONE"),
        "an expired user": ann(claims={"exp": 1_700_000_001}),
    }
    with requesting(hub, answers[title], user="ann") as (link, _):
        assert link.receive_end() == REFUSED


def test_the_user_of_the_service_itself_is_judged_by_the_configuration(hub: LeafServer) -> None:
    with RawLink(hub.leaf_port) as link:
        link.send(connect_op(**SPOKE, user="auth", **{"pass": "auth"}))
        assert info_of(link)["remote_account"] == "AUTH"
    with RawLink(hub.leaf_port) as link:
        link.send(connect_op(**SPOKE, user="auth", **{"pass": "wrong"}))
        assert link.receive_end() == REFUSED


def test_while_no_service_listens_a_spoke_does_not_join(tmp_path: Path) -> None:
    with serve(OURS, tmp_path, CONFIG) as ours, RawLink(ours.leaf_port) as link:  # nats-server waits for the timeout
        link.send(connect_op(**SPOKE, user="ann"))
        assert link.receive_end() == REFUSED


def test_ops_after_a_spokes_connect_wait_for_the_verdict(hub: LeafServer) -> None:
    with Service(hub.port) as service, RawLink(hub.leaf_port) as link:
        link.send(connect_op(**SPOKE, user="ann") + b"LS+ a\r\nPING\r\n")
        service.answer(service.request(), ann()(service))
        assert info_of(link)["remote_account"] == "APP"
        while (line := link.receive_line()) != b"PONG\r\n":
            assert line.startswith((b"LS+ ", b"PING")), line


def test_a_spoke_has_to_leave_when_its_user_expires(tmp_path: Path) -> None:
    now = 2_000_000_000.0
    with serve(OURS, tmp_path, CONFIG) as ours:
        assert ours.embedded is not None
        leafs = ours.embedded.broker.leafnodes
        assert leafs is not None
        with requesting(ours, ann(claims={"exp": int(now)}), user="ann") as (link, _):
            assert info_of(link)["remote_account"] == "APP"
            leafs.accepting._wall_clock = lambda: now + 1
            assert link.receive_end().endswith(b"-ERR 'User Authentication Expired'\r\n")
