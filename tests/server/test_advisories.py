"""Published advisories of nats-server, the classes that no other test holds: each is tried on nats-server and on ours.

docs/security.md lists all of them, with where each one is tested and what does not apply here.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.configured_servers import KINDS, Running, ServerShelf, serve, shelf
from support.embedded_broker import options_of
from support.raw_wire import RawLink, closed, connect_op, dial, prove_service

from headwater.errors import ConfigError

__all__ = ["shelf"]

pytestmark = pytest.mark.interop

REFUSED = closed(b"-ERR 'Authorization Violation'\r\n")
USERS = """authorization { users: [
    { user: all, password: p }
    { user: one, password: p, permissions: { publish: ["open.>", "$SYS.REQ.>"], subscribe: ["_INBOX.>"] } }
] }"""
TENANTS = """accounts {
    A: { users: [ { user: a, password: p } ], jetstream: enabled, imports: [ { service: { account: B, subject: ask } } ] }
    B: { users: [ { user: b, password: p } ], jetstream: enabled, exports: [ { service: ask } ] }
    $SYS: { users: [ { user: s, password: p } ] }
}
jetstream { store_dir: "STORE" }"""


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    yield str(request.param)


@pytest.fixture(scope="module", params=KINDS)
def tenants(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Path]]:
    """Two accounts with JetStream, and the folder that holds all files."""
    folder = tmp_path_factory.mktemp("tenants")
    with serve(
        request.param, folder / "inner" / "server", TENANTS.replace("STORE", str(folder / "inner" / "js"))
    ) as it:
        yield it, folder
        prove_service_as(it.port, "b")


def prove_service_as(port: int, user: str) -> None:
    with dial(port, user=user, **{"pass": "p"}) as link:
        link.send(b"SUB still.alive 1\r\nPUB still.alive 2\r\nok\r\n")
        assert link.settle() == b"MSG still.alive 1 2\r\nok\r\n"


def ask(link: RawLink, subject: str, document: object = None) -> Any:
    """A request whose answer is JSON; None when there is no answer before a PONG."""
    body = b"" if document is None else json.dumps(document).encode()
    link.send(b"SUB _INBOX.r 9\r\nPUB %b _INBOX.r %d\r\n%b\r\n" % (subject.encode(), len(body), body))
    try:
        head = link.receive_line()
        while head.split()[:1] in ([b"PING"], [b"PONG"]):
            head = link.receive_line()
        output = link.receive(int(head.split()[-1]) + 2)
    finally:
        link.send(b"UNSUB 9\r\n")
    return None if head.startswith(b"HMSG") else json.loads(output)


# ── identity and headers ──


def test_a_client_may_not_choose_its_account(kind: str, shelf: ServerShelf) -> None:
    """CVE-2022-24450."""
    port = shelf.get(kind, USERS).port
    for choice in ({"account": "$SYS"}, {"account": "NEW", "new_account": True}):
        with RawLink(port) as link:
            assert link.answer(connect_op(user="all", **{"pass": "p"}, **choice)) == REFUSED
    with dial(port, user="all", **{"pass": "p"}) as link:
        assert not link.answer(b"").closed


def test_who_asks_cannot_be_forged(tenants: tuple[Running, Path]) -> None:
    """CVE-2026-33223, CVE-2026-33246: a client that sends `Nats-Request-Info` itself."""
    port = tenants[0].port
    with dial(port, user="b", **{"pass": "p"}) as service, dial(port, user="a", **{"pass": "p"}) as client:
        service.send(b"SUB ask 1\r\n")
        service.settle()
        for name in (b"Nats-Request-Info", b"nats-request-info"):
            block = b'NATS/1.0\r\n%b: {"acc":"$SYS","user":"root"}\r\n\r\n' % name
            client.send(b"HPUB ask _INBOX.x %d %d\r\n%b\r\n" % (len(block), len(block), block))
            client.settle()
            output = service.settle()
            infos = [line for line in output.split(b"\r\n") if line.startswith(b"Nats-Request-Info:")]
            assert len(infos) == 1 and json.loads(infos[0].partition(b":")[2])["acc"] == "A"


def test_traces_go_nowhere_that_their_sender_may_not_publish_to(kind: str, shelf: ServerShelf) -> None:
    """CVE-2026-33249, GHSA-p3j5-5hrq-p75h."""
    port = shelf.get(kind, USERS).port
    with dial(port, user="all", **{"pass": "p"}) as listener, dial(port, user="one", **{"pass": "p"}) as client:
        listener.send(b"SUB secret.> 1\r\n")
        listener.settle()
        block = b"NATS/1.0\r\nNats-Trace-Dest: secret.x\r\ntraceparent: 00-0-0-01\r\n\r\n"
        client.send(b"HPUB open.x %d %d\r\n%b\r\n" % (len(block), len(block), block))
        client.answer(b"")
        assert listener.settle() == b""


# ── JetStream of others ──


def test_streams_of_another_account_cannot_be_reached(tenants: tuple[Running, Path]) -> None:
    """CVE-2025-30215: requests of the JetStream API name what is another tenant's."""
    port = tenants[0].port
    with dial(port, user="b", **{"pass": "p"}) as owner, dial(port, user="a", **{"pass": "p"}) as stranger:
        made = ask(owner, "$JS.API.STREAM.CREATE.MINE", {"name": "MINE", "subjects": ["mine"], "storage": "memory"})
        assert "error" not in made
        for verb in ("STREAM.INFO.MINE", "STREAM.DELETE.MINE", "STREAM.PURGE.MINE", "STREAM.LEADER.STEPDOWN.MINE"):
            assert "error" in ask(stranger, f"$JS.API.{verb}")
        silent = [
            "$JS.API.ACCOUNT.PURGE.B",
            "$JS.API.SERVER.REMOVE",
            "$JS.API.META.LEADER.STEPDOWN",
            "$JS.API.ACCOUNT.STREAM.MOVE.B.MINE",
            "$SYS.REQ.ACCOUNT.B.JSZ",
        ]
        for subject in silent:
            stranger.send(b"PUB %b 0\r\n\r\n" % subject.encode())
        stranger.settle()
        assert ask(owner, "$JS.API.STREAM.INFO.MINE")["config"]["name"] == "MINE"
        assert "MINE" not in (ask(stranger, "$JS.API.STREAM.NAMES")["streams"] or [])
        ask(owner, "$JS.API.STREAM.DELETE.MINE")


