"""JetStream: streams on disk, and the API under `$JS.API.>` by which clients create, read and inspect them.

    $JS.API.<verb>.<names>   ─▶ `on_api` ─▶ `routes` ─▶ a handler of stream_api.py or consumer_api.py ─▶ JSON to the reply
    $JS.API.STREAM.SNAPSHOT, RESTORE ─▶ backup_api.py, and chunks on subjects of their own
    $JS.API.CONSUMER.MSG.NEXT.<stream>.<consumer>  ─▶ the consumer (pull.py, push.py)
    $JS.API.DIRECT.GET.<stream>…                   ─▶ direct_get.py, for streams that allow it
    $JS.API.HEADWATER.RANGE.<stream>               ─▶ jetstream_ranges: stored batches
    $JS.ACK.<stream>.<consumer>.…                  ─▶ the consumer
    $JS.<domain>.API.>                             ─▶ the same as under `$JS.API` (domain.py)
    a stream's subjects                            ─▶ the stream (stream.py)

Requests are served one at a time in the order of their arrival, so a client may pipeline STREAM.CREATE and requests that
depend on it. Disk access runs in a worker thread while the queue waits; publishes, acks and MSG.NEXT do not. An unknown
verb gets no answer, as in nats-server; a MSG.NEXT for an unknown consumer gets status 503.

`StreamRegistry` holds the streams, `ConsumerRegistry` their consumers.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, get_args

from msgspec import UNSET

from headwater.durable_files.files import File, Files
from headwater.errors import ConfigError, JetStreamError, StorageError
from headwater.exchange.client_info import Document
from headwater.exchange.router import Router
from headwater.exchange.sublist import Subscription
from headwater.group_commit.folder_watch import FolderWatch
from headwater.group_commit.kept_files import KeepingFiles
from headwater.group_commit.write_stats import WriteStats
from headwater.group_commit.writers import Writers
from headwater.jetstream.backup_api import BackupApi
from headwater.jetstream.consumer_api import ConsumerApi
from headwater.jetstream.consumer_registry import ConsumerRegistry
from headwater.jetstream.direct_get import DirectGet
from headwater.jetstream.domain import API_PREFIX, Domain, subscribe_domain
from headwater.jetstream.requests import Aside, Call, Later, Route, Routes, find_call, refusal_of
from headwater.jetstream.stream import Stream
from headwater.jetstream.stream_api import StreamApi
from headwater.jetstream.stream_registry import StreamRegistry, StreamSettings
from headwater.jetstream.view import ViewStream
from headwater.jetstream_advisories.advisories import Advisories
from headwater.jetstream_advisories.requesters import requester
from headwater.jetstream_documents.account import AccountLimits, ApiStats
from headwater.jetstream_documents.answers import (
    Answer,
    ConsumerAnswer,
    ConsumerListAnswer,
    ConsumerNamesAnswer,
    PageAnswer,
    PauseAnswer,
    RestoreAnswer,
    StreamInfoAnswer,
    StreamListAnswer,
    StreamNamesAnswer,
    StreamPurgeAnswer,
    encode,
)
from headwater.jetstream_documents.api_errors import api_error, store_reason
from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_documents.pull_requests import NO_RESPONDERS
from headwater.jetstream_ranges.direct_answer import DIRECT_PREFIX, DirectAnswer, DirectRequests, reading_ahead
from headwater.jetstream_ranges.door import RANGE_VERB, Held, answer_range, offered
from headwater.jetstream_room.disk_room import Room, RoomWatch
from headwater.jetstream_room.server_caps import ServerCaps
from headwater.jetstream_sources.stamp import identity_of
from headwater.jetstream_timing.clock_watch import ClockWatch
from headwater.jetstream_timing.slow_readers import SlowReaders
from headwater.model.header_block import lookup
from headwater.model.stream_limits import ServerLimits
from headwater.streams.finding import Finding
from headwater.streams.options import LogOptions, SyncPolicy
from headwater.version import API_LEVEL

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.jetstream_room.whole import Others
    from headwater.message_tracing.message_trace import MessageTrace

logger = logging.getLogger(__name__)

WRITERS = 4  # threads; a stream uses one at a time
# Of a stream, where neither its configuration nor its account names a limit; nats-server's number.
DEFAULT_MAX_CONSUMERS = 1000
LARGE_ANSWER = 1 << 16  # bytes; one that is larger is written at once, so that it is known whether its client reads
NEXT_PREFIX = b"$JS.API.CONSUMER.MSG.NEXT."
MESSAGE_PREFIX = API_PREFIX + b"STREAM.MSG.GET."
RANGE_PREFIX = API_PREFIX + RANGE_VERB
STREAM_IDENTITY = b"Nats-Stream-Identity"
_UNAUDITED = ("stream_msg_get_response", "consumer_reset_response")  # as in nats-server, unless they are errors


class JetStream:
    """The service of one account. `clock_ns`: time of day in ns since 1970. `ticks_ns`: a monotonic clock for
    durations; None: the same clock. `sync`: when a publish is acknowledged (LogOptions.sync). `default_max_consumers`:
    the limit of a stream when neither its configuration nor its account sets one. `caps`: the limits on the streams of
    all accounts together; None: no limit. `others`: the workers that have the account's other streams; None: there are none.

    `requests` counts API requests, `refusals` those answered with an error. Raises ConfigError for an unknown sync policy;
    `start` raises EnvironmentProblem when the store directory cannot be used.
    """

    def __init__(
        self,
        router: Router,
        store_dir: "str | Path",
        *,
        clock_ns: Callable[[], int],
        ticks_ns: Callable[[], int] | None = None,
        sync: SyncPolicy = "always",
        server_name: str = "headwater",
        files: Files | None = None,
        limits: AccountLimits | None = None,
        domain: Domain = Domain(),  # noqa: B008  (a constant)
        default_max_consumers: int = DEFAULT_MAX_CONSUMERS,
        caps: ServerCaps | None = None,
        server_limits: ServerLimits = ServerLimits(),  # noqa: B008  (a constant)
        others: "Others | None" = None,
    ) -> None:
        if sync not in get_args(SyncPolicy):
            policies = get_args(SyncPolicy)
            raise ConfigError(
                f"sync is {sync!r}", value=sync, limit=policies, hint=f"it is one of {', '.join(policies)}"
            )
        self.requests = 0
        self.refusals = 0
        self._router = router
        self._answers = DirectAnswer(router)
        # One thread for everything except writing messages, so that changes to a document happen in the order of the
        # requests: a consumer that is saved and then deleted stays deleted.
        self._clerk = ThreadPoolExecutor(1, "headwater-jetstream-clerk")
        consumers = ConsumerRegistry(router, clock_ns, self._clerk, self._spawn, durable=sync == "always")
        options, disk = LogOptions(sync=sync), files if files is not None else KeepingFiles()
        clocks = clock_ns, ticks_ns or clock_ns
        settings = StreamSettings(
            disk,
            str(store_dir).rstrip("/") or "/",
            *clocks,
            options,
            limits or AccountLimits(),
            domain,
            caps,
            server_limits,
            others,
        )
        self.registry = StreamRegistry(settings, router, self._clerk, consumers)
        # Of the disk, the clock and the streams' folders, while it runs.
        self._watches: tuple[RoomWatch, ClockWatch, FolderWatch] | None = None
        self._subscriptions: list[Subscription] = []
        streams = StreamApi(self.registry, server_name, self.stats_of_api)
        self._server_name = server_name
        self._request: Call | None = None  # the request that is being served
        backups = BackupApi(self.registry, consumers, streams, router, self._spawn, self._requester)
        self._routes = routes(streams, ConsumerApi(self.registry, consumers, default_max_consumers), backups)
        self._calls: deque[Call] = deque()
        self._slow = SlowReaders(router, self.take, _is_get, self._spawn)
        self._serving: asyncio.Future[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # ── life ──

    async def start(self) -> None:
        """Recover every stream and its durable consumers, then start answering requests."""
        try:
            await self.registry.start(Writers(WRITERS, "headwater-jetstream-write"))
        except BaseException:
            self._release()
            raise
        self._begin()

    def start_empty(self, lock: File) -> None:
        """As `start`, at once, for a store that has no streams and is locked by `lock`."""
        self.registry.start_empty(Writers(WRITERS, "headwater-jetstream-write"), lock)
        self._begin()

    def _begin(self) -> None:
        settings = self.registry.settings
        self._watches = (
            RoomWatch(settings.directory),
            ClockWatch(settings.clock_ns, self._on_clock_step),
            FolderWatch(self.registry.logs, self.registry.on_files_lost, self.registry.on_files_back),
        )
        self._listen(settings.others is None)
        for stream in self.streams.values():
            stream.copying.follow(stream.config)

    def _listen(self, announce: bool) -> None:
        """Take requests. `announce`: those of the clients of peers too; a worker passes those of its own clients on."""
        router, everything, domain = self._router, API_PREFIX + b">", self.domain.name
        if announce:
            requests = DirectRequests(self._answers, self.streams, self._slow.waiting, self.on_api, self._on_direct_get)
            router.foresight = reading_ahead(self.streams)
            listener = router.subscribe_internal(everything, requests.take, traced=self.on_traced_api)
        else:
            listener = router.subscribe_between(everything, self.on_api, announce=False, traced=self.on_traced_api)
        self._subscriptions.append(listener)
        if domain:
            self._subscriptions.append(subscribe_domain(router, domain, self.on_api, announce=announce))

    async def stop(self, error: JetStreamError | None = None) -> None:
        """Write and acknowledge staged messages, store the consumers' states, release the files. Safe to call again.
        `error`: what requests that wait are answered with; by default that the server stops."""
        for subscription in self._subscriptions:
            self._router.unsubscribe(subscription)
        self._subscriptions.clear()
        self._router.foresight = None
        for watch in self._watches or ():
            watch.stop()
        if self.caps is not None:
            self.caps.stop()
        error = error or api_error("stopping")
        calls, self._calls = [*self._calls], deque()
        for call in calls:
            self._answer(call, self._refusal(call, error))
        for task in [*self._slow.stop(partial(self.turn_away, error=error)), self._serving, *self._tasks]:
            if task is not None:
                await asyncio.wait([task])
        await self.registry.stop()
        self._release()

    def _release(self) -> None:
        self.registry.release()
        self._clerk.shutdown(wait=False)

    def _on_clock_step(self) -> None:
        for stream in self.streams.values():
            stream.on_clock_step()

    # ── views ──

    @property
    def caps(self) -> ServerCaps | None:
        """The limits on the streams of all accounts together."""
        return self.registry.settings.caps

    @property
    def streams(self) -> dict[str, Stream]:
        """The streams by name."""
        return self.registry.streams

    @property
    def limits(self) -> AccountLimits:
        """The limits on what the account stores."""
        return self.registry.settings.limits

    @limits.setter
    def limits(self, limits: AccountLimits) -> None:
        self.registry.limit(limits)

    @property
    def domain(self) -> Domain:
        """Where the streams live."""
        return self.registry.settings.domain

    @property
    def put_aside(self) -> dict[str, Finding]:
        """Streams that could not be recovered, by the names of their directories."""
        return self.registry.put_aside

    @property
    def stats(self) -> WriteStats:
        """Durations of writes and acks, of all streams on disk."""
        return self.registry.reports.stats

    @property
    def writers(self) -> Writers | None:
        """The threads that write; None before the start."""
        return self.registry.writers

    @property
    def room(self) -> Room | None:
        """The space on the disk that holds the streams; None when that is unknown."""
        return self._watches[0].room if self._watches is not None else None

    @property
    def load(self) -> tuple[int, int]:
        """The numbers of API requests queued and being served."""
        return len(self._calls), int(self._serving is not None)

    def findings(self) -> list[Finding]:
        """Damage and losses in this store, streams that could not be recovered first."""
        return self.registry.findings()

    def is_put_aside(self, name: str) -> bool:
        """Whether the store has files of a stream of this name that could not be recovered."""
        return self.registry.is_put_aside(name)

    def report_to(
        self, on_finding: Callable[[Finding], None], on_refused: Callable[[str, JetStreamError], None]
    ) -> None:
        """Call `on_finding` for each finding after the start, `on_refused(stream, error)` as `PublishAnswers` says."""
        self.registry.reports.on_finding = on_finding
        self.registry.reports.on_refused = on_refused

    async def show(self, view: ViewStream) -> None:
        """See `StreamRegistry.show`."""
        await self.registry.show(view)

    async def hide(self, view: ViewStream, *, forget: bool) -> None:
        """See `StreamRegistry.hide`."""
        await self.registry.hide(view, forget=forget)

    # ── requests ──

    def serve_instead(self, handlers: Routes) -> None:
        """Serve these verbs by other handlers."""
        self._routes |= handlers

    def on_api(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        """A request on the subjects of the API: serve it, or pass it on to the worker that has its stream."""
        others = self.registry.settings.others
        if others is None or not others.passed_on(subject, reply, header_block, payload):
            self.take(subject, reply, header_block, payload)

    def take(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        """Serve a request about the streams here, or keep it until its client has read more."""
        slow = self._slow
        may_wait = slow.waiting or self._router.flusher.congested
        if subject.startswith(DIRECT_PREFIX):
            if may_wait and slow.holds(subject, reply, header_block, payload):
                return
            if not self._answers.send_one(self.streams, subject, reply, payload):
                self._on_direct_get(subject, reply, header_block, payload)
            return
        if subject.startswith(NEXT_PREFIX):  # consumers and ranges look themselves how far behind their client is
            self._on_next(subject, reply, payload)
            return
        if subject.startswith(RANGE_PREFIX):
            self._on_range(subject, reply, payload)
            return
        if may_wait and slow.holds(subject, reply, header_block, payload):
            return
        call = find_call(self._routes, subject, reply, header_block, payload)
        if call is None:
            return
        self.requests += 1
        call = call._replace(publisher=self._router.publisher)
        if self._serving is not None:
            self._calls.append(call)
        else:
            self._serve(call)

    def turn_away(
        self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes, error: JetStreamError
    ) -> None:
        """Answer a request with an error: its stream is at a worker that is away, or the service stops. One that is answered
        with messages gets status 503, as without a subscriber."""
        call = find_call(self._routes, subject, reply, header_block, payload)
        if call is not None:
            self._answer(call, self._refusal(call, error))
        elif reply and subject.startswith((NEXT_PREFIX, DIRECT_PREFIX, RANGE_PREFIX)):
            self._router.publish(reply, b"", NO_RESPONDERS % subject, b"")

    def on_traced_api(
        self, trace: "MessageTrace", subject: bytes, reply: bytes, header_block: bytes, payload: bytes
    ) -> bool:
        """As `on_api`, where the trace is not for the message's way only; whether it is served."""
        if subject.startswith((NEXT_PREFIX, DIRECT_PREFIX)):
            served = not trace.only
        else:
            served = trace.asks_system(subject, subject)
        if served:
            self.on_api(subject, reply, header_block, payload)
        return served

    def _on_next(self, subject: bytes, reply: bytes, payload: bytes) -> None:
        names = subject[len(NEXT_PREFIX) :].decode("utf-8", "replace").split(".")
        stream = self.streams.get(names[0])
        consumer = stream.consumers.get(names[1]) if stream is not None and len(names) == 2 else None
        if consumer is not None:
            consumer.on_request(reply, payload)
        elif reply:
            # As on a subject without a subscriber: nats-server has a subscription for each consumer.
            self._router.publish(reply, b"", NO_RESPONDERS % subject, b"")

    def _on_direct_get(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        """A get that takes more than a look."""
        name, _, key = subject[len(DIRECT_PREFIX) :].partition(b".")
        stream = self._direct_stream(name.decode("utf-8", "replace"))
        if not reply:
            return
        if stream is None:
            others = self.registry.settings.others
            if others is None or not others.seek(subject, reply, payload):
                self._router.publish(reply, b"", NO_RESPONDERS % subject, b"")
            return
        task = DirectGet(stream, self._router, self._answers).answer(reply, key, payload)
        if task is not None:
            self._slow.follow(task, (subject, reply, header_block, payload))

    def _on_range(self, subject: bytes, reply: bytes, payload: bytes) -> None:
        stream = self.streams.get(subject[len(RANGE_PREFIX) :].decode("utf-8", "replace"))
        if not reply:
            return
        self.requests += 1
        held = None
        if stream is not None:
            origin = stream.origin if isinstance(stream, ViewStream) else stream.log
            held = Held(origin, stream.log, stream.created_ns)
        self.refusals += not answer_range(self._router, held, reply, payload)

    def _direct_stream(self, name: str) -> Stream | None:
        """The stream that answers direct gets of this name: itself, or a mirror with `mirror_direct`."""
        stream = self.streams.get(name)
        if stream is not None and stream.config.allow_direct:
            return stream
        for other in self.streams.values():
            mirror = other.config.mirror
            if mirror is not None and other.config.mirror_direct and mirror.name == name:
                return other
        return None

    def _serve(self, call: Call) -> None:
        """Serve a request at once, or in a task when its handler has to wait."""
        self._request = call
        try:
            _check_api_level(call.header_block)
            self._check_identity(call)
            answer = call.route.handler(call.names, call.payload)
        except Exception as error:  # noqa: BLE001  (whatever a handler raises, the caller gets an answer)
            self._answer(call, self._refusal(call, error))
            return
        if isinstance(answer, Answer):
            self._answer(call, answer)
        elif isinstance(answer, Aside):
            self._spawn(self._answer_aside(call, answer.work))
        elif isinstance(answer, Later):
            self._serving = asyncio.get_running_loop().create_future()
            answer.wait(partial(self._end, call, answer))
        else:
            self._serving = asyncio.create_task(self._finish(call, answer))

    async def _answer_aside(self, call: Call, work: Coroutine[object, object, Answer]) -> None:
        try:
            answer = await work
        except Exception as error:  # noqa: BLE001  (whatever a handler raises, the caller gets an answer)
            answer = self._refusal(call, error)
        self._answer(call, answer)

    async def _finish(self, call: Call, work: Coroutine[object, object, Answer]) -> None:
        await self._answer_aside(call, work)
        self._serve_next()

    def _end(self, call: Call, later: Later, failure: StorageError | None) -> None:
        """Answer a request that has waited for the disk."""
        serving = self._serving
        assert serving is not None
        try:
            answer = later.answer(failure)
        except Exception as error:  # noqa: BLE001  (whatever a handler raises, the caller gets an answer)
            answer = self._refusal(call, error)
        try:
            self._answer(call, answer)
        finally:
            serving.set_result(None)
            self._serve_next()

    def _serve_next(self) -> None:
        self._serving = None
        while self._calls and self._serving is None:
            call = self._calls.popleft()
            self._router.publisher = call.publisher
            held = self._router.flusher.congested and self._slow.holds(
                call.subject, call.reply, call.header_block, call.payload
            )
            self._router.publisher = None
            if held:
                self.requests -= 1  # it is counted when it is taken again
            else:
                self._serve(call)

    def _answer(self, call: Call, answer: Answer) -> None:
        if isinstance(answer, StreamInfoAnswer) and call.header_block:
            answer.stored_batches = offered(call.header_block)
        body = encode(answer)
        if call.reply:
            self._router.publish(call.reply, b"", self._identity(call, answer), body)
            if len(body) > LARGE_ANSWER:
                self._router.flusher.flush()
        settings = self.registry.settings
        advisories = Advisories(self._router, settings.clock_ns, settings.domain)
        if advisories.is_wanted("API") and (answer.error is not UNSET or call.route.kind not in _UNAUDITED):
            called = call.subject.decode("utf-8", "replace"), call.payload
            advisories.request(self._server_name, self._requester(call), called, body)

    def _requester(self, call: Call | None = None) -> Document:
        """The client that sent a request; by default that of the one being served."""
        call = call or self._request
        assert call is not None
        return requester(call.publisher, call.header_block, self.domain.account, self._server_name)

    def _check_identity(self, call: Call) -> None:
        """Refuse a copier whose origin was replaced by another stream of the same name. Raises JetStreamError 10225."""
        stream = self.streams.get(call.names[0]) if call.header_block and call.names else None
        known = lookup(call.header_block, STREAM_IDENTITY) if stream is not None else None
        if stream is not None and known and call.route.kind == "consumer_create_response":
            identity = identity_of(stream.created_ns)
            if known != identity.encode():
                raise api_error("identity_mismatch", identity=identity)

    def _identity(self, call: Call, answer: Answer) -> bytes:
        """The header of an answer to a copier: this stream's identity."""
        if not isinstance(answer, ConsumerAnswer) or not isinstance(answer.config, ConsumerConfig):
            return b""
        is_copier = answer.config.direct or answer.config.sourcing
        if call.route.kind == "consumer_reset_response":
            is_copier = lookup(call.header_block, STREAM_IDENTITY) is not None if call.header_block else False
        stream = self.streams.get(answer.stream_name)
        if not is_copier or stream is None:
            return b""
        return b"NATS/1.0\r\n%b: %b\r\n\r\n" % (STREAM_IDENTITY, identity_of(stream.created_ns).encode())

    def _refusal(self, call: Call, error: Exception) -> Answer:
        self.refusals += 1
        if not isinstance(error, JetStreamError):
            logger.error("request_failed kind=%s", call.route.kind, exc_info=error)
            error = api_error("store_failed", reason=store_reason(error))
        return refusal_of(call, error)

    def stats_of_api(self) -> ApiStats:
        """Requests before this one."""
        return ApiStats(total=self.requests - 1, errors=self.refusals)

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def routes(streams: StreamApi, consumers: ConsumerApi, backups: BackupApi) -> Routes:
    """The routes of all supported API verbs."""
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
        ("STREAM", "PEER", "EVACUATE"): Route(streams.no_cluster, 1, 1, "stream_evacuate_peer_response", Answer),
        ("STREAM", "SNAPSHOT"): Route(backups.snapshot, 1, 1, "stream_snapshot_response", Answer),
        ("STREAM", "RESTORE"): Route(backups.restore, 1, 1, "stream_restore_response", RestoreAnswer),
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
        ("CONSUMER", "PEER", "REMOVE"): Route(consumers.no_cluster, 2, 2, "consumer_remove_peer_response", Answer),
        ("CONSUMER", "PEER", "EVACUATE"): Route(consumers.no_cluster, 2, 2, "consumer_evacuate_peer_response", Answer),
    }


def _is_get(subject: bytes) -> bool:
    """Whether a request only reads messages of a stream: it has no use when its client has left."""
    return subject.startswith((DIRECT_PREFIX, MESSAGE_PREFIX))


def _check_api_level(header_block: bytes) -> None:
    if header_block:
        level = lookup(header_block, b"Nats-Required-Api-Level")
        if level and (not level.isdigit() or len(level) > 9 or int(level) > API_LEVEL):
            raise api_error("api_level")
