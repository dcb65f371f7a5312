"""`headwater serve --workers`: one port, several processes, one server to its clients."""

import asyncio
import json
import os
import signal
import socket
import urllib.error
import urllib.request
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError
from nats.js import JetStreamContext
from nats.js.errors import NoStreamResponseError
from support.nats_py_flush import flushed
from support.operator_chain import Chain, Key
from support.raw_wire import RawLink, connect_op, read_info
from support.worker_processes import children, one_client_at_each, ready, started, until_printed

from headwater.model.nkey import NkeyKind

pytestmark = pytest.mark.interop


OFTEN, NEVER = (
    "from headwater.__main__ import main; from headwater.serving import restarts as a, workers as b; "
    f"a.MOST_ENDS = b.MOST_ENDS = {most}; a.ENDS_WITHIN = b.ENDS_WITHIN = 8.0; raise SystemExit(main())"
    for most in (1, 0)
)  # ends at which a worker is started at once


async def until_kept(stream: JetStreamContext) -> int:
    """Publish into the new stream; sent again while this worker does not know yet that another one captures the subject."""
    while True:
        with suppress(NoStreamResponseError):
            return (await stream.publish("s.a", b"kept")).seq


async def until_answered(client: Client, subject: str) -> bytes:
    """The answer, as soon as the interest of who answers has reached `client`'s worker."""
    while True:
        try:
            return (await client.request(subject, b"", timeout=10)).data
        except NoRespondersError:
            await asyncio.sleep(0.005)


def test_clients_of_all_workers_reach_each_other_and_a_signal_ends_all(tmp_path: Path) -> None:
    async def exchange(port: int) -> None:
        async with asyncio.timeout(60), one_client_at_each(port, 3) as clients:
            got: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue()
            for at, client in enumerate(clients):

                async def take(message: Msg, at: int = at) -> None:
                    await got.put((at, message.data))

                async def answer(message: Msg, at: int = at) -> None:
                    await message.respond(b"%d" % at)

                await client.subscribe("all", cb=take)
                await client.subscribe("one", "group", cb=take)
                await client.subscribe(f"ask.{at}", cb=answer)
                await flushed(client)
            for client in clients:
                answers = [await until_answered(client, f"ask.{at}") for at in range(3)]
                assert answers == [b"0", b"1", b"2"]
            for number, client in enumerate(clients):
                await client.publish("all", b"all %d" % number)
                await client.publish("one", b"one %d" % number)
                await flushed(client)
            received = [await got.get() for _ in range(12)]
            assert sorted(each for each in received if each[1].startswith(b"all")) == [
                (at, b"all %d" % number) for at in range(3) for number in range(3)
            ]
            assert sorted(data for _, data in received if data.startswith(b"one")) == [b"one 0", b"one 1", b"one 2"]
            streams = [client.jetstream() for client in clients]
            await streams[1].add_stream(name="S", subjects=["s.>"])
            assert [await until_kept(stream) for stream in streams] == [1, 2, 3]

    with started("--workers", "3", "-js", "-sd", str(tmp_path / "js"), "--pid", str(tmp_path / "pid")) as process:
        port, lines = ready(process)
        assert all("[INF]" in line for line in lines)
        assert (tmp_path / "pid").read_text() == str(process.pid)
        workers = children(process.pid)
        assert len(workers) == 3
        asyncio.run(exchange(port))
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert [worker for worker in workers if Path(f"/proc/{worker}").exists()] == []


