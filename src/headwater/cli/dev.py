"""`headwater dev --nodes 3`: a cluster of brokers in this process, for experiments.

    dev1  nats://127.0.0.1:4222  peers dev2, dev3
    dev2  nats://127.0.0.1:4223  peers dev1, dev3
    dev3  nats://127.0.0.1:4224  peers dev1, dev2
    3 nodes know each other after 9 ms; Ctrl-C stops them

All nodes but the first only know the first one's address, and the mesh forms by gossip, as it does between machines. They
listen on loopback only, and share one core: for speed use `headwater serve --workers`.
"""

import argparse
import asyncio
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from headwater.cluster.service import Cluster
from headwater.errors import ConfigError, HeadwaterError
from headwater.options.cluster import ClusterOptions
from headwater.server.broker import Broker
from headwater.serving.event_loop import loop_factory

HOST = "127.0.0.1"
# Their 496 routes are in one process, and gossip grows with the cube: 64 took 50 s on a loaded machine where 32 took 5 s.
MOST_NODES = 32
PATIENCE = 30.0  # seconds; three nodes need about 10 ms


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    """The command line of `headwater dev`. Raises ConfigError for a number of nodes out of range."""
    parser = argparse.ArgumentParser(prog="headwater dev", description="A local cluster, until Ctrl-C.")
    add = parser.add_argument
    add("--nodes", type=int, default=3, help="how many brokers (default: 3)")
    add(
        "-p",
        "--port",
        type=int,
        default=4222,
        help="client port of the first, the others follow (default: 4222); -1: any",
    )
    add("--protocol", choices=["v1", "v2"], default="v2", help="how they speak to each other (default: v2)")
    add("--store", type=Path, help="a directory: the first node keeps streams there")
    arguments = parser.parse_args(argv)
    if not 1 <= arguments.nodes <= MOST_NODES:
        raise ConfigError(
            f"{arguments.nodes} nodes make no cluster here", value=arguments.nodes, hint=f"1 to {MOST_NODES}"
        )
    return arguments


def main(argv: list[str]) -> int:
    """Run the cluster until SIGINT or SIGTERM; returns 0. Raises HeadwaterError when it cannot start."""
    arguments = parse_arguments(argv)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_run(arguments))
    return 0


async def _run(arguments: argparse.Namespace) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    began = time.monotonic()
    nodes: list[Broker] = []
    stopping = loop.create_task(stop.wait())
    forming: asyncio.Task[None] | None = None
    try:
        for _ in range(arguments.nodes):
            nodes.append(_node(arguments, nodes))
            await nodes[-1].start()
            if stop.is_set():
                return
        forming = loop.create_task(_form(nodes))
        ended, _ = await asyncio.wait({forming, stopping}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        if not ended:
            raise HeadwaterError(f"the nodes did not find each other within {PATIENCE:g} s")
        if forming in ended:
            _show(nodes, time.monotonic() - began)
            await stopping
    finally:
        stopping.cancel()
        if forming is not None:
            forming.cancel()
        await asyncio.gather(*(node.stop() for node in nodes))


async def _form(nodes: list[Broker]) -> None:
    """Return once every node knows all others."""
    for node in nodes:
        await _cluster(node).wait_for_peers(len(nodes) - 1)


def _show(nodes: list[Broker], seconds: float) -> None:
    names = {node.server_id: node.options.server_name for node in nodes}  # protocol v1 does not send server names
    for node in nodes:
        print(_line(node, names))
    summary = f"{len(nodes)} nodes know each other" if len(nodes) > 1 else "1 node runs"
    print(f"{summary} after {seconds * 1e3:.0f} ms; Ctrl-C stops {'them' if len(nodes) > 1 else 'it'}", flush=True)


def _node(arguments: argparse.Namespace, others: list[Broker]) -> Broker:
    """The next node; `others` are running already."""
    routes = (f"nats-route://{HOST}:{_cluster(others[0]).port}",) if others else ()
    store = arguments.store if not others else None
    return Broker(
        HOST,
        0 if arguments.port == -1 else arguments.port + len(others),
        server_name=f"dev{len(others) + 1}",
        cluster=ClusterOptions(name="dev", host=HOST, protocol=arguments.protocol, routes=routes),
        jetstream=store is not None,
        store_dir=store,
    )


def _line(node: Broker, of_ids: Mapping[str, str]) -> str:
    names = sorted(of_ids.get(peer.server_id, peer.server_id) for peer in _cluster(node).peers)
    streams = "  streams" if node.options.jetstream else ""
    return f"{node.options.server_name}  {node.url}  peers {', '.join(names) or '-'}{streams}"


def _cluster(node: Broker) -> Cluster:
    if node.cluster is None:
        raise AssertionError("a node was started without its cluster")
    return node.cluster
