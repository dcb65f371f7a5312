"""Direct get: the answer to a request is the stored message itself, with its headers; no JSON, no queue.

    $JS.API.DIRECT.GET.<stream>              {"seq":1} {"last_by_subj":"a"} {"next_by_subj":"a.*","seq":1} {"start_time":…}
                                             with "batch"/"max_bytes": several; "multi_last": the last of many subjects
    $JS.API.DIRECT.GET.<stream>.<subject>    the last message of the subject

Requests are read-only and answered at once, so key-value gets never wait for a publish; answers of several messages are
sent in turns, between which other clients are served and the client reads. Statuses, their order and their headers are those
of nats-server.
"""

import asyncio
import logging
from bisect import bisect_left

from headwater.errors import StorageError
from headwater.exchange.router import Router
from headwater.jetstream.consumed_stream import ConsumedStream
from headwater.jetstream_documents.api_errors import store_reason
from headwater.jetstream_documents.requests import DirectGetRequest
from headwater.jetstream_ranges.direct_answer import DirectAnswer
from headwater.jetstream_ranges.several_answers import SeveralAnswers
from headwater.jetstream_state.contents import SCAN_RECORDS
from headwater.jetstream_state.sequence import offset_of, sequence_of
from headwater.jetstream_state.subject_table import SubjectFilter
from headwater.jetstream_timing import looking
from headwater.jetstream_timing.slow_readers import give_way
from headwater.model.subject import is_literal
from headwater.model.timestamps import parse_time
from headwater.streams.log import StoredRecord

logger = logging.getLogger(__name__)

MOST_SUBJECTS = 1024  # matched by one multi_last request

NOT_FOUND = b"NATS/1.0 404 Message Not Found\r\n\r\n"
NO_RESULTS = b"NATS/1.0 404 No Results\r\n\r\n"
TOO_MANY_RESULTS = b"NATS/1.0 413 Too Many Results\r\n\r\n"