def test_a_worker_that_was_killed_is_replaced_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    async def keep(port: int) -> None:
        async with one_client_at_each(port, 2) as clients:
            await clients[0].jetstream().add_stream(name="S", subjects=["s.*"])
            assert [await until_kept(client.jetstream()) for client in clients] == [1, 2]

    async def read(port: int) -> None:
        async with one_client_at_each(port, 2) as clients:
            for client in clients:
                await until_kept(client.jetstream())  # the new first worker has its streams, and the other knows it
            info = await clients[1].jetstream().stream_info("S")
            assert (info.state.first_seq, info.state.messages) == (1, 4)

    with started("--workers", "2", "-js", "-sd", str(tmp_path)) as process:
        port, _ = ready(process)
        asyncio.run(asyncio.wait_for(keep(port), 60))
        first, second = children(process.pid)
        for number, killed in ((2, second), (1, first)):
            os.kill(killed, signal.SIGKILL)
            lines = until_printed(process, f"worker {number} is replaced\n")
            assert any(line.endswith(f"worker {number} ended with status -9; 1 go on\n") for line in lines)
            assert len(children(process.pid)) == 2 and killed not in children(process.pid)
        asyncio.run(asyncio.wait_for(read(port), 60))
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_workers_that_die_at_once_are_all_replaced() -> None:
    with started("--workers", "3") as process:
        ready(process)
        os.kill(process.pid, signal.SIGSTOP)  # it finds both at once
        for worker in children(process.pid)[1:]:
            os.kill(worker, signal.SIGKILL)
        os.kill(process.pid, signal.SIGCONT)
        lines = [line for _ in "23" for line in until_printed(process, " is replaced\n")]
        assert not [line for line in lines if "cannot serve" in line]
        assert len(children(process.pid)) == 3
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_a_worker_that_takes_long_to_start_keeps_no_other_from_being_replaced() -> None:
    """They were not replaced until it was ready, and the log did not name them."""
    with started("--workers", "3") as process:
        ready(process)
        before = children(process.pid)
        os.kill(before[1], signal.SIGKILL)
        until_printed(process, "worker 2 ended with status -9; 2 go on\n")
        while not (slow := [worker for worker in children(process.pid) if worker not in before]):
            pass
        os.kill(slow[0], signal.SIGSTOP)
        os.kill(before[2], signal.SIGKILL)
        until_printed(process, "worker 3 is replaced\n")
        os.kill(slow[0], signal.SIGCONT)
        until_printed(process, "worker 2 is replaced\n")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_a_worker_that_ends_again_and_again_is_started_later_and_the_others_go_on() -> None:
    """It was given up for good, and its streams with it."""
    with started("--workers", "2", program=OFTEN) as process:
        port, _ = ready(process)
        first = children(process.pid)[0]
        (second,) = [worker for worker in children(process.pid) if worker != first]
        os.kill(second, signal.SIGKILL)
        until_printed(process, "worker 2 is replaced\n")
        (second,) = [worker for worker in children(process.pid) if worker != first]
        os.kill(second, signal.SIGKILL)
        assert process.stderr is not None
        until_printed(process, " ended with status -9; 1 go on\n")
        assert "worker 2 has ended 2 times in 8 s and is started again in " in process.stderr.readline()
        with RawLink(port) as link:
            assert link.greeting.startswith(b"INFO ")
        assert children(process.pid) == [first]
        until_printed(process, "worker 2 is replaced\n")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_a_server_whose_last_worker_waits_to_be_started_ends_and_the_status_tells() -> None:
    with started("--workers", "2", program=NEVER) as process:
        ready(process)
        for worker in children(process.pid):
            os.kill(worker, signal.SIGKILL)
        until_printed(process, "no worker is left: the server ends\n")
        assert process.wait(30) == 1


def test_workers_do_not_outlive_a_parent_that_was_killed() -> None:
    with started("--workers", "2") as process:
        ready(process)
        assert process.stderr is not None
        process.kill()
        process.stderr.read()  # ends when the last of them has closed it


