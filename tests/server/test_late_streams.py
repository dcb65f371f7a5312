"""JetStream that is loaded after the greeting: no client finds a difference, whenever its first request comes."""

import asyncio
import json
import re
import resource
import socket
import subprocess
import sys
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
from support.headwater_server import start_headwater
from support.in_loop import in_loop
from support.raw_wire import RawLink

from headwater.durable_files.files import File, OsFiles
from headwater.errors import EnvironmentProblem
from headwater.exchange.account import Account
from headwater.options.access import AccountOptions, JetStreamLimits, UserOptions
from headwater.options.broker import BrokerOptions
from headwater.server import heap_limits
from headwater.server.broker import Broker
from headwater.server.config.draft import ServerConfig
from headwater.server.late_streams import PARTS, LateStreams
from headwater.serving.process import Serving

MOST_MODULES = 24  # that one part imports
CHANGING = re.compile(rb'"(?:created|ts)":"[^"]*"|(?<=made 1 )\d+')  # the size of a document with a time, too

CONVERSATION = b"".join(
    [
        b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\n',
        b"SUB inbox.* 1\r\n",
        *(b"PUB $JS.API.INFO inbox.info 0\r\n\r\n" for _ in range(100)),
        b"PUB $JS.hub.API.INFO inbox.domain 0\r\n\r\n",
        b"PUB s.1 inbox.early 1\r\nx\r\n",
        b"PUB $JS.API.STREAM.INFO.S inbox.none 0\r\n\r\n",
        b"PUB $JS.API.CONSUMER.MSG.NEXT.S.c inbox.next 0\r\n\r\n",
        b"PUB $JS.API.DIRECT.GET.S inbox.get 0\r\n\r\n",
        b"PUB $JS.API.FROB inbox.frob 0\r\n\r\n",
        b'PUB $JS.API.STREAM.CREATE.S inbox.made 29\r\n{"name":"S","subjects":["s"]}\r\n',
        b"PUB s inbox.ack 1\r\nx\r\n",
        b"PUB $JS.API.STREAM.NAMES inbox.names 0\r\n\r\n",
    ]
)
ANSWERS = CONVERSATION.count(b"PUB ") - 1  # a verb that there is not gets none


def options(directory: Path, **changes: object) -> BrokerOptions:
    fields = {"jetstream": True, "store_dir": directory, "jetstream_domain": "hub", **changes}
    return BrokerOptions(port=0, server_name="n", **fields)  # type: ignore[arg-type]


async def started(options: BrokerOptions, parts: int | None) -> Broker:
    """A broker that has loaded this many parts since it accepts; None: everything before."""
    broker = Broker(options=options)
    broker.stream_services.greets_first = parts is not None
    await broker.start()
    for _ in islice(broker.stream_services.load_late(), parts or 0):
        pass
    return broker


async def answers(broker: Broker) -> bytes:
    """What a client that sends everything at once gets, in the order of the requests and without times."""
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
    await reader.readline()
    writer.write(CONVERSATION)
    received = b""
    while received.count(b"MSG inbox.") < ANSWERS:
        received += await asyncio.wait_for(reader.read(1 << 16), 10)
    writer.write(b"PING\r\n")
    while not received.endswith(b"PONG\r\n"):
        received += await asyncio.wait_for(reader.read(1 << 16), 10)
    writer.close()
    return CHANGING.sub(b"", received)


@pytest.mark.parametrize("parts", [0, 1, 9, len(PARTS), len(PARTS) + 1, len(PARTS) + 2])
def test_a_client_gets_what_it_gets_from_a_server_that_has_loaded_everything(parts: int, tmp_path: Path) -> None:
    async def main(store: str, parts: int | None) -> bytes:
        broker = await started(options(tmp_path / store), parts)
        try:
            return await answers(broker)
        finally:
            await broker.stop()

    late, ready = (sorted(asyncio.run(main(*how)).split(b"MSG inbox.")) for how in (("a", parts), ("b", None)))
    assert late == ready


@in_loop
async def test_without_a_request_nothing_is_started_until_the_last_part(tmp_path: Path) -> None:
    broker = await started(options(tmp_path), len(PARTS))
    services = broker.stream_services
    assert services.serves("$G")
    assert services._services == {}
    for _ in services.load_late():
        pass
    assert [*services._services] == ["$G"]
    assert [*broker.jetstreams] == ["$G"]
    await broker.stop()


@in_loop
async def test_who_looks_at_the_services_finds_them_loaded(tmp_path: Path) -> None:
    broker = await started(options(tmp_path), 0)
    assert broker.jetstreams["$G"].streams == {}
    await broker.stop()


