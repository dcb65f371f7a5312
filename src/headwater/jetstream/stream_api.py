"""The API requests about streams: `$JS.API.STREAM.…` and `$JS.API.INFO`.

Each handler takes the names in the request's subject and its payload, and returns the answer or raises a JetStreamError.
Handlers that access the disk are coroutines; `service.py` runs one request at a time.
"""

from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from headwater.errors import StorageError
from headwater.jetstream.requests import Aside, Later
from headwater.jetstream.stream import Stream, deleted_sequences
from headwater.jetstream.stream_registry import StreamRegistry
from headwater.jetstream_documents.account import ApiStats
from headwater.jetstream_documents.answers import (
    TYPE_PREFIX,
    AccountInfoAnswer,
    Answer,
    MessageGetAnswer,
    StreamCreateAnswer,
    StreamInfoAnswer,
    StreamListAnswer,
    StreamNamesAnswer,
    StreamPurgeAnswer,
    SuccessAnswer,
    Usage,
    account_info,
)
from headwater.jetstream_documents.api_errors import api_error, store_reason
from headwater.jetstream_documents.requests import (
    ListRequest,
    MessageDeleteRequest,
    MessageGetRequest,
    PurgeRequest,
    StreamConfigRequest,
    StreamInfoRequest,
)
from headwater.jetstream_documents.source_rules import check_filters, check_origins
from headwater.jetstream_documents.stream_rules import (
    check_alone,
    check_tier,
    checked,
    consumer_limits_of,
    same,
    updated,
)
from headwater.jetstream_documents.streams import ClusterInfo, StoredMessage, StreamConfig
from headwater.jetstream_documents.strict_reading import decode_document, decode_request, is_empty_request
from headwater.jetstream_state.contents import SCAN_RECORDS
from headwater.jetstream_state.sequence import offset_of, sequence_of
from headwater.jetstream_state.subject_table import SubjectFilter
from headwater.jetstream_timing import looking
from headwater.jetstream_timing.purging import Purge
from headwater.model.subject import is_literal, patterns_overlap
from headwater.model.timestamps import format_time, parse_time
from headwater.streams.log import StoredRecord

if TYPE_CHECKING:
    from headwater.jetstream_room.whole import Elsewhere

NAMES_PAGE = 1024
LIST_PAGE = 256
SUBJECTS_PAGE = 100_000


