"""A range read as stored batches while the broker is killed again and again: each event once, and in its order.

    PYTHONPATH=src:tests .venv/bin/python tests/support/killed_ranges.py --events 500000 --kills 30 --directory DIR

The broker gets SIGKILL some milliseconds after rows were handed on, when the next answers are on their way, and is started
again on its port and its files. The range is read from its beginning until there were so many kills. No Spark: what is tried
is the reader of an executor and the transport below it; `exactly_once` has the whole of it.
"""

import argparse
import json
import logging
import random
import sys
import threading
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from support.exactly_once import fill
from support.headwater_server import HeadwaterServer, start_headwater

from headwater.spark import connections
from headwater.spark.options import SourceOptions, parse_options
from headwater.spark.range_reader import read_range, stream_state
from headwater.spark.ranges import Range
from headwater.spark.stored_replay import OFFERED

LATEST_KILL = 0.02  # seconds behind the rows that were handed on


class Outcome(NamedTuple):
    """`interrupted`: reads that went on from where they were; `otherwise`: reads through a consumer, of which there may be
    none."""

    kills: int
    reads: int
    interrupted: int
    otherwise: int
    exact: bool


class Warnings(logging.Handler):
    """Counts what the reader says of itself."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.interrupted = 0
        self.otherwise = 0

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        self.interrupted += text.startswith("range_interrupted")
        self.otherwise += text.startswith("read_through_consumer")


class Killed:
    """A broker that is killed on call, in a thread of its own, and comes back."""

    def __init__(self, directory: Path, chance: random.Random, most: int) -> None:
        self._directory = directory
        self._most = most
        self._chance = chance
        self.server: HeadwaterServer = start_headwater(directory, "-js", "-sd", str(directory / "js"))
        self.kills = 0
        self._thread: threading.Thread | None = None

    def kill_soon(self) -> None:
        """Unless it is on its way back from the last time, or was killed often enough."""
        if self.kills < self._most and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Timer(self._chance.uniform(0, LATEST_KILL), self._kill)
            self._thread.start()

    def _kill(self) -> None:
        port = self.server.port
        self.server.kill()
        self.kills += 1
        self.server = start_headwater(self._directory, "-js", "-sd", str(self._directory / "js"), port=port)

    def stop(self) -> None:
        if self._thread is not None:
            self._thread.join()
        self.server.stop()


def run(directory: Path, events: int, kills: int, seed: int) -> Outcome:
    """Read until there were so many kills, and once more without."""
    warnings = Warnings()
    logger = logging.getLogger("headwater")
    logger.addHandler(warnings)
    broker = Killed(directory, random.Random(seed), kills)
    try:
        fill(broker.server.url, events)
        options = parse_options({"servers": broker.server.url, "stream": "SOURCE", "readTimeout": "120"})
        client = connections.take(options.server, 60, fresh=True)
        state = stream_state(client, "SOURCE")
        client.close()
        assert state.stored_batches == OFFERED
        whole = Range(state.place, state.created, state.first, state.end)
        reads, exact, last = 0, True, False
        while exact and not last:
            last = broker.kills >= kills
            exact = read_once(whole, options, None if last else broker) == list(range(events))
            reads += 1
        return Outcome(broker.kills, reads, warnings.interrupted, warnings.otherwise, exact)
    finally:
        logger.removeHandler(warnings)
        with suppress(Exception):
            connections.close_idle()
        broker.stop()


def read_once(whole: Range[str], options: SourceOptions, broker: Killed | None) -> list[int]:
    """The numbers in the events of a range, as they come."""
    numbers: list[int] = []
    for columns in read_range(whole, options):
        ends, data = columns.payloads.offsets, bytes(columns.payloads.data)
        numbers += [int(data[a:b]) for a, b in pairwise(ends[: columns.rows + 1])]
        if broker is not None:
            broker.kill_soon()
    return numbers


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    outcome = run(arguments.directory, arguments.events, arguments.kills, arguments.seed)
    sys.stdout.write(f"{json.dumps(outcome._asdict())}\n")
    return 0 if outcome.exact and not outcome.otherwise else 1


if __name__ == "__main__":
    sys.exit(main())
