"""CloudEvents per CPU second, against the JSON format and the Kafka binding of `cloudevents` 2.2: `./hw bench cloudevents`.

The SDK has no NATS binding; Kafka's is the most similar one (attributes in headers, no percent-encoding). Both get the same
event in the same run: seven core attributes, one extension, 300 bytes of JSON. One thread, CPU time of this process,
contestants alternate.

Each row states what it counts, because the two libraries do their work at different times. The SDK encodes data when it
writes and decodes it when it reads. We encode data when an event is made and decode it when it is accessed, so every
operation has two rows: as called, and including that work. We write the header block of binary mode and read it from bytes;
the SDK's headers are a dict both ways. Passing the block on to a client has its own row.
"""

import argparse
import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from cloudevents.core.bindings import kafka
from cloudevents.core.formats.json import JSONFormat as SdkFormat
from cloudevents.core.v1.event import CloudEvent as SdkEvent
from contestants import describe_machine

from headwater.cloudevents import CloudEvent, from_json, from_nats, to_binary, to_json
from headwater.cloudevents.plain_headers import COMPILED
from headwater.model.message import Message

RUN_SECONDS = 0.3  # CPU seconds per contestant and repetition
SMOKE_SECONDS = 0.005

DATA: dict[str, Any] = {
    "order": 1234567,
    "customer": {"id": "c-98765", "name": "Ada Lovelace", "country": "GB", "vip": True},
    "lines": [
        {"sku": "A-100", "quantity": 2, "price": 19.95},
        {"sku": "B-2000", "quantity": 1, "price": 249.0},
        {"sku": "C-30", "quantity": 12, "price": 0.49},
    ],
    "note": "leave at the door, ring twice, please wait!",
    "total": 294.78,
}
ATTRIBUTES = {
    "specversion": "1.0",
    "id": "b46cf653-d48a-4b90-8dfa-355c01061361",
    "source": "https://shop.example.com/orders",
    "type": "com.example.shop.order.created",
    "subject": "orders/1234567",
    "time": "2026-11-21T08:15:30.123456Z",
    "datacontenttype": "application/json",
    "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
}


class Case(NamedTuple):
    """One operation in both libraries. `least`: the ratio that the project promises, if any."""

    name: str
    sdk: Callable[[], object]
    ours: Callable[[], object]
    least: float | None = None


def cases() -> list[Case]:
    """Every operation, after checking the results of both against each other."""
    encoded = msgspec.json.encode(DATA)
    assert len(encoded) == 300, len(encoded)
    moment = datetime.fromisoformat(ATTRIBUTES["time"])
    sdk_attributes = ATTRIBUTES | {"time": moment}
    sdk_format, sdk_event = SdkFormat(), SdkEvent(dict(sdk_attributes), DATA)
    sdk_bytes = SdkEvent(dict(sdk_attributes), encoded)
    event = CloudEvent.from_attributes(ATTRIBUTES, DATA)
    structured = to_json(event)
    kafka_message = kafka.to_binary(sdk_bytes, sdk_format)
    headers, payload = to_binary(event)
    block = bytes(headers)  # type: ignore[arg-type]

    def write_binary() -> tuple[bytes, bytes]:
        headers, payload = to_binary(event)
        return bytes(headers), payload  # type: ignore[arg-type]

    def make_and_write_binary() -> tuple[bytes, bytes]:
        headers, payload = to_binary(CloudEvent.from_attributes(ATTRIBUTES, DATA))
        return bytes(headers), payload  # type: ignore[arg-type]

    def read_binary() -> CloudEvent:
        return from_nats(Message("orders", payload, "", block))

    assert json.loads(sdk_format.write(sdk_event)) == json.loads(structured) == ATTRIBUTES | {"data": DATA}
    assert from_json(structured) == read_binary() == event
    assert write_binary()[1] == kafka_message.value == encoded
    assert kafka.from_binary(kafka_message, sdk_format, SdkEvent).get_data() == read_binary().data == DATA
    return [
        Case("structured encode", lambda: sdk_format.write(sdk_event), lambda: to_json(event), 8),
        Case(
            "  event made from attributes and a dict, too",
            lambda: sdk_format.write(SdkEvent(dict(sdk_attributes), DATA)),
            lambda: to_json(CloudEvent.from_attributes(ATTRIBUTES, DATA)),
        ),
        Case("structured decode", lambda: sdk_format.read(SdkEvent, structured), lambda: from_json(structured), 8),
        Case(
            "  data decoded, too",
            lambda: sdk_format.read(SdkEvent, structured).get_data(),
            lambda: from_json(structured).data,
        ),
        Case(
            "binary encode, data encoded before",
            lambda: kafka.to_binary(sdk_bytes, sdk_format),
            lambda: to_binary(event),
            4,
        ),
        Case("  the block taken out as bytes, too", lambda: kafka.to_binary(sdk_bytes, sdk_format), write_binary),
        Case("  a dict, which the SDK encodes now", lambda: kafka.to_binary(sdk_event, sdk_format), write_binary),
        Case(
            "  event made from attributes and a dict, too",
            lambda: kafka.to_binary(SdkEvent(dict(sdk_attributes), DATA), sdk_format),
            make_and_write_binary,
        ),
        Case("binary decode", lambda: kafka.from_binary(kafka_message, sdk_format, SdkEvent), read_binary, 5),
        Case(
            "  data decoded, too",
            lambda: kafka.from_binary(kafka_message, sdk_format, SdkEvent).get_data(),
            lambda: read_binary().data,
        ),
    ]