class StreamApi:
    """Handlers of requests about streams. `api_stats()`: the requests so far."""

    def __init__(self, registry: StreamRegistry, server_name: str, api_stats: Callable[[], ApiStats]) -> None:
        self._registry = registry
        self._server_name = server_name
        self._api_stats = api_stats

    def account_info(self, names: list[str], payload: bytes) -> AccountInfoAnswer:
        return account_info(self.usage(), self._registry.settings.domain.name, self._api_stats())

    def usage(self) -> Usage:
        """What the account uses here."""
        streams = self._registry.streams.values()
        return Usage(
            memory=sum(stream.subjects.size_bytes for stream in streams if stream.config.storage == "memory"),
            storage=sum(stream.subjects.size_bytes for stream in streams if stream.config.storage == "file"),
            reserved_memory=_reserved(streams, "memory"),
            reserved_storage=_reserved(streams, "file"),
            streams=len(streams),
            consumers=sum(len(stream.consumers) for stream in streams),
            limits=self._registry.settings.limits,
        )

    async def create(self, names: list[str], payload: bytes) -> StreamCreateAnswer:
        request = decode_request(payload, StreamConfigRequest)
        if request.name != names[0]:
            raise api_error("stream_name_mismatch")
        check_tier(request.num_replicas, self._registry.settings.limits.tiers)
        window = self._registry.settings.server.duplicate_window
        config = checked(request, pedantic=request.pedantic, most_window=window)
        existing = self._registry.streams.get(config.name)
        old = existing.config if existing is not None else None
        async with self._registry.claimed(config, old) as elsewhere:
            check_origins(config, self._finder(elsewhere), pedantic=request.pedantic)
            check_alone(config)
            if existing is None or "storage" in msgspec.json.decode(payload):  # else nats-server applies no limit
                self._check_room(config, existing, elsewhere)
            if existing is not None:
                if not same(existing.config, config):
                    raise api_error("stream_name_in_use")
                return self.created(existing, "stream_create_response", did_create=True)
            self._registry.check_not_put_aside(config.name)
            check_filters(config)
            self.check_overlap(config, elsewhere)
            self._check_count(elsewhere)
            stream = await self._registry.create(config)
        return self.created(stream, "stream_create_response", did_create=True)

    async def update(self, names: list[str], payload: bytes) -> StreamCreateAnswer:
        request = decode_request(payload, StreamConfigRequest)
        window = self._registry.settings.server.duplicate_window
        changed = checked(request, sealing=True, pedantic=request.pedantic, most_window=window)
        if changed.name != names[0]:
            raise api_error("stream_name_mismatch")
        existing = self._registry.streams.get(names[0])
        async with self._registry.claimed(changed, existing.config if existing is not None else None) as elsewhere:
            check_origins(changed, self._finder(elsewhere))
            stream = self._registry.stream(names[0])
            check_filters(changed)
            config = updated(stream.config, changed)
            self._check_room(config, stream, elsewhere)
            _check_consumers(config, stream)
            self.check_overlap(config, elsewhere)
            await self._registry.update(stream, config)
        return self.created(stream, "stream_update_response")

    def info(self, names: list[str], payload: bytes) -> StreamInfoAnswer | Aside:
        request = decode_document(payload, StreamInfoRequest)
        stream = self._registry.stream(names[0])
        info = stream.info()
        answer = StreamInfoAnswer(
            type=TYPE_PREFIX + "stream_info_response",
            config=info.config,
            created=info.created,
            state=info.state,
            domain=info.domain,
            cluster=ClusterInfo(leader=self._server_name),  # always this server
            mirror=info.mirror,
            sources=info.sources,
            ts=info.ts,
        )
        if request.deleted_details:
            info.state.deleted = deleted_sequences(stream.log) or None
        if request.subjects_filter and len(stream.subjects) > looking.SUBJECTS:
            return Aside(self._with_subjects(stream, request, answer))
        if request.subjects_filter:
            found = stream.subjects.counts(request.subjects_filter.encode())
            if found:
                offset = max(request.offset, 0)
                page = found[offset : offset + SUBJECTS_PAGE]
                shown = {subject.decode("utf-8", "replace"): count for subject, count in page}
                info.state.subjects = shown or info.state.subjects
                answer.total, answer.offset, answer.limit = len(found), offset, SUBJECTS_PAGE
        return answer

    async def _with_subjects(
        self, stream: Stream, request: StreamInfoRequest, answer: StreamInfoAnswer
    ) -> StreamInfoAnswer:
        offset = max(request.offset, 0)
        pattern = request.subjects_filter.encode()
        total, page = await looking.page_of_counts(stream.subjects, pattern, offset, SUBJECTS_PAGE)
        if total:
            assert not isinstance(answer.state, msgspec.UnsetType)
            answer.state.subjects = page or answer.state.subjects
            answer.total, answer.offset, answer.limit = total, offset, SUBJECTS_PAGE
        return answer

    def list_names(self, names: list[str], payload: bytes) -> StreamNamesAnswer:
        found, offset, page = self._page(payload, NAMES_PAGE)
        return StreamNamesAnswer(
            type=TYPE_PREFIX + "stream_names_response",
            total=len(found),
            offset=offset,
            limit=NAMES_PAGE,
            streams=[stream.name for stream in page] or None,
        )

    def list_infos(self, names: list[str], payload: bytes) -> StreamListAnswer:
        found, offset, page = self._page(payload, LIST_PAGE)
        return StreamListAnswer(
            type=TYPE_PREFIX + "stream_list_response",
            total=len(found),
            offset=offset,
            limit=LIST_PAGE,
            streams=[stream.info(full=False) for stream in page],
        )

    async def delete(self, names: list[str], payload: bytes) -> SuccessAnswer:
        if not is_empty_request(payload):
            raise api_error("not_empty_request")
        if names[0] not in self._registry.streams and self._registry.is_put_aside(names[0]):
            await self._registry.delete_put_aside(names[0])
        else:
            await self._registry.delete(self._registry.stream(names[0]))
        return SuccessAnswer(type=TYPE_PREFIX + "stream_delete_response", success=True)

    def purge(self, names: list[str], payload: bytes) -> StreamPurgeAnswer | Later | Coroutine[object, object, Answer]:
        request = decode_document(payload, PurgeRequest)
        if request.seq and request.keep:
            raise api_error("bad_request")
        stream = self._registry.stream(names[0])
        if stream.config.sealed:
            raise api_error("sealed")
        if stream.config.deny_purge:
            raise api_error("purge_failed", reason="stream purge not permitted")
        wanted = SubjectFilter([request.filter.encode()]) if request.filter not in ("", ">") else None
        purge = stream.purge(wanted, request.seq, request.keep)
        try:
            rest = purge.begin()
        except StorageError as error:
            return _purged(stream, purge, error)
        if rest is not None:
            return _purge_on(rest, stream, purge)
        answer = partial(_purged, stream, purge)
        waits = purge.count or stream.log.has_deletions  # of a purge that the disk has refused, say
        return Later(stream.committer.when_written, answer) if waits else answer(None)

    def delete_message(self, names: list[str], payload: bytes) -> SuccessAnswer | Later:
        if is_empty_request(payload):
            raise api_error("bad_request")
        request = decode_request(payload, MessageDeleteRequest)
        stream = self._registry.stream(names[0])
        if stream.config.sealed:
            raise api_error("sealed")
        if stream.config.deny_delete:
            raise api_error("delete_failed", reason="message delete not permitted")
        if stream.config.storage == "file" and not max(1, stream.first_sequence) <= request.seq <= stream.last_sequence:
            beyond = request.seq > stream.last_sequence
            raise api_error("delete_failed", reason="stream store EOF" if beyond else "no message found")
        answer = partial(_deleted, stream, request)
        try:
            found = stream.contents.remove(request.seq)
        except StorageError as error:
            return answer(error)
        if not found:
            raise api_error("sequence_not_found", sequence=request.seq)
        return Later(stream.committer.when_written, answer)

    def get_message(
        self, names: list[str], payload: bytes
    ) -> MessageGetAnswer | Aside | Coroutine[object, object, MessageGetAnswer]:
        """STREAM.MSG.GET. A message that is not found may still be on its way to disk: a client may know of it from a
        subscription, or from the acknowledgement of a stream that republished it into this one. The answer waits then.
        """
        if is_empty_request(payload):
            raise api_error("bad_request")
        request = decode_request(payload, MessageGetRequest)
        start = _start_time(request.start_time)
        if request.batch > 0 or request.max_bytes > 0 or _contradicts(request):
            raise api_error("bad_request")
        stream = self._registry.stream(names[0])
        if _takes_long(stream, request):
            return Aside(_get_in_turns(stream, request, start))
        record = _find(stream, request, start)
        if record is None and stream.waiting[0]:
            return self._get_written(stream, request, start)
        return _message(record, request)

    async def _get_written(self, stream: Stream, request: MessageGetRequest, start: int | None) -> MessageGetAnswer:
        await stream.written()
        return _message(_find(stream, request, start), request)

    def no_cluster(self, names: list[str], payload: bytes) -> SuccessAnswer:
        raise api_error("cluster_required")

    # ── inside ──

    def check_new(self, config: StreamConfig, elsewhere: "Elsewhere") -> None:
        """Check that the account may have one more stream with this configuration. Raises JetStreamError."""
        check_filters(config)
        check_origins(config, self._finder(elsewhere))
        check_alone(config)
        self._check_room(config, None, elsewhere)
        self._registry.check_not_put_aside(config.name)
        self._check_count(elsewhere)

    def _check_count(self, elsewhere: "Elsewhere") -> None:
        if 0 <= self._registry.settings.limits.max_streams <= len(self._registry.streams) + elsewhere.streams:
            raise api_error("maximum_streams")

    def created(self, stream: Stream, kind: str, *, did_create: bool = False) -> StreamCreateAnswer:
        """The answer to a request that created or changed a stream."""
        info = stream.info()
        return StreamCreateAnswer(
            type=TYPE_PREFIX + kind,
            config=info.config,
            created=info.created,
            state=info.state,
            domain="" if did_create else info.domain,  # as nats-server has it
            mirror=info.mirror,
            sources=info.sources,
            ts=info.ts,
            did_create=did_create,
        )

    def _finder(self, elsewhere: "Elsewhere") -> Callable[[str], StreamConfig | None]:
        def find(name: str) -> StreamConfig | None:
            stream = self._registry.streams.get(name)
            return stream.config if stream is not None else elsewhere.find(name)

        return find

    def check_overlap(self, config: StreamConfig, elsewhere: "Elsewhere") -> None:
        """Raises JetStreamError 10065 if another stream captures one of its subjects."""
        if elsewhere.overlaps or self._registry.captured.overlap(config.name, config.subjects):
            raise api_error("subjects_overlap")

    def _check_room(self, config: StreamConfig, old: Stream | None, elsewhere: "Elsewhere") -> None:
        """Check the limits on `max_bytes` and reserved storage, of the account and of the server."""
        limits, streams = self._registry.settings.limits, self._registry.streams.values()
        in_memory = config.storage == "memory"
        if limits.max_bytes_required and config.max_bytes <= 0:
            raise api_error("max_bytes_required")
        most = limits.memory_max_stream_bytes if in_memory else limits.storage_max_stream_bytes
        if 0 < most < config.max_bytes:
            raise api_error("max_stream_bytes")
        room = limits.max_memory if in_memory else limits.max_storage
        caps = self._registry.settings.caps
        held = elsewhere.reserved_by_all.get(config.storage, 0)
        beyond = caps is not None and not caps.may_reserve(config.storage, config.max_bytes, old, held)
        least = max(config.max_bytes, 1 if old is None else 0)  # a new stream without a bound needs room for something
        reserved = 0
        if room >= 0:
            others = (stream for stream in streams if stream is not old)
            reserved = _reserved(others, config.storage) + elsewhere.reserved.get(config.storage, 0)
        if beyond or 0 <= room < reserved + least:
            raise api_error("memory_exceeded" if in_memory else "storage_exceeded")

    def _page(self, payload: bytes, size: int) -> tuple[list[Stream], int, list[Stream]]:
        request = decode_document(payload, ListRequest)
        found = [stream for _, stream in sorted(self._registry.streams.items())]
        if request.subject:
            wanted = request.subject.encode()
            found = [s for s in found if any(patterns_overlap(wanted, own.encode()) for own in s.config.subjects)]
        offset = min(max(request.offset, 0), len(found))
        return found, offset, found[offset : offset + size]


