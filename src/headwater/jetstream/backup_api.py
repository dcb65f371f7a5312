"""STREAM.SNAPSHOT and STREAM.RESTORE: the requests, and the transfers that follow their answers.

    SNAPSHOT ─▶ answer with configuration and state ─▶ chunks to the deliver subject (jetstream_backup/sending.py)
    RESTORE  ─▶ answer with a subject ─▶ chunks from the client into a file ─▶ a stream (headwater/jetstream_backup)

A restore creates the whole stream or nothing; the stream captures messages as soon as it exists. The configuration
comes from the request; messages, their sequences and times, and the consumers come from the archive.
"""

import logging
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from headwater.durable_files.files import File
from headwater.errors import HeadwaterError, JetStreamError
from headwater.exchange.client_info import Document
from headwater.exchange.router import Router
from headwater.jetstream.consumer_api import new_state
from headwater.jetstream.consumer_registry import ConsumerRegistry, count_pending
from headwater.jetstream.stream import Stream
from headwater.jetstream.stream_api import StreamApi
from headwater.jetstream.stream_registry import StreamRegistry
from headwater.jetstream_advisories.advisories import Advisories, random_id
from headwater.jetstream_documents.answers import TYPE_PREFIX, RestoreAnswer, StreamCreateAnswer, encode, error_document
from headwater.jetstream_documents.api_errors import api_error
from headwater.jetstream_documents.consumer_rules import checked as checked_consumer
from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_documents.stream_rules import checked
from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_documents.strict_reading import decode_request, is_empty_request
from headwater.jetstream_state.store import ConsumerRecord, StreamRecord
from headwater.model.subject import is_literal, is_valid_subject
from headwater.model.timestamps import format_time

if TYPE_CHECKING:
    from headwater.jetstream_backup.building import ArchiveFile
    from headwater.jetstream_documents.backups import ArchivedConsumer, SnapshotAnswer
    from headwater.jetstream_room.whole import Elsewhere

logger = logging.getLogger(__name__)

Spawn = Callable[[Coroutine[object, object, None]], None]


