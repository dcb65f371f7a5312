"""Where crossings take place: one function for each row of `table.PLACES`, by its key.

Each starts what it needs on the given stack, on loopback and any free ports, and returns the world. `accounts` asks for the
variant in which another account imports the stream's subjects as services, for the way in that needs one; there the streams
are of an account, and the Iggy face, which shows those of the global one, is not.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from crossings.table import BUCKET, EVENTS, OBJECTS, Place
from crossings.world import SERVICE, SUBJECTS, Iggy, World, until
from support.certificates import make_certificates
from support.clusters import meshed, route_url
from support.headwater_server import start_headwater
from support.nats_server import start_nats_server

from headwater import Broker
from headwater.client.jetstream_types import StreamConfig
from headwater.errors import HeadwaterError
from headwater.iggy.face import IggyOptions
from headwater.iggy.service_options import ServiceOptions
from headwater.net.listener_options import TlsOptions, WebSocketOptions
from headwater.net.tls import client_context
from headwater.options.cluster import ClusterOptions
from headwater.server.config.schema import load
from headwater.testing.ports import free_port

Start = Callable[[AsyncExitStack, Place, Path, bool], Awaitable[World]]

LOOPBACK = ("127.0.0.1", 0)
CLUSTER = "crossings"
API = "JS.of-streams"  # where the reading account has the API of the one with the streams
DELIVER = "deliver"

# What the account with the streams lets others do: publish; use the JetStream API; receive what is delivered.
INTO = [f"{SUBJECTS[stream]}.>" for stream in (EVENTS, BUCKET)]
REQUESTED = ["$JS.ACK.>", "$JS.FC.>"]
RECEIVED = [*INTO, f"{SUBJECTS[OBJECTS]}.>", f"{DELIVER}.>"]


def _each(text: str, subjects: list[str]) -> str:
    return ", ".join("{" + text.replace("SUBJECT", subject) + "}" for subject in subjects)


# In nats-server's words, which ours reads too.
ACCOUNTS = f"""
no_auth_user: inside
accounts {{
    STREAMS {{
        jetstream: enabled
        users = [{{user: inside, password: p}}]
        exports = [
            {{service: "$JS.API.>", response_type: stream}}
            {_each('service: "SUBJECT"', [*INTO, *REQUESTED])}
            {_each('stream: "SUBJECT"', RECEIVED)}
        ]
    }}
    READING {{
        users = [{{user: reading, password: p}}]
        imports = [
            {{service: {{account: STREAMS, subject: "$JS.API.>"}}, to: "{API}.API.>"}}
            {_each('service: {account: STREAMS, subject: "SUBJECT"}', REQUESTED)}
            {_each('stream: {account: STREAMS, subject: "SUBJECT"}', RECEIVED)}
        ]
    }}
    OUTSIDE {{
        users = [{{user: outside, password: p}}]
        imports = [{_each(f'service: {{account: STREAMS, subject: "SUBJECT"}}, to: "{SERVICE}.SUBJECT"', INTO)}]
    }}
}}
"""


def config_file(folder: Path, accounts: bool, more: str = "") -> Path:
    """A configuration file: the accounts of this variant, and `more`."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "server.conf"
    file.write_text((ACCOUNTS if accounts else "") + more)
    return file


def as_user(url: str, user: str, accounts: bool = True) -> str:
    """The same address for a user of one of the accounts; nothing where there are none."""
    return url.replace("://", f"://{user}:p@") if accounts else ""


async def broker(
    stack: AsyncExitStack,
    folder: Path,
    *,
    accounts: bool,
    streams: bool = False,
    iggy_files: Any = None,
    **options: Any,
) -> Broker:
    """One of ours in this loop. Where its streams are of the global account it has the Iggy face, over TLS with files."""
    if accounts:
        draft = load(str(config_file(folder, accounts)), lambda path: Path(path).read_text(), {})
        options |= {"accounts": draft.finish().broker.accounts, "no_auth_user": "inside"}
    elif streams:
        service = ServiceOptions(sync="never", housekeeping=3600)
        options["iggy"] = IggyOptions(tcp=LOOPBACK, seed=LOOPBACK, service=service, **(iggy_files or {}))
    made = Broker(jetstream=streams, store_dir=folder / "js", sync="never", **options)
    return await stack.enter_async_context(made)


