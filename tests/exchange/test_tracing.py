"""The log of `-V`, on nats-server and on ours: the same ops in the same form, and no credentials."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.configured_servers import KINDS
from support.embedded_broker import EmbeddedBroker, options_of
from support.nats_server import start_nats_server
from support.raw_wire import RawLink, connect_op, dial

from headwater.exchange import tracing
from headwater.exchange.tracing import Splitter, shown
from headwater.options.broker import TRACE_LEVEL

CONFIG = """
listen: 127.0.0.1:-1
trace: true
no_auth_user: u
authorization { users = [{user: u, password: hunter22}] }
"""
TEXT = (
    b"SUB a.* 1\r\nPUB a.b 5\r\nhello\r\nHPUB a.h back 12 14\r\nNATS/1.0\r\n\r\nhi\r\n"
    b"UNSUB 1 9\r\npub a.b 3\r\na\nb\r\nbogus\r\n"
)


@pytest.fixture
def traced(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(TRACE_LEVEL, logger=tracing.__name__):
        yield caplog


def lines_of(kind: str, directory: Path, caplog: pytest.LogCaptureFixture) -> list[str]:
    """A server's log of a client that sends SAID, without the address, the number, and the PINGs of this test."""
    file = directory / "server.conf"
    file.write_text(CONFIG)
    if kind == "headwater":
        with EmbeddedBroker(options_of(file)) as ours:
            converse(ours.port)
        lines = [record.getMessage() for record in caplog.records if record.levelno == TRACE_LEVEL]
    else:
        with start_nats_server(directory, "-c", str(file), jetstream=False) as real:
            converse(real.port)
        lines = [line.split("[TRC] ")[1] for line in real.log.read_text().splitlines() if "[TRC] " in line]
    masked = [re.sub(r"^127\.0\.0\.1:\d+ - cid:\d+ - ", "", line) for line in lines]
    # Only ours logs bytes that are no op.
    return [line for line in masked if not re.search("PING|PONG|BOGUS", line)]


def converse(port: int) -> None:
    with RawLink(port) as link:
        link.send(connect_op(user="u", **{"pass": "hunter22"}))
        link.settle()
        link.send(TEXT)
        link.receive_end()


@pytest.mark.interop
def test_the_ops_are_those_that_nats_server_logs(traced: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    real, ours = (lines_of(kind, tmp_path, traced) for kind in KINDS)
    assert len(real) > 10
    sides = [[sorted(arrow(line) for line in lines if way in line) for way in ("<<-", "->>")] for lines in (real, ours)]
    assert sides[1][0] == sides[0][0]
    assert [line for line in sides[1][1] if "-ERR" not in line] == [line for line in sides[0][1] if "-ERR" not in line]
    assert "hunter22" not in str(ours)


def arrow(line: str) -> str:
    """An op without its user, which is unknown until the verdict on CONNECT; the two servers log that at different
    moments.
    """
    return re.sub(r'^"[^"]*" - ', "", line)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_ops_are_found_however_they_are_cut(size: int) -> None:
    splitter = Splitter()
    found = [op for at in range(0, len(TEXT), size) for op in splitter.feed(TEXT[at : at + size])]
    assert found == [
        ("op", b"SUB a.* 1"), ("op", b"PUB a.b 5"), ("payload", b"hello"), ("op", b"HPUB a.h back 12 14"),
        ("payload", b"NATS/1.0\r\n\r\nhi"), ("op", b"UNSUB 1 9"), ("op", b"pub a.b 3"), ("payload", b"a\nb"),
        ("op", b"bogus"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "document",
    [
        b'{"user":"u","pass":"hunter22"}',
        b'{"AUTH_TOKEN":"hunter22"}',
        b'{"jwt":"hunter22","sig":"hunter22"}',
        b'{"pass":"hunter22"',
        b'"hunter22"',
    ],
)
def test_credentials_are_never_shown(document: bytes) -> None:
    for verb in (b"CONNECT ", b"connect\t", b"CONNECT"):
        assert "hunter22" not in shown(verb + document)


def test_payloads_are_cut_at_the_limit_and_the_system_account_is_not_traced(
    traced: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing.Settings, "most", 3)
    file = tmp_path / "server.conf"
    file.write_text('accounts { A { users: [{user: a, password: p}] }, "$SYS" { users: [{user: s, password: p}] } }')
    with EmbeddedBroker(options_of(file)) as broker:
        for user in ("a", "s"):
            with dial(broker.port, user=user, **{"pass": "p"}) as link:
                link.send(b"PUB %b 5\r\nhello\r\n" % user.encode())
                link.settle()
    assert 'MSG_PAYLOAD: ["hel..."]' in traced.text
    assert "[PUB a 5]" in traced.text
    assert "[PUB s 5]" not in traced.text


def test_bytes_that_are_no_text_are_shown_escaped() -> None:
    assert shown(b"sub \xff 1") == "SUB \udcff 1"