class BackupApi:
    """Handlers of the two requests. `spawn` runs work in the background; `requester()` returns the description of the
    client whose request is being served."""

    def __init__(
        self,
        registry: StreamRegistry,
        consumers: ConsumerRegistry,
        streams: StreamApi,
        router: Router,
        spawn: Spawn,
        requester: Callable[[], Document],
    ) -> None:
        self._requester = requester
        self._registry = registry
        self._consumers = consumers
        self._streams = streams
        self._router = router
        self._spawn = spawn

    async def snapshot(self, names: list[str], payload: bytes) -> "SnapshotAnswer":
        """Answer with the stream's configuration and state, then send the archive."""
        if is_empty_request(payload):
            raise api_error("bad_request")
        from headwater.jetstream_documents.backups import SnapshotAnswer, SnapshotRequest  # not for every start

        request = decode_request(payload, SnapshotRequest)
        from headwater.jetstream_backup.consumer_states import archived
        from headwater.jetstream_backup.saving import pieces
        from headwater.jetstream_backup.sending import ChunkSender

        stream = self._registry.stream(names[0])
        deliver = request.deliver_subject.encode()
        if not deliver:
            raise api_error("bad_request")
        if not is_valid_subject(deliver) or not is_literal(deliver) or any(byte <= 32 for byte in deliver):
            raise api_error("deliver_subject_not_valid")
        await stream.written()
        saved = [] if request.no_consumers else [one for one in stream.consumers.values() if not one.config.direct]
        now = self._registry.settings.clock_ns()
        consumers = [(one.name, archived(one.config, one.state.snapshot(), now)) for one in saved]
        state = stream.state()
        state.consumer_count = len(consumers)
        archive = pieces(stream.log, msgspec.json.encode(state), consumers, now)
        acks = f"$JS.SNAPSHOT.ACK.{stream.name}.{random_id()}"
        sender = ChunkSender(self._router, deliver, acks, request.chunk, request.window)
        client = self._requester()

        async def send() -> None:
            began = time.monotonic()
            start = self._now()
            self._advise(stream.name, "snapshot_create", {"state": msgspec.to_builtins(state), "client": client})
            failure = await sender.run(archive)
            took = time.monotonic() - began
            if failure:
                logger.warning("snapshot_failed stream=%s bytes=%d reason=%s", stream.name, sender.sent, failure)
            else:
                logger.info("snapshot_sent stream=%s bytes=%d seconds=%.3f", stream.name, sender.sent, took)
            error = {"error": failure} if failure else {}
            self._advise(
                stream.name, "snapshot_complete", {"start": start, "end": self._now(), **error, "client": client}
            )

        self._spawn(send())
        return SnapshotAnswer(type=TYPE_PREFIX + "stream_snapshot_response", config=stream.config, state=state)

    async def restore(self, names: list[str], payload: bytes) -> RestoreAnswer:
        """Answer with the subject for the chunks."""
        if is_empty_request(payload):
            raise api_error("bad_request")
        from headwater.jetstream_documents.backups import RestoreRequest

        request = decode_request(payload, RestoreRequest)
        if not request.config.name:
            raise api_error("bad_request")
        if request.config.name != names[0]:
            raise api_error("stream_name_mismatch")
        if names[0] in self._registry.streams:
            raise api_error("stream_name_in_use_restoring")
        config = checked(request.config, sealing=request.config.sealed)
        async with self._registry.claimed(config) as elsewhere:
            self._streams.check_new(config, elsewhere)
        try:
            path, spool = await self._registry.spool(config.name)
        except OSError as error:
            raise api_error("restore_failed", reason=error.strerror or str(error)) from error
        from headwater.jetstream_backup.receiving import ChunkReceiver

        subject = f"$JS.SNAPSHOT.RESTORE.{config.name}.{random_id()}"
        begun: Document = {"start": self._now(), "client": self._requester()}
        self._advise(config.name, "restore_create", {"client": begun["client"]})
        finish = partial(self._finish, config, spool, begun)
        receiver = ChunkReceiver(self._router, subject.encode(), spool, finish)

        async def receive() -> None:
            try:
                if not await receiver.run():
                    logger.warning("restore_given_up stream=%s reason=no more chunks came", config.name)
                    self._advise(config.name, "restore_complete", {**begun, "end": self._now(), "bytes": spool.size()})
            finally:
                await self._registry.drop_spool(path, spool)

        self._spawn(receive())
        return RestoreAnswer(type=TYPE_PREFIX + "stream_restore_response", deliver_subject=subject)

    # ── inside ──

    def _now(self) -> str:
        return format_time(self._registry.settings.clock_ns())

    def _advise(self, stream: str, step: str, fields: Document) -> None:
        settings = self._registry.settings
        Advisories(self._router, settings.clock_ns, settings.domain).backup(stream, step, fields)

    async def _finish(self, config: StreamConfig, spool: File, begun: Document, size: int, failure: str) -> bytes:
        """Create the stream; returns the answer to the last chunk. `begun`: time and client of the request, for the
        advisory."""
        answer = await self._finished(config, spool, size, failure)
        self._advise(config.name, "restore_complete", {**begun, "end": self._now(), "bytes": size})
        return answer

    async def _finished(self, config: StreamConfig, spool: File, size: int, failure: str) -> bytes:
        began = time.monotonic()
        try:
            if failure:
                raise api_error("restore_failed", reason=failure)
            stream = await self._build(config, spool, size)
        except Exception as error:  # noqa: BLE001  (whatever goes wrong, the client gets an answer)
            refused = _restore_error(error)
            logger.warning("restore_failed stream=%s bytes=%d reason=%s", config.name, size, refused.description)
            kind = TYPE_PREFIX + "stream_create_response"
            return encode(StreamCreateAnswer(type=kind, error=error_document(refused)))
        took = time.monotonic() - began
        logger.info("stream_restored stream=%s bytes=%d seconds=%.3f", stream.name, size, took)
        return encode(self._streams.created(stream, "stream_create_response"))

    async def _build(self, config: StreamConfig, spool: File, size: int) -> Stream:
        from headwater.jetstream_backup.building import ArchiveFile

        archive = ArchiveFile(spool, size)
        if config.name in self._registry.streams:
            raise api_error("stream_name_in_use_restoring")
        async with self._registry.claimed(config) as elsewhere:
            self._streams.check_new(config, elsewhere)
            self._streams.check_overlap(config, elsewhere)
            self._check_room(config, archive.state.bytes, elsewhere)
            return await self._make(config, archive)

    async def _make(self, config: StreamConfig, archive: "ArchiveFile") -> Stream:
        from headwater.jetstream_backup.consumer_states import snapshot_of

        created = self._registry.settings.clock_ns()
        records, fresh = [], []
        for name, found in archive.consumers():
            consumer = self._checked(name, found, config)
            snapshot = snapshot_of(found.state)
            if snapshot is None:
                fresh.append((name, consumer))
            else:
                records.append(ConsumerRecord(name, consumer, created, snapshot))
        stream = await self._registry.restore(StreamRecord(config, created), archive, records)
        for name, consumer in fresh:
            state = await new_state(consumer, stream)
            state.num_pending = len(state.selected)
            begun = await self._consumers.add(stream, name, state)
            begun.state.num_pending += await count_pending(stream, state.position, begun.filter)
            begun.start()
        return stream

    def _checked(self, name: str, found: "ArchivedConsumer", config: StreamConfig) -> ConsumerConfig:
        try:
            return checked_consumer(found.config, config, self._registry.settings.max_ack_pending)
        except JetStreamError as error:
            raise api_error("restore_failed", reason=f'consumer "{name}": {error.description}') from error

    def _check_room(self, config: StreamConfig, size: int, elsewhere: "Elsewhere") -> None:
        """Check that the account may store this many more bytes. Raises JetStreamError."""
        in_memory = config.storage == "memory"
        limits = self._registry.settings.limits
        most = limits.max_memory if in_memory else limits.max_storage
        streams = self._registry.streams.values()
        held = sum(one.weight for one in streams if one.config.storage == config.storage)
        if 0 <= most < size + held + elsewhere.weights.get(config.storage, 0):
            raise api_error("memory_exceeded" if in_memory else "storage_exceeded")


def _restore_error(error: Exception) -> JetStreamError:
    """The error of the answer, in nats-server's words where it has some."""
    if isinstance(error, JetStreamError):
        if error.err_code in (10062, 10130):
            return error
        return api_error("restore_failed", reason=f"error adding stream: {error.description} ({error.err_code})")
    if isinstance(error, HeadwaterError):
        return api_error("restore_failed", reason=error.message)
    if isinstance(error, OSError):
        return api_error("restore_failed", reason=error.strerror or str(error))
    logger.error("restore_failed", exc_info=error)
    return api_error("restore_failed", reason=type(error).__name__)
