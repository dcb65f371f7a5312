"""Imports, exports and mappings of accounts, on nats-server and on ours with the same file.

Order among the subscriptions of one link is not defined: what a link receives is compared sorted. Reply subjects of requests
that cross are random: `mask` takes them out, and the round trip, which depends on the machine.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.configured_servers import KINDS, Running, serve
from support.embedded_broker import options_of
from support.nats_server import nats_server_binary
from support.raw_wire import RawLink, dial, prove_service, split_deliveries

from headwater.errors import ConfigError

pytestmark = pytest.mark.interop

CONFIG = """
listen: 127.0.0.1:-1
server_name: here
no_auth_user: g
accounts {
    G { users = [{user: g, password: p}] }
    A {
        users = [{user: a, password: p}]
        exports = [
            {stream: "s.>"}, {stream: "priv.>", accounts: [B]}, {stream: "t.*.*"}
            {stream: "own.*", account_token_position: 2}, {service: "req"}, {service: "many.*", response_type: stream}
            {service: "x.*.*"}
        ]
    }
    B {
        users = [{user: b, password: p}, {user: strict, password: p, permissions: {subscribe: {deny: "pre.s.no"}}}]
        imports = [
            {stream: {account: A, subject: "s.>"}, prefix: pre}, {stream: {account: A, subject: "priv.one"}, to: mine}
            {stream: {account: A, subject: "t.*.*"}, to: "u.$2.$1"}, {stream: {account: A, subject: "own.B"}}
            {service: {account: A, subject: "req"}, to: "local.req"}, {service: {account: A, subject: "many.*"}}
            {service: {account: A, subject: "x.*.*"}, to: "y.$2.z.$1"}
        ]
        exports = [{stream: "pre.>"}, {service: "local.req"}]
    }
    C {
        users = [{user: c, password: p}]
        imports = [
            {stream: {account: B, subject: "pre.>"}}, {stream: {account: A, subject: "s.>"}}
            {service: {account: A, subject: "req"}, share: true}, {service: {account: B, subject: "local.req"}, to: "chain"}
        ]
    }
    M {
        users = [{user: m, password: p, permissions: {publish: {deny: ["from.1", "to.2"]}}}]
        mappings = {
            "from.*": "to.$1", "all.>": "every.>"
            "p.*.*": "q.{{partition(10,1,2)}}.{{partition(5,2)}}.{{partition(7)}}.{{wildcard(2)}}"
            "s.*": "t.{{split(1,-)}}", "fixed.*": "one.place"
            "l.*": "m.{{splitFromLeft(1,3)}}.{{splitFromRight(1,3)}}.{{sliceFromLeft(1,2)}}.{{SliceFromRight(1,2)}}"
            "e.*": "f.{{left(1,2)}}.{{right(1,2)}}"
            "none": [{destination: "never", weight: 0%}]
            "here": [{destination: "elsewhere", weight: 100, cluster: far}, {destination: "there", weight: 100%}]
        }
    }
}
"""


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serve(str(request.param), tmp_path_factory.mktemp(str(request.param)), CONFIG) as running:
        yield running


@pytest.fixture
def links(server: Running) -> Iterator[dict[str, RawLink]]:
    opened = {user: enter(server, user) for user in "abcm"}
    yield opened
    for link in opened.values():
        link.close()
    prove_service(server.port)


def enter(server: Running, user: str) -> RawLink:
    return dial(server.port, user=user, no_responders=True, **{"pass": "p"})


def received(link: RawLink) -> list[bytes]:
    """What came, each delivery as `subject sid … body`, sorted; other lines as they are."""
    deliveries, lines = split_deliveries(link.settle())
    return sorted([*(b" ".join([one.sid, one.control, one.body]) for one in deliveries), *lines])


def send(link: RawLink, *ops: bytes) -> list[bytes]:
    link.send(b"".join(op + b"\r\n" for op in ops))
    return received(link)


def mask(text: bytes) -> bytes:
    return re.sub(rb"_R_\.[\w.]+", b"_R_", text)


@pytest.mark.parametrize(
    ("wanted", "published", "name"),
    [
        ("pre.s.x", "s.x", "pre.s.x"),
        ("pre.>", "s.x.y", "pre.s.x.y"),
        ("pre.*.x", "s.x", "pre.s.x"),
        ("*.s.*", "s.x", "pre.s.x"),
        (">", "s.x", "pre.s.x"),
        ("mine", "priv.one", "mine"),
        ("u.1.2", "t.2.1", "u.1.2"),
        ("u.*.2", "t.2.1", "u.1.2"),
        ("u.>", "t.2.1", "u.1.2"),
        ("own.B", "own.B", "own.B"),
    ],
)
def test_a_stream_is_heard_under_its_name_here(
    links: dict[str, RawLink], wanted: str, published: str, name: str
) -> None:
    assert send(links["b"], b"SUB %b 1" % wanted.encode()) == []
    send(
        links["a"],
        b"PUB %b back 2\r\nhi" % published.encode(),
        b"HPUB %b 12 13\r\nNATS/1.0\r\n\r\nx" % published.encode(),
    )
    plain, headers = name.encode(), b"NATS/1.0\r\n\r\nx\r\n"
    assert received(links["b"]) == [b"1 HMSG %b 12 13 " % plain + headers, b"1 MSG %b back 2 hi\r\n" % plain]


@pytest.mark.parametrize(
    ("wanted", "published"), [("s.x", "s.x"), ("u.2.1", "t.2.1"), ("priv.>", "priv.two"), ("own.C", "own.C")]
)
def test_what_is_not_imported_stays_where_it_is(links: dict[str, RawLink], wanted: str, published: str) -> None:
    send(links["b"], b"SUB %b 1" % wanted.encode())
    send(links["a"], b"PUB %b 0\r\n" % published.encode())
    assert received(links["b"]) == []


def test_streams_do_not_cross_two_accounts(links: dict[str, RawLink]) -> None:
    send(links["c"], b"SUB pre.> 1")
    send(links["a"], b"PUB s.x 0\r\n")
    assert received(links["c"]) == []
    send(links["b"], b"PUB pre.s.x 0\r\n")
    assert received(links["c"]) == [b"1 MSG pre.s.x 0 \r\n"]


def test_interest_behind_an_import_is_interest(links: dict[str, RawLink]) -> None:
    unserved = b"9 HMSG back.1 39 39 NATS/1.0 503\r\nNats-Subject: s.quiet\r\n\r\n\r\n"
    assert send(links["a"], b"SUB back.* 9", b"PUB s.quiet back.1 0\r\n") == [unserved]
    send(links["b"], b"SUB pre.s.quiet 1")
    assert send(links["a"], b"PUB s.quiet back.1 0\r\n") == []
    send(links["b"], b"UNSUB 1")
    assert send(links["a"], b"PUB s.quiet back.1 0\r\n") == [unserved]


def test_a_queue_group_goes_across_an_import(links: dict[str, RawLink]) -> None:
    send(links["b"], b"SUB pre.s.q crew 1")
    send(links["a"], b"SUB s.q crew 1")
    count = 40
    there = send(links["a"], *[b"PUB s.q 1\r\nx"] * count)
    here = received(links["b"])
    assert len(here) + len(there) == count
    assert here
    assert there


def test_a_denied_subject_is_not_imported(server: Running, links: dict[str, RawLink]) -> None:
    with enter(server, "strict") as strict:
        send(strict, b"SUB pre.s.* 1")
        send(links["a"], b"PUB s.no 0\r\n", b"PUB s.yes 0\r\n")
        assert received(strict) == [b"1 MSG pre.s.yes 0 \r\n"]


def test_a_client_that_goes_takes_its_interest_along(server: Running, links: dict[str, RawLink]) -> None:
    with enter(server, "b") as leaving:
        send(leaving, b"SUB pre.s.gone 1")
        leaving.end_sending()
        leaving.receive_end()
    answer = send(links["a"], b"SUB back.* 9", b"PUB s.gone back.1 0\r\n")
    assert len(answer) == 1
    assert b" 503\r\n" in answer[0]


def ask(links: dict[str, RawLink], requester: str, subject: bytes, *, header: bytes = b"") -> tuple[bytes, bytes]:
    """Sends a request; the delivery that the service gets, and the subject it has to reply to."""
    send(links[requester], b"SUB in.* 7")
    block = b"NATS/1.0\r\n" + header + b"\r\n"
    publish = b"PUB %b in.1 2" % subject
    if header:
        publish = b"HPUB %b in.1 %d %d" % (subject, len(block), len(block) + 2)
    links[requester].send(publish + b"\r\n" + (block if header else b"") + b"hi\r\n")
    assert received(links[requester]) == []
    (request,) = received(links["a"])
    found = re.search(rb"_R_\S+", request)
    assert found is not None
    return request, found[0]


@pytest.mark.parametrize(
    ("requested", "served"), [(b"local.req", b"req"), (b"many.1", b"many.1"), (b"y.1.z.2", b"x.2.1")]
)
def test_a_request_reaches_the_service_and_its_reply_the_asker(
    links: dict[str, RawLink], requested: bytes, served: bytes
) -> None:
    send(links["a"], b"SUB %b 1" % served)
    request, reply = ask(links, "b", requested)
    assert mask(request).startswith(b"1 HMSG %b _R_ " % served)
    send(links["a"], b"PUB %b 3\r\nyes" % reply)
    assert received(links["b"]) == [b"7 MSG in.1 3 yes\r\n"]


def test_the_service_is_told_which_account_asks(links: dict[str, RawLink]) -> None:
    send(links["a"], b"SUB req 1")
    request, _ = ask(links, "b", b"local.req", header=b"A: b\r\nNats-Request-Info: {}\r\n")
    block = request.split(b"NATS/1.0\r\n")[1]
    assert block.startswith(b"A: b\r\nNats-Request-Info: {")
    assert block.count(b"Nats-Request-Info") == 1, "what the client says it is counts for nothing"
    info = json.loads(block.split(b"Nats-Request-Info: ")[1].split(b"\r\n")[0])
    assert info["acc"] == "B"
    assert set(info) <= {"acc", "rtt", "server"}


def test_who_shares_shows_the_client_too(links: dict[str, RawLink]) -> None:
    send(links["a"], b"SUB req 1")
    request, _ = ask(links, "c", b"req")
    info = json.loads(request.split(b"Nats-Request-Info: ")[1].split(b"\r\n")[0])
    assert {name: info[name] for name in ("acc", "user", "host", "server", "kind", "client_type")} == {
        "acc": "C", "user": "c", "host": "127.0.0.1", "server": "here", "kind": "Client", "client_type": "nats",
    }  # fmt: skip
    assert set(info) - {"rtt"} == {"start", "host", "id", "acc", "user", "server", "kind", "client_type"}


def test_a_single_reply_is_single_and_a_stream_of_replies_is_not(links: dict[str, RawLink]) -> None:
    send(links["a"], b"SUB req 1", b"SUB many.* 2")
    _, reply = ask(links, "b", b"local.req")
    send(links["a"], b"PUB %b 1\r\na" % reply, b"PUB %b 1\r\nb" % reply)
    assert received(links["b"]) == [b"7 MSG in.1 1 a\r\n"]
    _, reply = ask(links, "b", b"many.1")
    send(links["a"], b"PUB %b 1\r\na" % reply, b"PUB %b 1\r\nb" % reply)
    assert received(links["b"]) == [b"7 MSG in.1 1 a\r\n", b"7 MSG in.1 1 b\r\n"]


def test_a_reply_may_be_replied_to(links: dict[str, RawLink]) -> None:
    send(links["a"], b"SUB many.* 2", b"SUB more.* 3")
    _, reply = ask(links, "b", b"many.1")
    send(links["a"], b"PUB %b more.1 1\r\na" % reply)
    (answer,) = received(links["b"])
    assert mask(answer) == b"7 MSG in.1 _R_ 1 a\r\n"
    found = re.search(rb"_R_\S+", answer)
    assert found is not None
    send(links["b"], b"PUB %b 2\r\nok" % found[0])
    assert received(links["a"]) == [b"3 MSG more.1 2 ok\r\n"]


def test_a_request_may_cross_two_accounts(links: dict[str, RawLink]) -> None:
    send(links["a"], b"SUB req 1")
    _, reply = ask(links, "c", b"chain")
    send(links["a"], b"PUB %b 3\r\nyes" % reply)
    assert received(links["c"]) == [b"7 MSG in.1 3 yes\r\n"]


def test_a_service_that_nobody_serves_has_no_responders(links: dict[str, RawLink]) -> None:
    send(links["b"], b"SUB in.* 7")
    assert send(links["b"], b"PUB local.req in.1 0\r\n") == [
        b"7 HMSG in.1 41 41 NATS/1.0 503\r\nNats-Subject: local.req\r\n\r\n\r\n"
    ]


@pytest.mark.parametrize(
    ("published", "received_as"),
    [
        ("from.3", "to.3"),
        ("all.a.b", "every.a.b"),
        ("p.foo.bar", "q.0.2.6.bar"),
        ("p.x.y", "q.2.1.6.y"),
        ("s.a-b--c-", "t.a.b.c"),
        ("s.abc", "t.abc"),
        ("s.-", ""),
        ("fixed.7", "one.place"),
        ("l.abcdefg", "m.abc.defg.abcd.efg.ab.cd.ef.g.a.bc.de.fg"),
        ("l.ab", "m.ab.ab.ab.ab"),
        ("e.abc", "f.ab.bc"),
        ("none", "none"),
        ("here", "there"),
        ("from", "from"),
        ("from.*", "to.*"),
        ("to.7", "to.7"),
    ],
)
def test_mappings_change_the_subject_of_what_clients_publish(
    links: dict[str, RawLink], published: str, received_as: str
) -> None:
    wanted = [b"1 MSG %b 0 \r\n" % received_as.encode()] if received_as else []
    assert send(links["m"], b"SUB > 1", b"PUB %b 0\r\n" % published.encode()) == wanted
    block = b"NATS/1.0\r\n\r\n"
    wanted = [b"1 HMSG %b 12 13 %bx\r\n" % (received_as.encode(), block)] if received_as else []
    run = send(links["m"], *[b"HPUB %b 12 13\r\n%bx" % (published.encode(), block)] * 3)
    assert run == wanted * 3


def test_permissions_are_those_of_the_mapped_subject(links: dict[str, RawLink]) -> None:
    assert send(links["m"], b"SUB > 1", b"PUB from.1 0\r\n") == [b"1 MSG to.1 0 \r\n"]
    assert send(links["m"], b"PUB from.2 0\r\n") == [b"-ERR 'Permissions Violation for Publish to \"to.2\"'\r\n"]


@pytest.mark.parametrize(
    "accounts",
    [
        'A {exports:[{stream:"s.>"}]}, B {imports:[{stream:{account:A,subject:"t.>"}}]}',
        'A {exports:[{stream:"s.>",accounts:[C]}]}, C {}, B {imports:[{stream:{account:A,subject:"s.>"}}]}',
        'A {exports:[{service:"s",accounts:[C]}]}, C {}, B {imports:[{service:{account:A,subject:"s"}}]}',
        'A {exports:[{service:"s"}]}, B {imports:[{stream:{account:A,subject:"s"}}]}',
        'A {exports:[{stream:"t.*.*"}]}, B {imports:[{stream:{account:A,subject:"t.*.*"}, to: "u.$1"}]}',
        'A {exports:[{stream:"t.*.*"}]}, B {imports:[{stream:{account:A,subject:"t.*.*"}, to: "u.$3.$1"}]}',
        'A {exports:[{service:"t.*.*"}]}, B {imports:[{service:{account:A,subject:"t.*.*"}, to: "u.v"}]}',
        'A {exports:[{stream:"t.*"}]}, B {imports:[{stream:{account:A,subject:"t.x"}, prefix:"a.*"}]}',
        'A {exports:[{stream:"t.*"}]}, B {imports:[{stream:{account:A,subject:"t.>"}}]}',
        'A {exports:[{service:"a"}]}, B {imports:[{service:{account:Z,subject:"b"}}]}',
        'A {exports:[{stream:"a.*",account_token_position:2}]}, B {imports:[{stream:{account:A,subject:"a.C"}}]}',
        'A {exports:[{stream:"a.>"}],imports:[{stream:{account:B,subject:"b.>"},to:"a.>"}]}, '
        'B {exports:[{stream:"b.>"}],imports:[{stream:{account:A,subject:"a.>"},to:"b.>"}]}',
        'A {exports:[{service:"a"}],imports:[{service:{account:B,subject:"b"},to:"a"}]}, '
        'B {exports:[{service:"b"}],imports:[{service:{account:A,subject:"a"},to:"b"}]}',
        'A {mappings:{"a.*":"b.$2"}}',
        'A {mappings:{"a.*":[{destination:"b.$1",weight:50%},{destination:"c.$1",weight:70%}]}}',
        'A {mappings:{"a.*":[{destination:"b.$1",weight:50%},{destination:"b.$1",weight:20%}]}}',
        'A {mappings:{"a":"{{bogus(1)}}"}}',
        'A {mappings:{"a.*":"{{partition(x,1)}}"}}',
        'A {mappings:{"a.*":"{{left(1)}}"}}',
        'A {mappings:{"a":"b.>"}}',
        'A {mappings:{"a..b":"x"}}',
        'A {mappings:{"a.*":5}}',
        'A {mappings:{"a.*":[{dest:"c.$1"}]}}',
    ],
)  # fmt: skip
def test_both_servers_refuse_the_same_files_for_the_same_reason(tmp_path: Path, accounts: str) -> None:
    file = tmp_path / "server.conf"
    file.write_text(f"accounts {{ {accounts} }}")
    real = subprocess.run(
        [nats_server_binary(), "-t", "-c", str(file)], capture_output=True, text=True, timeout=60, check=False
    )
    assert real.returncode == 1, real.stderr
    with pytest.raises(ConfigError) as ours:
        options_of(file)
    assert reasons(str(ours.value), file) == reasons(real.stderr, file)


def reasons(text: str, file: Path) -> set[str]:
    """The sentences with which a file is refused, without their places; nats-server finds a circle at either of its ends."""
    lines = [re.sub(r"^.*?:\d+:\d+: ", "", line).strip() for line in text.splitlines() if str(file) in line]
    return {re.sub(r'".*" *: (import forms a cycle)', r"\1", line) for line in lines}