@in_loop
async def test_each_account_has_its_own_service_and_the_others_are_refused(tmp_path: Path) -> None:
    users = {name: (UserOptions(username=name, password="p"),) for name in "ABC"}
    accounts = (
        AccountOptions(name="A", users=users["A"], jetstream=JetStreamLimits()),
        AccountOptions(name="B", users=users["B"], jetstream=JetStreamLimits(max_streams=3)),
        AccountOptions(name="C", users=users["C"]),
    )
    broker = await started(options(tmp_path, accounts=accounts), 0)
    found = {}
    for name in "CBA":
        reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
        await reader.readline()
        login = json.dumps({"verbose": False, "user": name, "pass": "p"}).encode()
        writer.write(b"CONNECT %b\r\nSUB i 1\r\nPUB $JS.API.INFO i 0\r\n\r\n" % login)
        await asyncio.wait_for(reader.readline(), 10)
        document = json.loads(await asyncio.wait_for(reader.readline(), 10))
        found[name] = document["limits"]["max_streams"] if "limits" in document else document["error"]["err_code"]
        writer.close()
    assert found == {"A": -1, "B": 3, "C": 10039}
    assert sorted(broker.jetstreams) == ["A", "B"]
    await broker.stop()


@in_loop
async def test_streams_on_disk_are_recovered_before_the_greeting(tmp_path: Path) -> None:
    broker = await started(options(tmp_path), 0)
    await answers(broker)
    await broker.stop()
    broker = await started(options(tmp_path), 0)
    assert [*broker.stream_services._services["$G"].streams] == ["S"]
    assert [*broker.stream_services.load_late()] == []
    await broker.stop()


@in_loop
async def test_the_store_is_checked_and_locked_before_the_greeting_and_free_after_the_end(tmp_path: Path) -> None:
    broker = await started(options(tmp_path / "store"), 0)
    with pytest.raises(EnvironmentProblem, match="another server uses the store directory"):
        await started(options(tmp_path / "store"), 0)
    await broker.stop()
    again = await started(options(tmp_path / "store"), None)
    await again.stop()
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentProblem, match="storage directory is not a directory"):
        await started(options(tmp_path / "file"), 0)


@in_loop
async def test_what_cannot_be_loaded_is_logged_and_answered_with_an_error_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker = await started(options(tmp_path), 0)
    services = broker.stream_services
    make = services._make

    def fails(*_: object) -> None:
        raise ImportError("libgone.so: cannot open shared object file")

    monkeypatch.setattr(services, "_make", fails)
    for _ in services.load_late():
        pass
    assert "libgone.so" in caplog.text
    with pytest.raises(ImportError):
        _ = broker.jetstreams
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
    await reader.readline()
    writer.write(b'CONNECT {"verbose":false,"headers":true}\r\nSUB i 1\r\n')
    caplog.clear()

    async def ask(subject: bytes) -> bytes:
        writer.write(b"PUB %b i 0\r\n\r\n" % subject)
        size = int((await asyncio.wait_for(reader.readline(), 10)).split()[-1])
        return (await asyncio.wait_for(reader.readexactly(size + 2), 10)).removesuffix(b"\r\n")

    error = json.loads(await ask(b"$JS.API.INFO"))["error"]
    assert (error["code"], error["err_code"]) == (503, 10008)
    assert await ask(b"$JS.API.CONSUMER.MSG.NEXT.S.c") == b"NATS/1.0 503\r\n\r\n"
    assert caplog.text.count("jetstream_not_loaded subject=b'$JS.API.INFO'") == 1
    assert "libgone.so" in caplog.text
    monkeypatch.setattr(services, "_make", make)
    assert json.loads(await ask(b"$JS.API.INFO"))["type"] == "io.nats.jetstream.api.v1.account_info_response"
    writer.close()
    await broker.stop()


@in_loop
async def test_one_account_that_fails_does_not_keep_the_others_from_theirs(tmp_path: Path) -> None:
    def start(made: list[str], account: Account, lock: File) -> object:
        if account.name == "B" and len(made) < 2:
            made.append("")
            raise OSError(24, "Too many open files")
        made.append(account.name)
        return object()

    names = tuple(AccountOptions(name=name) for name in "ABC")
    broker = await started(BrokerOptions(port=0, accounts=names), None)
    assert broker.accounts is not None
    made: list[str] = []
    late = LateStreams(partial(start, made))  # type: ignore[arg-type]
    for name in "ABC":
        late.add(broker.accounts[name], OsFiles().lock(str(tmp_path / name)), "")
    with pytest.raises(OSError, match="Too many"):
        late.finish()
    assert ["A" in late, "B" in late, "C" in late] == [False, True, True]
    late.finish()
    assert made == ["A", "", "B", "C"]
    await broker.stop()


