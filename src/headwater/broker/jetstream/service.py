"""JetStream: streams on disk, and the API under `$JS.API.>` by which clients make, read and ask about them.

    $JS.API.<verb>.<names>   ─▶ `_on_api` ─▶ ROUTES ─▶ a handler of stream_api.py or consumer_api.py ─▶ JSON to the reply
    $JS.API.CONSUMER.MSG.NEXT.<stream>.<consumer>  ─▶ the consumer (pull.py, push.py)
    $JS.API.DIRECT.GET.<stream>…                   ─▶ direct_get.py, for streams that allow it
    $JS.ACK.<stream>.<consumer>.…                  ─▶ the consumer
    a stream's subjects                            ─▶ the stream (stream.py)

Requests are served one after the other in the order of their arrival, so a client may send STREAM.CREATE and what
depends on it in one breath. What touches the disk waits in a worker thread, and the queue with it; publishes, acks
and MSG.NEXT do not. An unknown verb is met with silence, as in nats-server; a MSG.NEXT for a consumer that is not
there with status 503.

What survives a restart: streams with all that was acknowledged, durable consumers with their configuration, and their
state as it was at most STATE_INTERVAL before a crash (a clean stop loses nothing): messages may be delivered again,
none is skipped. Ephemeral consumers and waiting requests do not.
"""

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar, cast, get_args

from headwater.broker.jetstream.api_errors import api_error
from headwater.broker.jetstream.api_types import (
    API_LEVEL,
    AccountLimits,
    Answer,
    ConsumerListAnswer,
    ConsumerNamesAnswer,
    PageAnswer,
    PauseAnswer,
    StreamConfig,
    StreamListAnswer,
    StreamNamesAnswer,
    StreamPurgeAnswer,
    encode,
    error_document,
)
from headwater.broker.jetstream.consumer import Consumer
from headwater.broker.jetstream.consumer_api import ConsumerApi, count_pending
from headwater.broker.jetstream.delivering import DeliveringConsumer
from headwater.broker.jetstream.direct_get import DirectGet
from headwater.broker.jetstream.pull import PullConsumer
from headwater.broker.jetstream.pull_requests import CONSUMER_DELETED, SERVER_SHUTDOWN
from headwater.broker.jetstream.push import PushConsumer
from headwater.broker.jetstream.sequence import offset_of
from headwater.broker.jetstream.store import ConsumerRecord, Store, StreamDirectory, StreamRecord
from headwater.broker.jetstream.stream import Stream
from headwater.broker.jetstream.stream_api import StreamApi
from headwater.broker.jetstream.view import ViewStream
from headwater.broker.jetstream.writers import Writers
from headwater.broker.router import Router
from headwater.broker.sublist import Subscription
from headwater.errors import ConfigError, JetStreamError, StorageError
from headwater.model.header_block import lookup
from headwater.streams.files import Files, OsFiles
from headwater.streams.log import Log
from headwater.streams.memory_files import MemoryFiles
from headwater.streams.options import LogOptions, SyncPolicy

logger = logging.getLogger(__name__)

WRITERS = 4  # threads; each stream writes in one at a time
STATE_INTERVAL = 0.5  # seconds between two saves of a durable consumer's state
API_PREFIX = b"$JS.API."
NEXT_PREFIX = b"$JS.API.CONSUMER.MSG.NEXT."
DIRECT_PREFIX = b"$JS.API.DIRECT.GET."

IN_MEMORY = LogOptions(sync="never", preallocate_bytes=0, cache_bytes=0)

_TYPE = "io.nats.jetstream.api.v1."

T = TypeVar("T")
Handler = Callable[[list[str], bytes], Answer | Coroutine[object, object, Answer]]


class Route(NamedTuple):
    """One verb: who serves it, how many names follow it, and the answer that carries an error."""

    handler: Handler
    fewest_names: int
    most_names: int
    kind: str
    refusal: type[Answer]


class Call(NamedTuple):
    """A request that waits for its turn."""

    route: Route
    names: list[str]
    reply: bytes
    header_block: bytes
    payload: bytes


