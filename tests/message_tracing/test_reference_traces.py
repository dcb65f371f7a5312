"""Traced messages on one server (ADR-41): nats-server proves every line of the reports, ours has to send the same."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.configured_servers import KINDS, Running, serve
from support.raw_wire import RawLink, dial
from support.traces import hpub, read_report, receive, receive_report

pytestmark = pytest.mark.interop

CONFIG = """server_name: srv
accounts {
  A: {
    users: [ { user: a, password: p, permissions: { publish: { deny: ["deny.>"] } } },
             { user: d, password: p, permissions: { subscribe: { deny: ["core.x"] } } } ]
    jetstream: enabled, mappings: { "map.x": "core.m" }, msg_trace: { dest: "tr.acc", sampling: "100%" }
    exports: [ { stream: "ex.*" } ]
    imports: [ { service: { account: B, subject: "svc.open" }, to: "svc" },
               { service: { account: B, subject: "svc.shut" } } ]
  }
  B: {
    users: [ { user: b, password: p } ]
    exports: [ { service: "svc.open", allow_trace: true }, { service: "svc.shut" } ]
    imports: [ { stream: { account: A, subject: "ex.shut" }, to: "shut" },
               { stream: { account: A, subject: "ex.open" }, to: "open", allow_trace: true } ]
  }
  SYS: { users: [ { user: s, password: p } ] }
}
system_account: SYS
jetstream { store_dir: "STORE" }
"""
ONLY: list[dict[str, Any]] = [{}, {"Nats_Trace_Only": "1"}]
INGRESS = "in client name=pub acc=A subj="


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("traces")
    with serve(request.param, folder, CONFIG.replace("STORE", str(folder / "js"))) as running:
        yield running


def link(server: Running, user: str, name: str, *sent: bytes, echo: bool = True) -> RawLink:
    made = dial(server.port, user=user, name=name, echo=echo, **{"pass": "p"})
    for subscribe in sent:
        made.send(subscribe)
    made.settle()
    return made


@pytest.fixture
def watcher(server: Running) -> Iterator[RawLink]:
    """Hears the reports of account A, and nothing else."""
    with link(server, "a", "watch", b"SUB tr.> 1\r\n") as made:
        yield made


@pytest.fixture
def publisher(server: Running) -> Iterator[RawLink]:
    with link(server, "a", "pub", echo=False) as made:
        yield made


def test_a_report_names_who_got_the_message_and_who_did_not(
    server: Running, watcher: RawLink, publisher: RawLink
) -> None:
    publisher.send(b"SUB core.> 1\r\n")
    with (
        link(server, "a", "c1", b"SUB core.* 2\r\nSUB core.* grp 3\r\n") as client,
        link(server, "d", "c2", b"SUB *.x 2\r\n"),
    ):
        publisher.send(hpub("core.x", Nats_Trace_Dest="tr.1"))
        report = receive_report(watcher)
        assert [got.headers for got in receive(client, 2)] == [b"NATS/1.0\r\nNats-Trace-Dest: tr.1\r\n\r\n"] * 2
    assert (report.server, report.headers, report.size) == ("srv", {"Nats-Trace-Dest": ["tr.1"]}, 37)
    assert report.events[0] == INGRESS + "core.x"
    assert sorted(report.events[1:]) == [
        "eg client name=c1 sub=core.*",
        "eg client name=c1 sub=core.* queue=grp",
        "eg client name=c2 sub=*.x error=Not delivered because subscription denies this subject",
        "eg client name=pub sub=core.> error=Not delivered because of no echo",
    ]


def test_what_is_only_traced_reaches_nobody(server: Running, watcher: RawLink, publisher: RawLink) -> None:
    with link(server, "a", "c1", b"SUB core.* 2\r\n") as client:
        for word in ("1", "true", "on", "ON"):
            publisher.send(hpub("core.a", Nats_Trace_Dest="tr.1", Nats_Trace_Only=word))
            assert receive_report(watcher).events == [INGRESS + "core.a", "eg client name=c1 sub=core.*"]
        assert client.settle() == b""


def test_a_mapping_is_a_step_and_nobody_at_the_end_is_none(watcher: RawLink, publisher: RawLink) -> None:
    publisher.send(hpub("map.x", Nats_Trace_Dest="tr.1"))
    assert receive_report(watcher).events == [INGRESS + "map.x", "sm to=core.m"]


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (hpub("deny.y", Nats_Trace_Dest="tr.1"), 'Permissions Violation for Publish to "deny.y"'),
        (hpub("x", reply="_R_.x", Nats_Trace_Dest="tr.1"), 'Permissions Violation for Publish with Reply of "_R_.x"'),
    ],
)
def test_what_may_not_be_published_is_reported(watcher: RawLink, publisher: RawLink, sent: bytes, text: str) -> None:
    assert publisher.answer(sent).output == b"-ERR '%b'\r\n" % text.encode()
    assert receive_report(watcher).events[0].endswith(f" error={text}")


def test_a_destination_that_the_sender_may_not_publish_to_drops_the_message(
    server: Running, publisher: RawLink
) -> None:
    with link(server, "a", "c1", b"SUB core.* 2\r\nSUB deny.* 3\r\n") as client:
        sent = publisher.answer(hpub("core.a", Nats_Trace_Dest="deny.x")).output
        assert sent == b"-ERR 'Permissions Violation for Publish to \"deny.x\"'\r\n"
        assert client.settle() == b""


def test_a_destination_that_is_no_subject_is_passed_over(server: Running, publisher: RawLink) -> None:
    with link(server, "a", "c1", b"SUB core.* 2\r\nSUB bad.* 3\r\n") as client:
        publisher.answer(hpub("core.a", Nats_Trace_Dest="bad.*", Nats_Trace_Only="1"))
        publisher.answer(hpub("core.b", Nats_Trace_Dest="bad.*"))
        publisher.answer(hpub("core.c", Nats_Trace_Dest="tr.1", Nats_Trace_Origin_Account="X"))
        received = receive(client, 2)
        assert [got.subject for got in received] == ["core.b", "core.c"]
        assert received[1].headers.endswith(b"X\r\nNats-Trace-Dest: trace disabled\r\n\r\n")


@pytest.mark.parametrize(
    ("name", "value", "is_traced"),
    [
        ("traceparent", "00-a-b-01", True),
        ("TraceParent", "00-a-b-03", True),
        ("traceparent", "00-a-b-00", False),
        ("traceparent", "00-a-b-1", False),
        ("traceparent", "00-a-b-81", False),
        ("traceparent", "00-a-b-0g", False),
        ("traceparent", "00-b-01", False),
        ("nats-trace-dest", "tr.1", False),
    ],
)
def test_a_sampled_traceparent_is_reported_to_the_destination_of_the_account(
    watcher: RawLink, publisher: RawLink, name: str, value: str, is_traced: bool
) -> None:
    publisher.answer(hpub("none", b"", "", **{name: value}))
    publisher.send(b"PUB tr.end 0\r\n\r\n")
    received = receive(watcher, 1 + is_traced)
    assert [got.subject for got in received][:is_traced] == ["tr.acc"] * is_traced


def test_a_stream_import_is_a_step_and_ends_the_trace_unless_it_allows_it(
    server: Running, watcher: RawLink, publisher: RawLink
) -> None:
    with link(server, "b", "cb", b"SUB open 3\r\nSUB shut q 4\r\n") as importer:
        for only in ONLY:
            publisher.send(hpub("ex.open", Nats_Trace_Dest="tr.1", **only))
            steps = ["se acc=B to=open", "eg client name=cb acc=B sub=ex.open"]
            assert receive_report(watcher).events == [INGRESS + "ex.open", *steps]
            publisher.send(hpub("ex.shut", Nats_Trace_Dest="tr.1", **only))
            assert receive_report(watcher).events == [INGRESS + "ex.shut", "se acc=B to=shut"]
        assert [got.subject for got in receive(importer, 2)] == ["open", "shut"]
        assert importer.settle() == b""


def test_a_service_import_is_a_step_and_ends_the_trace_unless_the_export_allows_it(
    server: Running, watcher: RawLink, publisher: RawLink
) -> None:
    with link(server, "b", "cb", b"SUB svc.> 3\r\n") as service:
        publisher.send(hpub("svc", reply="tr.reply", Nats_Trace_Dest="tr.1"))
        steps = ["si acc=B from=svc to=svc.open", "eg client name=cb acc=B sub=svc.>"]
        assert receive_report(watcher).events == [INGRESS + "svc", *steps]
        assert b"Nats-Trace-Dest: _R_." in receive(service, 1)[0].headers
        publisher.send(hpub("svc.shut", Nats_Trace_Dest="tr.1"))
        assert receive_report(watcher).events == [INGRESS + "svc.shut", "si acc=B from=svc.shut to=svc.shut"]
        assert receive(service, 1)[0].headers.endswith(b"\r\nNats-Trace-Dest: trace disabled\r\n\r\n")
        publisher.send(hpub("svc.shut", Nats_Trace_Dest="tr.1", Nats_Trace_Only="1"))
        assert receive_report(watcher).events[1:] == ["si acc=B from=svc.shut to=svc.shut"]
        assert service.settle() == b""


def test_a_stream_says_whether_it_stores_the_message(server: Running, watcher: RawLink, publisher: RawLink) -> None:
    document = json.dumps({"name": "S", "subjects": ["s.>"], "storage": "memory"}).encode()
    with link(server, "a", "js", b"SUB made 1\r\n") as client:
        client.send(b"PUB $JS.API.STREAM.CREATE.S made %d\r\n%b\r\n" % (len(document), document))
        assert b"error" not in receive(client, 1)[0].payload

    def step(**headers: Any) -> str:
        publisher.send(hpub("s.1", Nats_Trace_Dest="tr.1", **headers))
        return receive_report(watcher).events[-1]

    assert step(Nats_Msg_Id="i", Nats_Trace_Only="1") == "js stream=S subject=s.1"
    assert step(Nats_Msg_Id="i") == "js stream=S subject=s.1"
    for only in ONLY:
        assert step(Nats_Msg_Id="i", **only) == "js stream=S error=msgid is duplicate"
        assert step(Nats_Expected_Last_Sequence="17", **only) == "js stream=S error=last sequence mismatch: 17 vs 1"
        assert step(Nats_Expected_Last_Msg_Id="x", **only) == 'js stream=S error=last msgid mismatch: "x" vs "i"'
        assert step(Nats_Expected_Stream="T", **only) == "js stream=S error=expected stream does not match"
        assert step(Nats_Rollup="all", **only) == "js stream=S error=rollup not permitted"
    info, user = "$JS.API.STREAM.INFO.S", "$SYS.REQ.USER.INFO"
    for subject, account in ((info, info), (user, "$SYS.REQ.USER.A.INFO")):
        publisher.send(hpub(subject, b"", reply="nobody", Nats_Trace_Dest="tr.1"))
        assert receive_report(watcher).events[-1] == f"si acc=SYS from={subject} to={account}"
    with link(server, "a", "js", b"SUB got 1\r\n") as client:
        client.send(b'PUB $JS.API.STREAM.MSG.GET.S got 9\r\n{"seq":1}\r\n')
        message = json.loads(receive(client, 1)[0].payload)["message"]
        client.send(b"PUB $JS.API.STREAM.INFO.S got 0\r\n\r\n")
        assert json.loads(receive(client, 1)[0].payload)["state"]["last_seq"] == 1
    assert message["hdrs"] == "TkFUUy8xLjANCk5hdHMtVHJhY2UtRGVzdDogdHJhY2UgZGlzYWJsZWQNCk5hdHMtTXNnLUlkOiBpDQoNCg=="


def test_a_refused_message_is_reported_with_its_reason_also_in_a_batch(
    server: Running, watcher: RawLink, publisher: RawLink
) -> None:
    name: dict[str, Any] = {"Nats_Batch_Id": "b"}
    with link(server, "a", "js", b"SUB made 1\r\n") as client:
        for stream, settings in (
            ("R", {}),
            ("RA", {"allow_atomic": True, "max_msg_size": 200}),
            ("RF", {"allow_batched": True}),
            ("RD", {"max_msgs": 1, "discard": "new"}),
        ):
            config = {"name": stream, "subjects": [f"{stream}.>"], "storage": "memory", **settings}
            document = json.dumps(config).encode()
            client.send(b"PUB $JS.API.STREAM.CREATE.%b made %d\r\n%b\r\n" % (stream.encode(), len(document), document))
            assert b"error" not in receive(client, 1)[0].payload

    def step(subject: str, body: bytes = b"x", reply: str = "nobody", **headers: Any) -> str:
        publisher.send(hpub(subject, body, reply=reply, Nats_Trace_Dest="tr.1", **headers))
        return receive_report(watcher).events[-1].partition(" ")[2].partition(" ")[2]

    assert step("RA.1", b"x" * 300) == "error=maximum payload exceeded"
    assert [step("RD.1"), step("RD.1")] == ["subject=RD.1", "subject=RD.1 error=maximum messages exceeded"]
    assert step("R.1", Nats_Batch_Sequence="1", **name) == "error=atomic publish is disabled (10174)"
    assert step("RA.1", **name) == "error=atomic publish sequence is missing (10175)"
    assert step("RA.1", Nats_Batch_Sequence="2", **name) == "error=atomic publish batch is incomplete (10176)"
    last = {"Nats_Batch_Sequence": "1", "Nats_Batch_Commit": "1", **name}
    assert step("RA.1", Nats_Expected_Last_Sequence="7", **last) == "error=last sequence mismatch: 7 vs 0"
    assert step("RA.1", **last) == "subject=RA.1"
    assert step("R.1", reply="nobody.f.10.ok.1.0.$FI") == "error=batch publish is disabled (10205)"
    assert step("RF.1", reply="nobody.f.10.ok.2.1.$FI") == "error=batch publish ID unknown (10208)"
    assert step("RF.1", reply="nobody.g.10.ok.1.0.$FI") == "subject=RF.1"
    wrong = step("RF.1", reply="nobody.g.10.ok.2.1.$FI", Nats_Expected_Last_Sequence="7")
    assert wrong == "error=last sequence mismatch: 7 vs 1"


def test_a_message_of_a_batch_is_not_reported_before_the_batch_has_ended(tmp_path: Path) -> None:
    document = json.dumps({"name": "A", "subjects": ["a.>"], "storage": "memory", "allow_atomic": True}).encode()
    with serve("headwater", tmp_path, CONFIG.replace("STORE", str(tmp_path / "js"))) as ours:
        with link(ours, "a", "w", b"SUB tr.> 1\r\n") as watcher, link(ours, "a", "p", b"SUB got 1\r\n") as client:
            client.send(b"PUB $JS.API.STREAM.CREATE.A got %d\r\n%b\r\n" % (len(document), document))
            receive(client, 1)
            for batch, numbers, last in (("good", "123", "subject=a.1"), ("bad", "124", "batch is incomplete (10176)")):
                for number in numbers:
                    headers: dict[str, Any] = {"Nats_Batch_Id": batch, "Nats_Batch_Sequence": number}
                    headers |= {"Nats_Batch_Commit": "1"} if number == numbers[-1] else {}
                    assert watcher.settle() == b""
                    client.send(hpub("a.1", reply="got", Nats_Trace_Dest="tr.1", **headers))
                    receive(client, 1)
                for _ in numbers:
                    assert receive_report(watcher).events[-1].endswith(last)


@pytest.mark.parametrize(
    ("accepted", "sent"), [("gzip", b"gzip"), ("snappy", b"snappy"), ("s2", b"snappy"), ("br", b"identity")]
)
def test_a_report_is_compressed_as_it_is_asked(
    watcher: RawLink, publisher: RawLink, accepted: str, sent: bytes
) -> None:
    publisher.send(hpub("none", Accept_Encoding=accepted, Nats_Trace_Dest="tr.1"))
    received = receive(watcher, 1)[0]
    assert received.headers == b"NATS/1.0\r\nContent-Encoding: %b\r\n\r\n" % sent
    if sent == b"snappy":
        assert received.payload.startswith(b"\xff\x06\x00\x00sNaPpY")
    else:
        assert read_report(received.payload).events == [INGRESS + "none"]
