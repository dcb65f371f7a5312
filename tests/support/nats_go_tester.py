"""The service that nats.go's suites ask for servers: here it starts `nats-server` from PATH, a process for each.

nats.go's integration tests start no server themselves. They ask for one on `tester.>`, at the address in TESTER_NATS_URL
(the API of synadia-io/orbit.go's `ntf`, which has nats-server linked into it). This one answers what the tests ask: servers
and clusters made, stopped, started, given another configuration, reloaded and taken down.
"""

import asyncio
import itertools
import json
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme

import headwater

HOST = "localhost"  # the tests compare what servers announce with it
START_TIMEOUT, STOP_TIMEOUT, RELOAD_TIMEOUT = 20.0, 10.0, 10.0
PATIENCE = 0.02  # seconds between two looks at a server
LISTENERS = ("websocket", "mqtt", "leafnode")  # a part of this name gets a port, as {{ .Ports.<name> }}
ACCOUNTS = "accounts {{\n{users}$SYS {{ users = [ {{ user: system, pass: password }} ] }}\n}}"
USERS = "USERS{0} {{ users = [ {{ user: user{0}, pass: password }} ], jetstream: {1} }}\n"
_FIELD = re.compile(r"\{\{\s*\.([\w.]+)\s*\}\}")
_RELOADED = re.compile(rb"(Reloaded server configuration|Failed to reload).*\n")
_ports = itertools.count(20_000)  # below the ports of outgoing connections, which could take that of a stopped server


def free_port() -> int:
    for port in _ports:
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                taken.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no port is free")


class Refused(Exception):
    """The answer to a request that cannot be fulfilled."""


@dataclass
class Server:
    """A server: what its configuration is made of, and the process while it runs."""

    name: str
    folder: Path
    jetstream: bool
    parts: dict[str, str]
    cluster: str = ""
    routes: tuple[int, ...] = ()  # the first is its own
    tls: dict[str, Any] | None = None
    port: int = field(default_factory=free_port)
    ports: dict[str, int] = field(default_factory=dict)
    process: asyncio.subprocess.Process | None = None

    def shown(self) -> dict[str, Any]:
        running = self.process is not None and self.process.returncode is None
        place = {"name": self.name, "cluster": self.cluster, "port": self.port, "ports": self.ports}
        return place | {"advertise": HOST, "running": running}

    def configuration(self) -> str:
        """`parts` take the place of what they are named after."""
        files = self.tls or {}
        fields = {f"Ports.{name}": str(port) for name, port in self.ports.items()}
        fields |= {"TLS.CertFile": files.get("cert", ""), "TLS.KeyFile": files.get("key", "")}
        parts = {name: _FIELD.sub(lambda found: fields[found[1]], text) for name, text in self.parts.items()}
        lines = [parts.get("top", ""), f'server_name: "{self.name}"', f"port: {self.port}"]
        lines.append(f'client_advertise: "{HOST}:{self.port}"')
        if self.jetstream:
            lines.append(f'jetstream {{\nenabled: true\nstore_dir: "{self.folder}"\n{parts.get("jetstream", "")}\n}}')
        if self.routes:
            routes = ", ".join(f'"nats://{HOST}:{port}"' for port in self.routes)
            lines.append(f'cluster {{ name: "{self.cluster}", port: {self.routes[0]}, routes: [{routes}] }}')
        lines.append(parts.get("tls", tls_block(files) if files else ""))
        lines += [parts.get(name, "") for name in LISTENERS]
        lines.append(parts.get("system_account", 'system_account: "$SYS"'))
        lines.append(parts.get("authorization", "no_auth_user: user1"))
        users = "".join(USERS.format(number, str(self.jetstream).lower()) for number in range(1, 6))
        lines.append(parts.get("accounts", ACCOUNTS.format(users=users)))
        return "\n".join(lines)


