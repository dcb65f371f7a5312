"""Traces one message through the servers (ADR-41 of NATS): sends it with a destination for reports, and collects those.

Each server that the message passes reports for itself. A report names the connections that the message left by; one to
another server that reports as well has a hop, which that server's report names in its request headers. So it is known
when all reports are there: `Trace.missing` has the hops whose report has not come.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from headwater.client.client import Client
from headwater.errors import RequestTimeout

KINDS = {0: "client", 1: "router", 2: "gateway", 4: "leaf node"}
_WORDS = {"js": "JetStream", "se": "stream export", "si": "service import", "sm": "mapping", "in": "ingress"}


class Report(NamedTuple):
    """What one server says. `hop`: "" for the server that the message was published to."""

    server: str
    cluster: str
    hop: str
    events: list[dict[str, Any]]

    @property
    def next_hops(self) -> list[str]:
        """The hops whose servers report as well."""
        return [str(event["hop"]) for event in self.events if event.get("hop") and not event.get("error")]


class Trace(NamedTuple):
    """The reports that have come, by their hops."""

    reports: dict[str, Report]

    @property
    def missing(self) -> list[str]:
        """Hops without a report, the first server's ("") included."""
        wanted = ["", *(hop for report in self.reports.values() for hop in report.next_hops)]
        return [hop for hop in wanted if hop not in self.reports]

    def lines(self, hop: str = "", depth: int = 0) -> list[str]:
        """For people: a line for each event, those of other servers below the event that leads to them."""
        report, indent = self.reports.get(hop), "    " * depth
        if report is None:
            return [f"{indent}!! there was no report of hop {hop or 1}"]
        found = []
        for event in report.events:
            found.append(indent + describe(event, report))
            if (there := str(event.get("hop") or "")) and not event.get("error"):
                found += self.lines(there, depth + 1)
        return found


def read_report(payload: bytes) -> Report | None:
    """None for what is no report of a trace."""
    try:
        document = msgspec.json.decode(payload)
        server, request = document["server"], document["request"]
        hop = (request.get("header") or {}).get("Nats-Trace-Hop") or [""]
        events = [event for event in document["events"] if isinstance(event, dict)]
        return Report(str(server["name"]), str(server.get("cluster", "")), str(hop[0]), events)
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, TypeError, AttributeError, IndexError):
        return None


def describe(event: Mapping[str, Any], report: Report) -> str:
    """One event in words, with its error if it has one."""
    kind, connection = str(event.get("type", "?")), KINDS.get(int(event.get("kind") or 0), "connection")
    client_text = f"{event.get('name') or 'a connection'} (cid {event.get('cid', '?')})"
    if kind == "in":
        cluster = f" cluster {report.cluster}" if report.cluster else ""
        text = f"--> {connection} {client_text}, subject {event.get('subj', '')}, to {report.server}{cluster}"
    elif kind == "eg":
        facts = [f"{name} {event[name]}" for name in ("sub", "queue", "acc") if event.get(name)]
        text = ", ".join([f"<-- {connection} {client_text}", *facts])
    else:
        names = ("stream", "subject", "acc", "from", "to")
        facts = [f"{name} {event[name]}" for name in names if event.get(name)]
        facts += ["no consumer wants it"] if event.get("nointerest") else []
        text = f"--| {_WORDS.get(kind, kind)}: {', '.join(facts)}"
    return f"{text}; {event['error']}" if event.get("error") else text


async def trace(
    client: Client,
    subject: str,
    body: bytes,
    headers: Sequence[tuple[str, str]],
    timeout: float,
    *,
    deliver: bool = False,
) -> Trace:
    """Publish `body` and return what the servers report within `timeout` seconds, which may be less than all of it.
    `deliver`: the message reaches its receivers; otherwise it is only traced. Raises RequestTimeout if no server reports."""
    inbox = client.new_inbox()
    found = Trace({})
    only = [] if deliver else [("Nats-Trace-Only", "true")]
    sent_headers = [*headers, ("Nats-Trace-Dest", inbox), *only]
    subscription = await client.subscribe(inbox)
    try:
        await client.publish(subject, body, headers=sent_headers)
        async with asyncio.timeout(timeout):
            while found.missing:
                message = await subscription.next(timeout)
                report = read_report(bytes(message.data))
                if report is not None:
                    found.reports[report.hop] = report
    except TimeoutError:
        if not found.reports:
            raise RequestTimeout(
                "no server has reported", value=subject, hint="tracing needs nats-server 2.11 or this broker"
            ) from None
    finally:
        await subscription.unsubscribe()
    return found
