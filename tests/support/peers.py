"""Other projects' NATS clients behind one small interface, so that every test of interoperation runs with each of them.

A peer publishes, subscribes, requests and serves in the manner of its own library; what it gets comes back as a `Received`.
nats-py keeps one value per header name, natsrpy and the npm client keep all: `keeps_values` says so, and is a fact about the
peer, not about the broker. Nothing waits without a time-out; `flush` (PING, PONG) is the only synchronisation.
"""

import asyncio
import base64
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import nats
import nats.aio.client
import nats.aio.msg
import nats.aio.subscription
import nats.errors
import natsrpy
import pytest
from support.nats_py_flush import flushed

PEER_TIMEOUT = 10.0  # seconds for one step of one peer
INSTALL_TIMEOUT = 120.0

NODE_PACKAGE = "@nats-io/transport-node"
NODE_VERSION = "3.4.0"
NODE_OLDEST = 18
NODE_LINE = 1 << 22  # bytes of one answer: base64 of some hundred kilobytes of payload
ROOT = Path(__file__).resolve().parents[2]
NODE_SCRIPT = ROOT / "tests" / "interop" / "node" / "peer.mjs"

Pairs = Iterable[tuple[str, str]]


class Received(NamedTuple):
    """A message as a peer's library hands it over; headers in the order and case that the library keeps."""

    subject: str
    data: bytes
    headers: list[tuple[str, str]]
    reply: str


class NoResponders(Exception):
    """The peer's library reported that a request has no responders."""


class Receiver(Protocol):
    """A subscription of a peer."""

    async def receive(self, count: int) -> list[Received]:
        """The next `count` messages."""
        ...

    async def stop_after(self, total: int) -> None:
        """Auto-unsubscribe: `total` messages in all, counted from the subscription."""
        ...


class Peer(Protocol):
    """One connection of another project's client."""

    name: str
    keeps_values: bool

    async def subscribe(self, subject: str, queue: str = "") -> Receiver: ...
    async def publish(self, subject: str, data: bytes, headers: Pairs = (), reply: str = "") -> None: ...
    async def request(self, subject: str, data: bytes, headers: Pairs = ()) -> Received: ...
    async def serve(self, subject: str, tag: str, queue: str = "") -> None:
        """Answers every request with `tag`, a colon and its data, and with its headers."""
        ...

    async def flush(self) -> None: ...
    async def close(self) -> None: ...


def gather_values(headers: Pairs) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name, []).append(value)
    return values


# --- nats-py ---------------------------------------------------------------------------------------------------------


class NatsPyPeer:
    name = "nats-py"
    keeps_values = False

    def __init__(self, client: nats.aio.client.Client) -> None:
        self._client = client

    async def subscribe(self, subject: str, queue: str = "") -> Receiver:
        subscription = await self._client.subscribe(subject, queue=queue)
        await self.flush()
        return NatsPyReceiver(subscription)

    async def publish(self, subject: str, data: bytes, headers: Pairs = (), reply: str = "") -> None:
        await self._client.publish(subject, data, reply=reply, headers=dict(headers) or None)

    async def request(self, subject: str, data: bytes, headers: Pairs = ()) -> Received:
        try:
            answer = await self._client.request(subject, data, timeout=PEER_TIMEOUT, headers=dict(headers) or None)
        except nats.errors.NoRespondersError as error:
            raise NoResponders(subject) from error
        return describe_nats_py(answer)

    async def serve(self, subject: str, tag: str, queue: str = "") -> None:
        async def answer(message: nats.aio.msg.Msg) -> None:
            await self.publish(message.reply, tag.encode() + b":" + message.data, (message.headers or {}).items())

        await self._client.subscribe(subject, queue=queue, cb=answer)
        await self.flush()

    async def flush(self) -> None:
        await flushed(self._client, int(PEER_TIMEOUT))

    async def close(self) -> None:
        await self._client.close()


class NatsPyReceiver:
    def __init__(self, subscription: nats.aio.subscription.Subscription) -> None:
        self._subscription = subscription

    async def receive(self, count: int) -> list[Received]:
        return [describe_nats_py(await self._subscription.next_msg(timeout=PEER_TIMEOUT)) for _ in range(count)]

    async def stop_after(self, total: int) -> None:
        await self._subscription.unsubscribe(limit=total)


