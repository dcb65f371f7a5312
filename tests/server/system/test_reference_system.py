"""The system account on nats-server and on ours: the same requests, the same events, the same field names.

OMITTED says which of nats-server's fields are not here. Counters and times depend on the moment and are not compared.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.configured_servers import KINDS, Running, serve
from support.field_names import names
from support.raw_wire import RawLink, dial, prove_service, read_info, split_deliveries

pytestmark = pytest.mark.interop

CONFIG = """
listen: 127.0.0.1:-1
server_name: here
jetstream {{ store_dir: "{store}" }}
no_auth_user: g
accounts {{
    $SYS {{ users: [{{user: sys, password: p}}] }}
    A {{ jetstream: enabled, users: [
        {{user: a, password: p}}
        {{user: ruled, password: p, permissions: {{
            publish: {{allow: ["$SYS.REQ.USER.INFO", "x"]}}, subscribe: {{deny: ["no"]}}, allow_responses: true }} }}
    ] }}
    G {{ users: [{{user: g, password: p}}] }}
}}
"""
OMITTED = {
    "feature_flags", "gomaxprocs", "disk_io_wait_stats", "limits", "max_memory", "max_storage",
    "num_cache", "num_inserts", "num_removes", "num_matches", "cache_hit_rate", "max_fanout", "avg_fanout",
    "sublist_stats", "imports", "domain", "System recvQ",
}  # fmt: skip
"""Last names: reasons are with the pages of monitoring; ours has no queue for
requests to the system account."""
ADDED = {"sync", "sync_always", "events", "writes", "disk", "read_pauses"}


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    directory: Path = tmp_path_factory.mktemp(str(request.param))
    with serve(str(request.param), directory, CONFIG.format(store=directory / "store")) as running:
        yield running


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Running]]:
    """nats-server, and ours."""
    directory: Path = tmp_path_factory.mktemp("both")
    config = CONFIG.format(store=directory / "{}" / "store")
    first = serve(KINDS[0], directory / KINDS[0], config.replace("{}", KINDS[0]))
    with first as real, serve(KINDS[1], directory / KINDS[1], config.replace("{}", KINDS[1])) as ours:
        yield [real, ours]


def enter(server: Running, user: str, **options: object) -> RawLink:
    link = dial(server.port, user=user, no_responders=True, **{"pass": "p"}, **options)
    link.send(b"SUB in.> 1\r\n")
    link.settle()
    return link


def ask(link: RawLink, subject: str, request: object = "") -> Any:
    """The JSON of the answer, or the status where there is no responder."""
    body = request.encode() if isinstance(request, str) else json.dumps(request).encode()
    link.send(b"PUB %b in.1 %d\r\n%b\r\n" % (subject.encode(), len(body), body))
    # nats-server answers from another thread: that may take longer than its PONG.
    output = link.settle() or wait_for_message(link)
    bodies = [one.body for one in split_deliveries(output)[0]]
    return 503 if bodies[0].startswith(b"NATS/1.0 503") else json.loads(bodies[0])


def wait_for_message(link: RawLink) -> bytes:
    line = link.receive_line()
    while line == b"PING\r\n":
        line = link.receive_line()
    return line + link.receive(int(line.split()[-1]) + 2)


def last_names(document: Any) -> set[str]:
    """Every name by its path, less what is omitted or added on purpose, and all that is inside of it."""
    return {path for path in names(document) if not (OMITTED | ADDED) & set(path.split("."))}


PAGES = [
    "VARZ",
    "CONNZ",
    "SUBSZ",
    "ROUTEZ",
    "GATEWAYZ",
    "LEAFZ",
    "ACCOUNTZ",
    "JSZ",
    "HEALTHZ",
    "IPQUEUESZ",
    "STATSZ",
    "IDZ",
    "RAFTZ",
]


@pytest.mark.parametrize(
    ("user", "subject", "request_"),
    [
        ("sys", "$SYS.REQ.SERVER.PING", ""),
        *(("sys", f"$SYS.REQ.SERVER.PING.{page}", "") for page in PAGES),
        ("sys", "$SYS.REQ.SERVER.PING.CONNZ", {"subscriptions": True, "auth": True, "acc": "A", "limit": 1}),
        ("sys", "$SYS.REQ.SERVER.PING.CONNZ", {"subscriptions_detail": True, "sort": "cid"}),
        ("sys", "$SYS.REQ.SERVER.PING.CONNZ", {"state": 1}),
        ("sys", "$SYS.REQ.SERVER.PING.CONNZ", {"sort": "bogus"}),
        ("sys", "$SYS.REQ.SERVER.PING.CONNZ", "no json"),
        *(
            (user, f"$SYS.REQ.{subject}.CONNZ", {"limit": limit, "offset": offset})
            for user, subject in (("sys", "SERVER.PING"), ("a", "ACCOUNT.PING"))
            for limit, offset in ((2**63 - 1, 2**63 - 1), (-1, -1), (0, 2**63 - 1))
        ),
        ("sys", "$SYS.REQ.SERVER.PING.CONNZ", {"limit": "many"}),
        ("sys", "$SYS.REQ.SERVER.PING.CONNZ", [1]),
        ("sys", "$SYS.REQ.SERVER.PING.SUBSZ", {"test": "a.*"}),
        ("sys", "$SYS.REQ.SERVER.PING.JSZ", {"accounts": True, "streams": True}),
        ("sys", "$SYS.REQ.SERVER.PING.HEALTHZ", {"account": "A", "stream": "NOPE"}),
        ("sys", "$SYS.REQ.SERVER.PING.ACCOUNTZ", {"account": "A"}),
        ("sys", "$SYS.REQ.SERVER.PING.VARZ", {"server_name": "here"}),
        ("sys", "$SYS.REQ.SERVER.PING.BOGUS", ""),
        ("sys", "$SYS.REQ.SERVER.PING.PROFILEZ", {"name": "bogus"}),
        ("sys", "$JS.API.INFO", ""),
        *(("sys", f"$SYS.REQ.ACCOUNT.A.{page}", "") for page in ("CONNZ", "LEAFZ", "JSZ", "INFO", "CONNS", "STATZ")),
        ("sys", "$SYS.REQ.ACCOUNT.A.BOGUS", ""),
        ("sys", "$SYS.REQ.ACCOUNT.PING.STATZ", ""),
        ("sys", "$SYS.REQ.USER.INFO", ""),
        ("a", "$SYS.REQ.USER.INFO", ""),
        ("ruled", "$SYS.REQ.USER.INFO", ""),
        ("a", "$SYS.REQ.ACCOUNT.PING.STATZ", ""),
        ("a", "$SYS.REQ.ACCOUNT.PING.CONNZ", ""),
        ("a", "$SYS.REQ.SERVER.PING.CONNZ", ""),
        ("a", "$SYS.REQ.SERVER.PING", ""),
        ("a", "$SYS.REQ.SERVER.PING.VARZ", ""),
        ("a", "$SYS.REQ.ACCOUNT.B.STATZ", ""),
    ],
)
def test_answers_have_nats_servers_names(both: list[Running], user: str, subject: str, request_: object) -> None:
    answers = []
    for one in both:
        with enter(one, "a", name="guest") as guest, enter(one, user, name="asker", lang="bytes", version="1") as link:
            guest.settle()
            answers.append(ask(link, subject, request_))
    real, ours = answers
    if real == 503:
        assert ours == 503
    else:
        assert last_names(ours) == last_names(real)
        assert ours.get("error", {}).get("code") == real.get("error", {}).get("code")


def test_a_client_learns_who_it_is(server: Running) -> None:
    with enter(server, "ruled") as link:
        data = ask(link, "$SYS.REQ.USER.INFO")["data"]
    assert {"user": "ruled", "account": "A"}.items() <= data.items()
    assert set(data["permissions"]["publish"]["allow"]) == {"$SYS.REQ.USER.INFO", "x"}
    assert data["permissions"]["subscribe"] == {"deny": ["no"]}
    assert data["permissions"]["responses"] == {"max": 1, "ttl": 120_000_000_000}


def test_nobody_learns_of_another_account(server: Running) -> None:
    with enter(server, "g") as other, enter(server, "a") as link:
        other.settle()
        shown = ask(link, "$SYS.REQ.SERVER.PING.CONNZ", {"acc": "G", "account": "G"})["data"]["connections"]
        assert {one.get("account", "A") for one in shown} == {"A"}
        assert [one["acc"] for one in ask(link, "$SYS.REQ.ACCOUNT.PING.STATZ")["data"]["account_statz"]] == ["A"]


def test_who_asks_cannot_be_forged(server: Running) -> None:
    with enter(server, "g") as victim, enter(server, "a") as link:
        cid = read_info(victim.greeting)["client_id"]
        block = b'NATS/1.0\r\nNats-Request-Info: {"id":%d,"acc":"G","server":"here"}\r\n\r\n' % cid
        link.send(b"HPUB $SYS.REQ.USER.INFO in.1 %d %d\r\n%b\r\n" % (len(block), len(block), block))
        assert json.loads(split_deliveries(wait_for_message(link))[0][0].body)["data"]["user"] == "a"


def test_another_server_that_is_meant_is_left_to_answer(server: Running) -> None:
    with enter(server, "sys") as link:
        link.send(b'PUB $SYS.REQ.SERVER.PING.VARZ in.1 24\r\n{"server_name":"another"}\r\n'.replace(b"24", b"25"))
        assert link.settle() == b""
        assert ask(link, "$SYS.REQ.SERVER.PING.IDZ")["name"] == "here"


def test_a_client_can_be_ended_and_sent_away(server: Running) -> None:
    with enter(server, "sys") as link, enter(server, "a", protocol=1) as guest:
        me = f"$SYS.REQ.SERVER.{read_info(link.greeting)['server_id']}"
        cid = read_info(guest.greeting)["client_id"]
        assert ask(link, f"{me}.KICK", {"cid": 99_999})["error"]["code"] == 500
        assert "error" not in ask(link, f"{me}.LDM", {"cid": cid})
        assert read_info(guest.receive_until(b"\r\n"))["ldm"] is True
        assert "error" not in ask(link, f"{me}.KICK", {"cid": cid})
        guest.receive_end()
    prove_service(server.port)


@pytest.mark.parametrize("kind", KINDS)
def test_the_streams_of_an_account_can_be_purged_whether_it_is_configured_or_not(kind: str, tmp_path: Path) -> None:
    text = CONFIG.format(store=tmp_path / "store")
    without = text.replace("    A { jet", "    B { jet")

    def holds_streams() -> bool:
        walk = os.walk(tmp_path)  # which passes over what is removed meanwhile
        return any(names and os.path.basename(folder) == "streams" for folder, names, _ in walk)

    def create(server: Running) -> None:
        with enter(server, "a") as link:
            for name in ("S", "T"):
                assert "error" not in ask(link, f"$JS.API.STREAM.CREATE.{name}", {"name": name, "subjects": [name]})

    def purge(server: Running) -> None:
        with enter(server, "sys") as link:
            assert ask(link, "$JS.API.ACCOUNT.PURGE.A")["initiated"] is True
        for _ in range(3000):
            if not holds_streams():
                return
            time.sleep(0.01)
        raise AssertionError("the streams are still there")

    with serve(kind, tmp_path, text) as server:
        create(server)
        purge(server)
        with enter(server, "a") as link:
            assert ask(link, "$JS.API.STREAM.NAMES")["total"] == 0
        create(server)
    assert holds_streams()
    with serve(kind, tmp_path, without) as server:
        assert holds_streams()
        purge(server)


def test_streams_of_the_global_account_without_jetstream_are_not_called_purged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Their folder is the store itself, in which every account has its own."""
    kept = tmp_path / "store" / "streams" / "S"
    kept.mkdir(parents=True)
    with serve("headwater", tmp_path, CONFIG.format(store=tmp_path / "store")) as server:
        with enter(server, "sys") as link:
            assert ask(link, "$JS.API.ACCOUNT.PURGE.$G")["initiated"] is True
            assert ask(link, "$JS.API.ACCOUNT.PURGE.A")["initiated"] is True
    assert kept.is_dir()
    assert [one for one in caplog.messages if one.startswith("account_purge_failed account=$G")]


