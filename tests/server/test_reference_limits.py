"""Limits, liveness and self-protection, against nats-server and ours with the same file.

Each limit has its own answer; some end the connection, and none disturbs anybody else.
"""

import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from support.configured_servers import KINDS, ServerShelf, shelf
from support.headwater_server import start_headwater
from support.nats_server import start_nats_server
from support.raw_wire import RawLink, closed, connect_op, dial, prove_service, read_info, still_open

__all__ = ["shelf"]

pytestmark = pytest.mark.interop


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    yield str(request.param)


SMALL = """
max_payload: 100
max_control_line: 256
max_subscriptions: 3
max_subscription_tokens: 4
"""


def test_the_largest_payload_is_told_and_kept(kind: str, shelf: ServerShelf) -> None:
    port = shelf.get(kind, SMALL).port
    with dial(port) as link:
        assert read_info(link.greeting)["max_payload"] == 100
        link.send(b"SUB a 1\r\nPUB a 100\r\n" + b"x" * 100 + b"\r\n")
        assert link.settle() == b"MSG a 1 100\r\n" + b"x" * 100 + b"\r\n"
        assert link.answer(b"PUB a 101\r\n") == closed(b"-ERR 'Maximum Payload Violation'\r\n")
    with dial(port) as link:
        assert link.answer(b"HPUB a 12 101\r\n") == closed(b"-ERR 'Maximum Payload Violation'\r\n")
    prove_service(port)


@pytest.mark.parametrize("op", [b"SUB %b 1\r\n", b"PUB %b 1\r\nx\r\n", b"SUB %b", b"CONNECT %b", b"UNSUB %b"])
def test_the_longest_control_line_is_kept(kind: str, shelf: ServerShelf, op: bytes) -> None:
    port = shelf.get(kind, SMALL).port
    with dial(port) as link:
        link.send(op % (b"a" * 300))
        assert link.receive_end() == b"-ERR 'maximum control line exceeded'\r\n"
    prove_service(port)


def test_one_subscription_too_many_is_refused_and_the_others_stay(kind: str, shelf: ServerShelf) -> None:
    with dial(shelf.get(kind, SMALL).port) as link:
        assert link.answer(b"SUB a 1\r\nSUB b 2\r\nSUB c 3\r\n") == still_open()
        assert link.answer(b"SUB d 4\r\n") == still_open(b"-ERR 'maximum subscriptions exceeded'\r\n")
        assert link.answer(b"UNSUB 1\r\nSUB d 4\r\nPUB d 1\r\nx\r\n") == still_open(b"MSG d 4 1\r\nx\r\n")


def test_a_subject_with_too_many_tokens_is_refused(kind: str, shelf: ServerShelf) -> None:
    refused = b"-ERR 'Permissions Violation for Subscription to \"a.b.c.d.e\", too many tokens'\r\n"
    with dial(shelf.get(kind, SMALL).port) as link:
        assert link.answer(b"SUB a.b.c.d 1\r\nSUB a.b.c.d.e 2\r\n") == still_open(refused)


def test_one_connection_too_many_is_told_behind_info(kind: str, shelf: ServerShelf) -> None:
    port = shelf.get(kind, "max_connections: 2").port
    with dial(port), dial(port) as second:
        with RawLink(port) as third:
            assert third.receive_end() == b"-ERR 'maximum connections exceeded'\r\n"
        assert second.answer(b"") == still_open()
    while True:  # the places of those who left are free again
        try:
            prove_service(port)
        except (AssertionError, EOFError):
            continue
        return


def test_without_header_support_headers_are_an_error(kind: str, shelf: ServerShelf) -> None:
    port = shelf.get(kind, "no_header_support: true").port
    with dial(port, headers=True) as link:
        assert not read_info(link.greeting).get("headers", False)
        assert link.answer(b"HPUB a 12 14\r\nNATS/1.0\r\n\r\nhi\r\n") == closed()
    with RawLink(port) as link:
        answer = link.answer(connect_op(headers=True, no_responders=True))
        assert answer == closed(b"-ERR 'no responders requires headers support'\r\n")
    prove_service(port)


def test_dollar_sys_is_an_ordinary_subject_for_clients(kind: str, shelf: ServerShelf) -> None:
    with dial(shelf.get(kind, SMALL).port) as link:
        assert link.answer(b"SUB $SYS.> 1\r\nPUB $SYS.x 1\r\nx\r\n") == still_open(b"MSG $SYS.x 1 1\r\nx\r\n")


# --- liveness --------------------------------------------------------------------------------------------------------

RESTLESS = 'ping_interval: "200ms"\nping_max: 2'


def test_a_client_that_answers_no_ping_is_stale(kind: str, shelf: ServerShelf) -> None:
    port = shelf.get(kind, RESTLESS).port
    with dial(port) as link:
        received = link.receive_end()
    assert received == b"PING\r\nPING\r\n-ERR 'Stale Connection'\r\n"
    prove_service(port)