def tls_block(files: dict[str, Any]) -> str:
    first = "handshake_first: true" if files["first"] else ""
    verify = str(files["mutual"]).lower()
    return (
        f'tls {{ cert_file: "{files["cert"]}", key_file: "{files["key"]}", ca_file: "{files["ca"]}"\n'
        f"verify: {verify}\ntimeout: {files['timeout'] or 2}\n{first}\n}}"
    )


def issue(folder: Path, request: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """What a server's `tls` block needs, and what its clients are given."""
    authority = trustme.CA()
    leaf = authority.issue_cert(*(request.get("sans") or (HOST, "127.0.0.1", "::1")))
    client = authority.issue_cert("client@example.org")
    files = {"ca": folder / "ca.pem", "cert": folder / "server.pem", "key": folder / "server-key.pem"}
    authority.cert_pem.write_to_path(str(files["ca"]))
    leaf.cert_chain_pems[0].write_to_path(str(files["cert"]))
    leaf.private_key_pem.write_to_path(str(files["key"]))
    mutual = request.get("mode", "mutual") == "mutual"
    given = {"ca_pem": authority.cert_pem.bytes().decode()}
    if mutual:
        given["client_cert_pem"] = client.cert_chain_pems[0].bytes().decode()
        given["client_key_pem"] = client.private_key_pem.bytes().decode()
    settings = {"mutual": mutual, "first": request.get("handshake_first", False), "timeout": request.get("timeout", 0)}
    return {name: str(path) for name, path in files.items()} | settings, given


class Tester:
    """Answers requests on `tester.>`; servers start in `env`, with their files below `directory`."""

    def __init__(self, directory: Path, env: dict[str, str]) -> None:
        self.directory, self.env = directory, env
        self.instances: dict[str, list[Server]] = {}
        self._numbers = itertools.count(1)
        self._answering: set[asyncio.Task[None]] = set()

    def receive(self, message: headwater.Message) -> None:
        task = asyncio.create_task(self._answer(message))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def close(self) -> None:
        for instance in list(self.instances):
            await self._destroy({"instance_id": instance})

    async def _answer(self, message: headwater.Message) -> None:
        handlers = {
            "create.server": self._create,
            "create.cluster": self._create,
            "destroy": self._destroy,
            "start.server": self._start,
            "stop.server": self._stop,
            "update.server": self._update,
            "reload.server": self._reload,
        }
        what = message.subject.removeprefix("tester.")
        try:
            if what not in handlers:
                raise Refused(f"{what} is not known here")
            answer = await handlers[what](json.loads(message.data))
        except (Refused, OSError, KeyError) as error:
            message.respond(headers={"Nats-Service-Error": repr(error), "Nats-Service-Error-Code": "500"})
        else:
            message.respond(json.dumps(answer).encode())

    async def _create(self, request: dict[str, Any]) -> dict[str, Any]:
        instance = f"I{next(self._numbers)}"
        folder = self.directory / instance
        folder.mkdir(parents=True)
        size = request.get("servers", 0)
        routes = [free_port() for _ in range(size)]
        tls, given = issue(folder, request["tls"]) if request.get("tls") else (None, None)
        parts = request.get("snippets") or {}
        servers = self.instances[instance] = [
            Server(
                name=f"{instance}-n{number + 1}",
                folder=folder / f"n{number + 1}",
                jetstream=request.get("jetstream", False),
                parts=parts,
                cluster=f"C_{instance}" if size else "",
                routes=(*routes[number:], *routes[:number]),
                tls=tls,
                ports={name: free_port() for name in LISTENERS if name in parts},
            )
            for number in range(max(size, 1))
        ]
        for server in servers:
            server.folder.mkdir()
            (server.folder / "server.conf").write_text(server.configuration(), encoding="utf-8")
            await self._run(server)
        shown = [server.shown() for server in servers]
        return {"id": instance, "kind": "cluster" if size else "server", "servers": shown, "tls": given}

    async def _run(self, server: Server) -> None:
        """Started, and greeting its clients."""
        log = server.folder / "server.log"
        with log.open("ab") as output:
            server.process = await asyncio.create_subprocess_exec(
                shutil.which("nats-server", path=self.env["PATH"]) or "nats-server",
                "-c",
                str(server.folder / "server.conf"),
                env=self.env,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            async with asyncio.timeout(START_TIMEOUT):
                while not all([await greets(port, silent=silent) for port, silent in listened(server)]):
                    if server.process.returncode is not None:
                        raise Refused(f"the server ended: {log.read_text(errors='replace')[-2000:]}")
                    await asyncio.sleep(PATIENCE)
        except TimeoutError:
            raise Refused(f"the server does not greet: {log.read_text(errors='replace')[-2000:]}") from None

    def _named(self, request: dict[str, Any]) -> Server:
        for server in itertools.chain.from_iterable(self.instances.values()):
            if server.name == request["name"]:
                return server
        raise Refused("Server not found")

    async def _start(self, request: dict[str, Any]) -> dict[str, Any]:
        await self._run(self._named(request))
        return {"started": True}

    async def _stop(self, request: dict[str, Any]) -> dict[str, Any]:
        await end(self._named(request))
        return {"shutdown": True}

    async def _update(self, request: dict[str, Any]) -> dict[str, Any]:
        server = self._named(request)
        server.parts = server.parts | (request.get("snippets") or {})
        if request.get("tls_timeout") is not None and server.tls is not None:
            server.tls = server.tls | {"timeout": request["tls_timeout"]}
        (server.folder / "server.conf").write_text(server.configuration(), encoding="utf-8")
        return {"updated": True}

    async def _reload(self, request: dict[str, Any]) -> dict[str, Any]:
        """Until the server's log says what became of it."""
        server = self._named(request)
        log = server.folder / "server.log"
        before = log.stat().st_size
        assert server.process is not None
        server.process.send_signal(signal.SIGHUP)
        async with asyncio.timeout(RELOAD_TIMEOUT):
            while not _RELOADED.search(written := log.read_bytes()[before:]):  # noqa: ASYNC110 - a file says nothing by itself
                await asyncio.sleep(PATIENCE)
        if b"Failed to reload" in written:
            raise Refused(written.decode(errors="replace"))
        return {"reloaded": True}

    async def _destroy(self, request: dict[str, Any]) -> dict[str, Any]:
        servers = self.instances.pop(request["instance_id"], [])
        for server in servers:
            await end(server)
        shutil.rmtree(self.directory / request["instance_id"], ignore_errors=True)
        return {"destroyed": True}


def listened(server: Server) -> Iterator[tuple[int, bool]]:
    """The ports of clients, and whether the server waits there for what they say. A leaf does not listen for leaf nodes."""
    yield server.port, server.tls is not None and server.tls["first"]
    if "websocket" in server.ports:
        yield server.ports["websocket"], True


async def greets(port: int, *, silent: bool) -> bool:
    """Whether a connection is taken, and, unless `silent`, greeted."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    try:
        return silent or bool(await reader.read(1))
    except OSError:
        return False
    finally:
        writer.close()


async def end(server: Server) -> None:
    process = server.process
    if process is None or process.returncode is not None:
        return
    process.send_signal(signal.SIGINT)
    try:
        async with asyncio.timeout(STOP_TIMEOUT):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


@asynccontextmanager
async def serving_tests(directory: Path, env: dict[str, str]) -> AsyncIterator[str]:
    """What TESTER_NATS_URL is to be, with a tester that answers there."""
    async with headwater.Broker() as broker, await headwater.connect(broker.url) as client:
        tester = Tester(directory, env)
        await client.subscribe("tester.>", callback=tester.receive)
        try:
            yield f"nats://{HOST}:{broker.port}"
        finally:
            await tester.close()
