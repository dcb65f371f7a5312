"""The requests about streams: `$JS.API.STREAM.…` and `$JS.API.INFO`.

Each handler takes the names from the request's subject and its payload, and returns the answer or raises the
JetStreamError to put into one. Handlers that touch the disk are coroutines; `service.py` runs one request after the
other.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from headwater.broker.jetstream.api_errors import api_error
from headwater.broker.jetstream.api_types import (
    AccountInfoAnswer,
    ApiStats,
    ListRequest,
    MessageDeleteRequest,
    MessageGetAnswer,
    MessageGetRequest,
    PurgeRequest,
    StoredMessage,
    StreamConfig,
    StreamConfigRequest,
    StreamCreateAnswer,
    StreamInfoAnswer,
    StreamInfoRequest,
    StreamListAnswer,
    StreamNamesAnswer,
    StreamPurgeAnswer,
    SuccessAnswer,
    decode_document,
    decode_request,
    is_empty_request,
)
from headwater.broker.jetstream.sequence import sequence_of
from headwater.broker.jetstream.stream import Stream
from headwater.broker.jetstream.stream_config import check_alone, checked, same, updated
from headwater.broker.jetstream.subject_table import SubjectFilter
from headwater.broker.jetstream.timestamps import format_time, parse_time
from headwater.errors import StorageError
from headwater.model.subject import patterns_overlap
from headwater.streams.log import StoredRecord

if TYPE_CHECKING:
    from headwater.broker.jetstream.service import JetStream

NAMES_PAGE = 1024
LIST_PAGE = 256
SUBJECTS_PAGE = 100_000

_TYPE = "io.nats.jetstream.api.v1."


class StreamApi:
    """Handlers of requests about streams."""

    def __init__(self, service: "JetStream") -> None:
        self._service = service

    def account_info(self, names: list[str], payload: bytes) -> AccountInfoAnswer:
        streams = self._service.streams.values()
        return AccountInfoAnswer(
            type=_TYPE + "account_info_response",
            memory=sum(stream.subjects.size_bytes for stream in streams if stream.config.storage == "memory"),
            storage=sum(stream.subjects.size_bytes for stream in streams if stream.config.storage == "file"),
            reserved_memory=_reserved(streams, "memory"),
            reserved_storage=_reserved(streams, "file"),
            streams=len(streams),
            consumers=sum(len(stream.consumers) for stream in streams),
            limits=self._service.limits,
            api=ApiStats(total=self._service.requests - 1, errors=self._service.refusals),
        )

    async def create(self, names: list[str], payload: bytes) -> StreamCreateAnswer:
        request = decode_request(payload, StreamConfigRequest)
        if request.name != names[0]:
            raise api_error("stream_name_mismatch")
        config = checked(request, pedantic=request.pedantic)
        check_alone(config)
        existing = self._service.streams.get(config.name)
        if existing is None or "storage" in msgspec.json.decode(
            payload
        ):  # else nats-server knows no limit to hold it to
            self._check_room(config, existing)
        if existing is not None:
            if not same(existing.config, config):
                raise api_error("stream_name_in_use")
            return self._created(existing, "stream_create_response", did_create=True)
        self._check_overlap(config)
        if 0 <= self._service.limits.max_streams <= len(self._service.streams):
            raise api_error("maximum_streams")
        stream = await self._service.create_stream(config)
        return self._created(stream, "stream_create_response", did_create=True)

    async def update(self, names: list[str], payload: bytes) -> StreamCreateAnswer:
        asked = _checked_update(decode_request(payload, StreamConfigRequest))
        if asked.name != names[0]:
            raise api_error("stream_name_mismatch")
        stream = self._service.stream(names[0])
        config = updated(stream.config, asked)
        self._check_room(config, stream)
        _check_consumers(config, stream)
        self._check_overlap(config)
        await self._service.update_stream(stream, config)
        return self._created(stream, "stream_update_response")

    def info(self, names: list[str], payload: bytes) -> StreamInfoAnswer:
        request = decode_document(payload, StreamInfoRequest)
        stream = self._service.stream(names[0])
        info = stream.info()
        answer = StreamInfoAnswer(
            type=_TYPE + "stream_info_response",
            config=info.config,
            created=info.created,
            state=info.state,
            cluster=stream.cluster(self._service.server_name),
            ts=info.ts,
        )
        if request.deleted_details:
            info.state.deleted = stream.deleted()
        if request.subjects_filter:
            found = stream.subjects.counts(request.subjects_filter.encode())
            if found:
                offset = max(request.offset, 0)
                page = found[offset : offset + SUBJECTS_PAGE]
                info.state.subjects = {subject.decode("utf-8", "replace"): count for subject, count in page}
                answer.total, answer.offset, answer.limit = len(found), offset, SUBJECTS_PAGE
        return answer

    def list_names(self, names: list[str], payload: bytes) -> StreamNamesAnswer:
        found, offset, page = self._page(payload, NAMES_PAGE)
        return StreamNamesAnswer(
            type=_TYPE + "stream_names_response",
            total=len(found),
            offset=offset,
            limit=NAMES_PAGE,
            streams=[stream.name for stream in page] or None,
        )

    def list_infos(self, names: list[str], payload: bytes) -> StreamListAnswer:
        found, offset, page = self._page(payload, LIST_PAGE)
        return StreamListAnswer(
            type=_TYPE + "stream_list_response",
            total=len(found),
            offset=offset,
            limit=LIST_PAGE,
            streams=[stream.info(full=False) for stream in page],
        )

    async def delete(self, names: list[str], payload: bytes) -> SuccessAnswer:
        if not is_empty_request(payload):
            raise api_error("not_empty_request")
        await self._service.delete_stream(self._service.stream(names[0]))
        return SuccessAnswer(type=_TYPE + "stream_delete_response", success=True)

    async def purge(self, names: list[str], payload: bytes) -> StreamPurgeAnswer:
        request = decode_document(payload, PurgeRequest)
        if request.seq and request.keep:
            raise api_error("bad_request")
        stream = self._service.stream(names[0])
        if stream.config.sealed:
            raise api_error("sealed")
        if stream.config.deny_purge:
            raise api_error("purge_failed", reason="stream purge not permitted")
        wanted = SubjectFilter([request.filter.encode()]) if request.filter not in ("", ">") else None
        try:
            purged = await stream.purge(wanted, request.seq, request.keep)
        except StorageError as error:
            raise api_error("purge_failed", reason=str(error)) from error
        return StreamPurgeAnswer(type=_TYPE + "stream_purge_response", success=True, purged=purged)

    async def delete_message(self, names: list[str], payload: bytes) -> SuccessAnswer:
        if is_empty_request(payload):
            raise api_error("bad_request")
        request = decode_request(payload, MessageDeleteRequest)
        stream = self._service.stream(names[0])
        if stream.config.sealed:
            raise api_error("sealed")
        if stream.config.deny_delete:
            raise api_error("delete_failed", reason="message delete not permitted")
        if stream.config.storage == "file" and not stream.first_sequence <= request.seq <= stream.last_sequence:
            beyond = request.seq > stream.last_sequence
            raise api_error("delete_failed", reason="stream store EOF" if beyond else "no message found")
        try:
            found = await stream.delete_message(request.seq, erase=not request.no_erase)
        except StorageError as error:
            raise api_error("delete_failed", reason=str(error)) from error
        if not found:
            raise api_error("sequence_not_found", sequence=request.seq)
        return SuccessAnswer(type=_TYPE + "stream_msg_delete_response", success=True)

    def get_message(self, names: list[str], payload: bytes) -> MessageGetAnswer:
        if is_empty_request(payload):
            raise api_error("bad_request")
        request = decode_request(payload, MessageGetRequest)
        start = _start_time(request.start_time)
        if request.batch > 0 or request.max_bytes > 0 or _contradicts(request):
            raise api_error("bad_request")
        record = _find(self._service.stream(names[0]), request, start)
        if record is None:
            raise api_error("no_message")
        message = StoredMessage(
            subject=record.subject.decode("utf-8", "replace"),
            seq=sequence_of(record.offset),
            hdrs=b"" if request.no_hdr else record.header_block,
            data=record.payload,
            time=format_time(record.timestamp_ns),
        )
        return MessageGetAnswer(type=_TYPE + "stream_msg_get_response", message=message)

    def no_snapshot(self, names: list[str], payload: bytes) -> SuccessAnswer:
        """nats-server's snapshots are its own files, which nobody here has: refused at once, with the server's number."""
        self._service.stream(names[0])
        raise api_error(
            "snapshot_failed", reason="not supported by this server; copy its files, or read it by a consumer"
        )

    def no_restore(self, names: list[str], payload: bytes) -> SuccessAnswer:
        raise api_error("restore_failed", reason="not supported by this server; publish the messages again")

    def no_cluster(self, names: list[str], payload: bytes) -> SuccessAnswer:
        raise api_error("cluster_required")

    # ── inside ──

    def _created(self, stream: Stream, kind: str, *, did_create: bool = False) -> StreamCreateAnswer:
        info = stream.info()
        return StreamCreateAnswer(
            type=_TYPE + kind,
            config=info.config,
            created=info.created,
            state=info.state,
            ts=info.ts,
            did_create=did_create,
        )

    def _check_overlap(self, config: StreamConfig) -> None:
        ours = [subject.encode() for subject in config.subjects]
        for other in self._service.streams.values():
            if other.name == config.name:
                continue
            theirs = [subject.encode() for subject in other.config.subjects]
            if any(patterns_overlap(left, right) for left in ours for right in theirs):
                raise api_error("subjects_overlap")

    def _check_room(self, config: StreamConfig, old: Stream | None) -> None:
        """What the account may reserve."""
        limits, streams = self._service.limits, self._service.streams.values()
        in_memory = config.storage == "memory"
        if limits.max_bytes_required and config.max_bytes <= 0:
            raise api_error("max_bytes_required")
        most = limits.memory_max_stream_bytes if in_memory else limits.storage_max_stream_bytes
        if 0 < most < config.max_bytes:
            raise api_error("max_stream_bytes")
        room = limits.max_memory if in_memory else limits.max_storage
        others = [stream for stream in streams if stream is not old]
        if 0 <= room < _reserved(others, config.storage) + max(config.max_bytes, 0):
            raise api_error("memory_exceeded" if in_memory else "storage_exceeded")

    def _page(self, payload: bytes, size: int) -> tuple[list[Stream], int, list[Stream]]:
        request = decode_document(payload, ListRequest)
        found = [stream for _, stream in sorted(self._service.streams.items())]
        if request.subject:
            wanted = request.subject.encode()
            found = [s for s in found if any(patterns_overlap(wanted, own.encode()) for own in s.config.subjects)]
        offset = min(max(request.offset, 0), len(found))
        return found, offset, found[offset : offset + size]


def _checked_update(request: StreamConfigRequest) -> StreamConfig:
    return checked(request, sealing=True, pedantic=request.pedantic)


def _check_consumers(config: StreamConfig, stream: Stream) -> None:
    """New limits for consumers must not be below what one of them has."""
    new, old = config.consumer_limits, stream.config.consumer_limits
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
    """Bytes that streams of this storage may fill, as far as they are bounded."""
    return sum(max(0, stream.config.max_bytes) for stream in streams if stream.config.storage == storage)


def _start_time(text: str) -> int | None:
    """Raises JetStreamError for what is no time."""
    try:
        return parse_time(text) if text else None
    except ValueError as error:
        raise api_error("invalid_json", reason=str(error)) from error


def _contradicts(request: MessageGetRequest) -> bool:
    """Whether the request asks for nothing, or for two things at once: sequence, last and time exclude each other."""
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
