"""The pages of WHOLE and /metrics of `serve --workers`: the first worker asks the others, and shows them as one server.

    page of this worker ─┐
    page of each other  ─┴─ `joined_…` ─▶ one document: sums, and lists after one another

When a worker does not answer, there is status 503 and the worker's number, never a page about the rest. The other pages
are about the first worker. Questions go over the `Line` (jetstream_workers/line.py).
"""

import asyncio
from collections.abc import Callable, Generator, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.errors import ConfigError, JetStreamError
from headwater.jetstream_workers.line import ALL, Line, Reply
from headwater.model.timestamps import parse_time
from headwater.monitoring.connz import SORTS
from headwater.monitoring.pages import PAGES
from headwater.monitoring.parameters import Parameters, identifier, page, switch
from headwater.monitoring.steps import in_turns
from headwater.monitoring.view import View
from headwater.net.journal import MOST_EVENTS

if TYPE_CHECKING:
    from headwater.monitoring.gauges import Gauges

_SUMMED = ("memory", "storage", "reserved_memory", "reserved_storage", "streams", "consumers", "messages", "bytes")

Document = dict[str, Any]
Answer = tuple[int, Any]
"""HTTP status and document; a text for an error."""


class PageAnswers:
    """Answers the questions of the first worker (`Listener`)."""

    def __init__(self, view: View) -> None:
        self._view = view

    def on_question(self, what: str, payload: bytes) -> Reply:
        return self._answer(what, msgspec.json.decode(payload, type=dict[str, str]))

    async def _answer(self, what: str, parameters: Parameters) -> bytes:
        if what == "metrics":
            return msgspec.json.encode(await samples(self._view, parameters))
        return msgspec.json.encode(await own_page(self._view, what, parameters))

    def on_request(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        """Requests are for accounts."""

    def on_seek(self, left: int, subject: bytes, reply: bytes, payload: bytes) -> None:
        """So are these."""

    def on_notice(self, what: str, payload: bytes) -> None:
        """And these."""


async def own_page(view: View, path: str, parameters: Parameters) -> Answer:
    """A page about this worker only."""
    try:
        status, document = PAGES[path][1](view, parameters)
        return status, await in_turns(document) if isinstance(document, Generator) else document
    except ConfigError as error:
        return 400, error.message


async def samples(view: View, parameters: Parameters) -> list[tuple[str, dict[str, str], float]]:
    """The values of /metrics, whose labels name this worker."""
    await asyncio.get_running_loop().run_in_executor(None, import_module, "prometheus_client")
    metrics = import_module("headwater.monitoring.metrics")
    gauges = await in_turns(metrics.gather(view, parameters["prefix"], detailed=parameters["detailed"] == "1"))
    return [(one.name, one.labels, one.value) for family in gauges.collect() for one in family.samples]


async def add_others(gauges: "Gauges", line: Line, prefix: str, *, detailed: bool) -> str:
    """Add the values of all other workers; returns why they cannot be had, "" when they can."""
    query = {"prefix": prefix, "detailed": "1" if detailed else "0"}
    try:
        answers = await line.ask_others(ALL, "metrics", msgspec.json.encode(query))
    except JetStreamError as error:
        return error.description.rpartition(": ")[2]
    for answer in answers:
        for name, labels, value in msgspec.json.decode(answer, type=list[tuple[str, dict[str, str], float]]):
            gauges.set(name, labels, value)
    return ""


async def whole_page(view: View, line: Line, path: str, parameters: Parameters) -> Answer:
    """A page of WHOLE about all workers."""
    if path == "/healthz" and any(switch(parameters, name) for name in ALIVE):
        return await own_page(view, path, parameters)
    query = dict(parameters)
    if path in IN_PARTS:
        try:
            offset, limit = page(parameters, IN_PARTS[path])
        except ConfigError as error:
            return 400, error.message
        query |= {"offset": "0", "limit": str(offset + limit)}
    try:
        answers = await line.ask_others(ALL, path, msgspec.json.encode(query))
    except JetStreamError as error:
        text = error.description.rpartition(": ")[2]
        return 503, {"status": "unavailable", "error": text} if path == "/healthz" else text
    pages: list[Answer] = [await own_page(view, path, query), *(msgspec.json.decode(answer) for answer in answers)]
    return joined(path, pages, parameters)


def joined(path: str, pages: list[Answer], parameters: Parameters) -> Answer:
    """One page of those of all workers, the first worker's first; or the first that says why there is none."""
    bad = next((one for one in pages if one[0] != 200), None)
    return bad if bad is not None and path != "/healthz" else WHOLE[path](pages, parameters)


ALIVE = ("js-enabled-only", "js-enabled", "js-server-only")
PAGE = 1024
IN_PARTS = {"/connz": PAGE, "/subsz": PAGE, "/subscriptionsz": PAGE, "/eventz": MOST_EVENTS}
"""Pages of lists, and how much of one there is unless `limit` says otherwise."""


def joined_health(pages: list[Answer], parameters: Parameters) -> Answer:
    """Well if all are; a stream, where one has it."""
    if parameters.get("stream"):
        return min(pages, key=lambda one: {200: 0, 503: 1}.get(one[0], 2))
    bad = next((one for one in pages if one[0] != 200), None)
    warnings = [warning for _, document in pages for warning in document.get("warnings", ())]
    return bad or (200, {"status": "ok", **({"warnings": warnings} if warnings else {})})


def joined_jsz(pages: list[Answer], parameters: Parameters) -> Answer:
    """Sums, and each account with its streams of all workers."""
    whole: Document = pages[0][1]
    accounts: dict[str, Document] = {one["name"]: one for one in whole.get("account_details", ())}
    for _, document in pages[1:]:
        _add(whole, document)
        for one in document.get("account_details", ()):
            if one["name"] in accounts:
                _add(accounts[one["name"]], one)
            else:
                accounts[one["name"]] = one
    if accounts:
        whole["account_details"] = [accounts[name] for name in sorted(accounts)]
    return 200, whole


def _add(whole: Document, part: Document) -> None:
    for name in _SUMMED:
        if name in part:
            whole[name] = whole.get(name, 0) + part[name]
    for name in ("total", "errors"):
        whole["api"][name] += part["api"][name]
    for name in ("findings", "stream_detail"):
        if name in part:
            whole[name] = [*whole.get(name, ()), *part[name]]


def joined_connz(pages: list[Answer], parameters: Parameters) -> Answer:
    """The clients of all in one order, each with its `worker`; a client's number is that of its worker."""
    offset, limit = page(parameters, PAGE)
    found = []
    for number, (_, document) in enumerate(pages, 1):
        found += [{**one, "worker": number} for one in document["connections"]]
    key, largest_first = SORTS[parameters.get("sort") or "cid"]
    found.sort(key=key, reverse=largest_first)
    shown = found[offset : offset + (limit if identifier(parameters, "cid") <= 0 else len(pages))]
    total = sum(document["total"] for _, document in pages)
    whole = {**pages[0][1], "num_connections": len(shown), "total": total, "offset": offset, "limit": limit}
    return 200, {**whole, "connections": shown}


def joined_eventz(pages: list[Answer], parameters: Parameters) -> Answer:
    """The events of all, newest first, each with its `worker`."""
    offset, limit = page(parameters, MOST_EVENTS)
    whole: Document = {**pages[0][1], "offset": offset, "limit": limit}
    for _, document in pages[1:]:
        _count(whole, document, ("total",))
        _count(whole["counts"], document["counts"], document["counts"])
    found = [{**one, "worker": number} for number, (_, document) in enumerate(pages, 1) for one in document["events"]]
    found.sort(key=lambda one: parse_time(one["time"]), reverse=True)
    return 200, {**whole, "events": found[offset : offset + limit]}


def joined_varz(pages: list[Answer], parameters: Parameters) -> Answer:
    """What is counted is the sum; settings, times, and routes to the other workers are those of the first."""
    whole: Document = pages[0][1]
    for _, document in pages[1:]:
        _count(whole, document, _COUNTED)
        for name in ("slow_consumer_stats", "stale_connection_stats", "events"):
            _count(whole[name], document[name], document[name])
        _count(whole["disk_io_wait_stats"], document["disk_io_wait_stats"], ("waiters", "waits", "wait_time"))
        _keep_largest(whole["disk_io_wait_stats"], document["disk_io_wait_stats"], ("max_wait_time",))
        stats = document["jetstream"].get("stats")
        if stats and whole["jetstream"]:
            own = whole["jetstream"]["stats"]
            _count(own, stats, ("memory", "storage"))
            _count(own["api"], stats["api"], ("total", "errors"))
            _count(own["writes"], stats["writes"], ("batches", "refused", "waiting_messages", "waiting_bytes"))
            _keep_largest(own["writes"], stats["writes"], ("sync_p50", "sync_p99", "ack_p50", "ack_p99"))
    whole["cpu"] = round(whole["cpu"], 1)
    return 200, whole


def joined_subsz(pages: list[Answer], parameters: Parameters) -> Answer:
    """Each subscription with its `worker`, since the number of its client is that worker's."""
    offset, limit = page(parameters, PAGE)
    whole: Document = {**pages[0][1], "offset": offset, "limit": limit}
    for _, document in pages[1:]:
        _count(whole, document, ("num_subscriptions", "total"))
    found = [
        {**one, "worker": number}
        for number, (_, document) in enumerate(pages, 1)
        for one in document.get("subscriptions_list", ())
    ]
    if found:
        whole["subscriptions_list"] = found[offset : offset + limit]
    return 200, whole


def joined_accstatz(pages: list[Answer], parameters: Parameters) -> Answer:
    """Each account with what its clients have done at all workers."""
    whole: Document = pages[0][1]
    accounts: dict[str, Document] = {one["acc"]: one for one in whole["account_statz"]}
    for _, document in pages[1:]:
        for one in document["account_statz"]:
            own = accounts.setdefault(one["acc"], one)
            if own is one:
                continue
            _count(own, one, ("conns", "leafnodes", "total_conns", "num_subscriptions", "slow_consumers"))
            for way in ("sent", "received"):
                _count(own[way], one[way], ("msgs", "bytes"))
    return 200, {**whole, "account_statz": list(accounts.values())}


def joined_accountz(pages: list[Answer], parameters: Parameters) -> Answer:
    """All workers have the same accounts; of one, its clients and their subscriptions are counted."""
    whole: Document = pages[0][1]
    if "account_detail" in whole:
        for _, document in pages[1:]:
            counted = ("client_connections", "leafnode_connections", "subscriptions")
            _count(whole["account_detail"], document["account_detail"], counted)
    return 200, whole


_COUNTED = (
    "connections", "total_connections", "in_msgs", "in_bytes", "in_client_msgs", "in_client_bytes", "out_msgs",
    "out_bytes", "out_client_msgs", "out_client_bytes", "slow_consumers", "stale_connections", "stalled_clients",
    "subscriptions", "mem", "cpu", "read_pauses",
)  # fmt: skip
"""In /varz. `mem` counts pages twice that workers share since they were forked."""


def _count(whole: Document, part: Document, names: Iterable[str]) -> None:
    for name in names:
        whole[name] = whole.get(name, 0) + part[name]


def _keep_largest(whole: Document, part: Document, names: Iterable[str]) -> None:
    for name in names:
        whole[name] = max(whole[name], part[name])


WHOLE: dict[str, Callable[[list[Answer], Parameters], Answer]] = {
    "/varz": joined_varz,
    "/jsz": joined_jsz,
    "/connz": joined_connz,
    "/accountz": joined_accountz,
    "/accstatz": joined_accstatz,
    "/subsz": joined_subsz,
    "/subscriptionsz": joined_subsz,
    "/eventz": joined_eventz,
    "/healthz": joined_health,
}
"""What makes one page of those of all workers, the first worker's first."""
