"""Nodes without streams in front of three nats-servers with a JetStream domain, compared with a nats-server as the
front.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import nats
import pytest
from nats.aio.client import Client
from nats.errors import NoRespondersError
from nats.js.errors import NoStreamResponseError, ServiceUnavailableError
from support.configured_servers import KINDS, serve
from support.jetstream_clusters import await_jetstream

from headwater.testing.ports import free_port

pytestmark = pytest.mark.interop

PATIENCE = 10.0  # seconds for one request
T = TypeVar("T")
FRONTS = {"none": "", "the domain": "domain: hub", "another": "domain: spoke"}
REQUESTS = [f"$JS.{domain}API.INFO" for domain in ("", "hub.", "spoke.")] + ["$JS.hub.API.FROB", "$JS.hub.API.$KV.x.y"]


async def answered(client: Client, subject: str) -> bool:
    try:
        await client.request(subject, timeout=PATIENCE)
    except NoRespondersError:
        return False
    return True


async def insist(publish: Callable[[], Awaitable[T]]) -> T:
    """Retry while the subjects of a new stream or consumer are not known at this front yet: the answer to the request that
    made it comes from the leader, its interest over the route of the server that has it. nats-py has three errors for no
    responders: one for publishes, one for the API, and what a direct get and an ack raise."""
    while True:
        try:
            return await publish()
        except (NoStreamResponseError, ServiceUnavailableError, NoRespondersError):
            await asyncio.sleep(0.01)


async def use(client: Client, name: str) -> object:
    """Use the domain from a client of this front."""
    stream = client.jetstream(domain="hub", timeout=PATIENCE)
    try:
        await stream.add_stream(name=name, subjects=[f"{name}.>"])
    except ServiceUnavailableError:
        return "unavailable"
    ack = await insist(lambda: stream.publish(f"{name}.x", b"1"))
    pull = await stream.pull_subscribe(f"{name}.x", "durable")
    (message,) = await insist(lambda: pull.fetch(1, timeout=PATIENCE))
    await insist(lambda: message.ack_sync(timeout=PATIENCE))
    store = await stream.create_key_value(bucket=name)
    await insist(lambda: store.put("key", b"value"))
    return ack.domain, message.data, (await insist(lambda: store.get("key"))).value, await store.keys()


def test_front_that_names_the_domain_passes_it_on_and_one_that_does_not_has_no_responders(tmp_path: Path) -> None:
    async def seen(urls: dict[tuple[str, str], str]) -> dict[tuple[str, str], object]:
        found: dict[tuple[str, str], object] = {}
        for number, (key, url) in enumerate(urls.items()):
            async with asyncio.timeout(40), await nats.connect(url) as client:
                shown = client._server_info.get("domain")
                found[key] = shown, [await answered(client, each) for each in REQUESTS], await use(client, f"s{number}")
        return found

    with ExitStack() as stack:
        ports = [free_port() for _ in range(3)]
        routes = ", ".join(f'"nats-route://127.0.0.1:{port}"' for port in ports)

        def start(kind: str, name: str, port: int, streams: str) -> str:
            config = f'listen: 127.0.0.1:-1\nserver_name: "{name}"\njetstream {{ {streams} }}\n'
            config += f'cluster {{ name: hw, listen: "127.0.0.1:{port}", routes: [{routes}] }}\n'
            return f"nats://127.0.0.1:{stack.enter_context(serve(kind, tmp_path / name, config)).port}"

        real = [
            start(KINDS[0], f"r{at}", port, f'store_dir: "{tmp_path}/r{at}/js", domain: hub')
            for at, port in enumerate(ports)
        ]
        fronts = {
            (kind, named): start(kind, f"{kind}-{named.replace(' ', '-')}", free_port(), f"enabled: false, {domain}")
            for named, domain in FRONTS.items()
            for kind in KINDS
        }
        await_jetstream([*real, *fronts.values()])
        found = asyncio.run(seen(fronts))
        for named in FRONTS:
            assert found["headwater", named] == found["nats-server", named], named
        assert found["headwater", "the domain"] == (
            "hub",
            [True, True, False, False, False],
            ("hub", b"1", b"value", ["key"]),
        )