class JetStream:
    """The service. `clock_ns`: time of day in ns since 1970. `sync`: when a publish is acknowledged (LogOptions.sync).

    Raises ConfigError for an unknown sync policy, and from `start` EnvironmentProblem when the store directory cannot
    be used.
    """

    def __init__(
        self,
        router: Router,
        store_dir: Path,
        *,
        clock_ns: Callable[[], int],
        sync: SyncPolicy = "always",
        server_name: str = "headwater",
        files: Files | None = None,
        limits: AccountLimits | None = None,
    ) -> None:
        if sync not in get_args(SyncPolicy):
            policies = get_args(SyncPolicy)
            raise ConfigError(
                f"sync is {sync!r}", value=sync, limit=policies, hint=f"it is one of {', '.join(policies)}"
            )
        self.server_name = server_name
        self.streams: dict[str, Stream] = {}
        self.limits = limits or AccountLimits()
        self.requests = 0
        self.refusals = 0
        self._router = router
        self._store_dir = store_dir
        self._clock_ns = clock_ns
        self._log_options = LogOptions(sync=sync)
        self._files = files if files is not None else OsFiles()
        self._writers: Writers | None = None
        # One thread for everything but writing messages: what is done to one document is done in the order in which
        # it was asked for. A consumer that is saved and then deleted stays deleted.
        self._clerk = ThreadPoolExecutor(1, "headwater-jetstream-clerk")
        self._store: Store | None = None
        self._subscription: Subscription | None = None
        self._routes = _routes(StreamApi(self), ConsumerApi(self))
        self._calls: deque[Call] = deque()
        self._serving: asyncio.Task[None] | None = None
        self._changed: dict[DeliveringConsumer, Stream] = {}
        self._saving: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    # ── life ──

    async def start(self) -> None:
        """Recover every stream and its durable consumers, then answer requests."""
        self._writers = Writers(WRITERS, "headwater-jetstream-write")
        try:
            recovered = await self._in_thread(self._recover)
        except BaseException:
            self._release()
            raise
        for stream, consumers in recovered:
            self.streams[stream.name] = stream
            stream.attach(self._router, self._writers)
            for record in consumers:
                await self._restore_consumer(stream, record)
            stream.drop_unneeded()
        self._subscription = self._router.subscribe_internal(API_PREFIX + b">", self._on_api)

    async def stop(self) -> None:
        """Write and acknowledge what is staged, store what consumers know, release the files. Safe to call again."""
        if self._subscription is not None:
            self._router.unsubscribe(self._subscription)
            self._subscription = None
        self._stopping.set()
        self._calls.clear()
        for task in [self._serving, self._saving, *self._tasks]:
            if task is not None:
                await asyncio.wait([task])
        for stream in self.streams.values():
            await stream.detach()
            for consumer in stream.consumers.values():
                try:
                    await self.save_consumer(stream, consumer)
                except OSError as error:
                    logger.error("consumer_not_saved consumer=%s reason=%s", consumer.name, error)
                consumer.close(SERVER_SHUTDOWN)
            await self._in_thread(partial(_close_stream, stream))
        self.streams.clear()
        self._release()

    def _release(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
        if self._writers is not None:
            self._writers.shutdown()
        self._clerk.shutdown(wait=False)

    def _recover(self) -> list[tuple[Stream, list[ConsumerRecord]]]:
        self._store = Store(self._files, str(self._store_dir))
        recovered = []
        for directory in self._store.streams():
            record = directory.load()
            if record is None:
                continue  # `load` said why; the directory stays for somebody to look at
            try:
                recovered.append((self._open(directory, record), directory.load_consumers()))
            except StorageError as error:
                logger.error("stream_unavailable stream=%s reason=%s", record.config.name, error)
        return recovered

    def _open(self, directory: StreamDirectory, record: StreamRecord) -> Stream:
        now = self._clock_ns()
        log = Log.open(self._files, directory.log_path, self._log_options, now, _first_offset(record))
        stream = Stream(directory, record, log, self._clock_ns)
        self._limit_room(stream)
        stream.recover()
        for damage in log.damage:
            logger.warning("stream_damaged stream=%s %s", stream.name, damage)
        return stream

    def problems(self) -> list[str]:
        """What health checks should know: read-only streams, and what was lost."""
        return [problem for stream in self.streams.values() for problem in stream.problems()]

    # ── what the handlers do to streams and consumers ──

    def stream(self, name: str) -> Stream:
        """Raises JetStreamError 10059 when there is none."""
        stream = self.streams.get(name)
        if stream is None:
            raise api_error("stream_not_found")
        return stream

    async def create_stream(self, config: StreamConfig) -> Stream:
        """Durable once this returns."""
        record = StreamRecord(config, self._clock_ns())

        def make() -> Stream:
            assert self._store is not None
            return self._open(self._store.create(record), record)

        stream = self._make_in_memory(record) if config.storage == "memory" else await self._in_thread(make)
        stream.attach(self._router, None if config.storage == "memory" else self._writers)
        self.streams[config.name] = stream
        return stream

    def _make_in_memory(self, record: StreamRecord) -> Stream:
        log = Log.open(MemoryFiles(os.urandom), "memory", IN_MEMORY, self._clock_ns(), _first_offset(record))
        stream = Stream(None, record, log, self._clock_ns)
        self._limit_room(stream)
        return stream

    def _limit_room(self, stream: Stream) -> None:
        """Have the stream ask before it stores what the account may have no room for."""
        storage = stream.config.storage
        limit = self.limits.max_memory if storage == "memory" else self.limits.max_storage
        if limit >= 0:

            def has_room(size: int) -> bool:
                return sum(one.weight for one in self.streams.values() if one.config.storage == storage) + size <= limit

            stream.limit_room(has_room)

    async def show(self, view: ViewStream) -> None:
        """A stream that somebody else writes, with the durable consumers that it had."""
        directory = view.directory
        assert directory is not None
        view.attach(self._router, None)
        self.streams[view.name] = view
        for record in await self._in_thread(directory.load_consumers):
            await self._restore_consumer(view, record)

    async def hide(self, view: ViewStream, *, forget: bool) -> None:
        """It is there no more. Its consumers end; durable ones come back with it, or are forgotten."""
        self.streams.pop(view.name, None)
        await view.detach()
        consumers = list(view.consumers.values())
        for consumer in consumers:
            self._changed.pop(consumer, None)
            consumer.close(CONSUMER_DELETED if forget else SERVER_SHUTDOWN)
        for consumer in consumers:
            directory = view.directory
            if forget and directory is not None:
                await self._in_thread(partial(directory.remove_consumer, consumer.name))
            else:
                await self.save_consumer(view, consumer)
        view.consumers.clear()

    async def update_stream(self, stream: Stream, config: StreamConfig) -> None:
        """Durable before it holds."""
        _check_own(stream)
        record = StreamRecord(config, stream.created_ns)
        directory = stream.directory
        if directory is not None:
            await self._in_thread(lambda: directory.save(record))
        stream.reconfigure(config)

    async def delete_stream(self, stream: Stream) -> None:
        """Gone from the disk once this returns."""
        _check_own(stream)
        del self.streams[stream.name]
        await stream.detach()
        for consumer in stream.consumers.values():
            self._changed.pop(consumer, None)
            consumer.close(CONSUMER_DELETED)
        stream.consumers.clear()

        directory = stream.directory
        if directory is None:
            return

        def remove() -> None:
            assert self._store is not None
            _close_stream(stream)
            self._store.remove(directory)

        await self._in_thread(remove)

    async def add_consumer(self, stream: Stream, name: str, state: Consumer) -> DeliveringConsumer:
        """A consumer at work; durable, if it is to be, once this returns."""
        consumer = self._make_consumer(stream, name, self._clock_ns(), state)
        await self.save_consumer(stream, consumer)
        return consumer

    async def save_consumer(self, stream: Stream, consumer: DeliveringConsumer) -> None:
        """Store configuration and state of a durable consumer; nothing for an ephemeral one."""
        directory = stream.directory
        if consumer.durable and directory is not None:
            record = consumer.record()
            await self._in_thread(lambda: directory.save_consumer(record))

    async def delete_consumer(self, stream: Stream, consumer: DeliveringConsumer) -> None:
        """Gone once this returns; whoever waits on it is told."""
        stream.consumers.pop(consumer.name, None)
        self._changed.pop(consumer, None)
        consumer.close(CONSUMER_DELETED)
        directory = stream.directory
        if consumer.durable and directory is not None:
            await self._in_thread(lambda: directory.remove_consumer(consumer.name))
        stream.drop_unneeded()

    def _make_consumer(self, stream: Stream, name: str, created_ns: int, state: Consumer) -> DeliveringConsumer:
        kind = PushConsumer if state.config.deliver_subject else PullConsumer
        consumer = kind(
            stream,
            self._router,
            name,
            created_ns,
            state,
            self._clock_ns,
            on_idle=lambda idle: self._spawn(self.delete_consumer(stream, idle)),
            on_change=lambda changed: self._note_change(stream, changed),
        )
        stream.consumers[name] = consumer
        return consumer

    async def _restore_consumer(self, stream: Stream, record: ConsumerRecord) -> None:
        state = Consumer(record.config, record.snapshot.position)
        consumer = self._make_consumer(stream, record.name, record.created_ns, state)
        consumer.restore(record.snapshot)
        pending = await count_pending(stream, state.position, consumer.filter)
        state.num_pending = len(state.selected) + pending
        consumer.start()

    # ── state of durable consumers ──

    def _note_change(self, stream: Stream, consumer: DeliveringConsumer) -> None:
        self._changed[consumer] = stream
        if self._saving is None:
            self._saving = asyncio.create_task(self._save_changed())

    async def _save_changed(self) -> None:
        try:
            while self._changed and not self._stopping.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), STATE_INTERVAL)
                changed, self._changed = self._changed, {}
                for consumer, stream in changed.items():
                    try:
                        if stream.consumers.get(consumer.name) is consumer:
                            await self.save_consumer(stream, consumer)
                    except OSError as error:
                        logger.error("consumer_not_saved consumer=%s reason=%s", consumer.name, error)
        finally:
            self._saving = None

    # ── requests ──

    def _on_api(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        if subject.startswith(NEXT_PREFIX):
            self._on_next(subject, reply, payload)
            return
        if subject.startswith(DIRECT_PREFIX):
            self._on_direct_get(subject, reply, payload)
            return
        try:
            tokens = subject[len(API_PREFIX) :].decode().split(".")
        except UnicodeDecodeError:
            return
        found = _find_route(self._routes, tokens)
        if found is None:
            return
        self.requests += 1
        call = Call(*found, reply, header_block, payload)
        if self._serving is not None:
            self._calls.append(call)
        else:
            self._serve(call)

    def _on_next(self, subject: bytes, reply: bytes, payload: bytes) -> None:
        names = subject[len(NEXT_PREFIX) :].decode("utf-8", "replace").split(".")
        stream = self.streams.get(names[0])
        consumer = stream.consumers.get(names[1]) if stream is not None and len(names) == 2 else None
        if consumer is not None:
            consumer.on_request(reply, payload)
        elif reply:
            # What a client hears of a subject without a subscriber: nats-server has one for each consumer, we have not.
            self._router.publish(reply, b"", b"NATS/1.0 503\r\nNats-Subject: %s\r\n\r\n" % subject, b"")

    def _on_direct_get(self, subject: bytes, reply: bytes, payload: bytes) -> None:
        name, _, key = subject[len(DIRECT_PREFIX) :].partition(b".")
        stream = self.streams.get(name.decode("utf-8", "replace"))
        if not reply:
            return
        if stream is None or not stream.config.allow_direct:
            self._router.publish(reply, b"", b"NATS/1.0 503\r\nNats-Subject: %s\r\n\r\n" % subject, b"")
            return
        task = DirectGet(stream, self._router).answer(reply, key, payload)
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _serve(self, call: Call) -> None:
        """Serve a request at once, or in a task when its handler has to wait."""
        try:
            _check_api_level(call.header_block)
            answer = call.route.handler(call.names, call.payload)
        except Exception as error:  # noqa: BLE001  (whatever a handler raises, the caller gets an answer)
            self._answer(call, self._refusal(call, error))
            return
        if isinstance(answer, Answer):
            self._answer(call, answer)
        else:
            self._serving = asyncio.create_task(self._finish(call, answer))

    async def _finish(self, call: Call, work: Coroutine[object, object, Answer]) -> None:
        try:
            answer = await work
        except Exception as error:  # noqa: BLE001  (whatever a handler raises, the caller gets an answer)
            answer = self._refusal(call, error)
        self._answer(call, answer)
        self._serving = None
        while self._calls and self._serving is None:
            self._serve(self._calls.popleft())

    def _answer(self, call: Call, answer: Answer) -> None:
        if call.reply:
            self._router.publish(call.reply, b"", b"", encode(answer))

    def _refusal(self, call: Call, error: Exception) -> Answer:
        self.refusals += 1
        if not isinstance(error, JetStreamError):
            logger.error("request_failed kind=%s", call.route.kind, exc_info=error)
            known = isinstance(error, StorageError | OSError)
            error = api_error("store_failed", reason=str(error) if known else "internal error")
        answer = call.route.refusal(type=_TYPE + call.route.kind, error=error_document(error))
        if isinstance(answer, StreamListAnswer):
            answer.streams = []
        return answer

    # ── inside ──

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._clerk, work)

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _routes(streams: StreamApi, consumers: ConsumerApi) -> dict[tuple[str, ...], Route]:
    """Every verb of the API that is answered."""
    return {
        ("INFO",): Route(streams.account_info, 0, 0, "account_info_response", Answer),
        ("STREAM", "CREATE"): Route(streams.create, 1, 1, "stream_create_response", Answer),
        ("STREAM", "UPDATE"): Route(streams.update, 1, 1, "stream_update_response", Answer),
        ("STREAM", "INFO"): Route(streams.info, 1, 1, "stream_info_response", PageAnswer),
        ("STREAM", "NAMES"): Route(streams.list_names, 0, 0, "stream_names_response", StreamNamesAnswer),
        ("STREAM", "LIST"): Route(streams.list_infos, 0, 0, "stream_list_response", StreamListAnswer),
        ("STREAM", "DELETE"): Route(streams.delete, 1, 1, "stream_delete_response", Answer),
        ("STREAM", "PURGE"): Route(streams.purge, 1, 1, "stream_purge_response", StreamPurgeAnswer),
        ("STREAM", "MSG", "GET"): Route(streams.get_message, 1, 1, "stream_msg_get_response", Answer),
        ("STREAM", "MSG", "DELETE"): Route(streams.delete_message, 1, 1, "stream_msg_delete_response", Answer),
        ("STREAM", "LEADER", "STEPDOWN"): Route(streams.no_cluster, 1, 1, "stream_leader_stepdown_response", Answer),
        ("STREAM", "PEER", "REMOVE"): Route(streams.no_cluster, 1, 1, "stream_remove_peer_response", Answer),
        ("STREAM", "SNAPSHOT"): Route(streams.no_snapshot, 1, 1, "stream_snapshot_response", Answer),
        ("STREAM", "RESTORE"): Route(streams.no_restore, 1, 1, "stream_restore_response", Answer),
        ("CONSUMER", "CREATE"): Route(consumers.create, 1, 1 << 16, "consumer_create_response", Answer),
        ("CONSUMER", "DURABLE", "CREATE"): Route(consumers.create_durable, 2, 2, "consumer_create_response", Answer),
        ("CONSUMER", "INFO"): Route(consumers.info, 2, 2, "consumer_info_response", Answer),
        ("CONSUMER", "DELETE"): Route(consumers.delete, 2, 2, "consumer_delete_response", Answer),
        ("CONSUMER", "NAMES"): Route(consumers.list_names, 1, 1, "consumer_names_response", ConsumerNamesAnswer),
        ("CONSUMER", "LIST"): Route(consumers.list_infos, 1, 1, "consumer_list_response", ConsumerListAnswer),
        ("CONSUMER", "PAUSE"): Route(consumers.pause, 2, 2, "consumer_pause_response", PauseAnswer),
        ("CONSUMER", "RESET"): Route(consumers.reset, 2, 2, "consumer_reset_response", Answer),
        ("CONSUMER", "UNPIN"): Route(consumers.unpin, 2, 2, "consumer_unpin_response", Answer),
        ("CONSUMER", "LEADER", "STEPDOWN"): Route(
            consumers.no_cluster, 2, 2, "consumer_leader_stepdown_response", Answer
        ),
    }


