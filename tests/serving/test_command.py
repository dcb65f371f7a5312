"""`headwater serve` as scripts see it: flags, readiness lines on stderr, files, signals, exit status."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from support.raw_wire import dial

import headwater
from headwater.net.turn_length import TURN

Process = subprocess.Popen[str]


@contextmanager
def started(*flags: str, environment: dict[str, str] | None = None) -> Iterator[Process]:
    command = [sys.executable, "-m", "headwater", "serve", "-a", "127.0.0.1", *flags]
    environment = {**os.environ, **(environment or {})}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def lines_until(process: Process, text: str) -> list[str]:
    """The log up to the line that ends in `text`."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line.rstrip())
        if lines[-1].endswith(text):
            return lines
    raise AssertionError("\n".join(lines))


def wait_until_ready(process: Process) -> int:
    """The port that it listens on; the lines are those which the clients' own test suites look for."""
    lines = lines_until(process, "Server is ready")
    assert all("[INF]" in line for line in lines)
    address = next(line for line in lines if "Listening for client connections on 127.0.0.1:" in line)
    return int(address.rpartition(":")[2])


def greeting(port: int) -> dict[str, object]:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as link, link.makefile("rb") as lines:
        info: dict[str, object] = json.loads(lines.readline().removeprefix(b"INFO "))
    return info


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_listens_says_so_and_ends_on_a_signal_with_status_0(number: signal.Signals) -> None:
    with started("-p", "-1", "-n", "n1") as process:
        assert greeting(wait_until_ready(process))["server_name"] == "n1"
        process.send_signal(number)
        lines_until(process, "Server Exiting..")
        assert process.wait(10) == 0


@pytest.mark.parametrize(
    "imported",
    ["headwater.serving.early_end", "headwater.serving.serve_flags", "asyncio", "headwater.exchange.sessions"],
)
def test_sigint_while_it_starts_ends_it_with_status_0_and_no_traceback(imported: str) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "headwater", "serve", "-a", "127.0.0.1", "-p", "-1"]
    heeds = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell has background jobs ignore it
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heeds) as process:
        try:
            lines_until(process, f" {imported}")
            process.send_signal(signal.SIGINT)
            _, output = process.communicate(timeout=20)
        finally:
            process.kill()
    assert process.returncode == 0
    assert "Traceback" not in output


def test_sigint_that_was_blocked_until_it_listens_for_it_ends_it_without_a_word() -> None:
    def blocks() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

    command = [sys.executable, "-m", "headwater", "serve", "-a", "127.0.0.1", "-p", "-1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=blocks) as process:
        try:
            process.send_signal(signal.SIGINT)
            output = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, *output) == (0, b"", b"")


def test_the_log_names_the_store_directory_as_nats_server_does(tmp_path: Path) -> None:
    with started("-p", "-1", "-js", "-sd", str(tmp_path)) as process:
        lines = lines_until(process, "Server is ready")
    output = [line.partition("[INF] ")[2] for line in lines]
    at = output.index("Starting JetStream")
    assert output[at + 1] == f'  Store Directory: "{tmp_path}"'


def test_a_port_in_use_is_fatal_with_status_1() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with started("-p", str(port)) as process:
            _, output = process.communicate(timeout=20)
    assert process.returncode == 1
    assert f"[FTL] Error listening on port: 127.0.0.1:{port}" in output
    assert "address already in use" in output


def test_a_configuration_file_is_read_and_flags_win_over_it(tmp_path: Path) -> None:
    path = tmp_path / "server.conf"
    path.write_text("port: 4222\nserver_name: from_file\nmax_payload: $SIZE\nping_max: 5")
    with started("-c", str(path), "-p", "-1", environment={"SIZE": "2MB"}) as process:
        info = greeting(wait_until_ready(process))
        assert (info["server_name"], info["max_payload"]) == ("from_file", 2 << 20)
        path.write_text("port: 4222\nserver_name: from_file\nmax_payload: 3MB\nping_max: 6")
        process.send_signal(signal.SIGHUP)
        lines = lines_until(process, "Reloaded server configuration")
        assert [line.partition("[INF] ")[2] for line in lines] == [
            'Trapped "hangup" signal', "Reloaded: max_payload = 3145728", "Reloaded: ping_max = 6",
            "Reloaded server configuration",
        ]  # fmt: skip
        path.write_text("port: 4222\nserver_name: another")
        process.send_signal(signal.SIGHUP)
        assert "config reload not supported for server_name" in lines_until(process, "(it needs a restart)")[-1]
        path.write_text("port: [")
        process.send_signal(signal.SIGHUP)
        assert f"{path}:1:7: Parse error on line 1: a [ does not end" in lines_until(process, "a [ does not end")[-1]


@pytest.mark.parametrize(
    ("flags", "status", "reason"),
    [
        (["-c", "bad.conf"], 1, '[FTL] bad.conf:2:1: unknown field "foo"'),
        (["-c", "gone.conf"], 1, "[FTL] open gone.conf: no such file or directory"),
        (["-l", "no/such/log"], 1, "[FTL] error opening file: open no/such/log: no such file or directory"),
        (["-p", "-1", "-js", "-sd", "bad.conf"], 1, "[FTL] "),
        (["--frobnicate"], 2, "flag provided but not defined: -frobnicate"),
        (["--routes", "nats://127.0.0.1:1", "-p", "-1"], 1, "[FTL] solicited routes require cluster capabilities"),
        (["--signal", "frob"], 1, 'unknown signal "frob"'),
    ],
)
def test_what_cannot_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], status: int, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.conf").write_text("port: 4222\nfoo: 1")
    with started(*flags) as process:
        _, output = process.communicate(timeout=20)
    assert reason in output
    assert process.returncode == status
    assert "Traceback" not in output