def test_the_first_ping_comes_two_seconds_after_connect_and_none_before_it(kind: str, shelf: ServerShelf) -> None:
    """A client behind a slow link, or one that is about to start TLS, expects INFO and no other op before its CONNECT."""
    port = shelf.get(kind, SMALL).port
    with RawLink(port) as not_yet, dial(port) as link:
        since = time.monotonic()
        assert link.receive_line() == b"PING\r\n"
        assert time.monotonic() - since > 1.8
        link.send(b"PONG\r\n")
        assert link.settle() == b""
        not_yet.send(connect_op(verbose=True))
        assert not_yet.receive_line() == b"+OK\r\n"


def test_an_idle_client_is_pinged_every_interval_however_it_answers(kind: str, shelf: ServerShelf) -> None:
    with dial(shelf.get(kind, RESTLESS).port) as link:
        received = []
        for _ in range(8):
            assert link.receive_line() == b"PING\r\n"
            received.append(time.monotonic())
            link.send(b"PONG\r\n")
        gaps = sorted(later - before for before, later in pairwise(received))
        assert gaps[len(gaps) // 2] < 0.3  # seconds, of 0.2


def test_a_client_that_speaks_is_not_pinged(kind: str, shelf: ServerShelf) -> None:
    with dial(shelf.get(kind, RESTLESS).port) as link:
        assert link.receive_line() == b"PING\r\n"
        link.send(b"PONG\r\n")
        output = b"".join(
            link.answer(b"SUB a 1\r\n" if turn % 2 else b"PUB b 0\r\n\r\n").output for turn in busy_for(1.0)
        )
        assert output.count(b"PING") <= 1  # one may have been on its way


def busy_for(seconds: float) -> Iterator[int]:
    """Numbers, 20 a second, for so long."""
    end = time.monotonic() + seconds
    for number in range(int(20 * seconds)):
        yield number
        time.sleep(max(0.0, min(0.05, end - time.monotonic())))


# --- slow consumers --------------------------------------------------------------------------------------------------

SLOW = 'max_payload: 100000\nmax_pending: 1000000\nwrite_deadline: "1s"'


def test_a_reader_that_reads_is_not_cut_off_in_a_burst(kind: str, shelf: ServerShelf) -> None:
    """Publishers are held back from a share of max_pending, not from a number that may be above it."""
    port = shelf.get(kind, SLOW).port
    op, times = b"PUB burst 10000\r\n" + b"x" * 10_000 + b"\r\n", 2000
    for _ in range(3):
        with dial(port) as reader, dial(port) as publisher:
            reader.send(b"SUB burst 1\r\n")
            assert reader.settle() == b""
            talking = threading.Thread(target=publisher.send, args=(op * times,))
            talking.start()
            left = times * (len(op) + len(b" 1") - len(b"PUB") + len(b"MSG"))
            while left:  # a process that has something else to do now and then
                left -= len(reader.receive(min(left, 250_000)))
                time.sleep(0.0005)
            talking.join(10)


def stuck_reader(port: int) -> socket.socket:
    """A subscriber to `flood` that never reads, with as small a buffer as there can be."""
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.settimeout(10)
    reader.connect(("127.0.0.1", port))
    reader.sendall(connect_op() + b"SUB flood 1\r\nPING\r\n")
    while not reader.recv(4096).endswith(b"PONG\r\n"):
        pass
    return reader


def is_gone(reader: socket.socket) -> bool:
    """Whether the server has closed: everything that was on its way is read first. No -ERR may be in it."""
    last = b""
    try:
        while chunk := reader.recv(1 << 20):
            assert b"-ERR" not in last[-10:] + chunk
            last = chunk
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


def test_who_is_too_far_behind_is_cut_off_without_a_word_and_others_are_served(kind: str, shelf: ServerShelf) -> None:
    port = shelf.get(kind, SLOW).port
    op = b"PUB flood 100000\r\n" + bytes(100_000) + b"\r\n"
    with stuck_reader(port) as reader, dial(port) as good, dial(port) as publisher:
        good.send(b"SUB flood 1\r\n")
        assert good.settle() == b""
        for _ in range(12):
            publisher.send(op * 10)
            assert unasked(publisher.settle()) == b""
            wanted = 10 * (len(op) + 2)
            while wanted > 0:
                wanted -= len(unasked(good.receive(wanted)))
        assert is_gone(reader)
    prove_service(port)


def test_who_takes_no_bytes_until_the_deadline_is_cut_off(kind: str, shelf: ServerShelf) -> None:
    config = SLOW.replace("1000000", "100000000")
    port = shelf.get(kind, config).port
    op = b"PUB flood 100000\r\n" + bytes(100_000) + b"\r\n"
    with stuck_reader(port) as reader, dial(port) as publisher:
        publisher.send(op * 120)  # more than the sockets take
        assert unasked(publisher.settle()) == b""
        wait_until_gone(publisher, port)
        assert is_gone(reader)
    prove_service(port)


PING = b"PING\r\n"  # the server's first comes two seconds after a client, and on a busy machine into anything


def unasked(output: bytes) -> bytes:
    """What was sent but for the server's PING, which comes at most once while a test runs."""
    return output.replace(PING, b"")


def wait_until_gone(link: RawLink, port: int) -> None:
    """Until `flood` has no subscriber: probes with a request, which is answered 503 then."""
    deadline = time.monotonic() + 10
    with dial(port, no_responders=True) as requester:
        requester.send(b"SUB r 1\r\n")
        while time.monotonic() < deadline:
            requester.send(b"PUB flood r 0\r\n\r\n")
            if b"503" in requester.settle():
                return
            link.settle()
    raise AssertionError("the slow consumer is still there")


# --- memory before authentication ------------------------------------------------------------------------------------


def test_what_nobody_has_authenticated_for_is_not_kept(kind: str, shelf: ServerShelf) -> None:
    config = "authorization { user: a, password: p }"
    port = shelf.get(kind, config).port
    before = resident() if kind == "headwater" else 0
    with ExitStack() as links:
        for _ in range(20):
            link = links.enter_context(RawLink(port))
            link.send(b"CONNECT {" + b" " * 4000)  # a control line that does not end yet
        for output in (b"x", b"CONNECT {"):
            link = links.enter_context(RawLink(port))
            link.send(output)
            for _ in range(320):  # 20 MB
                link.send(b" " * (1 << 16))
            assert link.receive_end().startswith(b"-ERR '")
    if kind == "headwater":
        # Beside what is kept for 20 connections, 64 KiB each: nothing of the megabytes.
        assert resident() - before < 8 << 20
    with RawLink(port) as link:
        assert link.answer(connect_op(**{"user": "a", "pass": "p"})) == still_open()


def resident() -> int:
    import psutil

    return int(psutil.Process().memory_info().rss)


# --- lame duck -------------------------------------------------------------------------------------------------------


def test_a_lame_duck_tells_its_clients_takes_no_new_ones_and_ends(kind: str, tmp_path: Path) -> None:
    config = tmp_path / "server.conf"
    config.write_text('lame_duck_duration: "30s"\nlame_duck_grace_period: "300ms"\n')
    start = partial(start_nats_server, jetstream=False) if kind == "nats-server" else start_headwater
    with start(tmp_path, "-c", str(config)) as server:
        with RawLink(server.port) as newer, dial(server.port) as older:
            newer.send(connect_op(protocol=1) + b"PING\r\n")
            newer.receive_line()
            newer.receive_line()
            server._process.send_signal(signal.SIGUSR2)
            line = newer.receive_line()
            info = read_info(newer.receive_line() if line == PING else line)
            assert info["ldm"] is True
            with pytest.raises(OSError):
                RawLink(server.port)
            answer = older.answer(b"SUB a 1\r\nPUB a 1\r\nx\r\n")
            assert (unasked(answer.output), answer.closed) == (b"MSG a 1 1\r\nx\r\n", False)
            assert b"-ERR" not in newer.receive_end().replace(b"PING\r\n", b"")
            assert b"INFO" not in older.receive_end(), "an older client is told nothing"
        assert server._process.wait(10) == 0


def test_the_end_of_a_lame_duck_goes_in_this_order(kind: str, tmp_path: Path) -> None:
    """Told, then no new clients, then served as before until the grace period is over, then sent away one by one without a
    word, the rest served meanwhile; and the process ends with status 0 when the last has gone."""
    config = tmp_path / "server.conf"
    config.write_text('lame_duck_duration: "30s"\nlame_duck_grace_period: "1s"\n')
    start = partial(start_nats_server, jetstream=False) if kind == "nats-server" else start_headwater
    with start(tmp_path, "-c", str(config)) as server, ExitStack() as stack:
        links = [stack.enter_context(dial(server.port, protocol=1)) for _ in range(3)]
        for link in links:
            link.send(b"SUB seen 1\r\n")
            link.settle()
        server._process.send_signal(signal.SIGUSR2)
        for link in links:
            assert read_info(unpinged(link))["ldm"] is True
        reported = time.monotonic()
        with pytest.raises(OSError):
            RawLink(server.port)
        links[0].send(b"PUB seen 2\r\nhi\r\n")
        for link in links:
            assert (unpinged(link), link.receive_line()) == (b"MSG seen 1 2\r\n", b"hi\r\n")
        ends: list[tuple[float, bytes]] = []

        def wait_for_the_end(link: RawLink) -> None:
            received = link.receive_end()
            ends.append((time.monotonic(), received))

        waiting = [threading.Thread(target=wait_for_the_end, args=(link,)) for link in links]
        for thread in waiting:
            thread.start()
        for thread in waiting:
            thread.join(60)
        assert server._process.wait(30) == 0
    assert [received.replace(PING, b"") for _, received in ends] == [b""] * 3
    assert ends[0][0] - reported > 0.5, "before the grace period was over"
    assert ends[-1][0] - ends[0][0] > 0.01, "all at once"


def unpinged(link: RawLink) -> bytes:
    """The next line that is no PING."""
    line = link.receive_line()
    return link.receive_line() if line == PING else line
