"""Publishing events into a stream with `compression: s2`: the rate, the server's CPU, and bytes on disk per byte.

The events are JSON of about 400 bytes, a tenth of which differs from one to the next, as in a log of orders. Both servers
get the same events; the stream must then hold all of them. Bytes on disk are those of the message files, including the end
of the newest segment or block that is still uncompressed.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from contestants import Contestant, read_cpu_time
from load_generator import Failure, open_link
from stream_load import ask, store

COMPRESSION = ("none", "s2")
FILES = ("*.log", "*.blk")  # of messages, ours and nats-server's


class Packed(NamedTuple):
    """One run: messages per second, server CPU microseconds per message, bytes on disk per byte published."""

    rate: float
    cpu: float
    room: float


def event(random: Random, number: int) -> bytes:
    """One order."""
    address = {"street": f"Example Road {random.randrange(200)}", "city": random.choice(("Riga", "Porto", "Graz"))}
    items = [{"sku": f"SKU-{random.randrange(5000):05}", "quantity": 1, "unit": "piece"} for _ in range(3)]
    times = {"created": f"2026-03-01T12:{number // 60 % 60:02}:{number % 60:02}Z", "channel": "web", "currency": "EUR"}
    order = {"id": f"{random.getrandbits(64):016x}", "customer": random.randrange(100_000), "address": address, **times}
    return json.dumps({**order, "items": items}).encode()


def run(server: Contestant, directory: Path, compression: str, events: list[bytes]) -> Packed:
    """Create a stream, publish the events, and measure."""
    control, link = open_link(server.port), open_link(server.port)
    with control, link:
        control.sendall(b"SUB _INBOX.ask 1\r\n")
        config = {"name": "FULL", "subjects": ["full.*"], "storage": "file", "compression": compression}
        ask(control, "$JS.API.STREAM.CREATE.FULL", config)
        before, start = read_cpu_time(server.pid), time.perf_counter()
        store(link, _publishes(events))
        elapsed = time.perf_counter() - start
        cpu = read_cpu_time(server.pid).since(before).scheduled
        state = ask(control, "$JS.API.STREAM.INFO.FULL", None)["state"]
        if not isinstance(state, dict) or state["messages"] != len(events):
            raise Failure(f"{len(events)} publishes were acknowledged, the stream says {state}")
        held = sum(path.stat().st_size for pattern in FILES for path in directory.rglob(pattern))
        ask(control, "$JS.API.STREAM.DELETE.FULL", None)
    return Packed(len(events) / elapsed, 1e6 * cpu / len(events), held / sum(map(len, events)))


def _publishes(events: list[bytes]) -> Iterator[bytes]:
    for number, one in enumerate(events):
        yield b"PUB full.%d _INBOX.fill %d\r\n%b\r\n" % (number % 10, len(one), one)


def made(count: int) -> list[bytes]:
    """The same `count` events each time."""
    random = Random(19)
    return [event(random, number) for number in range(count)]
