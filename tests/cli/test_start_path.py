"""What `headwater serve` imports until it is ready: the time until the first client can connect is mostly that."""

import re
import signal
import subprocess
import sys
from pathlib import Path

HEAVY = {
    "bcrypt", "dataclasses", "datetime", "decimal", "email", "hashlib", "hmac", "http", "importlib.metadata", "ipaddress",
    "msgspec", "nacl", "pathlib", "pkg_resources", "prometheus_client", "random", "rich", "ssl", "starlette", "tempfile",
    "typer", "typing_extensions", "urllib.parse", "uuid", "uvicorn", "wsproto",
}  # fmt: skip
OURS_WHEN_ASKED_FOR = (
    "headwater.broker.auth.jwt", "headwater.broker.auth.operator", "headwater.broker.cluster.",
    "headwater.broker.config.parser", "headwater.broker.imports", "headwater.broker.jetstream", "headwater.broker.mappings",
    "headwater.broker.monitoring", "headwater.broker.reauthorization", "headwater.broker.system.documents",
    "headwater.broker.tracing", "headwater.cli.iggy_serving", "headwater.cli.process_signals", "headwater.cli.reload",
    "headwater.cli.workers", "headwater.client", "headwater.iggy", "headwater.net.tls", "headwater.net.websocket",
    "headwater.spark", "headwater.streams", "headwater.wire.route",
)  # fmt: skip
IMPORTED = re.compile(r"^import time: +\d+ \| +\d+ \| +(\S+)$")


def imported_until_ready(*flags: str) -> set[str]:
    """The modules that a server has imported when it says that it is ready."""
    command = [sys.executable, "-X", "importtime", "-m", "headwater", "serve", "-a", "127.0.0.1", "-p", "-1", *flags]
    found: set[str] = set()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        for line in server.stderr:
            if match := IMPORTED.match(line):
                found.add(match[1])
            if "Server is ready" in line:
                break
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=30)
    assert "headwater.broker.session" in found
    return found


def test_a_plain_start_imports_no_heavy_module() -> None:
    found = imported_until_ready()
    allowed = {"ssl"}  # asyncio tries to: that it must not succeed says the next test
    assert (found & HEAVY) - allowed == set()
    assert [name for name in found if name.startswith(OURS_WHEN_ASKED_FOR)] == []


def test_openssl_is_loaded_for_a_certificate_only(tmp_path: Path) -> None:
    assert "_ssl" not in imported_until_ready()
    assert "headwater.streams.log" in imported_until_ready("-js", "-sd", str(tmp_path))


def test_a_node_of_a_cluster_imports_what_speaks_to_its_peers_and_no_heavy_module() -> None:
    found = imported_until_ready("--cluster", "nats://127.0.0.1:-1", "--cluster_name", "hw")
    assert (found & HEAVY) - {"ssl"} == set()
    assert "_ssl" not in found
    own = ("headwater.broker.cluster.", "headwater.wire.route")
    assert [name for name in found if name.startswith(OURS_WHEN_ASKED_FOR) and not name.startswith(own)] == []
