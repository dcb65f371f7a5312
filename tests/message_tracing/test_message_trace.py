"""What the real servers do not show of traces: a stream that does not answer."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from headwater.message_tracing import message_trace
from headwater.message_tracing.message_trace import MessageTrace, Source
from headwater.model.message_trace import CLIENT, read_trace_request
from headwater.wire.message_view import composed

BLOCK = b"NATS/1.0\r\nNats-Trace-Dest: traces\r\n\r\n"


class Account:
    """One without clients, that keeps what is published in it."""

    options = None

    def __init__(self) -> None:
        self.name, self.system_account = "A", "$SYS"
        self.describe_server: Callable[[], dict[str, object]] = dict
        self.router: Any = self
        self.reports: list[Any] = []
        self.reported = asyncio.Event()

    def publish(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> int:
        self.reports.append(json.loads(payload))
        self.reported.set()
        return 1


def test_a_report_waits_for_a_stream_no_longer_than_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    async def look() -> None:
        account, request = Account(), read_trace_request(BLOCK)
        assert request is not None
        source = Source(CLIENT, 7, "", lambda subject: True)
        trace = MessageTrace(account, source, request, b"traces", composed(b"a", b"", BLOCK, b""))
        answered, silent = trace.stream("ANSWERED"), trace.stream("SILENT")
        answered.stored(b"a")
        trace.finish()
        assert account.reports == []
        await asyncio.wait_for(account.reported.wait(), 30)
        silent.stored(b"a")  # after all
        answered.refused("twice")
        (report,) = account.reports
        steps = [(event["stream"], event.get("error")) for event in report["events"] if event["type"] == "js"]
        assert steps == [("ANSWERED", None), ("SILENT", "no answer within 0.01 s: it may yet be stored")]

    monkeypatch.setattr(message_trace, "ANSWER_SECONDS", 0.01)
    asyncio.run(look())