class DirectGet:
    """Answers the direct gets of one stream."""

    def __init__(self, stream: ConsumedStream, router: Router, answers: DirectAnswer) -> None:
        self._stream = stream
        self._router = router
        self._answers = answers

    def answer(self, reply: bytes, subject: bytes, payload: bytes) -> asyncio.Task[None] | None:
        """Answer a request; `subject` follows the stream's name, b"" for none. Returns a task when it takes longer."""
        try:
            return self._answer(reply, subject, payload)
        except StorageError as error:
            self._failed(reply, error)
            return None

    def _answer(self, reply: bytes, subject: bytes, payload: bytes) -> asyncio.Task[None] | None:
        from headwater.jetstream_documents.direct_gets import read_direct_get  # here: a start needs it not

        request = read_direct_get(payload, subject)
        if isinstance(request, bytes):
            self.status(reply, request)
            return None
        several = request.multi_last or (request.batch and not request.last_by_subj)
        if several or self._takes_long(request):
            return asyncio.create_task(self._answer_in_turns(reply, request))
        return self._one(reply, request)

    def _takes_long(self, request: DirectGetRequest) -> bool:
        """Whether finding the message takes a scan of many subjects or of a long log."""
        log, subjects = self._stream.contents.log, self._stream.contents.subjects
        if request.last_by_subj:
            return len(subjects) > looking.SUBJECTS and not is_literal(
                request.last_by_subj.encode("utf-8", "surrogateescape")
            )
        return bool(request.next_by_subj) and log.end_offset - log.start_offset > SCAN_RECORDS

    async def _answer_in_turns(self, reply: bytes, request: DirectGetRequest) -> None:
        try:
            if request.multi_last:
                await self._multi_last(reply, request)
            elif request.batch and not request.last_by_subj:
                await self._batch(reply, request)
            else:
                record = await self._find_in_turns(request)
                if record is None and self._stream.waiting[0]:
                    await self._stream.written()
                    record = await self._find_in_turns(request)
                self._send_one(reply, record, request)
        except StorageError as error:
            self._failed(reply, error)

    async def _find_in_turns(self, request: DirectGetRequest) -> StoredRecord | None:
        if not request.last_by_subj:
            return await self._next(request)
        contents = self._stream.contents
        wanted = SubjectFilter([request.last_by_subj.encode("utf-8", "surrogateescape")])
        lasts = await looking.last_sequences(contents.subjects, wanted, self._stream.last_sequence + 1)
        return contents.load(lasts[-1]) if lasts else None

    # ── one ──

    def _one(self, reply: bytes, request: DirectGetRequest) -> asyncio.Task[None] | None:
        """Answer with one message. One that is not found may still be on its way to disk, as for STREAM.MSG.GET."""
        record = self._find(request)
        if record is None and self._stream.waiting[0]:
            return asyncio.create_task(self._one_written(reply, request))
        self._send_one(reply, record, request)
        return None

    async def _one_written(self, reply: bytes, request: DirectGetRequest) -> None:
        await self._stream.written()
        try:
            self._send_one(reply, self._find(request), request)
        except StorageError as error:
            self._failed(reply, error)

    def _find(self, request: DirectGetRequest) -> StoredRecord | None:
        if request.last_by_subj:
            return self._last(request.last_by_subj.encode("utf-8", "surrogateescape"))
        return self._first(request)

    def _last(self, subject: bytes) -> StoredRecord | None:
        contents = self._stream.contents
        sequence = contents.subjects.last(subject)
        return contents.load(sequence) if sequence else None

    def _first(self, request: DirectGetRequest) -> StoredRecord | None:
        contents, sequence = self._stream.contents, self._start(request)
        if request.next_by_subj:
            return contents.next_matching(sequence, SubjectFilter([request.next_by_subj.encode()]))
        if request.start_time:
            return next(iter(contents.log.read(offset_of(sequence), 1, 1)), None)
        return contents.load(sequence)

    def _start(self, request: DirectGetRequest) -> int:
        if request.start_time:
            return self._stream.contents.sequence_at_time(parse_time(request.start_time))
        return max(request.seq, 1)

    def _send_one(self, reply: bytes, record: StoredRecord | None, request: DirectGetRequest) -> None:
        if record is None:
            self.status(reply, NOT_FOUND)
        else:
            self.send(reply, record, b"", request.no_hdr)

    # ── several ──

    async def _next(self, request: DirectGetRequest) -> StoredRecord | None:
        """The first message that matches a request by start and subject."""
        contents, sequence = self._stream.contents, self._start(request)
        if request.next_by_subj:
            return await looking.next_matching(contents, sequence, SubjectFilter([request.next_by_subj.encode()]))
        return contents.load(sequence) or next(iter(contents.log.read(offset_of(sequence), 1, 1)), None)

    async def _batch(self, reply: bytes, request: DirectGetRequest) -> None:
        contents = self._stream.contents
        first = await self._next(request)
        if first is None and request.batch > 0:
            self.status(reply, NOT_FOUND)
            return
        wanted = SubjectFilter([request.next_by_subj.encode()]) if request.next_by_subj else None
        pending = await looking.count_matching(contents, sequence_of(first.offset), wanted) if first is not None else 0
        answer = self._several(reply, request, pending)
        if first is None or request.batch < 0:  # nothing is wanted but the end
            self.status(reply, answer.end(b""))
            return
        async for some in looking.records(contents, first.offset, wanted=wanted, most=min(request.batch, SCAN_RECORDS)):
            for record in some:
                if not answer.send(record):
                    self.status(reply, answer.end(b""))
                    return
                if answer.ends_turn():
                    await give_way(self._router, reply)
        self.status(reply, answer.end(b""))

    async def _multi_last(self, reply: bytes, request: DirectGetRequest) -> None:
        contents = self._stream.contents
        up_to = self._stream.last_sequence
        if request.up_to_time:
            up_to = contents.sequence_at_time(parse_time(request.up_to_time)) - 1
        elif request.up_to_seq:
            up_to = min(up_to, request.up_to_seq)
        wanted = SubjectFilter([pattern.encode() for pattern in request.multi_last])
        found = await looking.lasts_up_to(contents, wanted, up_to)
        if len(found) > MOST_SUBJECTS and request.batch <= 0:
            self.status(reply, TOO_MANY_RESULTS)
            return
        sequences = found[bisect_left(found, request.seq) :]
        if not sequences:
            self.status(reply, NO_RESULTS)
            return
        answer = self._several(reply, request, len(sequences))
        for sequence in sequences:
            record = contents.load(sequence)
            if record is not None and not answer.send(record):
                break
            if answer.ends_turn():
                await give_way(self._router, reply)
        self.status(reply, answer.end(b"\r\nNats-UpTo-Sequence: %d" % up_to))

    def _several(self, reply: bytes, request: DirectGetRequest, pending: int) -> SeveralAnswers:
        return SeveralAnswers(self._answers, self._stream.name, reply, request, pending)

    def send(self, reply: bytes, record: StoredRecord, more: bytes, no_headers: bool) -> None:
        self._answers.send(reply, self._stream.name.encode(), record, more, no_headers)

    def _failed(self, reply: bytes, error: StorageError) -> None:
        logger.error("direct_get_failed stream=%s reason=%s", self._stream.name, error)
        self.status(reply, b"NATS/1.0 500 %s\r\n\r\n" % store_reason(error).encode())

    def status(self, reply: bytes, header_block: bytes) -> None:
        self._router.publish(reply, b"", header_block, b"")
