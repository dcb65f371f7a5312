"""What many clients need, from measured costs: the tables of docs/scale.md (docs/generate.py writes them).

A cost is read out of RESULTS.md, where a benchmark has put it (`Cost.pattern`); what no block there has yet stands in
`Cost.until`, from a short run, and the table says which of the two it is. The model is arithmetic and no more:

    cores = messages a second x CPU of one message / USE

with what goes from one worker to another added. It refuses to guess what was not measured: other machines, payloads far from
128 bytes, TLS, and whether work spreads evenly.
"""

import math
import re
from pathlib import Path
from typing import NamedTuple

RESULTS = Path(__file__).with_name("RESULTS.md")
USE = 0.7  # of a core; above it messages wait for each other, and nothing is left for a burst
CORES = 16
CLIENTS = 100_000
CARD = 10e9 / 8  # bytes a second of a network card
MESSAGE = 128 + 60  # bytes of a message on the wire: payload, control line, its part of the TCP header

_NUMBER = r"([\d.,]+)"
_BROKER = r"^{} +[\d.]+ \([\d.-]+\) +" + _NUMBER + r" \("  # a row of `./hw bench broker`: nats-server's, then ours
# A row of `./hw bench growth` at a size.
_GROWN = r"^{}: server CPU us/message\n(?:  headwater .*\n)*?  headwater +{} +"
_CPU = _GROWN + _NUMBER
_TIMES = r"[\d.]+ +[\d.]+x(?: \([\d.-]+\))? +"
_BYTES = _GROWN + _TIMES + _NUMBER
_MADE = _GROWN + _TIMES + r"[\d,]+ bytes +" + _NUMBER + " us each"


class Cost(NamedTuple):
    """A measured cost. `pattern` has one group, a number; `until` stands for it while nothing in RESULTS.md matches."""

    what: str
    unit: str
    pattern: str
    until: float


COSTS = {
    "batched": Cost("a message to one subscriber, many in a write", "us", _BROKER.format("1to1_128"), 0.106),
    "talker": Cost(
        "a message that comes alone on its connection",
        "us",
        _CPU.format("connections that publish in turn", "10,000"),
        3.9,
    ),
    "listener": Cost(
        "a delivery that goes alone on its connection",
        "us",
        _CPU.format("connections that listen to one subject", "10,000"),
        7.5,
    ),
    "stored": Cost(
        "a message into a stream, synced, 512 unacknowledged",
        "us",
        r"^512 in flight .*\n  headwater .* " + _NUMBER + r" \([\d.-]+\)$",
        2.5,
    ),
    "pulled": Cost(
        "a message out of it, pulled and acknowledged", "us", r"^  pull, each acknowledged +" + _NUMBER + r" \(", 3.02
    ),
    "crossing": Cost(
        "a message that goes to another worker, in both together",
        "us",
        r"^crossing costs both workers .* and " + _NUMBER + r" us in turn$",
        0.15,
    ),
    "crossing, batched": Cost(
        "the same, of many with one control line",
        "us",
        r"^crossing costs both workers " + _NUMBER + r" us more",
        0.05,
    ),
    "login": Cost(
        "a client that connects and logs in", "us", _MADE.format("connections that publish in turn", "10,000"), 414
    ),
    "connection": Cost(
        "an idle connection with a subscription", "bytes", _BYTES.format("connections, silent", "10,000"), 6240
    ),
    "subscription": Cost(
        "one more subscription", "bytes", _BYTES.format("subscriptions of one client", "100,000"), 1521
    ),
    "subject": Cost("a subject in a stream", "bytes", _BYTES.format("subjects in a stream", "1,000,000"), 166),
    "stream": Cost("a stream", "bytes", _BYTES.format("streams", "5,000"), 22_339),
    "consumer": Cost("a consumer", "bytes", _BYTES.format("consumers", "[0-9]0,000"), 12_440),
}


def measured(results: str, cost: Cost) -> float | None:
    """The figure of `cost` in the text of RESULTS.md; None while it is not there."""
    found = re.search(cost.pattern, results, re.MULTILINE)
    return float(found[1].replace(",", "")) if found else None


def costs(results: str) -> dict[str, float]:
    """Every cost, from RESULTS.md or a short run."""
    found = {name: measured(results, cost) for name, cost in COSTS.items()}
    return {name: COSTS[name].until if value is None else value for name, value in found.items()}


