"""Direct get: messages of a stream by a request whose answer is the message itself, headers and all; no JSON, no queue.

    $JS.API.DIRECT.GET.<stream>              {"seq":1} {"last_by_subj":"a"} {"next_by_subj":"a.*","seq":1} {"start_time":…}
                                             with "batch"/"max_bytes": several; "multi_last": the last of many subjects
    $JS.API.DIRECT.GET.<stream>.<subject>    the last message of the subject

Answered at once and read only, so key-value gets never wait behind a publish; what takes several messages is done in
turns of TURN_MESSAGES, between which publishers and others have theirs. Statuses, their order and their headers are
nats-server's.
"""

import asyncio
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headwater.broker.jetstream.api_types import DirectGetRequest, decode_request
from headwater.broker.jetstream.delivering import LINK_HIGH_WATER, LINK_RETRY
from headwater.broker.jetstream.sequence import offset_of, sequence_of
from headwater.broker.jetstream.subject_table import SubjectFilter
from headwater.broker.jetstream.timestamps import format_time, parse_time
from headwater.broker.router import Router
from headwater.errors import JetStreamError, StorageError
from headwater.streams.log import StoredRecord

if TYPE_CHECKING:
    from headwater.broker.jetstream.stream import Stream

logger = logging.getLogger(__name__)

TURN_MESSAGES = 256
MOST_SUBJECTS = 1024  # of a multi_last request
DEFAULT_MAX_BYTES = 64 << 20  # of a batch that names no limit

NOT_FOUND = b"NATS/1.0 404 Message Not Found\r\n\r\n"
NO_RESULTS = b"NATS/1.0 404 No Results\r\n\r\n"
EMPTY_REQUEST = b"NATS/1.0 408 Empty Request\r\n\r\n"
MALFORMED_REQUEST = b"NATS/1.0 408 Malformed Request\r\n\r\n"
BAD_REQUEST = b"NATS/1.0 408 Bad Request\r\n\r\n"
TOO_MANY_RESULTS = b"NATS/1.0 413 Too Many Results\r\n\r\n"


