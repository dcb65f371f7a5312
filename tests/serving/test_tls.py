"""`headwater serve` with TLS for clients, for WebSocket and for monitoring, from a configuration file and from flags."""

import json
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.certificates import Certificates, make_certificates

Process = subprocess.Popen[str]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@contextmanager
def started(*flags: str) -> Iterator[tuple[Process, str]]:
    """The process and its log until it was ready."""
    command = [sys.executable, "-m", "headwater", "serve", "-a", "127.0.0.1", "-p", "-1", *flags]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            lines = []
            for line in process.stderr:
                lines.append(line)
                if line.endswith("Server is ready\n"):
                    break
            yield process, "".join(lines)
        finally:
            process.kill()


def port(log: str, what: str) -> int:
    found = re.search(rf"{what} \S*127\.0\.0\.1:(\d+)", log)
    assert found is not None, log
    return int(found[1])


def encrypted_greeting(number: int, trusted: ssl.SSLContext) -> dict[str, object]:
    """INFO in the clear, then the handshake, CONNECT and a PONG."""
    with socket.create_connection(("127.0.0.1", number), 10) as plain:
        info: dict[str, object] = json.loads(plain.recv(4096)[5:])
        with trusted.wrap_socket(plain, server_hostname="127.0.0.1") as link:
            link.sendall(b'CONNECT {"verbose":false,"tls_required":true}\r\nPING\r\n')
            assert link.recv(100).startswith(b"PONG")
    return info


def test_a_file_with_tls_everywhere(certificates: Certificates, tmp_path: Path) -> None:
    tls = f"cert_file: '{certificates.server_cert}', key_file: '{certificates.server_key}'"
    path = tmp_path / "server.conf"
    path.write_text(f"tls {{ {tls} }}\nhttps: 127.0.0.1:-1\nwebsocket {{ listen: '127.0.0.1:-1', tls {{ {tls} }} }}\n")
    trusted = ssl.create_default_context(cafile=str(certificates.ca))
    with started("-c", str(path), "--ports_file_dir", str(tmp_path)) as (process, log):
        assert encrypted_greeting(port(log, "client connections on"), trusted)["tls_required"] is True
        assert "TLS required for client connections" in log
        monitor = port(log, "Starting https monitor on")
        with urllib.request.urlopen(f"https://127.0.0.1:{monitor}/varz", timeout=10, context=trusted) as answer:
            page = json.load(answer)
        assert (page["https_port"], page["http_port"], page["tls_required"]) == (monitor, 0, True)
        with pytest.raises((urllib.error.URLError, ConnectionError)):
            urllib.request.urlopen(f"http://127.0.0.1:{monitor}/varz", timeout=10).close()
        websocket = port(log, "websocket clients on")
        with socket.create_connection(("127.0.0.1", websocket), 10) as plain:
            with trusted.wrap_socket(plain, server_hostname="127.0.0.1") as link:
                link.sendall(
                    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
                )
                assert link.recv(4096).startswith(b"HTTP/1.1 101")
        ports = json.loads((tmp_path / f"nats-server_{process.pid}.ports").read_text())
        assert {name: url.partition(":")[0] for name, (url,) in ports.items()} == {
            "nats": "tls", "monitoring": "https", "websocket": "wss",
        }  # fmt: skip


def test_a_reload_reads_certificates_again(certificates: Certificates, tmp_path: Path) -> None:
    cert, key, path = tmp_path / "cert.pem", tmp_path / "key.pem", tmp_path / "server.conf"
    path.write_text(f"tls {{ cert_file: '{cert}', key_file: '{key}' }}\n")
    shutil.copy(certificates.server_cert, cert)
    shutil.copy(certificates.server_key, key)
    with started("-c", str(path)) as (process, log):
        number = port(log, "client connections on")
        encrypted_greeting(number, ssl.create_default_context(cafile=str(certificates.ca)))
        shutil.copy(certificates.stranger_cert, cert)
        shutil.copy(certificates.stranger_key, key)
        process.send_signal(signal.SIGHUP)
        assert process.stderr is not None
        while "Reloaded server configuration" not in process.stderr.readline():
            pass
        trusted = ssl.create_default_context(cafile=str(certificates.stranger_ca))
        trusted.check_hostname = False
        encrypted_greeting(number, trusted)


def test_flags_with_tls(certificates: Certificates) -> None:
    trusted = ssl.create_default_context(cafile=str(certificates.ca))
    flags = ["--tls", f"--tlscert={certificates.server_cert}", f"--tlskey={certificates.server_key}", "-ms", "-1"]
    with started(*flags) as (_, log):
        encrypted_greeting(port(log, "client connections on"), trusted)
        monitor = port(log, "Starting https monitor on")
        with urllib.request.urlopen(f"https://127.0.0.1:{monitor}/healthz", timeout=10, context=trusted) as answer:
            assert answer.read() == b'{"status":"ok"}'


@pytest.mark.parametrize(
    ("cert", "key"), [("ca", "server_key"), ("server_key", "server_cert"), ("server_cert", "client_key")]
)
def test_certificates_that_cannot_be_used_are_fatal(certificates: Certificates, cert: str, key: str) -> None:
    flags = ["--tls", f"--tlscert={getattr(certificates, cert)}", f"--tlskey={getattr(certificates, key)}"]
    command = [sys.executable, "-m", "headwater", "serve", "-a", "127.0.0.1", "-p", "-1", *flags]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 1
    assert "[FTL]" in answer.stderr
    assert "Traceback" not in answer.stderr
