"""Brokers with monitoring, ours and nats-server, and the same work done on both."""

import asyncio
import http.client
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from support.nats_server import start_nats_server
from support.raw_wire import RawLink, dial

from headwater.monitoring.server import Monitoring
from headwater.net.listener_options import MonitoringOptions
from headwater.server.broker import Broker

TIMEOUT = 10.0  # seconds for one answer


class Answer(NamedTuple):
    """An HTTP answer."""

    status: int
    content_type: str
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


def ask(port: int, path: str, method: str = "GET") -> Answer:
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return Answer(answer.status, answer.getheader("Content-Type", ""), answer.read())
    finally:
        connection.close()


class Monitored:
    """A broker of ours in the running loop; `ask` and `dial` work from its loop."""

    def __init__(self, broker: Broker, monitoring: Monitoring) -> None:
        self.broker = broker
        self.monitoring = monitoring

    async def ask(self, path: str, method: str = "GET") -> Answer:
        return await asyncio.to_thread(ask, self.monitoring.port, path, method)

    async def dial(self, **options: object) -> RawLink:
        return await asyncio.to_thread(lambda: dial(self.broker.port, **options))


@asynccontextmanager
async def monitored(*, base_path: str = "/", tls: bool = False, **fields: Any) -> AsyncIterator[Monitored]:
    """A broker with these options and monitoring, both on free ports."""
    async with asyncio.timeout(30), Broker(**fields) as broker:
        options = MonitoringOptions(host="127.0.0.1", port=0, base_path=base_path, tls=tls)
        async with Monitoring(broker, options, digest="sha256:x") as monitoring:
            yield Monitored(broker, monitoring)


@contextmanager
def monitored_nats_server(directory: Path) -> Iterator[tuple[int, int]]:
    """The client and the HTTP port of a real server with JetStream."""
    with start_nats_server(directory, "-m", "-1", "-n", "n") as server:
        found = re.findall(r"Starting http monitor on 127\.0\.0\.1:(\d+)", server.log.read_text())
        yield server.port, int(found[-1])  # of the last start in this directory


def work(port: int) -> RawLink:
    """A client with a name, subscriptions, deliveries, a stream and a durable consumer; it stays connected."""
    link = dial(port, name="worker", lang="bytes", version="1.0", protocol=1)
    link.send(b"SUB a.* 1\r\nSUB a.* group 2\r\nSUB reply 3\r\nUNSUB 2 100\r\n")
    link.send(b"PUB a.b 5\r\nhello\r\n")
    link.settle()
    stream = {"name": "S", "subjects": ["s.>"], "storage": "file", "retention": "limits", "discard": "old"}
    consumer = {"stream_name": "S", "config": {"durable_name": "D", "ack_policy": "explicit", "deliver_policy": "all"}}
    for subject, request in (
        ("$JS.API.STREAM.CREATE.S", json.dumps(stream)),
        ("$JS.API.CONSUMER.DURABLE.CREATE.S.D", json.dumps(consumer)),
        ("s.x", "stored"),
        ("$JS.API.CONSUMER.MSG.NEXT.S.D", "1"),
    ):
        body = request.encode()
        link.send(b"PUB %b reply %d\r\n%b\r\n" % (subject.encode(), len(body), body))
        answer = link.receive_until(b"\r\n").split()
        while answer[0] not in (b"MSG", b"HMSG"):
            answer = link.receive_until(b"\r\n").split()
        output = link.receive(int(answer[-1]) + 2)
        assert b'"error"' not in output, output
    link.settle()
    return link