def test_the_ports_file_names_the_shared_port_and_monitoring_and_goes_in_the_end(tmp_path: Path) -> None:
    with started("--workers", "2", "-m", "-1", "--ports_file_dir", str(tmp_path)) as process:
        port, lines = ready(process)
        assert len([line for line in lines if "http monitor on" in line]) == 1
        (path,) = tmp_path.iterdir()
        ports = json.loads(path.read_text())
        assert ports["nats"] == [f"nats://127.0.0.1:{port}"]
        assert set(ports) == {"nats", "monitoring"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--workers", "0"), "there cannot be 0 workers"),
        (("--workers", "2", "--cluster", "nats://127.0.0.1:-1"), "workers are a cluster of their own"),
        (("--workers", "2", "--log_size_limit", "1000"), "workers share the log file"),
    ],
)
def test_what_cannot_be_shared_is_refused(flags: tuple[str, ...], complaint: str) -> None:
    with started(*flags) as process:
        _, lines = process.communicate(timeout=20)
    assert process.returncode == 1
    assert complaint in lines


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('leafnodes { listen: "127.0.0.1:-1" }', "workers do not share a listener for leaf nodes"),
        ('accounts { "my team": { users: [{user: a, password: b}] } }', 'the account name "my team" has blanks'),
    ],
)
def test_a_file_with_what_workers_cannot_share_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "server.conf"
    file.write_text(text)
    with started("--workers", "2", "-c", str(file)) as process:
        _, lines = process.communicate(timeout=20)
    assert process.returncode == 1
    assert complaint in lines


def admitted(link: socket.socket) -> bool:
    """Whether the server answers a PING on this connection; it closes those that it refuses."""
    lines = b""
    with suppress(ConnectionError):
        link.sendall(b"PING\r\n")
        while b"PONG" not in lines and (more := link.recv(65536)):
            lines += more
    return b"PONG" in lines


def test_the_limit_of_connections_is_one_for_all_workers(tmp_path: Path) -> None:
    file = tmp_path / "server.conf"
    file.write_text("max_connections: 4")
    with started("--workers", "2", "-c", str(file)) as process, ExitStack() as stack:
        port, _ = ready(process)

        def tried() -> bool:
            with socket.create_connection(("127.0.0.1", port), 60) as link:
                return admitted(link)

        for _ in range(4):
            link = stack.enter_context(socket.create_connection(("127.0.0.1", port), 60))
            assert admitted(link)
        assert not any(tried() for _ in range(8))
        link.close()
        assert any(tried() for _ in range(2000)), "the worker may see its end a moment later"


def test_an_accounts_limit_of_connections_is_one_for_all_workers(tmp_path: Path) -> None:
    """Each worker counted for itself, and two let in twice as many as the account may have."""
    file = tmp_path / "server.conf"
    file.write_text(
        "accounts { A { users: [{user: a, password: p}], limits: { max_conn: 3 } }\n"
        "           B { users: [{user: b, password: p}] } }\n"
    )
    with started("--workers", "2", "-c", str(file)) as process, ExitStack() as stack:
        port, _ = ready(process)

        def stays() -> socket.socket:
            link = stack.enter_context(socket.create_connection(("127.0.0.1", port), 60))
            link.sendall(b'CONNECT {"verbose":false,"user":"a","pass":"p"}\r\n')
            return link

        links = [stays() for _ in range(3)]
        assert all(map(admitted, links))
        assert not any(logged_in(port, "a") for _ in range(8))
        assert logged_in(port, "b")
        os.kill(children(process.pid)[0], signal.SIGKILL)
        until_printed(process, "worker 1 is replaced\n")
        left = sum(map(admitted, links))
        assert sum(admitted(stays()) for _ in range(8)) == 3 - left


def test_a_port_that_other_workers_share_already_is_taken() -> None:
    with started("--workers", "2") as process:
        port, _ = ready(process)
        with started("--workers", "2", "-p", str(port)) as second:
            _, lines = second.communicate(timeout=20)
        assert second.returncode == 1
        assert f"Error listening on port: 127.0.0.1:{port}" in lines