def test_no_part_takes_long() -> None:
    program = (
        "import sys, headwater.serving.command\n"
        "from headwater.net.lean_imports import import_asyncio, import_msgspec\n"
        "import_asyncio()\n"
        "import headwater.serving.process\n"
        "from headwater.server.late_streams import PARTS\n"
        "import_msgspec()\n"
        "for name in PARTS:\n"
        "    before = len(sys.modules)\n"
        "    __import__(name)\n"
        "    print(name, len(sys.modules) - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    sizes = {name: int(count) for name, count in map(str.split, done.stdout.splitlines())}
    assert [*sizes] == [*PARTS]
    assert {name: size for name, size in sizes.items() if not 0 < size <= MOST_MODULES} == {}


# ── the process ──


def ask_at_once(port: int) -> dict[str, object]:
    with RawLink(port) as link:
        link.send(b'CONNECT {"verbose":false}\r\nSUB i 1\r\nPUB $JS.API.INFO i 0\r\n\r\n')
        link.receive_until(b"MSG i 1 ")
        link.receive_line()
        document: dict[str, object] = json.loads(link.receive_line())
    return document


@in_loop
async def test_a_client_that_has_dialled_is_greeted_before_anything_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving = Serving(ServerConfig(broker=options(tmp_path)), lambda: serving.config, "")
    serving.broker.stream_services.greets_first = True
    await serving.broker.start()
    received: list[bytes] = []
    with socket.create_connection(("127.0.0.1", serving.broker.port)) as client:
        client.setblocking(False)
        monkeypatch.setattr(heap_limits, "limit_heaps", lambda: received.append(client.recv(5)))
        await serving._load_late()
    await serving.broker.stop()
    assert received[0] == b"INFO "


def test_the_first_client_of_a_process_is_answered(tmp_path: Path) -> None:
    with start_headwater(tmp_path, "-js", "-sd", str(tmp_path / "store")) as server:
        assert ask_at_once(server.port)["streams"] == 0
        assert server.stop() == 0
    assert "[ERR]" not in (tmp_path / "headwater.log").read_text()


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_an_end_at_once_leaves_a_store_that_the_next_server_can_use(end: str, tmp_path: Path) -> None:
    for _ in range(4):
        server = start_headwater(tmp_path, "-js", "-sd", str(tmp_path / "store"))
        if end == "stop":
            assert server.stop() == 0
        else:
            server.kill()
    log = (tmp_path / "headwater.log").read_text()
    assert "Traceback" not in log
    assert "[ERR]" not in log
    with start_headwater(tmp_path, "-js", "-sd", str(tmp_path / "store")) as server:
        assert ask_at_once(server.port)["streams"] == 0


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of another process are Linux'")
@pytest.mark.parametrize("load", ["late", "at the request"])
def test_a_process_without_descriptors_loads_all_the_same(load: str, tmp_path: Path) -> None:
    program = (
        "import asyncio, os, resource, sys\n"
        "from headwater.serving import process\n"
        "load_late = process.Serving._load_late\n"
        "async def full(self):\n"
        "    taken = set(map(int, os.listdir('/proc/self/fd')))\n"
        "    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (max(taken), hard))\n"
        "    try:\n"
        "        while True:\n"
        "            os.dup(1)\n"
        "    except OSError:\n"
        "        print('full', 'headwater.jetstream.service' in sys.modules, flush=True)\n"
        "    if sys.argv.pop() == 'late':\n"
        "        await load_late(self)\n"
        "        print('loaded', 'headwater.jetstream.service' in sys.modules, flush=True)\n"
        "    router = self.broker.router\n"
        "    def note(subject, reply, header_block, payload):\n"
        "        print(payload.decode(), flush=True)\n"
        "        self._stop.set()\n"
        "    router.subscribe_internal(b'i', note)\n"
        "    router.publish(b'$JS.API.INFO', b'i', b'', b'')\n"
        "process.Serving._load_late = full\n"
        "from headwater.serving.command import main\n"
        "sys.exit(main(['-a', '127.0.0.1', '-p', '-1', '-js', '-sd', sys.argv[1]]))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path), load]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    first, *more = done.stdout.splitlines()
    assert first == "full False"
    assert json.loads(more[-1])["type"] == "io.nats.jetstream.api.v1.account_info_response", done.stderr
    assert more[:-1] == (["loaded True"] if load == "late" else [])
