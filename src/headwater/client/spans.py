"""Spans of OpenTelemetry around messages that a program sends and processes (extra `opentelemetry`).

    spans = Spans()
    with spans.sending("orders.eu") as headers:                # `traceparent` and what else the propagator writes
        await jetstream.publish("orders.eu", b"42", headers=headers)

    async for message in subscription:
        with spans.processing(message):                        # belongs to the trace of the sender
            ...

Names and attributes: OpenTelemetry's semantic conventions for messaging. Servers pass the headers on untouched. Only the
API is used: exporters, sampling and propagators are the program's. Without any, a span costs a few microseconds and is lost.
The client itself makes no spans: which call belongs to which unit of work is known to the program alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from headwater.errors import EnvironmentProblem, HeaderError
from headwater.model.headers import Headers, HeaderSource
from headwater.model.message import Message
from headwater.version import VERSION

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    Attributes = dict[str, str | int | bool]

SYSTEM = "nats"
INBOXES = ("_INBOX.", "_R_.")
TEMPORARY = "(temporary)"  # in place of an inbox: a name for each request would be as many as there are requests


class Spans:
    """Makes spans by `provider`; None: by that of the process. Raises EnvironmentProblem without the package."""

    def __init__(self, provider: "TracerProvider | None" = None) -> None:
        try:
            from opentelemetry import propagate, trace
        except ImportError as error:
            raise EnvironmentProblem(
                "spans need the package opentelemetry-api", hint="pip install 'headwater[opentelemetry]'"
            ) from error
        self._propagate = propagate
        self._kinds = trace.SpanKind
        self._failed = trace.StatusCode.ERROR
        self._tracer = trace.get_tracer("headwater", VERSION, provider)

    @contextmanager
    def sending(
        self, subject: str, headers: HeaderSource | Headers = (), *, request: bool = False
    ) -> Iterator[Headers]:
        """The span of a publish; `request`: of a request, which ends with the answer. Yields a copy of `headers` with the
        context of the span. An exception is recorded in the span, and goes on. Raises HeaderError for invalid headers."""
        sent = headers.copy() if isinstance(headers, Headers) else Headers(headers)
        attributes = _attributes("send", subject)
        if message_id := sent.get("Nats-Msg-Id"):
            attributes["messaging.message.id"] = message_id
        kind = self._kinds.CLIENT if request else self._kinds.PRODUCER
        with self._tracer.start_as_current_span(_name(attributes), kind=kind, attributes=attributes):
            written: dict[str, str] = {}
            self._propagate.inject(written)
            for name, value in written.items():
                sent[name] = value
            yield sent

    @contextmanager
    def processing(self, message: Message, *, group: str = "") -> Iterator[None]:
        """The span of processing a message, a child of the sender's where its headers say so. `group`: the durable
        consumer or queue group that it came by. An exception is recorded in the span, and goes on. A message whose header
        block is malformed begins a trace: that is for the program to find, which may not want its headers."""
        attributes = _attributes("process", message.subject)
        attributes["messaging.message.body.size"] = len(message.data)
        if group:
            attributes["messaging.consumer.group.name"] = group
        found: dict[str, str] = {}
        with suppress(HeaderError):
            found = {name.lower(): message.headers.first(name) for name in message.headers}
        if "nats-msg-id" in found:
            attributes["messaging.message.id"] = found["nats-msg-id"]
        with self._tracer.start_as_current_span(
            _name(attributes),
            context=self._propagate.extract(found),
            kind=self._kinds.CONSUMER,
            attributes=attributes,
        ):
            yield

    @contextmanager
    def receiving(self, source: str, messages: int) -> Iterator[None]:
        """The span of reading a batch of `messages` from `source`. It does not become the current one, so a generator may
        yield within."""
        attributes = _attributes("receive", source)
        attributes["messaging.batch.message_count"] = messages
        span = self._tracer.start_span(_name(attributes), kind=self._kinds.CLIENT, attributes=attributes)
        try:
            yield
        except Exception as error:
            span.record_exception(error)
            span.set_status(self._failed, f"{type(error).__name__}: {error}")
            raise
        finally:
            span.end()


def _attributes(operation: str, destination: str) -> "Attributes":
    temporary = destination.startswith(INBOXES)
    found: Attributes = {
        "messaging.system": SYSTEM,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": TEMPORARY if temporary else destination,
    }
    return {**found, "messaging.destination.temporary": True} if temporary else found


def _name(attributes: "Attributes") -> str:
    return f"{attributes['messaging.operation.name']} {attributes['messaging.destination.name']}"
