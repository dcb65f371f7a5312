"""A header block read and written, against nats-py in the same process: `./hw bench headers`.

One thread, no network: the block of one message with 7 headers, as in an event of this product. CPU time of the process per
block, alternating A B A B. "Looked at" reads one header by name, for which nats-py and we parse the whole block;
"untouched" is a message that is only passed through, whose headers nats-py parses nevertheless. nats-py's parser is its
`_process_headers`, a coroutine that never waits, driven without an event loop; it keeps only the last of repeated values
and validates nothing, while ours keeps all of them and validates every byte.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable

from contestants import describe_machine, refuse_interpreted
from nats.aio.client import Client as NatsPyClient

from headwater.model.header_block import decode_header_block, encode_header_block
from headwater.model.headers import Headers
from headwater.model.message import Message

PAIRS = [
    ("Nats-Msg-Id", "github.com/nats-io/nats-server#b2e1a9f0-6d5a-11ee-8c99-0242ac120002"),
    ("ce-specversion", "1.0"),
    ("ce-type", "com.github.push"),
    ("ce-source", "https://github.com/nats-io/nats-server"),
    ("ce-id", "b2e1a9f0-6d5a-11ee-8c99-0242ac120002"),
    ("ce-time", "2026-11-21T06:41:57.123456Z"),
    ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
]
BLOCK = encode_header_block(PAIRS)
RUN_BLOCKS = 20_000
SMOKE_BLOCKS = 200

Run = Callable[[int], None]


def run_nats_py(blocks: int) -> None:
    process = NatsPyClient()._process_headers
    for _ in range(blocks):
        try:
            process(BLOCK).send(None)
        except StopIteration as done:
            if done.value["ce-id"] != PAIRS[4][1]:
                raise SystemExit("bench headers: nats-py read something else") from None


def run_looked_at(blocks: int) -> None:
    for _ in range(blocks):
        if Message("events", b"", "", BLOCK).headers["ce-id"] != PAIRS[4][1]:
            raise SystemExit("bench headers: we read something else")


def run_decode(blocks: int) -> None:
    for _ in range(blocks):
        decode_header_block(BLOCK)[1].multi_items()


def run_passed_on(blocks: int) -> None:
    for _ in range(blocks):
        encode_header_block(Message("events", b"", "", BLOCK).headers)


def run_untouched(blocks: int) -> None:
    for _ in range(blocks):
        Message("events", b"", "", BLOCK)


def run_encode(blocks: int) -> None:
    headers = Headers(PAIRS)
    for _ in range(blocks):
        encode_header_block(headers)


CASES: list[tuple[str, Run]] = [
    ("nats-py: read", run_nats_py),
    ("looked at: one header by name", run_looked_at),
    ("decode_header_block, all pairs", run_decode),
    ("read, checked and passed on", run_passed_on),
    ("untouched", run_untouched),
    ("encode_header_block", run_encode),
]


def measure(run: Run, blocks: int) -> float:
    """CPU microseconds per block."""
    started = time.process_time_ns()
    run(blocks)
    return (time.process_time_ns() - started) / blocks / 1000


def main() -> int:
    parser = argparse.ArgumentParser(prog="hw bench headers", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="200 blocks each: only proves that it runs")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    parser.add_argument("--allow-interpreted", action="store_true")
    arguments = parser.parse_args()
    mode = refuse_interpreted(allow=arguments.allow_interpreted or arguments.smoke)
    repetitions, blocks = (1, SMOKE_BLOCKS) if arguments.smoke else (max(1, arguments.repetitions), RUN_BLOCKS)
    heading = (
        f"{describe_machine()}; load average {os.getloadavg()[0]:.1f}; headwater {mode}; {repetitions} repetitions"
    )
    times: dict[str, list[float]] = {title: [] for title, _ in CASES}
    for _ in range(repetitions):
        for title, run in CASES:
            times[title].append(measure(run, blocks))
    if arguments.json:
        print(json.dumps({"machine": heading, "microseconds": times}, indent=1))
        return 0
    print(f"{heading}\nblock of {len(PAIRS)} headers, {len(BLOCK)} bytes; CPU microseconds\n")
    base = times[CASES[0][0]]
    for title, values in times.items():
        ratios = [theirs / ours for theirs, ours in zip(base, values, strict=True)]
        spread = f"{statistics.median(values):8.2f} ({min(values):.2f}-{max(values):.2f})"
        print(f"  {title:<34}{spread:<28}{statistics.median(ratios):7.1f}x ({min(ratios):.1f}-{max(ratios):.1f})")
    print("\nSmoke run: its figures mean nothing." if arguments.smoke else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
