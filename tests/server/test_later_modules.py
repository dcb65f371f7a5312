"""What a running server imports when it has nothing else to do."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import headwater
from headwater.server.later_modules import BROKER, MONITORING, STREAMS, later_modules

ROOT = Path(headwater.__file__).parent
NOT_THE_SERVER = {
    "cli", "client", "client_connection", "cloudevents", "columns", "iggy_client", "operations", "spark", "spark_runtime",
    "testing",
}  # fmt: skip
AT_A_START = {
    *(
        "ctypes",
        "datetime",
        "fcntl",
        "resource",
        "time",
        "concurrent.futures",
    ),  # the first one is used by `Serving` itself
    *("headwater.cluster.mesh", "headwater.cluster.service", "headwater.wire.route_lines"),
    *("headwater.exchange.account", "headwater.exchange.cluster_options", "headwater.exchange.listeners"),
    *("headwater.exchange.auth.callout", "headwater.exchange.auth.callouts", "headwater.exchange.auth.operator"),
    *("headwater.exchange.auth.server_keys", "headwater.net.listener_options", "headwater.net.interfaces"),
    *("headwater.jetstream.domain", "headwater.jetstream.service", "headwater.jetstream_state.foreign_store"),
    *("headwater.jetstream_room.account_limits", "headwater.jetstream_room.server_caps", "headwater.streams.files"),
    *("headwater.jetstream_room.whole", "headwater.jetstream_workers.folders", "headwater.jetstream_workers.line"),
    *("headwater.jetstream_workers.shares", "headwater.monitoring.ledger", "headwater.monitoring.view"),
    *("headwater.server.faces.iggy", "headwater.server.leafnodes", "headwater.server.unserved_streams"),
    *("headwater.server.without_streams", "headwater.server.resolver.claims", "headwater.server.resolver.resolver"),
    *("headwater.wire.nkeys", "nacl.exceptions", "nacl.public", "nacl.signing", "bcrypt", "dataclasses"),
}
"""Imported when a server starts with what needs them, before any client can come."""
WITH_A_READ_CONFIGURATION = {
    *("difflib", "headwater.exchange.import_rules", "headwater.exchange.imports", "headwater.exchange.mappings"),
    *("headwater.exchange.jetstream_import", "headwater.exchange.reauthorization"),
}
"""A reload reads a file anyway: without descriptors it fails as a whole, and says so."""
WITH_A_CONNECTION_OF_OUR_OWN = {
    *("headwater.iggy.http_face", "headwater.iggy.quic_session", "headwater.net.quic", "headwater.net.tls"),
    *("headwater.net.certificate_names", "headwater.net.websocket", "headwater.net.websocket_client"),
    *("headwater.leaf.credentials", "ssl", "shutil", "tempfile", "urllib.error", "urllib.request"),
}
"""A listener or a dialled connection needs them before it has its first client or its own socket."""


def function_imports() -> Iterator[tuple[str, str]]:
    """Each module that a function of the server imports, with the file."""
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).parts
        if len(parts) > 1 and parts[0] not in NOT_THE_SERVER:
            for function in _functions(ast.parse(path.read_text())):
                for name in _imported(function):
                    yield name, "/".join(parts)


def _functions(tree: ast.AST) -> Iterator[ast.AST]:
    """The outermost ones, methods included."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node)


def _imported(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = ROOT.parent.joinpath(*node.module.split("."), f"{alias.name}.py")
                yield f"{node.module}.{alias.name}" if inner.exists() else node.module


def test_every_import_inside_a_function_of_the_server_comes_later_or_needs_descriptors_itself() -> None:
    sorted_out = AT_A_START | WITH_A_READ_CONFIGURATION | WITH_A_CONNECTION_OF_OUR_OWN
    listed = {*later_modules(stores=True, monitors=True)}
    found = dict(function_imports())
    assert {name: path for name, path in found.items() if name not in listed | sorted_out} == {}
    assert sorted_out - found.keys() == set()
    assert listed & sorted_out == set()


def test_streams_and_pages_are_imported_by_servers_that_have_them() -> None:
    assert later_modules(stores=False, monitors=False) == BROKER
    assert later_modules(stores=True, monitors=False) == BROKER + STREAMS
    assert later_modules(stores=False, monitors=True) == BROKER + MONITORING


def test_a_server_without_descriptors_answers_the_system_account_and_reports_traces() -> None:
    program = (
        "import asyncio, os, resource\n"
        "import headwater\n"
        "from headwater.net.deferred_modules import execute_next, import_later\n"
        "from headwater.server.broker import Broker\n"
        "from headwater.server.later_modules import later_modules\n"
        "async def main():\n"
        "    async with Broker() as broker, await headwater.connect(broker.url) as client:\n"
        "        reports = await client.subscribe('traces')\n"
        "        import_later(*later_modules(stores=True, monitors=True))\n"
        "        while execute_next():\n"
        "            pass\n"
        "        most = max(map(int, os.listdir('/proc/self/fd')))\n"
        "        resource.setrlimit(resource.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))\n"
        "        try:\n"
        "            os.dup(1)\n"
        "        except OSError:\n"
        "            print('none is left')\n"
        "        answer = await client.request('$SYS.REQ.USER.INFO', timeout=10)\n"
        "        print(bytes(answer.data)[:9])\n"
        "        await client.publish('s', b'', headers={'Nats-Trace-Dest': 'traces'})\n"
        "        async for report in reports:\n"
        "            print(bytes(report.data)[:10])\n"
        "            break\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == ["none is left", "b'{\"server\"'", "b'{\"server\":'"], done.stderr