def describe_nats_py(message: nats.aio.msg.Msg) -> Received:
    return Received(message.subject, message.data, list((message.headers or {}).items()), message.reply)


async def connect_nats_py(url: str) -> Peer:
    client = await nats.connect(url, connect_timeout=int(PEER_TIMEOUT), allow_reconnect=False)
    return NatsPyPeer(client)


# --- natsrpy ---------------------------------------------------------------------------------------------------------


class NatsrpyPeer:
    """async-nats in Rust, through its Python binding."""

    name = "natsrpy"
    keeps_values = True

    def __init__(self, client: natsrpy.Nats) -> None:
        self._client = client
        self._services: list[object] = []  # a subscription without a reference is dropped

    async def subscribe(self, subject: str, queue: str = "") -> Receiver:
        subscription = await self._client.subscribe(subject, queue=queue or None).detatch()
        await self.flush()
        return NatsrpyReceiver(subscription)

    async def publish(self, subject: str, data: bytes, headers: Pairs = (), reply: str = "") -> None:
        await self._client.publish(subject, data, headers=gather_values(headers) or None, reply=reply or None)

    async def request(self, subject: str, data: bytes, headers: Pairs = ()) -> Received:
        try:
            answer = await self._client.request(
                subject, data, headers=gather_values(headers) or None, timeout=PEER_TIMEOUT
            )
        except Exception as error:
            if "no responders" not in str(error).lower():
                raise
            raise NoResponders(subject) from error
        return describe_natsrpy(answer)

    async def serve(self, subject: str, tag: str, queue: str = "") -> None:
        async def answer(message: natsrpy.Message) -> None:
            received = describe_natsrpy(message)
            await self.publish(received.reply, tag.encode() + b":" + received.data, received.headers)

        self._services.append(await self._client.subscribe(subject, answer, queue=queue or None).detatch())
        await self.flush()

    async def flush(self) -> None:
        await asyncio.wait_for(self._client.flush(), PEER_TIMEOUT)

    async def close(self) -> None:
        await self._client.shutdown()


class NatsrpyReceiver:
    def __init__(self, subscription: natsrpy.IteratorSubscription) -> None:
        self._subscription = subscription

    async def receive(self, count: int) -> list[Received]:
        iterator = aiter(self._subscription)
        return [describe_natsrpy(await asyncio.wait_for(anext(iterator), PEER_TIMEOUT)) for _ in range(count)]

    async def stop_after(self, total: int) -> None:
        await self._subscription.unsubscribe(limit=total)


def describe_natsrpy(message: natsrpy.Message) -> Received:
    pairs: list[tuple[str, str]] = []
    for name, value in (message.headers or {}).items():
        pairs += [(name, one) for one in (value if isinstance(value, list) else [value])]
    return Received(message.subject, message.payload, pairs, message.reply or "")


async def connect_natsrpy(url: str) -> Peer:
    client = natsrpy.Nats(addrs=[url], connection_timeout=PEER_TIMEOUT, request_timeout=PEER_TIMEOUT)
    await client.startup()
    return NatsrpyPeer(client)


# --- npm @nats-io/transport-node -------------------------------------------------------------------------------------


