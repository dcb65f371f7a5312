"""benchmarks/pulled.py: what a server does not deliver is requested again, and named where it never comes."""

import socket
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pulled() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        module = import_module("pulled")
        patch.setattr(module, "IDLE", 0.001)
        patch.setattr(module, "PATIENCE", 0.002)
        yield module


def delivery(sequence: int, attempt: int) -> bytes:
    return b"MSG _INBOX.one 2 $JS.ACK.S.R.%d.%d.1.1.0 1\r\nx\r\n" % (attempt, sequence)


def test_deliveries_that_never_come_are_named_after_bounded_requests(pulled: ModuleType) -> None:
    ours, theirs = socket.socketpair()
    notes: list[str] = []
    with ours, theirs:
        deliveries = pulled.Deliveries(ours, "S", lambda: 0.0, notes.append)
        theirs.sendall(delivery(1, 2) + b"PING\r\n")
        with pytest.raises(pulled.Missing, match=r"1 deliveries did not come in 4 pulls: 2 \(attempt 2\)"):
            deliveries.pull(2, {(1, 2), (2, 2)})
        sent = theirs.recv(4096)
    assert sent.count(b"$JS.API.CONSUMER.MSG.NEXT.S.R") == 4
    assert sent.count(b'"batch": 1,') == 3
    assert sent.count(b"PONG\r\n") == 1
    assert len(notes) == 3


def test_cpu_while_nothing_comes_is_counted_as_idle(pulled: ModuleType) -> None:
    ours, theirs = socket.socketpair()
    spent = iter([1.0, 4.0])  # at the beginning of the pause, and at its end
    with ours, theirs:

        def note(text: str) -> None:
            theirs.sendall(delivery(1, 1))

        deliveries = pulled.Deliveries(ours, "S", lambda: next(spent), note)
        assert deliveries.pull(1, {(1, 1)}) == [(b"$JS.ACK.S.R.1.1.1.1.0", 1, 1)]
    assert deliveries.idle == 3.0
    assert deliveries.seen == [(1, 1)]
