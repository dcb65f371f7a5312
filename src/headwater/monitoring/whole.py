"""/jsz, /connz, /healthz and /metrics of `serve --workers`: the first worker asks the others, and shows them as one server.

    page of this worker ─┐
    page of each other  ─┴─ `joined_…` ─▶ one document: sums, and lists after one another

When a worker does not answer, there is status 503 and the worker's number, never a page about the rest. The other pages
are about the first worker. Questions go over the `Line` (jetstream_workers/line.py).
"""

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.errors import ConfigError, JetStreamError
from headwater.jetstream_workers.line import ALL, Line, Reply
from headwater.monitoring.connz import SORTS, connz
from headwater.monitoring.jsz import healthz, jsz
from headwater.monitoring.parameters import Parameters, identifier, page, switch
from headwater.monitoring.steps import in_turns
from headwater.monitoring.view import View

if TYPE_CHECKING:
    from headwater.monitoring.gauges import Gauges

PAGE = 1024  # as in /connz
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
        if path == "/healthz":
            return healthz(view, parameters)
        return 200, await in_turns((jsz if path == "/jsz" else connz)(view, parameters))
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
    if path == "/connz":
        try:
            offset, limit = page(parameters, PAGE)
        except ConfigError as error:
            return 400, error.message
        query |= {"offset": "0", "limit": str(offset + limit)}
    try:
        answers = await line.ask_others(ALL, path, msgspec.json.encode(query))
    except JetStreamError as error:
        text = error.description.rpartition(": ")[2]
        return 503, {"status": "unavailable", "error": text} if path == "/healthz" else text
    pages: list[Answer] = [await own_page(view, path, query), *(msgspec.json.decode(answer) for answer in answers)]
    return WHOLE[path](pages, parameters)


ALIVE = ("js-enabled-only", "js-enabled", "js-server-only")


def joined_health(pages: list[Answer], parameters: Parameters) -> Answer:
    """Well if all are; a stream, where one has it."""
    if parameters.get("stream"):
        return min(pages, key=lambda one: {200: 0, 503: 1}.get(one[0], 2))
    bad = next((one for one in pages if one[0] != 200), None)
    warnings = [warning for _, document in pages for warning in document.get("warnings", ())]
    return bad or (200, {"status": "ok", **({"warnings": warnings} if warnings else {})})


def joined_jsz(pages: list[Answer], parameters: Parameters) -> Answer:
    """Sums, and each account with its streams of all workers."""
    bad = next((one for one in pages if one[0] != 200), None)
    if bad is not None:
        return bad
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
    bad = next((one for one in pages if one[0] != 200), None)
    if bad is not None:
        return bad
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


WHOLE: dict[str, Callable[[list[Answer], Parameters], Answer]] = {
    "/jsz": joined_jsz,
    "/connz": joined_connz,
    "/healthz": joined_health,
}
"""What makes one page of those of all workers, the first worker's first."""