async def _purge_on(rest: Coroutine[object, object, None], stream: Stream, purge: Purge) -> StreamPurgeAnswer:
    try:
        await rest
        if purge.count:
            await stream.settle_deletions()
    except StorageError as error:
        return _purged(stream, purge, error)
    return _purged(stream, purge, None)


def _purged(stream: Stream, purge: Purge, failure: StorageError | None) -> StreamPurgeAnswer:
    """The answer to a purge that is durable, or failed."""
    if failure is not None:
        raise api_error("purge_failed", reason=store_reason(failure)) from failure
    if purge.count:
        stream.committer.note_deletions()
    return StreamPurgeAnswer(type=TYPE_PREFIX + "stream_purge_response", success=True, purged=purge.count)


def _deleted(stream: Stream, request: MessageDeleteRequest, failure: StorageError | None) -> SuccessAnswer:
    """The answer to a deletion that is durable, or failed."""
    if failure is not None:
        raise api_error("delete_failed", reason=store_reason(failure)) from failure
    if not request.no_erase:
        stream.committer.erase(offset_of(request.seq))
    return SuccessAnswer(type=TYPE_PREFIX + "stream_msg_delete_response", success=True)


def _check_consumers(config: StreamConfig, stream: Stream) -> None:
    """New consumer limits must not be below the settings of an existing consumer."""
    new, old = consumer_limits_of(config), consumer_limits_of(stream.config)
    pending = new.max_ack_pending if new.max_ack_pending != old.max_ack_pending else 0
    threshold = new.inactive_threshold if new.inactive_threshold != old.inactive_threshold else 0
    if pending <= 0 and threshold <= 0:
        return
    beyond = [
        consumer.name
        for consumer in stream.consumers.values()
        if 0 < new.inactive_threshold < consumer.config.inactive_threshold
        or 0 < new.max_ack_pending < consumer.config.max_ack_pending
    ]
    if beyond:
        raise api_error("stream_update", reason=f"change to limits violates consumers: {', '.join(beyond)}")


