"""What a failed start says, listener by listener, beside what the real nats-server says."""

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.nats_server import nats_server_binary

CONFIGS = {
    "clients": 'listen: "127.0.0.1:PORT"',
    "monitoring": 'listen: "127.0.0.1:-1", http: "127.0.0.1:PORT"',
    "websocket": 'listen: "127.0.0.1:-1", websocket { listen: "127.0.0.1:PORT", no_tls: true }',
    "routes": 'listen: "127.0.0.1:-1", cluster { name: c, listen: "127.0.0.1:PORT" }',
    "leafnodes": 'listen: "127.0.0.1:-1", leafnodes { listen: "127.0.0.1:PORT" }',
    "no address": 'listen: "300.1.1.1:4222"',
    "certificate": 'listen: "127.0.0.1:-1"',
    "pid file": 'listen: "127.0.0.1:-1", pid_file: "no/such/pid"',
}
FLAGS = {"certificate": ["--tls", "--tlscert", "gone.pem", "--tlskey", "gone.key"]}
FATAL = re.compile(r"\[FTL\] (.*)")


def last_words(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stderr
    found = FATAL.search(done.stderr)
    return found[1] if found else done.stderr.splitlines()[-1].removeprefix("nats-server: ")


@pytest.mark.interop
@pytest.mark.parametrize("what", CONFIGS)
def test_a_start_that_fails_says_what_the_real_server_says(what: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        (tmp_path / "server.conf").write_text(CONFIGS[what].replace("PORT", str(taken.getsockname()[1])))
        flags = ["-c", "server.conf", *FLAGS.get(what, [])]
        real = last_words([str(nats_server_binary()), *flags], tmp_path)
        ours = last_words([sys.executable, "-m", "headwater", "serve", *flags], tmp_path)
    assert ours == real
