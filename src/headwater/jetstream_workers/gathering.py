"""Requests that name no stream, answered for all workers: INFO, STREAM.NAMES, STREAM.LIST.

The worker that is asked asks the others. Names first, sorted over all workers, so that pages are those of one list; then
the descriptions of a page, at the workers that have them. When one does not answer there is an error that names it.
"""

import msgspec

from headwater.jetstream.requests import Aside, Route, Routes
from headwater.jetstream.service import JetStream
from headwater.jetstream.stream_api import LIST_PAGE, NAMES_PAGE, StreamApi
from headwater.jetstream_documents.account import ApiStats
from headwater.jetstream_documents.answers import (
    TYPE_PREFIX,
    Answer,
    StreamListAnswer,
    StreamNamesAnswer,
    Usage,
    account_info,
)
from headwater.jetstream_documents.requests import ListRequest
from headwater.jetstream_documents.streams import StreamInfo
from headwater.jetstream_documents.strict_reading import decode_document
from headwater.jetstream_workers.line import Line
from headwater.jetstream_workers.placement import owner_of
from headwater.model.subject import patterns_overlap

_SUMS = ("memory", "storage", "reserved_memory", "reserved_storage", "streams", "consumers")


class Used(msgspec.Struct):
    """A worker's part in the answer to INFO."""

    usage: Usage
    total: int
    errors: int


class Gathering:
    """The handlers for one account. `account`: its token on the line; `folder`: see `owner_of`."""

    def __init__(self, line: Line, account: str, folder: str, service: JetStream) -> None:
        self._line = line
        self._account = account
        self._folder = folder
        self._service = service
        self._own = StreamApi(service.registry, "", service.stats_of_api)

    def routes(self) -> Routes:
        """By verb, in place of those of a single broker."""
        return {
            ("INFO",): Route(self.info, 0, 0, "account_info_response", Answer),
            ("STREAM", "NAMES"): Route(self.list_names, 0, 0, "stream_names_response", StreamNamesAnswer),
            ("STREAM", "LIST"): Route(self.list_infos, 0, 0, "stream_list_response", StreamListAnswer),
        }

    # ── questions of other workers ──

    def on_question(self, what: str, payload: bytes) -> bytes | None:
        """The answer; None for a question that is not asked here."""
        if what == "names":
            return msgspec.json.encode(self._own_names(payload.decode()))
        if what == "infos":
            return msgspec.json.encode(self._own_infos(msgspec.json.decode(payload, type=list[str])))
        if what == "used":
            return msgspec.json.encode(self._used())
        return None

    def _own_names(self, subject: str) -> list[str]:
        streams = self._service.streams.values()
        if not subject:
            return [stream.name for stream in streams]
        wanted = subject.encode()
        return [
            stream.name
            for stream in streams
            if any(patterns_overlap(wanted, own.encode()) for own in stream.config.subjects)
        ]

    def _own_infos(self, names: list[str]) -> list[StreamInfo]:
        streams = self._service.streams
        return [streams[name].info(full=False) for name in names if name in streams]

    def _used(self) -> Used:
        return Used(self._own.usage(), self._service.requests, self._service.refusals)

    # ── requests of clients ──

    def info(self, names: list[str], payload: bytes) -> Aside:
        return Aside(self._info())

    def list_names(self, names: list[str], payload: bytes) -> Aside:
        return Aside(self._names(decode_document(payload, ListRequest)))

    def list_infos(self, names: list[str], payload: bytes) -> Aside:
        return Aside(self._list(decode_document(payload, ListRequest)))

    async def _info(self) -> Answer:
        stats, used = self._service.stats_of_api(), self._used()
        answers = await self._line.ask_others(self._account, "used", b"")
        total, errors, whole = stats.total, stats.errors, used.usage
        for answer in answers:
            other = msgspec.json.decode(answer, type=Used)
            for name in _SUMS:
                setattr(whole, name, getattr(whole, name) + getattr(other.usage, name))
            total, errors = total + other.total, errors + other.errors
        return account_info(whole, self._service.domain.name, ApiStats(total=total, errors=errors))

    async def _names(self, request: ListRequest) -> Answer:
        found, offset, page = await self._page(request, NAMES_PAGE)
        return StreamNamesAnswer(
            type=TYPE_PREFIX + "stream_names_response",
            total=found,
            offset=offset,
            limit=NAMES_PAGE,
            streams=page or None,
        )

    async def _list(self, request: ListRequest) -> Answer:
        found, offset, page = await self._page(request, LIST_PAGE)
        infos = {info.config.name: info for info in self._own_infos(page)}
        for number in self._line.others:
            wanted = [name for name in page if owner_of(self._folder, name, self._line.count) == number]
            if wanted:
                answer = await self._line.ask(number, self._account, "infos", msgspec.json.encode(wanted))
                infos |= {info.config.name: info for info in msgspec.json.decode(answer, type=list[StreamInfo])}
        return StreamListAnswer(
            type=TYPE_PREFIX + "stream_list_response",
            total=found,
            offset=offset,
            limit=LIST_PAGE,
            streams=[infos[name] for name in page if name in infos],  # some may be deleted by now
        )

    async def _page(self, request: ListRequest, size: int) -> tuple[int, int, list[str]]:
        """How many streams there are, and the names of a page of them."""
        found = self._own_names(request.subject)
        for answer in await self._line.ask_others(self._account, "names", request.subject.encode()):
            found += msgspec.json.decode(answer, type=list[str])
        found.sort()
        offset = min(max(request.offset, 0), len(found))
        return len(found), offset, found[offset : offset + size]
