"""Spans of one trace on both sides of a server, by OpenTelemetry's own SDK."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from support.leafs import OURS, REAL, LeafServer, serve

import headwater
from headwater.client.jetstream_types import StreamConfig
from headwater.client.spans import Spans
from headwater.errors import EnvironmentProblem
from headwater.model.message import Message


class Recorded:
    """Spans that end in `ended`."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.spans = Spans(provider)

    @property
    def ended(self) -> list[Any]:
        return list(self._exporter.get_finished_spans())


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()


@pytest.fixture(params=[REAL, OURS])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LeafServer]:
    with serve(request.param, tmp_path, f'jetstream {{ store_dir: "{tmp_path / "js"}" }}') as running:
        yield running


def ids(span: Any) -> tuple[int, int]:
    return span.context.trace_id, span.context.span_id


@pytest.mark.interop
def test_what_is_processed_belongs_to_the_trace_of_what_was_sent(server: LeafServer, recorded: Recorded) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), await headwater.connect(server.url) as client:
            arriving = await client.subscribe("orders.*", max_messages=1)
            jetstream = client.jetstream()
            await jetstream.create_stream(StreamConfig(name="ORDERS", subjects=["orders.*"]))
            with recorded.spans.sending("orders.eu", {"Kept": ["a", "b"], "Nats-Msg-Id": "7"}) as headers:
                await jetstream.publish("orders.eu", b"42", headers=headers)
            async for message in arriving:
                with recorded.spans.processing(message, group="workers"):
                    assert message.headers.get_all("Kept") == ["a", "b"]
            stored = await jetstream.get_message("ORDERS", 1)
            assert stored.headers["traceparent"] == message.headers["traceparent"]

    asyncio.run(main())
    sent, processed = recorded.ended
    assert (sent.name, sent.kind) == ("send orders.eu", SpanKind.PRODUCER)
    assert (processed.name, processed.kind) == ("process orders.eu", SpanKind.CONSUMER)
    assert ids(sent) == (processed.parent.trace_id, processed.parent.span_id)
    assert sent.attributes["messaging.message.id"] == processed.attributes["messaging.message.id"] == "7"
    assert processed.attributes["messaging.consumer.group.name"] == "workers"


def test_a_failure_is_in_the_span_and_goes_on(recorded: Recorded) -> None:
    with pytest.raises(ValueError, match="bad order"), recorded.spans.processing(Message("orders", b"?")):
        raise ValueError("bad order")
    with pytest.raises(ValueError, match="gone"), recorded.spans.receiving("nats[ORDERS@h]", 3):
        raise ValueError("gone")
    assert [span.status.status_code for span in recorded.ended] == [StatusCode.ERROR] * 2
    assert [span.events[0].name for span in recorded.ended] == ["exception"] * 2


def test_inboxes_are_no_names_of_spans(recorded: Recorded) -> None:
    with recorded.spans.sending("_INBOX.abc.1", request=True):
        pass
    (span,) = recorded.ended
    assert (span.name, span.kind) == ("send (temporary)", SpanKind.CLIENT)
    assert span.attributes["messaging.destination.temporary"] is True


def test_a_message_of_another_program_is_read_whatever_the_case_of_its_headers(recorded: Recorded) -> None:
    block = b"NATS/1.0\r\nTraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n"
    with recorded.spans.processing(Message("orders", b"", header_block=block)):
        pass
    (span,) = recorded.ended
    assert ids(span)[0] == 0x0AF7651916CD43DD8448EB211C80319C


def test_a_message_with_a_malformed_header_block_begins_a_trace(recorded: Recorded) -> None:
    with recorded.spans.processing(Message("orders", b"1", header_block=b"NATS/1.0\r\nno colon\r\n\r\n")):
        pass
    (span,) = recorded.ended
    assert (span.parent, span.name) == (None, "process orders")


def test_headers_that_were_given_stay_as_they_are(recorded: Recorded) -> None:
    given = headwater.Headers({"A": "1"})
    with recorded.spans.sending("orders", given) as sent:
        assert "traceparent" in sent and sent["A"] == "1"
    assert "traceparent" not in given


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(EnvironmentProblem, match="opentelemetry-api") as refused:
        Spans()
    assert "headwater[opentelemetry]" in str(refused.value)
