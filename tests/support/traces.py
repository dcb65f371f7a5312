"""Messages that ask for a trace, and the reports: as one line an event, without what differs from run to run."""

import gzip
import json
from typing import Any, NamedTuple

from support.raw_wire import RawLink

DESTINATION = "Nats-Trace-Dest"
_PASSING = ("ts", "cid", "type")
_KINDS = {0: "client", 1: "route", 4: "leaf"}


class Report(NamedTuple):
    """`server`: the name of the one that sent it."""

    server: str
    headers: dict[str, list[str]]
    size: int
    hops: int
    events: list[str]

    @property
    def hop(self) -> str:
        return self.headers.get("Nats-Trace-Hop", [""])[0]


def block(**headers: str) -> bytes:
    """A header block; `_` stands for `-`."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(["NATS/1.0", *lines, "", ""]).encode()


def hpub(subject: str, body: bytes = b"hi", reply: str = "", **headers: str) -> bytes:
    head = block(**headers)
    where = f"{subject} {reply}" if reply else subject
    return b"HPUB %b %d %d\r\n%b%b\r\n" % (where.encode(), len(head), len(head) + len(body), head, body)


def read_report(payload: bytes) -> Report:
    document = json.loads(gzip.decompress(payload) if payload.startswith(b"\x1f\x8b") else payload)
    request = document["request"]
    return Report(
        document["server"]["name"],
        request["header"],
        request["msgsize"],
        document.get("hops", 0),
        [event_line(event) for event in document["events"]],
    )


def event_line(event: dict[str, Any]) -> str:
    """`eg client name=c1 sub=core.*`; the kind of a connection as a word."""
    kind = [_KINDS[event["kind"]]] if "kind" in event else []
    rest = [f"{key}={value}" for key, value in event.items() if key not in (*_PASSING, "kind")]
    return " ".join([event["type"], *kind, *rest])


class Received(NamedTuple):
    subject: str
    headers: bytes
    payload: bytes


def receive(link: RawLink, count: int) -> list[Received]:
    """So many messages, in the order they came."""
    received: list[Received] = []
    while len(received) < count:
        words = link.receive_line().split()
        if words[0] in (b"PING", b"PONG"):
            continue
        body = link.receive(int(words[-1]) + 2)[:-2]
        cut = int(words[-2]) if words[0] == b"HMSG" else 0
        received.append(Received(words[1].decode(), body[:cut], body[cut:]))
    return received


def receive_report(link: RawLink) -> Report:
    """The next message, which is a report."""
    return read_report(receive(link, 1)[0].payload)