def api_verbs() -> list[tuple[str, str]]:
    """(subject behind `$JS.API.`, what the answer is) of every request that is served, for the documents."""
    served = []
    nobody = cast("JetStream", None)  # the handlers are named, not called
    for verb, route in _routes(StreamApi(nobody), ConsumerApi(nobody)).items():
        names = ["<stream>", "<consumer>"][: route.fewest_names]
        served.append((".".join([*verb, *names]), route.kind))
    served += [
        ("CONSUMER.MSG.NEXT.<stream>.<consumer>", "messages, statuses"),
        ("DIRECT.GET.<stream>[.<subject>]", "messages, statuses"),
    ]
    return sorted(served)


def _find_route(routes: dict[tuple[str, ...], Route], tokens: list[str]) -> tuple[Route, list[str]] | None:
    for length in (3, 2, 1):
        route = routes.get(tuple(tokens[:length]))
        if route is not None:
            names = tokens[length:]
            return (route, names) if route.fewest_names <= len(names) <= route.most_names else None
    return None


def _check_api_level(header_block: bytes) -> None:
    if header_block:
        level = lookup(header_block, b"Nats-Required-Api-Level")
        if level and (not level.isdigit() or len(level) > 9 or int(level) > API_LEVEL):
            raise api_error("api_level")


def _first_offset(record: StreamRecord) -> int:
    """Where a new log of this stream begins (first_seq)."""
    return offset_of(max(record.config.first_seq, 1))


def _check_own(stream: Stream) -> None:
    """What somebody else writes is not altered here."""
    if isinstance(stream, ViewStream):
        raise api_error("sealed")


def _close_stream(stream: Stream) -> None:
    try:
        stream.log.close(stream.document())
    except StorageError as error:
        logger.error("log_not_closed directory=%s reason=%s", stream.log.directory, error)