def measure(operation: Callable[[], object], seconds: float) -> float:
    """CPU microseconds per call, over about `seconds` of calls."""
    count = 1
    while True:
        start = time.process_time_ns()
        for _ in range(count):
            operation()
        spent = (time.process_time_ns() - start) / 1e9
        if spent >= seconds:
            return 1e6 * spent / count
        count = max(2 * count, int(1.1 * count * seconds / spent) if spent > seconds / 100 else 0)


def spell(values: list[float], digits: int) -> str:
    low, middle, high = (f"{value:.{digits}f}" for value in (min(values), statistics.median(values), max(values)))
    return f"{middle} ({low}-{high})"


def main() -> int:
    parser = argparse.ArgumentParser(prog="hw bench cloudevents", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="milliseconds each: only proves that it runs")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    parser.add_argument("--allow-interpreted", action="store_true")
    arguments = parser.parse_args()
    if not (COMPILED or arguments.allow_interpreted or arguments.smoke):
        raise SystemExit("headwater.cloudevents runs interpreted here: its figures would mean nothing (./hw setup)")
    mode = "compiled" if COMPILED else "INTERPRETED"
    repetitions, seconds = (1, SMOKE_SECONDS) if arguments.smoke else (max(1, arguments.repetitions), RUN_SECONDS)
    heading = (
        f"{describe_machine()}; load average {os.getloadavg()[0]:.1f}; headwater {mode}; {repetitions} repetitions"
    )
    table = cases()
    measured: list[list[tuple[float, float]]] = [[] for _ in table]
    gc.collect()
    gc.freeze()
    for _ in range(repetitions):
        for case, runs in zip(table, measured, strict=True):
            runs.append((measure(case.sdk, seconds), measure(case.ours, seconds)))
    if arguments.json:
        named = {case.name.strip(): runs for case, runs in zip(table, measured, strict=True)}
        print(json.dumps({"machine": heading, "cpu_us_sdk_ours": named}, indent=1))
        return 0
    print(heading)
    print(f"\n{'operation':<48}{'cloudevents us':<24}{'headwater us':<24}{'ratio':<24}promised")
    for case, runs in zip(table, measured, strict=True):
        sdk, ours = [run[0] for run in runs], [run[1] for run in runs]
        ratio = spell([theirs / our for theirs, our in runs], 1)
        promise = f">= {case.least:g}" if case.least else ""
        print(f"{case.name:<48}{spell(sdk, 2):<24}{spell(ours, 2):<24}{ratio:<24}{promise}")
    print("\nSmoke run: its figures mean nothing." if arguments.smoke else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