def test_each_worker_reports_what_a_reload_has_changed(tmp_path: Path) -> None:
    """Only a reload that failed was in the log."""
    file = tmp_path / "server.conf"
    file.write_text("max_payload: 2000\n")
    with started("--workers", "2", "-c", str(file)) as process:
        ready(process)
        file.write_text("max_payload: 3000\n")
        process.send_signal(signal.SIGHUP)
        lines = [until_printed(process, "Reloaded server configuration\n") for _ in range(2)]
        assert sum(line.endswith("Reloaded: max_payload = 3000\n") for part in lines for line in part) == 2
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def logged_in(port: int, user: str) -> bool:
    with socket.create_connection(("127.0.0.1", port), 60) as link:
        link.sendall(b'CONNECT {"verbose":false,"user":"%b","pass":"p"}\r\n' % user.encode())
        return admitted(link)


def test_a_worker_that_replaces_another_has_what_a_reload_has_loaded(tmp_path: Path) -> None:
    """It had the configuration of the start, and let in users that a reload had removed."""
    file = tmp_path / "server.conf"
    file.write_text("authorization { users: [{user: a, password: p}, {user: b, password: p}] }\n")
    with started("--workers", "2", "-c", str(file)) as process:
        port, _ = ready(process)
        assert logged_in(port, "b")
        file.write_text("authorization { users: [{user: a, password: p}] }\n")
        process.send_signal(signal.SIGHUP)
        for _ in range(2):
            until_printed(process, "Reloaded server configuration\n")
        for number, worker in enumerate(children(process.pid), 1):
            os.kill(worker, signal.SIGKILL)
            until_printed(process, f"worker {number} is replaced\n")
        found = [(logged_in(port, "a"), logged_in(port, "b")) for _ in range(20)]
        assert found == [(True, False)] * 20
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_a_worker_that_replaces_another_does_not_have_what_the_workers_refused(tmp_path: Path) -> None:
    file = tmp_path / "server.conf"
    file.write_text("max_payload: 2000\n")
    with started("--workers", "2", "-c", str(file)) as process:
        port, _ = ready(process)
        for refused in (
            'max_payload: 3000\ncluster { listen: "127.0.0.1:-1" }\n',
            "max_payload: 3000\nlog_size_limit: 1000\n",
            "max_pa",
        ):
            file.write_text(refused)
            process.send_signal(signal.SIGHUP)
            lines = [line for _ in range(2) for line in until_printed(process, "\n")]
            assert all("Failed to reload server configuration: " in line for line in lines), lines
        os.kill(children(process.pid)[1], signal.SIGKILL)
        until_printed(process, "worker 2 is replaced\n")
        for _ in range(20):
            with RawLink(port) as link:
                assert b'"max_payload":2000' in link.greeting
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_a_worker_that_replaces_another_has_the_jwts_that_were_pushed_to_the_others(tmp_path: Path) -> None:
    """It had those of the start, and let in users who had been revoked since."""
    chain = Chain()
    admin, stays, revoked = (Key(NkeyKind.USER, number) for number in (70, 71, 72))
    file = tmp_path / "server.conf"
    file.write_text(chain.config())

    def enter(user: Key, account: Key) -> RawLink:
        link = RawLink(port)
        link.send(connect_op(jwt=chain.user(user, account), sig=user.sign(read_info(link.greeting)["nonce"])))
        return link

    def is_let_in(user: Key) -> bool:
        with enter(user, chain.a) as link:
            link.send(b"PING\r\n")
            return link.receive_line() == b"PONG\r\n"

    def push() -> None:
        token = chain.account(chain.a, revocations={revoked.public: 1_700_000_100}).encode()
        with enter(admin, chain.system) as link:
            subject = f"$SYS.REQ.ACCOUNT.{chain.a.public}.CLAIMS.UPDATE".encode()
            link.send(b"SUB answers 1\r\nPUB %b answers %d\r\n%b\r\n" % (subject, len(token), token))
            for _ in range(2):  # an answer of each worker
                size = int(link.receive_line().split()[-1])
                assert b'"message":"jwt updated"' in link.receive(size + 2)

    with started("--workers", "2", "-c", str(file)) as process:
        port, _ = ready(process)
        assert is_let_in(stays) and is_let_in(revoked)
        push()
        for number, worker in enumerate(children(process.pid), 1):
            os.kill(worker, signal.SIGKILL)
            until_printed(process, f"worker {number} is replaced\n")
        assert [(is_let_in(stays), is_let_in(revoked)) for _ in range(20)] == [(True, False)] * 20
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_a_request_to_reload_that_reaches_one_worker_reloads_all(tmp_path: Path) -> None:
    file = tmp_path / "server.conf"
    accounts = "system_account: S\naccounts { S { users: [{user: s, password: p}] } }\n"
    file.write_text(f"{accounts}max_payload: 2000\n")

    async def ask(port: int) -> None:
        async with await nats.connect(f"nats://s:p@127.0.0.1:{port}") as client:
            server = client._server_info["server_id"]
            answer = await client.request(f"$SYS.REQ.SERVER.{server}.RELOAD", b"", timeout=30)
            assert "error" not in json.loads(answer.data)

    with started("--workers", "2", "-c", str(file)) as process:
        port, _ = ready(process)
        file.write_text(f"{accounts}max_payload: 3000\n")
        asyncio.run(ask(port))
        for _ in range(2):
            until_printed(process, "Reloaded: max_payload = 3000\n")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_each_worker_says_that_it_ends_gradually(tmp_path: Path) -> None:
    file = tmp_path / "server.conf"
    file.write_text('lame_duck_grace_period: "0s"\n')
    with started("--workers", "2", "-c", str(file)) as process:
        ready(process)
        process.send_signal(signal.SIGUSR2)
        for _ in range(2):
            until_printed(process, "Entering lame duck mode, stop accepting new clients\n")
        assert process.wait(60) == 0


