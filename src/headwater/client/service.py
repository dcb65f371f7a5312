"""Services (ADR-32): request handlers that can be found, described and counted.

    async with await add_service(client, "sums", "1.0.0") as service:
        await service.endpoint("add", handle_add)               # requests to `add`, shared with other instances

Every instance answers `$SRV.PING`, `$SRV.INFO` and `$SRV.STATS`, also with its name, and with name and id, appended. A
handler that raises ServiceError answers with that error; any other exception answers 500 and is reported to the
client's error callback: one bad request does not affect the others.
"""

import asyncio
import inspect
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from headwater.client.nats_py_modules import MICRO_ADVICE, MICRO_ATTRIBUTES, names_of
from headwater.client.nats_py_names import install
from headwater.client.units import Seconds, Timed, checked, unset, write_wire
from headwater.errors import ConfigError, HeadwaterError
from headwater.model.headers import Headers, HeaderSource
from headwater.model.message import Message

if TYPE_CHECKING:
    from headwater.client.client import Client
    from headwater.client_connection.subscription import Subscription

PREFIX = "$SRV"
QUEUE = "q"
ERROR_HEADER = "Nats-Service-Error"
CODE_HEADER = "Nats-Service-Error-Code"
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_VERSION = re.compile(r"\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")


class ServiceError(HeadwaterError):
    """Raised by a handler: the request is answered with this error, and `body`."""

    fault = "peer"

    def __init__(self, code: int, description: str, body: bytes = b"") -> None:
        super().__init__(f"{description} [{code}]")
        self.code = code
        self.description = description
        self.body = body


class Request:
    """A request to an endpoint. Answer it with `respond`, or return the answer from the handler."""

    __slots__ = ("answered", "message")

    def __init__(self, message: Message) -> None:
        self.message = message
        self.answered = False

    @property
    def subject(self) -> str:
        return self.message.subject

    @property
    def data(self) -> bytes:
        return self.message.data

    @property
    def headers(self) -> Headers:
        """Raises HeaderError for a malformed block."""
        return self.message.headers

    def respond(self, data: bytes = b"", *, headers: HeaderSource | Headers | None = None) -> Awaitable[None]:
        """Answer; the result may be awaited."""
        self.answered = True
        return self.message.respond(data, headers=headers)


Handler = Callable[[Request], Awaitable[bytes | None] | bytes | None]


class EndpointInfo(msgspec.Struct, kw_only=True):
    """The description of an endpoint."""

    name: str
    subject: str
    queue_group: str
    metadata: dict[str, str] = {}


class EndpointStats(Timed, kw_only=True, omit_defaults=False):
    """The statistics of an endpoint; times in seconds."""

    name: str
    subject: str
    queue_group: str
    num_requests: int = 0
    num_errors: int = 0
    last_error: str = ""
    processing_time: Seconds = unset(0.0)
    average_processing_time: Seconds = unset(0.0)


class ServicePing(msgspec.Struct, kw_only=True):
    """The answer to PING."""

    name: str
    id: str
    version: str
    metadata: dict[str, str] = {}
    type: str = "io.nats.micro.v1.ping_response"


class ServiceInfo(ServicePing, kw_only=True):
    """The answer to INFO."""

    description: str = ""
    endpoints: list[EndpointInfo] = []
    type: str = "io.nats.micro.v1.info_response"


class ServiceStats(ServicePing, kw_only=True):
    """The answer to STATS; `started` is an RFC 3339 text."""

    started: str = ""
    endpoints: list[EndpointStats] = []
    type: str = "io.nats.micro.v1.stats_response"