class NodePeer:
    """A node process that takes orders as lines of JSON (tests/interop/node/peer.mjs)."""

    name = "transport-node"
    keeps_values = True

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._turn = asyncio.Lock()
        self._ears = 0

    async def perform(self, verb: str, **arguments: object) -> dict[str, Any]:
        """One request to the script and its answer. Raises RuntimeError with node's error."""
        assert self._process.stdin is not None
        async with self._turn:
            self._process.stdin.write(json.dumps({"do": verb, **arguments}).encode() + b"\n")
            await self._process.stdin.drain()
            answer = await self.listen()
        if not answer["ok"]:
            if answer["error"] == "NoRespondersError" or "no responders" in answer["text"]:
                raise NoResponders(answer["text"])
            raise RuntimeError(f"{verb}: {answer['error']}: {answer['text']}")
        return answer

    async def listen(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), PEER_TIMEOUT)
        if not line:
            assert self._process.stderr is not None
            raise RuntimeError(f"node ended:\n{(await self._process.stderr.read()).decode()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def subscribe(self, subject: str, queue: str = "") -> Receiver:
        self._ears += 1
        name = str(self._ears)
        await self.perform("subscribe", **{"as": name, "subject": subject, "queue": queue})
        return NodeReceiver(self, name)

    async def publish(self, subject: str, data: bytes, headers: Pairs = (), reply: str = "") -> None:
        payload = base64.b64encode(data).decode()
        await self.perform("publish", subject=subject, data=payload, headers=list(headers), reply=reply)

    async def request(self, subject: str, data: bytes, headers: Pairs = ()) -> Received:
        payload = base64.b64encode(data).decode()
        answer = await self.perform("request", subject=subject, data=payload, headers=list(headers))
        return describe_node(answer["messages"][0])

    async def serve(self, subject: str, tag: str, queue: str = "") -> None:
        await self.perform("serve", subject=subject, tag=tag, queue=queue)

    async def flush(self) -> None:
        await self.perform("flush")

    async def close(self) -> None:
        """Drains the connection; a process that does not end then is killed."""
        try:
            await self.perform("close")
            await asyncio.wait_for(self._process.wait(), PEER_TIMEOUT)
        finally:
            if self._process.returncode is None:
                self._process.kill()
                await self._process.wait()


class NodeReceiver:
    def __init__(self, peer: NodePeer, name: str) -> None:
        self._peer = peer
        self._name = name

    async def receive(self, count: int) -> list[Received]:
        answer = await self._peer.perform("receive", **{"as": self._name, "count": count})
        return [describe_node(message) for message in answer["messages"]]

    async def stop_after(self, total: int) -> None:
        await self._peer.perform("unsubscribe", **{"as": self._name, "max": total})


def describe_node(message: dict[str, Any]) -> Received:
    headers = [(name, value) for name, value in message["headers"]]
    return Received(message["subject"], base64.b64decode(message["data"]), headers, message["reply"])


async def connect_node(url: str, authority: Path | None = None) -> Peer:
    """Skips the test, with the reason, where node or npm is missing or the package cannot be had. `authority`: PEM file of
    which it is to trust."""
    packages = await asyncio.to_thread(install_node_package)
    # node 20 has a WebSocket, and has it behind a flag; 22 takes the flag, too, and needs it not.
    flags = ["--experimental-websocket"] if url.startswith("ws") else []
    trust = {"NODE_EXTRA_CA_CERTS": str(authority)} if authority is not None else {}
    process = await asyncio.create_subprocess_exec(
        "node",
        *flags,
        str(NODE_SCRIPT),
        str(packages),
        url,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=NODE_LINE,
        env={**os.environ, **trust},
    )
    peer = NodePeer(process)
    await peer.listen()
    return peer


def install_node_package(names: tuple[str, ...] = (NODE_PACKAGE,)) -> Path:
    """The folder that holds node_modules with these packages; filled on first use, and kept between runs. Safe for several
    test processes."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed: {NODE_PACKAGE} cannot be tested here")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, timeout=30, check=True).stdout
    if int(version.removeprefix("v").split(".")[0]) < NODE_OLDEST:
        pytest.skip(f"node {version.strip()} is older than {NODE_OLDEST}, which {NODE_PACKAGE} needs")
    folder = f"npm-{NODE_VERSION}" if names == (NODE_PACKAGE,) else f"npm-{NODE_VERSION}-{len(names)}"
    packages = ROOT / ".hw" / folder
    packages.mkdir(parents=True, exist_ok=True)
    with (packages / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (packages / "done").exists():
            command = ["npm", "install", "--prefix", str(packages), "--no-audit", "--no-fund", "--ignore-scripts"]
            try:
                done = subprocess.run(
                    [*command, *(f"{name}@{NODE_VERSION}" for name in names)],
                    capture_output=True,
                    text=True,
                    timeout=INSTALL_TIMEOUT,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                pytest.skip(f"npm could not install {NODE_PACKAGE}: no answer within {INSTALL_TIMEOUT:.0f} s")
            if done.returncode:
                pytest.skip(f"npm could not install {NODE_PACKAGE}: {done.stderr.strip()[-300:]}")
            (packages / "done").touch()
    return packages


CONNECTORS = {"nats-py": connect_nats_py, "natsrpy": connect_natsrpy, "transport-node": connect_node}


@contextlib.asynccontextmanager
async def connected(name: str, url: str) -> AsyncIterator[Peer]:
    """A peer by its name, closed at the end."""
    peer = await CONNECTORS[name](url)
    try:
        yield peer
    finally:
        await peer.close()