def page(port: int, path: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        found: dict[str, Any] = json.loads(answer.read())
        return found


def test_the_pages_are_about_the_clients_of_all_workers(tmp_path: Path) -> None:
    """/varz, /subsz, /accountz, /accstatz and /eventz were about the first worker, and did not say so."""

    async def look(port: int, monitor: int) -> None:
        async with one_client_at_each(port, 2) as clients:
            for client in clients:
                await client.subscribe("a.b")
                await client.publish("c", b"12345")
                await flushed(client)
            connected = page(monitor, "/connz")["total"]
            general = page(monitor, "/varz")
            assert (general["connections"], general["in_msgs"], general["in_bytes"]) == (connected, 2, 10)
            (account,) = page(monitor, "/accstatz")["account_statz"]
            assert (account["conns"], account["received"]["msgs"]) == (connected, 2)
            assert page(monitor, "/accountz?acc=$G")["account_detail"]["client_connections"] == connected
            for path in ("/subsz", "/subscriptionsz"):
                listed = page(monitor, f"{path}?subs=1")["subscriptions_list"]
                assert sorted((one["subject"], one["worker"]) for one in listed) == [("a.b", 1), ("a.b", 2)]
            with pytest.raises(urllib.error.HTTPError) as refused:
                page(monitor, "/subsz?subs=maybe")
            with refused.value as error:
                assert error.code == 400
        assert not any(logged_in(port, "nobody") for _ in range(20))
        assert {one["worker"] for one in page(monitor, "/eventz?kind=login_failed")["events"]} == {1, 2}

    file = tmp_path / "server.conf"
    file.write_text("authorization { users: [{user: a, password: p}] }\nno_auth_user: a\n")
    with started("--workers", "2", "-m", "-1", "-c", str(file)) as process:
        port, lines = ready(process)
        (line,) = [line for line in lines if "http monitor on" in line]
        asyncio.run(asyncio.wait_for(look(port, int(line.rpartition(":")[2])), 60))
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