def iggy_of(node: Broker, accounts: bool) -> Iggy | None:
    """The ports of its Iggy face, which it has without accounts."""
    return None if accounts else Iggy(node.iggy.tcp_port, node.iggy.seed_port)


async def nodes(
    stack: AsyncExitStack, folder: Path, *, accounts: bool, count: int, routes: tuple[str, ...] = (), **cluster: Any
) -> list[Broker]:
    """A cluster of ours; the streams are on the first. With `routes`, it has none: they are elsewhere."""
    found: list[Broker] = []
    for number in range(count):
        seeds = routes or tuple(route_url(one) for one in found[:1])
        options = ClusterOptions(name=CLUSTER, host="127.0.0.1", routes=seeds, **cluster)
        found.append(
            await broker(
                stack,
                folder / f"n{number}",
                accounts=accounts,
                streams=number == 0 and not routes,
                server_name=f"n{number}",
                cluster=options,
            )
        )
    return found


async def same(stack: AsyncExitStack, place: Place, folder: Path, accounts: bool) -> World:
    node = await broker(stack, folder, accounts=accounts, streams=True)
    importer = as_user(node.url, "outside", accounts)
    return World(place, stack, node.url, node.url, node.url, importer, iggy=iggy_of(node, accounts))


async def other(stack: AsyncExitStack, place: Place, folder: Path, accounts: bool, **cluster: Any) -> World:
    a, b, c = await nodes(stack, folder, accounts=accounts, count=3, **cluster)
    await meshed([a, b, c], 2)
    return World(place, stack, a.url, b.url, c.url, as_user(b.url, "outside", accounts), iggy=iggy_of(a, accounts))


async def v1(stack: AsyncExitStack, place: Place, folder: Path, accounts: bool) -> World:
    return await other(stack, place, folder, accounts, protocol="v1")


async def workers(stack: AsyncExitStack, place: Place, folder: Path, accounts: bool) -> World:
    iggy = None if accounts else Iggy(free_port(), free_port())
    doors = ["--iggy", f"127.0.0.1:{iggy.tcp_port}", "--iggy-seed", f"127.0.0.1:{iggy.seed_port}"] if iggy else []
    config = ["-c", str(config_file(folder, accounts))]
    arguments = ["--workers", "2", "-n", "w", "-js", "-sd", str(folder / "js"), "--sync", "never", *config, *doors]
    server = stack.enter_context(await asyncio.to_thread(start_headwater, folder, *arguments))
    first, second = f"{server.url}#w-1", f"{server.url}#w-2"
    return World(place, stack, first, second, second, as_user(second, "outside", accounts), iggy=iggy)


async def real_reader(stack: AsyncExitStack, place: Place, folder: Path, accounts: bool) -> World:
    (ours,) = await nodes(stack, folder, accounts=accounts, count=1)
    cluster = (
        f'server_name: real\ncluster {{ name: {CLUSTER}, listen: "127.0.0.1:-1", routes: ["{route_url(ours)}"] }}\n'
    )
    config = config_file(folder / "real", accounts, cluster)

    def start() -> Any:
        return start_nats_server(folder / "real", "-c", str(config), jetstream=False)

    real = stack.enter_context(await asyncio.to_thread(start))
    await meshed([ours], 1)
    importer = as_user(real.url, "outside", accounts)
    return World(place, stack, ours.url, real.url, real.url, importer, iggy=iggy_of(ours, accounts))