class DirectGet:
    """Answers of one stream."""

    def __init__(self, stream: "Stream", router: Router) -> None:
        self._stream = stream
        self._router = router

    def answer(self, reply: bytes, subject: bytes, payload: bytes) -> asyncio.Task[None] | None:
        """Answer a request; `subject` is what follows the stream's name, b"" for none. A task when it takes longer."""
        try:
            return self._answer(reply, subject, payload)
        except StorageError as error:
            logger.error("direct_get_failed stream=%s reason=%s", self._stream.name, error)
            self._status(reply, b"NATS/1.0 500 %s\r\n\r\n" % str(error).encode())
            return None

    def _answer(self, reply: bytes, subject: bytes, payload: bytes) -> asyncio.Task[None] | None:
        if subject:
            if payload:
                self._status(reply, BAD_REQUEST)
            else:
                self._one(reply, self._last(subject), DirectGetRequest())
            return None
        if not payload:
            self._status(reply, EMPTY_REQUEST)
            return None
        try:
            request = decode_request(payload, DirectGetRequest)
        except JetStreamError:
            self._status(reply, MALFORMED_REQUEST)
            return None
        refusal = _refusal(request)
        if refusal is not None:
            self._status(reply, refusal)
            return None
        if request.multi_last:
            return self._multi_last(reply, request)
        if request.last_by_subj:
            self._one(reply, self._last(request.last_by_subj.encode()), request)
        elif request.batch > 0:
            return self._batch(reply, request)
        else:
            self._one(reply, self._first(request), request)
        return None

    # ── one ──

    def _last(self, subject: bytes) -> StoredRecord | None:
        contents = self._stream.contents
        sequence = contents.subjects.last(subject)
        return contents.load(sequence) if sequence else None

    def _first(self, request: DirectGetRequest) -> StoredRecord | None:
        contents, sequence = self._stream.contents, self._start(request)
        if request.next_by_subj:
            return contents.next_matching(sequence, SubjectFilter([request.next_by_subj.encode()]))
        if request.start_time:
            return next(contents.scan(offset_of(sequence)), None)
        return contents.load(sequence)

    def _start(self, request: DirectGetRequest) -> int:
        if request.start_time:
            return self._stream.contents.sequence_at_time(parse_time(request.start_time))
        return max(request.seq, 1)

    def _one(self, reply: bytes, record: StoredRecord | None, request: DirectGetRequest) -> None:
        if record is None:
            self._status(reply, NOT_FOUND)
        else:
            self._send(reply, record, b"", request.no_hdr)

    # ── several ──

    def _batch(self, reply: bytes, request: DirectGetRequest) -> asyncio.Task[None] | None:
        contents = self._stream.contents
        first = self._first_of_batch(request)
        if first is None:
            self._status(reply, NOT_FOUND)
            return None
        wanted = SubjectFilter([request.next_by_subj.encode()]) if request.next_by_subj else None
        pending = contents.count_from(sequence_of(first.offset), wanted)
        if pending is None:
            assert wanted is not None
            pending = sum(1 for record in contents.scan(first.offset) if wanted.matches(record.subject))
        records = (r for r in contents.scan(first.offset) if wanted is None or wanted.matches(r.subject))
        return asyncio.create_task(self._send_all(reply, request, records, pending, b""))

    def _first_of_batch(self, request: DirectGetRequest) -> StoredRecord | None:
        contents, sequence = self._stream.contents, self._start(request)
        if request.next_by_subj:
            return contents.next_matching(sequence, SubjectFilter([request.next_by_subj.encode()]))
        return next(contents.scan(offset_of(sequence)), None)

    def _multi_last(self, reply: bytes, request: DirectGetRequest) -> asyncio.Task[None] | None:
        contents = self._stream.contents
        up_to = self._stream.last_sequence
        if request.up_to_time:
            up_to = contents.sequence_at_time(parse_time(request.up_to_time)) - 1
        elif request.up_to_seq:
            up_to = min(up_to, request.up_to_seq)
        wanted = SubjectFilter([pattern.encode() for pattern in request.multi_last])
        found = contents.last_matching(wanted, up_to)
        if len(found) > MOST_SUBJECTS and request.batch <= 0:
            self._status(reply, TOO_MANY_RESULTS)
            return None
        sequences = [sequence for sequence in sorted(found.values()) if sequence >= request.seq]
        if not sequences:
            self._status(reply, NO_RESULTS)
            return None
        records = (record for sequence in sequences if (record := contents.load(sequence)) is not None)
        closing = b"\r\nNats-UpTo-Sequence: %d" % up_to
        return asyncio.create_task(self._send_all(reply, request, records, len(sequences), closing))

    async def _send_all(
        self, reply: bytes, request: DirectGetRequest, records: Iterator[StoredRecord], pending: int, closing: bytes
    ) -> None:
        batch = request.batch if request.batch > 0 else 1 << 62
        room = request.max_bytes if request.max_bytes > 0 else DEFAULT_MAX_BYTES
        sent = last = 0
        try:
            for record in records:
                if not request.no_hdr:
                    pending -= 1
                more = b"\r\nNats-Num-Pending: %d\r\nNats-Last-Sequence: %d" % (pending, last)
                self._send(reply, record, more, request.no_hdr)
                last = sequence_of(record.offset)
                sent += 1
                room -= len(record.header_block) + len(record.payload)
                if sent >= batch or room <= 0:
                    break
                if sent % TURN_MESSAGES == 0:
                    await asyncio.sleep(LINK_RETRY if self._router.pending(reply) > LINK_HIGH_WATER else 0)
        except StorageError as error:
            logger.error("direct_get_failed stream=%s reason=%s", self._stream.name, error)
            self._status(reply, b"NATS/1.0 500 %s\r\n\r\n" % str(error).encode())
            return
        end = b"NATS/1.0 204 EOB\r\nNats-Num-Pending: %d\r\nNats-Last-Sequence: %d%b\r\n\r\n"
        self._status(reply, end % (pending, last, closing))

    def _send(self, reply: bytes, record: StoredRecord, more: bytes, no_headers: bool) -> None:
        if no_headers:
            self._router.publish(reply, b"", b"", record.payload)
            return
        head = record.header_block.removesuffix(b"\r\n") if record.header_block else b"NATS/1.0\r\n"
        block = b"%bNats-Stream: %b\r\nNats-Subject: %b\r\nNats-Sequence: %d\r\nNats-Time-Stamp: %b%b\r\n\r\n" % (
            head,
            self._stream.name.encode(),
            record.subject,
            sequence_of(record.offset),
            format_time(record.timestamp_ns).encode(),
            more,
        )
        self._router.publish(reply, b"", block, record.payload)

    def _status(self, reply: bytes, header_block: bytes) -> None:
        self._router.publish(reply, b"", header_block, b"")


def _refusal(request: DirectGetRequest) -> bytes | None:
    """The status that refuses a request which contradicts itself or asks for nothing."""
    by_time = bool(request.start_time)
    if not (request.seq or request.last_by_subj or request.next_by_subj or request.multi_last or by_time):
        return EMPTY_REQUEST
    several = bool(request.multi_last)
    if (
        (request.seq and (request.last_by_subj or by_time))
        or (request.last_by_subj and (request.next_by_subj or several or by_time))
        or (several and (request.next_by_subj or by_time))
        or (request.up_to_seq and request.up_to_time)
    ):
        return BAD_REQUEST
    try:
        for text in (request.start_time, request.up_to_time):
            if text:
                parse_time(text)
    except ValueError:
        return MALFORMED_REQUEST
    return None
