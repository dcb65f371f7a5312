"""Exports, imports and mappings in account JWTs, on nats-server and on ours with the same chain of JWTs."""

from collections.abc import Iterator

import pytest
from support.configured_servers import KINDS, Running, serve
from support.operator_chain import Chain, Key
from support.raw_wire import RawLink, connect_op, read_info, split_deliveries
from support.traces import hpub, receive_report

from headwater.authorization.account_sharing import exports_of, imports_of, left_out_of, mappings_of, trace_of
from headwater.model.nkey import NkeyKind
from headwater.wire.jwt import (
    AccountBody,
    AccountLimits,
    ExportClaims,
    ImportClaims,
    MappingClaims,
    StorageLimits,
    TraceClaims,
)

USER_A, USER_B = (Key(NkeyKind.USER, number) for number in (1, 2))
CHAIN = Chain()
CHAIN.accounts[CHAIN.a.public] = CHAIN.account(
    CHAIN.a,
    limits={"imports": -1, "exports": -1, "wildcards": True},
    exports=[
        {"name": "s", "subject": "s.>", "type": "stream"},
        {"name": "r", "subject": "req", "type": "service", "response_type": "Singleton"},
        {"name": "t", "subject": "closed", "type": "stream", "token_req": True},
    ],
    trace={"dest": "traces", "sampling": 100},
    mappings={"old.*": [{"subject": "new.{{wildcard(1)}}", "weight": 100}]},
)
CHAIN.accounts[CHAIN.b.public] = CHAIN.account(
    CHAIN.b,
    limits={"imports": -1, "exports": -1, "wildcards": True},
    imports=[
        {"name": "s", "subject": "s.*", "account": CHAIN.a.public, "type": "stream", "local_subject": "here.$1"},
        {"name": "r", "subject": "req", "account": CHAIN.a.public, "type": "service", "local_subject": "ask"},
        {"name": "t", "subject": "closed", "account": CHAIN.a.public, "type": "stream"},
        {"name": "n", "subject": "never.exported", "account": CHAIN.a.public, "type": "stream"},
    ],
)


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    config = "listen: 127.0.0.1:-1\n" + CHAIN.config()
    with serve(str(request.param), tmp_path_factory.mktemp(str(request.param)), config) as running:
        yield running


def enter(server: Running, key: Key, account: Key) -> RawLink:
    link = RawLink(server.port)
    nonce = read_info(link.greeting)["nonce"]
    link.send(connect_op(jwt=CHAIN.user(key, account), sig=key.sign(nonce), no_responders=True))
    assert link.settle() == b""
    return link


@pytest.mark.interop
def test_shared_subjects_cross_accounts(server: Running) -> None:
    with enter(server, USER_A, CHAIN.a) as a, enter(server, USER_B, CHAIN.b) as b:
        a.send(b"SUB req 1\r\nSUB new.* 2\r\n")
        b.send(b"SUB here.* 1\r\nSUB in.* 2\r\nSUB closed 3\r\nSUB never.exported 4\r\n")
        assert a.settle() + b.settle() == b""
        a.send(b"PUB s.x 2\r\nhi\r\nPUB closed 0\r\n\r\nPUB never.exported 0\r\n\r\nPUB old.7 0\r\n\r\n")
        assert a.settle() == b"MSG new.7 2 0\r\n\r\n"
        assert b.settle() == b"MSG here.x 1 2\r\nhi\r\n"
        b.send(b"PUB ask in.1 0\r\n\r\n")
        assert b.settle() == b""
        (request,), _ = split_deliveries(a.settle())
        reply = request.control.split()[2]
        a.send(b"PUB %b 2\r\nok\r\n" % reply)
        a.settle()
        assert b.settle() == b"MSG in.1 2 2\r\nok\r\n"


@pytest.mark.interop
def test_a_sampled_traceparent_is_reported_to_the_destination_in_the_jwt(server: Running) -> None:
    with enter(server, USER_A, CHAIN.a) as a, enter(server, USER_A, CHAIN.a) as watcher:
        watcher.send(b"SUB traces 1\r\n")
        watcher.settle()
        a.send(hpub("nobody", traceparent="00-a-b-01"))
        assert receive_report(watcher).events == [f"in client acc={CHAIN.a.public} subj=nobody"]


def test_a_trace_without_a_destination_is_off() -> None:
    assert trace_of(AccountBody()) == trace_of(AccountBody(trace=TraceClaims(dest="a.*"))) == ("", 100)
    assert trace_of(AccountBody(trace=TraceClaims(dest="a", sampling=500))) == ("a", 100)


def test_entries_that_make_no_sense_are_left_out() -> None:
    body = AccountBody(
        exports=[
            ExportClaims(subject="a..b", type="stream"),
            ExportClaims(subject="a", type="pigeon"),
            ExportClaims(subject="a", type="service", response_type="Odd"),
            ExportClaims(subject="a", type="stream", token_req=True),
            ExportClaims(subject="a", type="service", response_type="Chunked", response_threshold=2_000_000_000),
        ],
        imports=[
            ImportClaims(subject="", type="stream"),
            ImportClaims(subject="s", account="A", type="stream", to="pre"),
        ],
        mappings={"a.*": [MappingClaims(subject="b.$2")], "c": [MappingClaims(subject="d")]},
    )
    assert [(one.kind, one.response, one.response_threshold) for one in exports_of(body)] == [
        ("service", "chunked", 2.0)
    ]
    assert [(one.subject, one.prefix, one.to) for one in imports_of(body)] == [("s", "pre", "")]
    assert [one.source for one in mappings_of(body)] == ["c"]
    assert list(exports_of(AccountBody())) == list(imports_of(AccountBody())) == []
    assert list(left_out_of(body)) == [
        "the export of 'a..b': its subject, its type or its response type",
        "the export of 'a': its subject, its type or its response type",
        "the export of 'a': its subject, its type or its response type",
        "the export of 'a': importers would have to show a token",
        "the import of '': its subject or its type",
        "the mapping of 'a.*': its subjects or weights",
    ]
    assert list(left_out_of(AccountBody(trace=TraceClaims(dest="a.*")))) == [
        "traces: nothing can be published to 'a.*'"
    ]
    tiers = AccountLimits(tiered_limits={"R1": StorageLimits(), "R3": StorageLimits()})
    assert [line.partition(":")[0] for line in left_out_of(AccountBody(limits=tiers))] == [
        "the JetStream limits of tier 'R3'"
    ]
    assert list(left_out_of(AccountBody(trace=TraceClaims()))) == list(left_out_of(AccountBody())) == []


@pytest.mark.interop
def test_both_servers_still_serve_others(server: Running) -> None:
    with enter(server, USER_A, CHAIN.a) as link:
        link.send(b"SUB still.alive 1\r\nPUB still.alive 0\r\n\r\n")
        assert link.settle() == b"MSG still.alive 1 0\r\n\r\n"