def test_it_leaves_its_pid_and_its_ports_and_takes_the_ports_away(tmp_path: Path) -> None:
    with started("-p", "-1", "-P", str(tmp_path / "pid"), f"--ports_file_dir={tmp_path}") as process:
        port = wait_until_ready(process)
        assert (tmp_path / "pid").read_text() == str(process.pid)
        ports = tmp_path / f"nats-server_{process.pid}.ports"
        assert json.loads(ports.read_text()) == {"nats": [f"nats://127.0.0.1:{port}"]}
        process.terminate()
        assert process.wait(10) == 0
        assert not ports.exists()


def test_two_of_them_make_a_cluster_by_flags_and_by_file(tmp_path: Path) -> None:
    """The second has the first as its seed; a message crosses."""
    with started("-p", "-1", "--cluster", "nats://127.0.0.1:-1", "--cluster_name", "hw") as first:
        lines = lines_until(first, "Server is ready")
        port = int(next(line for line in lines if "client connections on" in line).rpartition(":")[2])
        route = next(line for line in lines if "route connections on" in line).rpartition(" ")[2]
        path = tmp_path / "second.conf"
        path.write_text(f"port: -1\ncluster {{ name: hw, listen: '127.0.0.1:-1', routes: ['nats://{route}'] }}")
        with started("-c", str(path)) as second, dial(port) as publisher:
            with dial(wait_until_ready(second)) as subscriber:
                subscriber.send(b"SUB a 1\r\n")
                subscriber.settle()
                output = b""
                while not output:  # until the route stands and the interest has crossed it
                    publisher.send(b"PUB a 2\r\nok\r\n")
                    publisher.settle()
                    output = subscriber.settle()
                assert output.startswith(b"MSG a 1 2\r\nok\r\n")


@pytest.mark.skipif(sys.platform != "linux" or not headwater.__compiled__, reason="see net/exit_order.py")
def test_a_node_of_a_cluster_closes_its_sockets_first_when_it_is_killed() -> None:
    for flags, threads in ((), 1), (("--cluster", "nats://127.0.0.1:-1"), 2):
        with started("-p", "-1", *flags) as process:
            wait_until_ready(process)
            tasks = list(Path(f"/proc/{process.pid}/task").iterdir())
            assert len(tasks) == threads, [(task / "comm").read_text() for task in tasks]


@pytest.mark.skipif(sys.platform != "linux" or not headwater.__compiled__, reason="see net/turn_length.py")
def test_a_server_has_short_turns_of_the_processor() -> None:
    with started("-p", "-1") as process:
        wait_until_ready(process)
        try:
            scheduled = Path(f"/proc/{process.pid}/sched").read_text()
        except FileNotFoundError:
            pytest.skip("this kernel does not show what it grants")
        if (turn := re.search(r"^se\.slice +: +(\d+)$", scheduled, re.MULTILINE)) is None:
            pytest.skip("this kernel has no turns of a thread's own (before Linux 6.12)")
        assert int(turn[1]) == TURN


def test_its_log_file_can_be_moved_away(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with started("-p", "-1", "-l", str(log), "-P", str(tmp_path / "pid")) as process:
        _wait_for(log, "Server is ready")
        log.rename(tmp_path / "old")
        process.send_signal(signal.SIGUSR1)
        _wait_for(log, "File log re-opened")
        process.terminate()
        assert process.wait(10) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def _wait_for(path: Path, text: str) -> None:
    """Until the file holds the text; the kernel tells of no change that a test could wait for."""
    end = time.monotonic() + 20
    while not path.exists() or text not in path.read_text():
        assert time.monotonic() < end, f"{text!r} was not logged"
        time.sleep(0.01)


def test_a_pipe_that_nobody_reads_does_not_stop_it() -> None:
    """Whoever starts servers may stop listening after "Server is ready"; 64 KiB of log is then all there is room for."""
    with started("-p", "-1", "-D") as process:
        port = wait_until_ready(process)
        for _ in range(1200):  # each leaves a line of some 100 bytes
            with socket.create_connection(("127.0.0.1", port), timeout=10) as link:
                link.sendall(b"FROB\r\n")
                while link.recv(4096):
                    pass
        with dial(port) as client:
            assert client.settle() == b""
        process.terminate()
        assert process.wait(10) == 0


def test_a_lame_duck_tells_its_clients_and_takes_no_new_ones(tmp_path: Path) -> None:
    path = tmp_path / "server.conf"
    path.write_text('lame_duck_duration: "30s"\nlame_duck_grace_period: "0s"')
    with started("-p", "-1", "-c", str(path)) as process:
        port = wait_until_ready(process)
        with socket.create_connection(("127.0.0.1", port), timeout=10) as link, link.makefile("rb") as lines:
            lines.readline()
            link.sendall(b'CONNECT {"verbose":false,"protocol":1}\r\nPING\r\n')
            while not lines.readline().startswith(b"PONG"):
                pass
            process.send_signal(signal.SIGUSR2)
            while b'"ldm":true' not in lines.readline():
                pass
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), timeout=10).close()
            lines.read()
        assert process.wait(20) == 0


@pytest.mark.parametrize(("flag", "output"), [("-v", "nats-server: v2.15.1"), ("--version", "nats-server: v2.15.1")])
def test_it_says_its_version_on_stdout(flag: str, output: str) -> None:
    command = [sys.executable, "-m", "headwater", "serve", flag]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert answer.stdout.startswith(output)