def events_of(server: Running) -> dict[str, Any]:
    """What a listener receives when a client comes and goes, and when one is refused; by subject, ids masked."""
    with enter(server, "sys") as listener:
        me = read_info(listener.greeting)["server_id"]
        listener.send(
            b"SUB $SYS.ACCOUNT.*.* 2\r\nSUB $SYS.SERVER.*.CLIENT.AUTH.ERR 3\r\nSUB $SYS.SERVER.ACCOUNT.*.CONNS 4\r\n"
        )
        listener.send(b"SUB $SYS.ACCOUNT.*.SERVER.CONNS 5\r\n")
        listener.settle()
        received: dict[str, Any] = {}
        enter(server, "a", name="guest", lang="bytes", version="1").close()
        with pytest.raises((EOFError, AssertionError)):
            dial(server.port, user="a", **{"pass": "wrong"})
        while f"$SYS.SERVER.{me}.CLIENT.AUTH.ERR" not in received or "$SYS.ACCOUNT.A.DISCONNECT" not in received:
            (delivery,), _ = split_deliveries(wait_for_message(listener))
            subject = delivery.control.split()[1].decode()
            received[subject] = json.loads(delivery.body)
        return {subject.replace(me, "ID"): event for subject, event in received.items()}


def test_events_tell_who_came_and_went(server: Running) -> None:
    received = events_of(server)
    assert received["$SYS.ACCOUNT.A.CONNECT"]["client"]["name"] == "guest"
    assert received["$SYS.ACCOUNT.A.DISCONNECT"]["reason"] == "Client Closed"
    assert received["$SYS.SERVER.ID.CLIENT.AUTH.ERR"]["reason"] == "Authentication Failure"
    assert received["$SYS.SERVER.ID.CLIENT.AUTH.ERR"]["client"]["user"] == "a"
    assert "$SYS.SERVER.ACCOUNT.A.CONNS" in received
    assert "$SYS.ACCOUNT.A.SERVER.CONNS" in received
    assert "wrong" not in json.dumps(received)


def test_events_have_nats_servers_names(both: list[Running]) -> None:
    real, ours = map(events_of, both)
    for subject in ("$SYS.ACCOUNT.A.CONNECT", "$SYS.ACCOUNT.A.DISCONNECT", "$SYS.SERVER.ID.CLIENT.AUTH.ERR",
                    "$SYS.ACCOUNT.A.SERVER.CONNS"):  # fmt: skip
        assert last_names(ours[subject]) == last_names(real[subject]), subject
        assert ours[subject]["type"] == real[subject]["type"]