def _reserved(streams: Iterable[Stream], storage: str) -> int:
    """The sum of `max_bytes` of the bounded streams with this storage."""
    return sum(max(0, stream.config.max_bytes) for stream in streams if stream.config.storage == storage)


def _start_time(text: str) -> int | None:
    """Parse a start time. Raises JetStreamError for an invalid one."""
    try:
        return parse_time(text) if text else None
    except ValueError as error:
        raise api_error("invalid_json", reason=str(error)) from error


def _contradicts(request: MessageGetRequest) -> bool:
    """Whether the request is empty or contradictory: sequence, last and time exclude each other."""
    ways = [request.seq > 0, bool(request.last_by_subj), bool(request.start_time)]
    both = bool(request.last_by_subj and request.next_by_subj)
    return sum(ways) > 1 or both or not (any(ways) or request.next_by_subj)


def _find(stream: Stream, request: MessageGetRequest, start: int | None) -> StoredRecord | None:
    contents = stream.contents
    if request.last_by_subj:
        last = contents.subjects.last(request.last_by_subj.encode())
        return contents.load(last) if last else None
    sequence = request.seq if start is None else contents.sequence_at_time(start)
    if request.next_by_subj:
        return contents.next_matching(max(sequence, 1), SubjectFilter([request.next_by_subj.encode()]))
    return contents.load(sequence)