class Service:
    """One instance of a service, made by `add_service`. A context manager: leaving it drains its endpoints."""

    def __init__(
        self, client: "Client", name: str, version: str, description: str, metadata: dict[str, str], queue: str
    ) -> None:
        if not _NAME.fullmatch(name):
            raise ConfigError(f"{name!r} is no name of a service", value=name, hint="letters, digits, _ and -")
        if not _VERSION.fullmatch(version):
            raise ConfigError(f"{version!r} is no version", value=version, hint="as in semver.org: 1.0.0")
        self.name = name
        self.version = version
        self.id = secrets.token_hex(11)
        self.description = description
        self.metadata = metadata
        self._client = client
        self._queue = queue
        self._started = _now()
        self._endpoints: list[tuple[EndpointInfo, EndpointStats]] = []
        self._subscriptions: list[Subscription] = []

    async def endpoint(
        self,
        name: str,
        handler: Handler,
        *,
        subject: str = "",
        queue: str | None = None,
        metadata: dict[str, str] | None = None,
    ) -> None:
        """Answer requests to `subject` (or to `name`) by `handler`, one after the other, as a member of `queue`.

        Its return value is the answer, unless it has responded itself.
        """
        if not _NAME.fullmatch(name):
            raise ConfigError(f"{name!r} is no name of an endpoint", value=name, hint="letters, digits, _ and -")
        group = self._queue if queue is None else queue
        info = EndpointInfo(name=name, subject=subject or name, queue_group=group, metadata=metadata or {})
        stats = EndpointStats(name=name, subject=info.subject, queue_group=group)

        async def serve(message: Message) -> None:
            await self._serve(Request(message), handler, stats)

        self._subscriptions.append(await self._client.subscribe(info.subject, queue=group, callback=serve))
        self._endpoints.append((info, stats))

    def group(self, prefix: str) -> "Group":
        """Endpoints whose subjects begin with `prefix`."""
        return Group(self, prefix)

    # ── PING, INFO and STATS ──

    def ping(self) -> ServicePing:
        return ServicePing(name=self.name, id=self.id, version=self.version, metadata=self.metadata)

    def info(self) -> ServiceInfo:
        return ServiceInfo(
            name=self.name,
            id=self.id,
            version=self.version,
            metadata=self.metadata,
            description=self.description,
            endpoints=[info for info, _ in self._endpoints],
        )

    def stats(self) -> ServiceStats:
        return ServiceStats(
            name=self.name,
            id=self.id,
            version=self.version,
            metadata=self.metadata,
            started=self._started,
            endpoints=[stats for _, stats in self._endpoints],
        )

    def reset(self) -> None:
        """Reset the statistics."""
        self._started = _now()
        for _, stats in self._endpoints:
            stats.num_requests = stats.num_errors = 0
            stats.processing_time = stats.average_processing_time = 0.0
            stats.last_error = ""

    # ── beginning and end ──

    async def start(self) -> None:
        """Start answering discovery requests."""
        verbs: dict[str, Callable[[], ServicePing]] = {"PING": self.ping, "INFO": self.info, "STATS": self.stats}
        for verb, describe in verbs.items():
            for tail in ("", f".{self.name}", f".{self.name}.{self.id}"):

                def answer(message: Message, describe: Callable[[], ServicePing] = describe) -> None:
                    if message.reply:
                        message.respond(msgspec.json.encode(checked(describe()), enc_hook=write_wire))

                self._subscriptions.append(self._client.deliver_directly(f"{PREFIX}.{verb}{tail}", answer))
        try:
            await self._client.flush()
        except BaseException:  # for example cancelled: no caller has the service to stop it
            self._abandon()
            raise

    async def stop(self) -> None:
        """Stop taking requests, answer those received, and stop answering discovery."""
        try:
            await asyncio.gather(*(each.drain() for each in self._subscriptions))
        finally:
            self._abandon()

    def _abandon(self) -> None:
        subscriptions, self._subscriptions = self._subscriptions, []
        for each in subscriptions:
            if not each.ended:
                each.unsubscribe()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._client.is_closed:
            await self.stop()

    # ── inside ──

    async def _serve(self, request: Request, handler: Handler, stats: EndpointStats) -> None:
        began = time.perf_counter()
        failure: Exception | None = None
        try:
            answer: Any = handler(request)
            if inspect.isawaitable(answer):
                answer = await answer
            if not request.answered and request.message.reply:
                request.respond(answer or b"")
        except Exception as error:  # noqa: BLE001 - whatever a handler raises, the next request is served
            failure = error
            self._refuse(request, error)
        stats.num_requests += 1
        stats.processing_time += time.perf_counter() - began
        stats.average_processing_time = stats.processing_time / stats.num_requests
        if failure is not None:
            stats.num_errors += 1
            stats.last_error = f"{getattr(failure, 'code', 500)}:{getattr(failure, 'description', failure)}"
            if not isinstance(failure, ServiceError):
                raise failure  # for the error callback

    def _refuse(self, request: Request, error: Exception) -> None:
        if request.answered or not request.message.reply:
            return
        if isinstance(error, ServiceError):
            code, description, body = error.code, error.description, error.body
        else:
            code, description, body = 500, type(error).__name__, b""
        clean = "".join(letter if letter.isprintable() else " " for letter in description)
        request.respond(body, headers={ERROR_HEADER: clean, CODE_HEADER: str(code)})


class Group:
    """A prefix for the subjects of endpoints."""

    def __init__(self, service: Service, prefix: str) -> None:
        self._service = service
        self._prefix = prefix

    def group(self, prefix: str) -> "Group":
        """A group in this one."""
        return Group(self._service, f"{self._prefix}.{prefix}")

    async def endpoint(self, name: str, handler: Handler, *, subject: str = "", queue: str | None = None) -> None:
        """As `Service.endpoint`."""
        await self._service.endpoint(name, handler, subject=f"{self._prefix}.{subject or name}", queue=queue)


async def add_service(
    client: "Client",
    name: str,
    version: str,
    *,
    description: str = "",
    metadata: dict[str, str] | None = None,
    queue: str = QUEUE,
) -> Service:
    """Start an instance of a service; add endpoints to it. Raises ConfigError for an invalid name or version."""
    service = Service(client, name, version, description, metadata or {}, queue)
    await service.start()
    return service


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


for _kind, _advice in MICRO_ATTRIBUTES.items():
    install(globals()[_kind], {}, _advice)

if not TYPE_CHECKING:  # names of `nats.micro`
    __getattr__ = names_of(__name__, {}, MICRO_ADVICE)
