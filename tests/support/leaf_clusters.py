"""Two nodes that are hubs, H1 and H2, and a cluster of two that is their spoke, S1 and S2: nats-servers, ours, or both."""

from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path

from nats.aio.client import Client
from support.clusters import connect, received_by_all
from support.leafs import LeafServer, serve

from headwater.testing.ports import free_port

PLACES = ["H1", "H2", "S1", "S2"]


@contextmanager
def clusters(
    directory: Path,
    kinds: Sequence[str],
    *,
    more: Sequence[str] = ("", "", "", ""),
    links: Sequence[int] = (),
    advertise: bool = False,
    user: str = "",
    remote: str = "",
) -> Iterator[list[LeafServer]]:
    """S1 is a leaf node of H1 and S2 of H2, each by a link of its own. `more`: settings for each; `links`: ports of
    proxies that they go through; `advertise`: the hubs name each other to their spokes. `user`: of the links, with `@`;
    `remote`: what else is set for them."""
    routes = [free_port() for _ in PLACES]
    hidden = "" if advertise else ", no_advertise: true"
    with ExitStack() as stack:
        servers: list[LeafServer] = []
        for at, (name, kind) in enumerate(zip(PLACES, kinds, strict=True)):
            config = f'server_name: {name}\n{more[at]}\ncluster {{ name: {name[0]}, listen: "127.0.0.1:{routes[at]}"\n'
            config += f'compression: off, pool_size: -1, routes: ["nats-route://127.0.0.1:{routes[at ^ 1]}"] }}\n'
            if at < 2:
                config += f'leafnodes {{ listen: "127.0.0.1:-1", compression: off{hidden} }}'
            else:
                port = links[at - 2] if links else servers[at - 2].leaf_port
                link = f'url: "nats-leaf://{user}127.0.0.1:{port}", compression: off\n{remote}'
                config += f'leafnodes {{ reconnect: "100ms", remotes: [ {{ {link} }} ] }}'
            servers.append(stack.enter_context(serve(kind, directory / name, config)))
        yield servers


async def clients_of(stack: AsyncExitStack, servers: Sequence[LeafServer]) -> list[Client]:
    """A client at each, once each knows the interest of the others."""
    clients = [await connect(stack, server.url) for server in servers]
    await received_by_all(clients, clients)
    return clients
