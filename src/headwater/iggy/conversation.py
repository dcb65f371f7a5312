"""One client's requests to the service, independent of the transport: takes a complete request and answers it, perhaps
later.

    `classic(buffer, request, respond)`, `modern(buffer, request, respond)`
        └─▶ decode ─▶ Service ─▶ encode ─▶ respond(pieces of the answer)

`respond` is called exactly once, in the loop, at once or after the write to disk. The request is read only during the
call; a send's stamp is written into the buffer. Every error becomes the error number of the client's era; no request
raises an exception to the caller.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator, Sequence
from dataclasses import replace
from functools import partial
from struct import Struct
from typing import Any, Final

from headwater.errors import HeadwaterError, IggyError, StorageError
from headwater.iggy.clients import Client
from headwater.iggy.deferred import Wait, Waits, fetch, poll_deferred, wait_for_messages
from headwater.iggy.dispatch import execute
from headwater.iggy.message_commands import NOTHING, Found, poll, poll_in_turns, send, send_again
from headwater.iggy.partition import TURN_BYTES, Batch
from headwater.iggy.routes import Routes
from headwater.iggy.service import Service
from headwater.iggy_wire import classic_codec, classic_frames, command_codec, reply_codec, seed_codec, vsr_frames
from headwater.iggy_wire.batches import Part, admit, build, forget_producer
from headwater.iggy_wire.command_codec import SEND
from headwater.iggy_wire.commands import (
    CancelDeferred,
    Code,
    Command,
    DeleteOffset,
    FetchMessages,
    GetOffset,
    PollDeferred,
    PollMessages,
    SendMessages,
    StoreOffset,
    WaitForMessages,
)
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.error_numbers import as_refusal, of_today, refusal, seed_number
from headwater.iggy_wire.layout import Reader
from headwater.iggy_wire.reply_codec import SentView
from headwater.net.piece_queue import Piece
from headwater.wire.memory import slice_bytes

logger = logging.getLogger(__name__)

Pieces = Sequence[Piece]
Respond = Callable[[Pieces], None]
_OK: Final = bytes(4)  # an empty result section
U32_SIZE: Final = 4
_EVICTIONS: Final = {
    "invalid_credentials": vsr_frames.BAD_CREDENTIALS,
    "invalid_personal_access_token": vsr_frames.BAD_TOKEN,
    "personal_access_token_expired": vsr_frames.BAD_TOKEN,
    "user_inactive": vsr_frames.INACTIVE,
    "incompatible_protocol_version": vsr_frames.BAD_PROTOCOL,
    "invalid_command": vsr_frames.MALFORMED_LOGIN,
}
_DEFERRED: Final = (Code.POLL_DEFERRED, Code.WAIT_FOR_MESSAGES, Code.CANCEL_DEFERRED, Code.FETCH_MESSAGES)
_U32: Final = Struct("<I")
_CONTEXT: Final = Struct("<QQQ")
_SECTION: Final = Struct("<IIQI")  # partition, status, current offset, messages
_SECTION_END: Final = Struct("<QI")  # behind the context: next offset, bytes
_WITH_COMPRESSION: Final = (Code.CREATE_TOPIC, Code.UPDATE_TOPIC)


class Conversation:
    """See the head of this module. `evicted`: the client gets no more answers. `ranges`: the transport can send ranges
    of files; otherwise all pieces of answers are bytes."""

    def __init__(self, service: Service, client: Client, ranges: bool = False) -> None:
        self.service = service
        self.client = client
        self.ranges = ranges
        self.evicted = False
        self._routes = Routes(service, client)
        self._waits = Waits()
        self._tasks: set[asyncio.Task[None]] = set()

    def close(self) -> None:
        """The client has disconnected."""
        self._waits.cancel_all()
        self.service.disconnect(self.client)

    # ── classic eras ──

    def classic(self, buffer: bytearray, request: classic_frames.Request, respond: Respond) -> None:
        """One request of the eras S to C3."""
        self.client.requests += 1
        code, start, end = request
        fail = partial(self._fail_classic, respond)
        try:
            if code == Code.SEND_MESSAGES:
                fail = partial(self._fail_send, fail)
                self._send_classic(bytes(memoryview(buffer)[start:end]), respond, fail)
                return
            body = bytes(memoryview(buffer)[start:end])
            command = self._decode_classic(code, body)
            if isinstance(command, PollMessages):
                self._answer_poll(command, respond, fail)
                return
            view = execute(self.service, self.client, command)
        except HeadwaterError as error:
            fail(error)
            return
        self._when_ready(view, lambda ready: respond([self._classic_reply(code, ready)]), fail)

    def _decode_classic(self, code: int, body: bytes) -> Command:
        if code == Code.LOGIN_USER and self.client.era is not Era.S:
            return command_codec.decode_classic_login(body)
        try:
            return command_codec.decode(code, body, self.client.era)
        except IggyError:
            if self.client.era is not Era.A2 or code not in _WITH_COMPRESSION:
                raise
            command = command_codec.decode(code, body, Era.A)
            self.client.era = Era.A  # a topic without compression: the oldest era
            return command

    def _classic_reply(self, code: int, view: Any) -> bytes:
        return classic_frames.response(0, reply_codec.encode(code, view, self.client.era))

    def _fail_classic(self, respond: Respond, error: HeadwaterError) -> None:
        refused = as_refusal(error)
        number = seed_number(refused) if self.client.era is Era.S else refused.number
        respond([classic_frames.response(number)])

    def _send_classic(self, body: bytes, respond: Respond, fail: Callable[[HeadwaterError], None]) -> None:
        era, now = self.client.era, self.service.clock_us()
        reader = Reader(body)
        parts: list[Part]
        if era.has_index_table:
            address = classic_codec.read_address(reader)
            parts = classic_codec.read_messages(reader, address.count, era)
        else:
            plain: SendMessages = command_codec.SEND_ADDRESS.read(reader)
            parts = seed_codec.parts(seed_codec.decode_messages(reader, era), now)
            address = SendMessages(plain.stream, plain.topic, plain.partitioning, len(parts))
        batch, checksums = build(parts)

        def done(error: StorageError | None) -> None:
            if error is None:
                respond([classic_frames.response(0)])
            else:
                fail(error)

        send(self.service, self.client, address, Batch(batch, 0, len(batch)), checksums, done)

    def _answer_poll(self, command: PollMessages, respond: Respond, fail: Callable[[HeadwaterError], None]) -> None:
        era = self.client.era
        self.service.authorize(self.client, command)

        def encoded(found: Found) -> bytes:
            batches, current = found.polled.read(), found.polled.current_offset
            if era.has_index_table:
                return classic_codec.write_poll(batches, era, found.partition, current)
            return seed_codec.encode_poll(seed_codec.from_batches(batches), era, found.partition, current)

        def succeed(found: Found) -> None:
            if found.polled.size <= TURN_BYTES:
                respond([classic_frames.response(0, encoded(found))])
            else:  # translating 32 MiB takes too long for one turn of the loop
                work = asyncio.to_thread(lambda: classic_frames.response(0, encoded(found)))
                self._when_ready(work, lambda body: respond([body]), fail)

        self._poll_now_or_in_turns(poll(self.service, self.client, command), succeed, fail)

    def _poll_now_or_in_turns(
        self,
        polling: Generator[None, None, Found],
        succeed: Callable[[Found], None],
        fail: Callable[[HeadwaterError], None],
    ) -> None:
        """Raises the HeadwaterError of the first step, without calling `fail`."""
        try:
            next(polling)
        except StopIteration as end:
            succeed(end.value)
        else:
            self._when_ready(poll_in_turns(polling), succeed, fail)

    # ── generation V and later ──

    def modern(self, buffer: bytearray, request: vsr_frames.Request, respond: Respond) -> None:
        """One request of generation V or later. `respond` gets no pieces for one that has no answer."""
        self.client.requests += 1
        code = Code.SEND_MESSAGES if request.operation == SEND else self._code_of(request)
        if code is Code.SEND_MESSAGES:
            try:
                self._send_modern(buffer, request, respond)
            except HeadwaterError as error:
                self._fail_send(partial(self._fail_modern, request, respond), error)
            return
        fail = partial(self._fail_modern, request, respond)
        try:
            if code is None:
                raise refusal("invalid_command", f"operation {request.operation}, code {request.code}")
            body = bytes(memoryview(buffer)[request.start : request.end])
            if code is Code.POLL_MESSAGES:
                polling = self._poll_modern(body, request.incarnation)
                self._poll_now_or_in_turns(polling, lambda found: respond(self._found(request, found)), fail)
                return
            if self.is_deferred(request):
                self._defer(request, code, body, respond, fail)
                return
            login = request.operation == command_codec.REGISTER
            if login:
                self.client.key = request.client
            command = command_codec.decode_login(body) if login else command_codec.decode(code, body, self.client.era)
            if request.incarnation and isinstance(command, GetOffset | StoreOffset | DeleteOffset):
                command = replace(command, incarnation=request.incarnation)
            view = execute(self.service, self.client, command)
        except HeadwaterError as error:
            fail(error)
            return
        self._when_ready(view, lambda ready: respond(self._modern_reply(request, code, ready)), fail)

    def _code_of(self, request: vsr_frames.Request) -> Code | None:
        if request.operation == command_codec.REGISTER:
            return Code.LOGIN_REGISTER
        if request.operation != command_codec.NON_REPLICATED:
            return command_codec.OPERATIONS.get(request.operation)
        try:
            return Code(request.code)
        except ValueError:
            return None

    def _modern_reply(self, request: vsr_frames.Request, code: Code, view: Any) -> Pieces:
        body = reply_codec.encode(code, view, self.client.era)
        if vsr_frames.has_result_section(request.operation):
            body = _OK + body
        return [self._head(request, len(body)), body]

    def _head(self, request: vsr_frames.Request, size: int, status: int = 0) -> bytes:
        self.service.operations += 1
        return vsr_frames.reply(request, self.service.operations, size, status, self.client.era >= Era.W)

    def _fail_modern(self, request: vsr_frames.Request, respond: Respond, error: HeadwaterError) -> None:
        refused = of_today(as_refusal(error))
        if request.operation == command_codec.REGISTER:
            self.evicted = True
            respond([vsr_frames.eviction(_EVICTIONS.get(refused.name, vsr_frames.MALFORMED_LOGIN), request.client)])
        else:
            respond([self._head(request, 0, refused.number)])

    def _send_modern(self, buffer: bytearray, request: vsr_frames.Request, respond: Respond) -> None:
        at, end = request.start, request.end
        if end - at < U32_SIZE:
            raise refusal("invalid_command", "there is no address in the request")
        (size,) = _U32.unpack_from(buffer, at)
        start = at + U32_SIZE + size
        if start > end:
            raise refusal("invalid_command", f"{size} bytes of metadata are announced")
        sent: SentView

        def done(error: StorageError | None) -> None:
            if error is not None:
                self._fail_send(partial(self._fail_modern, request, respond), error)
                return
            body = reply_codec.ONE_SENT.pack(1, sent.stream, sent.topic, sent.partition, sent.base_offset)
            respond((self._head(request, len(body)) + body,))

        service = self.service
        metadata = slice_bytes(buffer, at, start)
        route = self._routes.send(metadata)
        batch = Batch(buffer, start, end)
        if route is not None:
            checksums = self._admit(batch, route.messages)
            sent = send_again(service, route, batch, checksums, done, request.incarnation)
        else:
            address = classic_codec.read_address(Reader(metadata))
            checksums = self._admit(batch, address.count)
            sent = send(service, self.client, address, batch, checksums, done, request.incarnation)
            self._routes.keep_send(metadata, address, sent)

    def _fail_send(self, fail: Callable[[HeadwaterError], None], error: HeadwaterError) -> None:
        self.service.clients.refused_sends += 1
        fail(error)

    def _admit(self, batch: Batch, count: int) -> bytes:
        checksums = admit(batch.buffer, batch.start, batch.end, count, self.service.options.verify)
        forget_producer(batch.buffer, batch.start)
        return checksums

    def _poll_modern(self, body: bytes, incarnation: int) -> Generator[None, None, Found]:
        known = self._routes.poll(body, self.ranges, incarnation)
        if known is not None:
            return (yield from known)
        command = command_codec.decode(Code.POLL_MESSAGES, body, self.client.era)
        assert isinstance(command, PollMessages)
        self.service.authorize(self.client, command)
        found = yield from poll(self.service, self.client, command, self.ranges, incarnation=incarnation)
        self._routes.keep_poll(body, command, found)
        return found

    def _found(self, request: vsr_frames.Request, found: Found) -> Pieces:
        polled = found.polled
        prefix = classic_codec.PREFIX.pack(found.partition, polled.current_offset, polled.messages)
        if self.client.era >= Era.W:
            prefix += self._context(found)
        size = len(prefix) + polled.size
        return [self._head(request, size), prefix, *polled.batches]

    def _context(self, found: Found) -> bytes:
        """The context section of an answer."""
        return _CONTEXT.pack(found.incarnation, found.owner, self.service.operations)

    # ── requests that wait for messages ──

    def is_deferred(self, request: vsr_frames.Request) -> bool:
        """Whether later requests may be answered before this one, or it has no answer (a cancellation)."""
        is_plain = request.operation == command_codec.NON_REPLICATED
        return is_plain and self.client.era >= Era.W and request.code in _DEFERRED

    def _defer(
        self,
        request: vsr_frames.Request,
        code: Code,
        body: bytes,
        respond: Respond,
        fail: Callable[[HeadwaterError], None],
    ) -> None:
        command = command_codec.decode(code, body, self.client.era)
        self.service.authorize(self.client, command)
        if isinstance(command, CancelDeferred):
            self._waits.cancel(request.number)
            respond([])
            return
        wait = self._waits.begin(request.number)
        work: Coroutine[Any, Any, Pieces]
        if isinstance(command, PollDeferred):
            work = self._deferred_poll(request, command, wait)
        elif isinstance(command, FetchMessages):
            work = self._fetch(request, command, wait)
        else:
            assert isinstance(command, WaitForMessages)
            work = self._readiness(request, command, wait)

        async def answer() -> Pieces:
            try:
                return await work
            finally:
                self.client.waiting -= 1
                self._waits.end(request.number)

        self.client.waiting += 1
        self._when_ready(answer(), respond, fail)

    async def _deferred_poll(self, request: vsr_frames.Request, command: PollDeferred, wait: Wait) -> Pieces:
        return self._found(request, await poll_deferred(self.service, self.client, command, wait))

    async def _readiness(self, request: vsr_frames.Request, command: WaitForMessages, wait: Wait) -> Pieces:
        ready = await wait_for_messages(self.service, self.client, command, wait)
        return self._modern_reply(request, Code.WAIT_FOR_MESSAGES, ready)

    async def _fetch(self, request: vsr_frames.Request, command: FetchMessages, wait: Wait) -> Pieces:
        sections = await fetch(self.service, self.client, command, wait)
        table, batches = [len(sections).to_bytes(4, "little")], list[Piece]()
        for section in sections:
            found = section.found
            polled, context = (NOTHING, bytes(24)) if found is None else (found.polled, self._context(found))
            table.append(_SECTION.pack(section.partition, section.status, polled.current_offset, polled.messages))
            table.append(context + _SECTION_END.pack(section.next_offset, polled.size))
            batches += polled.batches
        head = b"".join(table)
        return [self._head(request, len(head) + sum(map(len, batches))), head, *batches]

    # ── answers that take time ──

    def _when_ready(self, view: Any, succeed: Callable[[Any], None], fail: Callable[[HeadwaterError], None]) -> None:
        if not asyncio.iscoroutine(view):
            succeed(view)
            return
        task = asyncio.create_task(self._wait(view, succeed, fail))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _wait(
        self, work: Coroutine[Any, Any, Any], succeed: Callable[[Any], None], fail: Callable[[HeadwaterError], None]
    ) -> None:
        try:
            view = await work
        except HeadwaterError as error:
            fail(error)
        except Exception as error:
            logger.exception("iggy_command_failed client=%d", self.client.id)
            fail(refusal("error", f"the server failed: {error}"))
        else:
            succeed(view)