async def real_stream(stack: AsyncExitStack, place: Place, folder: Path, accounts: bool) -> World:
    ports = [free_port() for _ in range(3)]
    routes = tuple(f"nats-route://127.0.0.1:{port}" for port in ports)

    def start(number: int) -> Any:
        listen = f'listen: "127.0.0.1:{ports[number]}", routes: [{", ".join(map(repr, routes))}]'
        config = f"server_name: r{number}\ncluster {{ name: {CLUSTER}, {listen} }}\n"
        directory = folder / f"r{number}"
        return start_nats_server(directory, "-c", str(config_file(directory, accounts, config)))

    real = [
        stack.enter_context(server) for server in await asyncio.gather(*(asyncio.to_thread(start, n) for n in range(3)))
    ]
    (ours,) = await nodes(stack, folder, accounts=accounts, count=1, routes=routes)
    await meshed([ours], 3)
    world = World(place, stack, real[0].url, ours.url, ours.url, as_user(ours.url, "outside", accounts))

    async def places_streams() -> bool:
        """Right after the election one request in twenty to create a stream has no answer from these three."""
        jetstream = (await world.client(world.owner)).jetstream(timeout=1.0)
        try:
            await jetstream.create_stream(StreamConfig(name="FIRST", subjects=["first"], storage="memory"))
            await jetstream.delete_stream("FIRST")
        except HeadwaterError:
            return False
        return True

    await until(places_streams, "JetStream in a cluster of three nats-servers", seconds=30)
    return world


async def tls(stack: AsyncExitStack, place: Place, folder: Path, accounts: bool) -> World:
    files = make_certificates(folder / "certificates")
    secure = TlsOptions(cert_file=files.server_cert, key_file=files.server_key)
    own = {"cert_file": files.server_cert, "key_file": files.server_key}
    node = await broker(stack, folder, accounts=accounts, streams=True, iggy_files=own, tls=secure)
    url = node.url.replace("nats://", "tls://")
    context = client_context(files.ca)
    importer = as_user(url, "outside", accounts)
    return World(place, stack, url, url, url, importer, iggy=iggy_of(node, accounts), tls=context, authority=files.ca)


async def websocket(stack: AsyncExitStack, place: Place, folder: Path, accounts: bool) -> World:
    node = await broker(stack, folder, accounts=accounts, streams=True, websocket=WebSocketOptions(no_tls=True))
    url = node.websocket_url
    return World(place, stack, node.url, url, url, as_user(url, "outside", accounts), iggy=iggy_of(node, accounts))


async def websocket_tls(stack: AsyncExitStack, place: Place, folder: Path, accounts: bool) -> World:
    files = make_certificates(folder / "certificates")
    own = {"cert_file": files.server_cert, "key_file": files.server_key}
    options = WebSocketOptions(tls=TlsOptions(cert_file=files.server_cert, key_file=files.server_key))
    node = await broker(stack, folder, accounts=accounts, streams=True, iggy_files=own, websocket=options)
    url = node.websocket_url
    importer, context = as_user(url, "outside", accounts), client_context(files.ca)
    return World(place, stack, url, url, url, importer, iggy=iggy_of(node, accounts), tls=context, authority=files.ca)


async def accounts_apart(stack: AsyncExitStack, place: Place, folder: Path, accounts: bool) -> World:
    node = await broker(stack, folder, accounts=accounts, streams=True)
    return reading(stack, place, node.url)


async def reference(stack: AsyncExitStack, place: Place, folder: Path, accounts: bool) -> World:
    server = stack.enter_context(start_nats_server(folder, "-c", str(config_file(folder, accounts))))
    return World(place, stack, server.url, server.url, server.url, as_user(server.url, "outside"))


async def reference_accounts(stack: AsyncExitStack, place: Place, folder: Path, accounts: bool) -> World:
    server = stack.enter_context(start_nats_server(folder, "-c", str(config_file(folder, accounts))))
    return reading(stack, place, server.url)


def reading(stack: AsyncExitStack, place: Place, url: str) -> World:
    """With the reader in the account that imports."""
    reader, importer = as_user(url, "reading"), as_user(url, "outside")
    return World(place, stack, url, url, reader, importer, prefix=f"{API}.API", deliver=DELIVER)


FUNCTIONS: dict[str, Start] = {
    "same": same,
    "other": other,
    "v1": v1,
    "workers": workers,
    "real-reader": real_reader,
    "real-stream": real_stream,
    "tls": tls,
    "websocket": websocket,
    "websocket-tls": websocket_tls,
    "accounts": accounts_apart,
    "reference": reference,
    "reference-accounts": reference_accounts,
}
