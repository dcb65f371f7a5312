"""What `headwater serve` imports until it is ready: the time until the first client can connect is mostly that."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    "bcrypt", "dataclasses", "datetime", "decimal", "email", "hashlib", "hmac", "http", "importlib.metadata", "ipaddress",
    "msgspec", "nacl", "pathlib", "pkg_resources", "prometheus_client", "random", "rich", "ssl", "starlette", "tempfile",
    "typer", "typing_extensions", "urllib.parse", "uuid", "uvicorn", "wsproto",
    "ast", "encodings.idna", "inspect", "locale", "textwrap", "tokenize",
}  # fmt: skip
OURS_ON_REQUEST = (
    "headwater.wire.jwt", "headwater.authorization.operator", "headwater.cluster.",
    "headwater.server.config.parser", "headwater.exchange.imports", "headwater.jetstream", "headwater.options.mappings",
    "headwater.monitoring", "headwater.exchange.reauthorization", "headwater.server.system.documents",
    "headwater.exchange.tracing", "headwater.serving.iggy_flags", "headwater.serving.process_signals",
    "headwater.server.config.reload",
    "headwater.serving.workers", "headwater.client", "headwater.iggy", "headwater.net.tls", "headwater.net.websocket",
    "headwater.server.faces", "headwater.spark", "headwater.streams", "headwater.wire.route",
)  # fmt: skip
JETSTREAM_WHEN_NEEDED = (
    "headwater.archive", "headwater.jetstream_backup", "headwater.jetstream_documents.backups",
    "headwater.jetstream_sources.copies",
    "headwater.model.cron", "headwater.model.header_mapping", "headwater.model.typed_header", "zoneinfo",
)  # fmt: skip
WITH_MSGSPEC = {"datetime", "decimal", "msgspec", "typing_extensions", "uuid"}  # what it imports itself
# Each `NamedTuple` has `annotationlib` read since 3.14, and asyncio has `asyncio.graph`, two classes of `dataclasses`: that
# executes `inspect`, also where it is deferred. The others are parts of what 3.11 had in one module.
OF_PYTHON_3_14 = {
    "_ast", "_interpreters", "_opcode", "_opcode_metadata", "_py_warnings", "_types", "annotationlib", "ast",
    "asyncio.graph", "copy", "dataclasses", "dis", "opcode", "token",
}  # fmt: skip
BY_PYTHON_ITSELF = OF_PYTHON_3_14 if sys.version_info >= (3, 14) else set[str]()
IMPORTED = re.compile(r"^import time: +\d+ \| +\d+ \| +(\S+)$")


def imported_until_ready(*flags: str) -> set[str]:
    """The modules that a server has imported when it says that it is ready, without those that this Python takes."""
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
    assert "headwater.exchange.session" in found
    return found - BY_PYTHON_ITSELF


def test_a_plain_start_imports_no_heavy_module() -> None:
    found = imported_until_ready()
    allowed = {"ssl"}  # asyncio tries to: that it must not succeed says the next test
    assert (found & HEAVY) - allowed == set()
    assert [name for name in found if name.startswith(OURS_ON_REQUEST)] == []
    assert len(found) < 227
    # A client may leave when there are no descriptors to read a module with: it would not be forgotten.
    assert "headwater.exchange.former_client" in found


@pytest.mark.skipif(sys.version_info < (3, 14), reason="the colours are no dataclasses before Python 3.14")
def test_colours_of_tracebacks_are_left_until_there_is_a_traceback() -> None:
    program = (
        "import sys\n"
        "from headwater.net import deferred_modules\n"
        "deferred_modules.defer(*deferred_modules.RARELY_USED)\n"
        "import traceback\n"
        "assert 'get_colors' not in vars(sys.modules['_colorize'])\n"
        "try:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.print_exc()\n"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (answer.returncode, answer.stderr.count("ZeroDivisionError: division by zero")) == (0, 1), answer.stderr


def test_openssl_is_loaded_for_a_certificate_only() -> None:
    assert "_ssl" not in imported_until_ready()


def test_jetstream_on_an_empty_store_greets_before_it_is_loaded(tmp_path: Path) -> None:
    found = imported_until_ready("-js", "-sd", str(tmp_path))
    assert (found & HEAVY) - {"ssl"} == set()
    own = {
        name
        for name in found
        if name.startswith(("headwater.jetstream", "headwater.streams", "headwater.durable_files"))
    }
    assert own == {
        "headwater.jetstream", "headwater.jetstream.domain",
        "headwater.jetstream_state", "headwater.jetstream_state.foreign_store", "headwater.jetstream_state.store_lock",
        "headwater.durable_files", "headwater.durable_files.files", "headwater.durable_files.mapped_file",
        "headwater.durable_files.store_directory", "headwater.durable_files.sync_threads",
    }  # fmt: skip
    assert len(found) < 242, "each module is 0.3 ms of the time until the first client can connect"


def test_jetstream_with_a_stream_to_recover_imports_no_more_than_it_needs(tmp_path: Path) -> None:
    (tmp_path / "streams" / "unreadable").mkdir(parents=True)
    found = imported_until_ready("-js", "-sd", str(tmp_path))
    assert "headwater.streams.log" in found
    assert (found & HEAVY) - {"ssl", *WITH_MSGSPEC, "dataclasses", "random"} == set()
    assert [name for name in found if name.startswith(JETSTREAM_WHEN_NEEDED)] == []
    assert len(found) < 448


def test_a_node_of_a_cluster_imports_what_speaks_to_its_peers_and_no_heavy_module() -> None:
    found = imported_until_ready("--cluster", "nats://127.0.0.1:-1", "--cluster_name", "hw")
    assert (found & HEAVY) - {"ssl"} == set()
    assert "_ssl" not in found
    own = (
        "headwater.cluster.",
        "headwater.wire.route",
        "headwater.exchange.imports",
    )  # the last: requests to JetStream
    assert [name for name in found if name.startswith(OURS_ON_REQUEST) and not name.startswith(own)] == []


def test_asyncio_without_openssl_leaves_ssl_to_others() -> None:
    program = (
        "import sys; from headwater.net.lean_imports import import_asyncio; import_asyncio()\n"
        "import asyncio\n"
        "assert 'ssl' not in sys.modules and asyncio.sslproto.ssl is None\n"
        "import ssl\n"
        "from headwater.net.tls import client_context\n"
        "assert isinstance(client_context(), ssl.SSLContext)\n"
        "asyncio.run(asyncio.sleep(0))\n"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 0, answer.stderr


def test_a_publish_from_the_command_line_imports_no_library_for_command_lines() -> None:
    program = (
        "import sys\n"
        "from headwater.cli import main\nfrom headwater.net import deferred_modules\n"
        "deferred_modules.defer(*deferred_modules.RARELY_USED)\n"
        "main._function(main.VERBS['pub'])\n"
        "print(*sorted(sys.modules))\n"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    found = set(answer.stdout.split()) - BY_PYTHON_ITSELF
    heavy = {"typer", "click", "pydantic", "rich", "argparse", "ast", "ssl", "typing_extensions"}
    assert {name.partition(".")[0] for name in found} & heavy == set()
    assert [name for name in found if name.startswith("headwater.jetstream_documents")] == []
    assert len(found) < 260
