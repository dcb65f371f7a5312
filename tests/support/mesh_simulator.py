"""Many meshes and a network without time of its own: every delay comes from one seeded source.

Links deliver in order, each way; dials, deliveries and losses of different links happen in any order that their random
delays give. What the decisions send is real bytes, read by the real parser.
"""

import heapq
import itertools
from collections.abc import Callable, Iterable
from functools import partial
from random import Random

from headwater.cluster.mesh import Action, Close, Dial, Lost, Mesh, MeshOptions, Protocol, Registered, Send
from headwater.wire.route_lines import RouteInfo, decode_route_connect, decode_route_info
from headwater.wire.route_ops import RouteOpHandler, RouteOpParser


class _Reader(RouteOpHandler):
    def __init__(self, node: "Node", link: int) -> None:
        self.node = node
        self.link = link

    def on_connect(self, json: bytes) -> int:
        self.node.act(self.node.mesh.on_connect(self.link, decode_route_connect(json)))
        return 0

    def on_info(self, json: bytes) -> int:
        self.node.act(self.node.mesh.on_info(self.link, decode_route_info(json)))
        return 0

    def on_error(self, text: bytes) -> int:
        self.node.act(self.node.mesh.on_error(self.link, text.decode()))
        return 0


class Node:
    """One broker's mesh, and its ends of links. `events` is what it registered and lost, in order."""

    def __init__(self, network: "Network", options: MeshOptions) -> None:
        self.network = network
        self.mesh = Mesh(options, network.random.random)
        self.readers: dict[int, RouteOpParser] = {}
        self.events: list[tuple[str, str]] = []
        self.alive = True

    def open(self, link: int) -> None:
        self.readers[link] = RouteOpParser(_Reader(self, link))

    def act(self, actions: Iterable[Action]) -> None:
        for action in actions:
            match action:
                case Send(link, data):
                    self.network.send(self, link, data)
                case Close(link, _, hold):
                    self.network.close(link, hold)
                case Dial(url, delay):
                    self.network.after(delay, partial(self.network.dial, self, url))
                case Registered(peer):
                    self.events.append(("registered", peer.server_id))
                case Lost(peer):
                    self.events.append(("lost", peer.server_id))
                case _:
                    pass

    def peers(self) -> set[str]:
        return set(self.mesh.peers)


class Network:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.nodes: dict[int, Node] = {}  # by port
        self.ends: dict[int, tuple[Node, Node]] = {}  # a link: who dialled, who accepted
        self._order = itertools.count()
        self._links = itertools.count(1)
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._last: dict[tuple[int, int], float] = {}

    def add(
        self,
        name: str,
        port: int,
        routes: list[int],
        protocol: Protocol = "v2",
        cluster: str = "hw",
        dynamic: bool = False,
    ) -> Node:
        options = MeshOptions(
            info=RouteInfo(
                server_id=f"ID-{name}",
                server_name=name,
                host="127.0.0.1",
                port=port,
                headers=True,
                cluster=cluster,
                connect_urls=(f"127.0.0.1:{port + 1000}",),
                headwater="1",
            ),
            protocol=protocol,
            routes=tuple(f"nats-route://127.0.0.1:{route}" for route in routes),
            name_is_dynamic=dynamic,
        )
        node = self.nodes[port] = Node(self, options)
        node.act(node.mesh.start())
        return node

    def after(self, delay: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now + delay, next(self._order), what))

    def dial(self, node: Node, url: str) -> None:
        port = int(url.rstrip("/").rsplit(":", 1)[1])
        other = self.nodes.get(port)
        if not node.alive or not node.mesh.still_wanted(url):
            return
        if other is None or not other.alive:
            node.act(node.mesh.dial_failed(url))
            return
        link = next(self._links)
        self.ends[link] = (node, other)
        node.open(link)
        other.open(link)
        node.act(node.mesh.dialled(link, url, "127.0.0.1"))
        other.act(other.mesh.accepted(link, "127.0.0.1"))

    def send(self, node: Node, link: int, data: bytes) -> None:
        if link not in self.ends:
            return
        dialler, acceptor = self.ends[link]
        to = acceptor if node is dialler else dialler
        way = (link, id(to))
        due = max(self._last.get(way, 0.0), self.now + self.random.uniform(0.0001, 0.01))
        self._last[way] = due
        self.after(due - self.now, lambda: self._arrive(to, link, data))

    def _arrive(self, to: Node, link: int, data: bytes) -> None:
        if link in to.readers and to.alive:
            to.readers[link].parse(bytearray(data), 0, len(data))

    def close(self, link: int, hold: float = 0.0) -> None:
        """Both ends learn of it, each in its own time, after what is on the way."""
        if link not in self.ends:
            return
        for node in self.ends[link]:
            due = max(self._last.get((link, id(node)), 0.0), self.now + hold + self.random.uniform(0.0001, 0.01))
            self.after(due - self.now, partial(self._gone, node, link))

    def _gone(self, node: Node, link: int) -> None:
        if node.readers.pop(link, None) is not None and node.alive:
            node.act(node.mesh.lost(link))
        if all(link not in end.readers for end in self.ends.get(link, ())):
            self.ends.pop(link, None)

    def kill(self, port: int) -> None:
        node = self.nodes.pop(port)
        node.alive = False
        for link in list(node.readers):
            self.close(link)

    def run(self, seconds: float, limit: int = 200_000) -> None:
        """Let so much time pass; at most `limit` events, so that a storm fails instead of lasting."""
        end = self.now + seconds
        for _ in range(limit):
            if not self._due or self._due[0][0] > end:
                self.now = end
                return
            self.now, _, what = heapq.heappop(self._due)
            what()
        raise AssertionError(f"a storm: more than {limit} events in {seconds} s")