def _takes_long(stream: Stream, request: MessageGetRequest) -> bool:
    """Whether finding the message takes a scan of many subjects or of a long log."""
    if request.last_by_subj:
        return len(stream.subjects) > looking.SUBJECTS and not is_literal(request.last_by_subj.encode())
    return bool(request.next_by_subj) and stream.log.end_offset - stream.log.start_offset > SCAN_RECORDS


async def _get_in_turns(stream: Stream, request: MessageGetRequest, start: int | None) -> MessageGetAnswer:
    record = await _find_in_turns(stream, request, start)
    if record is None and stream.waiting[0]:
        await stream.written()
        record = await _find_in_turns(stream, request, start)
    return _message(record, request)


async def _find_in_turns(stream: Stream, request: MessageGetRequest, start: int | None) -> StoredRecord | None:
    contents = stream.contents
    if request.last_by_subj:
        wanted = SubjectFilter([request.last_by_subj.encode()])
        lasts = await looking.last_sequences(contents.subjects, wanted, stream.last_sequence + 1)
        return contents.load(lasts[-1]) if lasts else None
    sequence = request.seq if start is None else contents.sequence_at_time(start)
    return await looking.next_matching(contents, max(sequence, 1), SubjectFilter([request.next_by_subj.encode()]))


def _message(record: StoredRecord | None, request: MessageGetRequest) -> MessageGetAnswer:
    if record is None:
        raise api_error("no_message")
    message = StoredMessage(
        subject=record.subject.decode("utf-8", "replace"),
        seq=sequence_of(record.offset),
        hdrs=b"" if request.no_hdr else record.header_block,
        data=record.payload,
        time=format_time(record.timestamp_ns),
    )
    return MessageGetAnswer(type=TYPE_PREFIX + "stream_msg_get_response", message=message)