class Load(NamedTuple):
    """What clients do: `rate` messages a second of all of them together, and the costs of one message. `stored`: those of
    them that fall where the stream is. `crossing`: those of going to another worker, for each time that a message may have
    to when clients are spread."""

    what: str
    rate: float
    core: tuple[str, ...]
    stored: tuple[str, ...]
    crossing: tuple[str, ...]

    def cpu(self, each: dict[str, float], workers: int) -> float:
        """Microseconds a message, in all workers together."""
        moved = sum(each[name] for name in self.crossing) * (workers - 1) / workers
        return sum(each[name] for name in (*self.core, *self.stored)) + moved

    def stored_cpu(self, each: dict[str, float]) -> float:
        """Microseconds a message where its stream is."""
        return sum(each[name] for name in self.stored)

    def workers(self, each: dict[str, float]) -> int | None:
        """The fewest whose cores are enough when work spreads evenly; None where CORES are not."""
        for workers in range(1, CORES + 1):
            if self.rate * self.cpu(each, workers) / 1e6 <= USE * workers:
                return workers
        return None

    def most(self, each: dict[str, float], workers: int) -> float:
        """Messages a second that so many workers can take."""
        return USE * workers * 1e6 / self.cpu(each, workers)


LOADS = [
    Load("each reports once in ten seconds, one service listens", CLIENTS / 10, ("talker",), (), ("crossing",)),
    Load("each reports every second, one service listens", CLIENTS, ("talker",), (), ("crossing",)),
    Load(
        "each reports every second into streams and waits for the ack; all is pulled once",
        CLIENTS,
        ("talker", "listener"),
        ("stored", "pulled"),
        ("crossing", "crossing"),
    ),
    Load("all hear ten messages a second on one subject (each delivery counts)", 10 * CLIENTS, ("listener",), (), ()),
    Load(
        "each asks a service once in ten seconds and is answered (both count as one)",
        CLIENTS / 10,
        ("talker", "listener"),
        (),
        ("crossing", "crossing"),
    ),
    Load(
        "a hundred send 50,000 a second each, in batches, to a hundred others",
        5e6,
        ("batched",),
        (),
        ("crossing, batched",),
    ),
    Load("the same into streams, pulled once", 5e6, (), ("stored", "pulled"), ("crossing, batched",)),
]


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _short(value: float) -> str:
    """With three digits."""
    if value >= 1000:
        places = 3 - len(str(int(value)))
        return f"{round(value, places):,.0f}"
    return f"{value:.3g}"


def cost_table() -> str:
    """What one of each takes."""
    results = RESULTS.read_text(encoding="utf-8")
    rows = []
    for cost in COSTS.values():
        value = measured(results, cost)
        source = "a short run, until it is recorded" if value is None else "RESULTS.md"
        rows.append([cost.what, f"{_short(cost.until if value is None else value)} {cost.unit}", source])
    return _table(["what", "takes", "from"], rows)


def load_table() -> str:
    """What CLIENTS that do each of LOADS need."""
    each = costs(RESULTS.read_text(encoding="utf-8"))
    rows = []
    for load in LOADS:
        workers = load.workers(each)
        stored = load.rate * load.stored_cpu(each) / 1e6 / USE
        rows.append(
            [
                load.what,
                _short(load.rate),
                f"{load.rate * load.cpu(each, 1) / 1e6:.2f}",
                "1" if workers == 1 else f"{workers} workers" if workers else f"more than {CORES}",
                str(math.ceil(stored)) if stored else "-",
                f"{load.rate * MESSAGE / CARD:.0%}",
            ]
        )
    head = ["the clients", "messages a second", "cores of CPU time", "processes", "streams at least", "of 10 Gbit/s"]
    return _table(head, rows)


def most_table() -> str:
    """Where a process and where a machine ends."""
    each = costs(RESULTS.read_text(encoding="utf-8"))
    rows = []
    for load in LOADS:
        alone, together = load.most(each, 1), load.most(each, CORES)
        stream = USE * 1e6 / load.stored_cpu(each) if load.stored else 0.0
        limit = "network" if together > CARD / MESSAGE else "cores"
        rows.append(
            [
                load.what,
                _short(alone),
                _short(min(together, CARD / MESSAGE)),
                limit,
                f"{min(together, CARD / MESSAGE) / alone:.1f}x",
                _short(stream) if stream else "-",
            ]
        )
    head = ["the clients", "one process", f"{CORES} workers", "what ends it", "gain", "one stream"]
    return _table(head, rows)


def rest_table() -> str:
    """What CLIENTS take beside their messages."""
    each = costs(RESULTS.read_text(encoding="utf-8"))
    mebibytes = {
        "connections with a subscription each": CLIENTS * each["connection"],
        "nine more subscriptions each": 9 * CLIENTS * each["subscription"],
        "a subject of a stream each": CLIENTS * each["subject"],
        "a consumer each": CLIENTS * each["consumer"],
    }
    rows = [[what, f"{size / 2**20:,.0f} MiB"] for what, size in mebibytes.items()]
    seconds = CLIENTS * each["login"] / 1e6
    rows.append(["all come back at once, to one process", f"{seconds:.0f} s of CPU"])
    rows.append([f"all come back at once, to {CORES} workers", f"{seconds / CORES:.1f} s of CPU in each"])
    return _table([f"{CLIENTS:,} clients", "take"], rows)