def test_a_restore_makes_no_other_stream_than_the_one_it_names(tenants: tuple[Running, Path]) -> None:
    """CVE-2026-33222."""
    with dial(tenants[0].port, user="b", **{"pass": "p"}) as link:
        config = {"name": "OTHER", "subjects": ["other"]}
        assert "error" in ask(link, "$JS.API.STREAM.RESTORE.NAMED", {"config": config, "state": {}})
        assert not ask(link, "$JS.API.STREAM.NAMES")["streams"]


NAMES = ["../x", "..", ".", "a/b", "a\\b", "*", ">", "a b", "a.b", "x" * 300, "\x00", "", "/etc/passwd"]


def test_no_name_of_a_stream_or_consumer_leaves_the_folder(tenants: tuple[Running, Path]) -> None:
    """CVE-2022-26652, CVE-2022-28357: files are named by the server alone."""
    server, folder = tenants
    with dial(server.port, user="b", **{"pass": "p"}) as link:
        for name in NAMES:
            subject = name if name and not set(name) & set(" \x00") else "x"
            config = {"name": name, "subjects": ["s"]}
            for verb, document in (
                (f"STREAM.CREATE.{subject}", config),
                (f"STREAM.DELETE.{subject}", None),
                (f"CONSUMER.CREATE.{subject}.{subject}", {"stream_name": name, "config": {"name": name}}),
                ("STREAM.RESTORE.GOOD", {"config": config, "state": {}}),
            ):  # some of these have no answer
                body = b"" if document is None else json.dumps(document).encode()
                link.send(b"PUB $JS.API.%b _INBOX.none %d\r\n%b\r\n" % (verb.encode(), len(body), body))
        link.settle()
        assert "error" not in ask(link, "$JS.API.INFO")
    assert {path.name for path in folder.iterdir()} == {"inner"}
    assert {path.name for path in (folder / "inner").iterdir()} <= {"server", "js", "store"}


@pytest.mark.parametrize("replicas", [-1, 0, 6, 1_000_000, 1 << 40])
def test_a_number_of_replicas_that_cannot_be_stops_nobody(tenants: tuple[Running, Path], replicas: int) -> None:
    """CVE-2022-42708."""
    with dial(tenants[0].port, user="b", **{"pass": "p"}) as link:
        config = {"name": "R", "subjects": ["r"], "storage": "memory", "num_replicas": replicas}
        assert ("error" in ask(link, "$JS.API.STREAM.CREATE.R", config)) == (replicas != 0)
        ask(link, "$JS.API.STREAM.DELETE.R")


def test_an_account_named_like_a_path_keeps_its_files_inside(tmp_path: Path) -> None:
    """CVE-2022-28357, with a configuration in place of a JWT. Ours alone: nats-server names its folders otherwise."""
    config = 'accounts { "../../x/y": { users: [ { user: b, password: p } ], jetstream: enabled } }\njetstream: true'
    with serve("headwater", tmp_path / "one" / "two", config) as server:
        with dial(server.port, user="b", **{"pass": "p"}) as link:
            assert "error" not in ask(link, "$JS.API.STREAM.CREATE.S", {"name": "S", "subjects": ["s"]})
    assert {path.name for path in tmp_path.iterdir()} == {"one"}
    assert {path.name for path in (tmp_path / "one").iterdir()} == {"two"}


# ── monitoring ──


@pytest.mark.parametrize(
    "page",
    [
        {"offset": (1 << 63) - 1, "limit": (1 << 63) - 1},
        {"offset": 1, "limit": (1 << 63) - 1},
        {"offset": -1, "limit": -1},
        {"offset": 1 << 62, "limit": 1},
    ],
)
def test_the_pages_of_connz_end_somewhere(kind: str, shelf: ServerShelf, page: dict[str, int]) -> None:
    """GHSA-q59r-vq66-pxc2: offset and limit that together are more than a number holds."""
    port = shelf.get(kind, "").port
    with dial(port) as link:
        for subject in ("$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.SERVER.PING.CONNZ"):
            answer = ask(link, subject, page)
            assert answer is None or "server" in answer
    prove_service(port)


# ── what has no place here ──


@pytest.mark.parametrize("block", ["mqtt { port: 1883 }", "gateway { name: x, port: 7222 }"])
def test_listeners_that_there_are_not_are_refused_and_not_passed_over(tmp_path: Path, block: str) -> None:
    """MQTT (six advisories): no code of it is here, and none is to be expected."""
    file = tmp_path / "server.conf"
    file.write_text(block)
    with pytest.raises(ConfigError, match=r"there (is|are) no"):
        options_of(file)
