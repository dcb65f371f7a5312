"""What clients do to a stream beside publishing and reading: CPU of the server for each operation.

Requests go one at a time, as clients send them; publishes and acknowledgements with WINDOW or BATCH in flight. Every
operation is checked by what the stream says afterwards: how many messages it holds, how many a consumer still waits for.
"""

import socket
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from contestants import Contestant
from load_generator import Failure, open_link
from pulled import Deliveries, Missing
from stream_load import PAYLOAD, ask, fill, store

BODY = b"x" * PAYLOAD
SUBJECTS = 10  # of the publishes, in turn
KEPT = 1000  # messages that a limited stream holds
BATCH = 500  # messages of a pull request whose messages are acknowledged
# nats-server 2.15.1 stops sending to pulls of BATCH when 2,000 messages are refused once each; with 1,000 it seldom does.
MOST_REFUSED = 1000
REPETITIONS = 5  # of a row in which a peer loses messages, at most
STORED = 30 + 6 + PAYLOAD  # bytes by which both servers count a message: 30 beside subject and payload


class Bench:
    """A server and a connection to it. `name`: of the stream that is used now. Each has a name of its own: under load,
    nats-server once showed messages of the stream that had just been deleted in one made anew under its name. `reports`:
    what is to be printed beside the figures; `may_lose`: see `_settle`."""

    def __init__(self, server: Contestant, control: socket.socket, reports: list[str], *, may_lose: bool) -> None:
        self.server = server
        self.control = control
        self.reports = reports
        self.may_lose = may_lose
        self.name = ""
        self._streams = 0

    def ask(self, verb: str, document: object = None, rest: str = "") -> dict[str, object]:
        """One request about the stream."""
        return ask(self.control, f"$JS.API.{verb}.{self.name}{rest}", document)

    def create(self, config: dict[str, object] | None = None) -> None:
        """Make a new stream. nats-server once failed to ("error creating store for stream"): it gets another try."""
        self._streams += 1
        self.name = f"OPERATIONS{self._streams}"
        document = {"name": self.name, "subjects": ["full.>"], "storage": "file", **(config or {})}
        try:
            self.ask("STREAM.CREATE", document)
        except Failure as failure:
            if not self.may_lose:
                raise
            self.report(f"another stream is made: {failure}")
            self.name += "AGAIN"
            self.ask("STREAM.CREATE", {**document, "name": self.name})

    def delete(self, expected: int) -> None:
        """Delete the stream, which holds this many messages."""
        state = self.ask("STREAM.INFO")["state"]
        self.ask("STREAM.DELETE")
        if not isinstance(state, dict) or state["messages"] != expected:
            raise Failure(f"{expected} messages expected, the stream says {state}")

    def filled(self, count: int, subjects: int, config: dict[str, object] | None = None) -> None:
        """Make a new stream with messages."""
        self.create(config)
        with open_link(self.server.port) as link:
            fill(link, count, subjects)

    def consume(self) -> None:
        """Make the consumer R."""
        config = {"name": "R", "ack_policy": "explicit", "max_ack_pending": -1, "inactive_threshold": 60_000_000_000}
        self.ask("CONSUMER.CREATE", {"stream_name": self.name, "config": config}, ".R")

    def deliveries(self, link: socket.socket) -> Deliveries:
        """What R delivers on a link."""
        link.sendall(b"SUB _INBOX.one 2\r\n")
        return Deliveries(link, self.name, self.server.cpu, self.report)

    def report(self, text: str) -> None:
        """Have a text printed beside the figures, and now."""
        self.reports.append(f"{self.server.name}: {text}")
        print(self.reports[-1], file=sys.stderr, flush=True)

    def settled(self) -> None:
        """Wait until R has taken all acknowledgements: nats-server takes them later."""
        deadline = time.monotonic() + 30
        info: dict[str, object] = {}
        while time.monotonic() < deadline:
            info = self.ask("CONSUMER.INFO", None, ".R")
            if not info["num_ack_pending"] and not info["num_pending"]:
                return
            time.sleep(0.01)
        raise Failure(f"all messages were acknowledged, the consumer says {info}")


class Publishes(NamedTuple):
    """A stream's configuration, the headers of every publish, and how many messages the stream holds after `count`."""

    config: dict[str, object]
    block: bytes
    left: int  # 0: all of them

    def ops(self, count: int) -> Iterator[bytes]:
        """The publishes."""
        body = b"" if b"Nats-Incr" in self.block else BODY
        for number in range(count):
            sizes = (number % SUBJECTS, len(self.block), len(self.block) + len(body), self.block, body)
            if self.block:
                yield b"HPUB full.%d _INBOX.fill %d %d\r\n%b%b\r\n" % sizes
            else:
                yield b"PUB full.%d _INBOX.fill %d\r\n%b\r\n" % (number % SUBJECTS, len(body), body)


def header(line: bytes) -> bytes:
    """A header block of one line."""
    return b"NATS/1.0\r\n%b\r\n\r\n" % line


PUBLISHES = {
    "publish, max_msgs": Publishes({"max_msgs": KEPT}, b"", KEPT),
    "publish, max_bytes": Publishes({"max_bytes": KEPT * STORED}, b"", KEPT),
    "publish, republished": Publishes({"republish": {"src": "full.>", "dest": "again.>"}}, b"", 0),
    "publish, TTL": Publishes({"allow_msg_ttl": True}, header(b"Nats-TTL: 1h"), 0),
    "publish, roll-up of its subject": Publishes({"allow_rollup_hdrs": True}, header(b"Nats-Rollup: sub"), SUBJECTS),
    "publish, counter": Publishes({"allow_msg_counter": True}, header(b"Nats-Incr: +1"), 0),
}


SETTLED: tuple[tuple[str, dict[str, object], bytes], ...] = (
    ("work queue, each acknowledged", {"retention": "workqueue"}, b"+ACK"),
    ("pull, each terminated", {}, b"+TERM"),
    ("pull, each refused once", {}, b"-NAK"),
)


def operations(server: Contestant, count: int, reports: list[str], *, may_lose: bool) -> dict[str, float]:
    """CPU microseconds of the server for each operation. `count`: publishes and messages read; a tenth as many requests.
    `reports`: gets what is to be printed beside the figures. `may_lose`: see `_settle`."""
    spent: dict[str, float] = {}
    with open_link(server.port) as control:
        control.sendall(b"SUB _INBOX.ask 1\r\n")
        bench = Bench(server, control, reports, may_lose=may_lose)
        for name, publishes in PUBLISHES.items():
            spent[name] = _publish(bench, publishes, count)
        few = max(1, count // 10)
        spent["delete a message"] = _delete_each(bench, few)
        spent["purge a subject of ten messages"] = _purge_each(bench, few)
        spent["purge by wildcard, each message"] = _purge_many(bench, count)
        spent["create a durable consumer"] = _create_consumers(bench, max(1, count // 50))
        spent["pull, one at a time"] = _pull_singly(bench, few)
        for name, config, first in SETTLED:
            spent[name] = _settle(bench, config, min(count, MOST_REFUSED) if first == b"-NAK" else count, first)
    return spent


def _publish(bench: Bench, publishes: Publishes, count: int) -> float:
    bench.create(publishes.config)
    with open_link(bench.server.port) as link:
        before = bench.server.cpu()
        store(link, publishes.ops(count))
        spent = bench.server.cpu() - before
    bench.delete(min(count, publishes.left or count))
    return 1e6 * spent / count


def _delete_each(bench: Bench, count: int) -> float:
    """Every second of the messages, in the order in which they were stored."""
    bench.filled(2 * count, SUBJECTS)
    before = bench.server.cpu()
    for number in range(count):
        bench.ask("STREAM.MSG.DELETE", {"seq": 2 * number + 1, "no_erase": True})
    spent = bench.server.cpu() - before
    bench.delete(count)
    return 1e6 * spent / count


def _purge_each(bench: Bench, count: int) -> float:
    bench.filled(10 * count, count)
    before = bench.server.cpu()
    for number in range(count):
        purged = bench.ask("STREAM.PURGE", {"filter": f"full.{number}"})["purged"]
        if purged != 10:
            raise Failure(f"ten messages of a subject, and {purged} were purged")
    spent = bench.server.cpu() - before
    bench.delete(0)
    return 1e6 * spent / count


def _purge_many(bench: Bench, count: int) -> float:
    """Half of a stream's messages, every second one, by one request."""
    bench.create()
    with open_link(bench.server.port) as link:
        line = b"PUB full.%b.%d _INBOX.fill %d\r\n%b\r\n"
        store(link, (line % (b"ab"[n % 2 :][:1], n // 2 % 100, PAYLOAD, BODY) for n in range(2 * count)))
    before = bench.server.cpu()
    purged = bench.ask("STREAM.PURGE", {"filter": "full.a.*"})["purged"]
    spent = bench.server.cpu() - before
    if purged != count:
        raise Failure(f"{count} messages match, and {purged} were purged")
    bench.delete(count)
    return 1e6 * spent / count


def _create_consumers(bench: Bench, count: int) -> float:
    bench.filled(10, SUBJECTS)
    before = bench.server.cpu()
    for number in range(count):
        config = {"durable_name": f"C{number}", "name": f"C{number}", "ack_policy": "explicit"}
        bench.ask("CONSUMER.CREATE", {"stream_name": bench.name, "config": config}, f".C{number}")
    spent = bench.server.cpu() - before
    bench.delete(10)
    return 1e6 * spent / count


def _pull_singly(bench: Bench, count: int) -> float:
    """Each pull asks for one message, once the one before has come, and acknowledges that."""
    bench.filled(count, SUBJECTS)
    bench.consume()
    acknowledgement = b""
    with open_link(bench.server.port) as link:
        deliveries = bench.deliveries(link)
        pull = deliveries.request(1)
        before = bench.server.cpu()
        for number in range(count):
            link.sendall(acknowledgement + pull)
            (subject, sequence, _), *_ = deliveries.receive(1, {(number + 1, 1)})
            if sequence != number + 1:
                raise Failure(f"sequence {sequence} after {number} messages")
            acknowledgement = b"PUB %b 4\r\n+ACK\r\n" % subject
        link.sendall(acknowledgement)
        bench.settled()
        spent = bench.server.cpu() - before
    bench.delete(count)
    return 1e6 * spent / count


def _settle(bench: Bench, config: dict[str, object], count: int, first: bytes) -> float:
    """As `_settle_each`; where a peer, which `may_lose` messages, never delivers some, its repetition is lost: that is
    reported, and another one is run in a new stream."""
    for _ in range(REPETITIONS):
        try:
            return _settle_each(bench, config, count, first)
        except Missing as missing:
            if not bench.may_lose:
                raise
            bench.report(f"a repetition with {first.decode()} is lost, another one is run: {missing}")
            bench.ask("STREAM.DELETE")
    raise Failure(f"{REPETITIONS} repetitions with {first.decode()} were lost, the last one: {bench.reports[-1]}")


def _settle_each(bench: Bench, config: dict[str, object], count: int, first: bytes) -> float:
    """Pull BATCH messages at a time and answer each with `first`, and acknowledge it where it comes again."""
    bench.filled(count, SUBJECTS, config)
    bench.consume()
    attempts = 2 if first == b"-NAK" else 1
    wanted = {(number, attempt) for number in range(1, count + 1) for attempt in range(1, attempts + 1)}
    with open_link(bench.server.port) as link:
        deliveries = bench.deliveries(link)
        before = bench.server.cpu()
        while missing := wanted.difference(deliveries.seen):
            came = deliveries.pull(min(BATCH, count, len(missing)), missing)
            answers = []
            for subject, _, attempt in came:
                answer = first if attempt == 1 else b"+ACK"
                answers.append(b"PUB %b %d\r\n%b\r\n" % (subject, len(answer), answer))
            link.sendall(b"".join(answers))
        bench.settled()
        spent = bench.server.cpu() - before - deliveries.idle
    if len(deliveries.seen) != len(wanted):
        raise Failure(f"{len(wanted)} deliveries were expected, each once: {sorted(deliveries.seen)[:10]}")
    bench.delete(0 if config else count)
    return 1e6 * spent / count


def show(
    done: dict[str, list[dict[str, float]]], equals: dict[str, str], reports: list[str], spell: Callable[..., str]
) -> None:
    """Print a line for each operation, and the reports. `done`: by server; `equals`: by peer, which of ours promises the
    same."""
    heads = [f"{ours:<24}{peer:<24}{'theirs / ours':<22}" for peer, ours in equals.items()]
    print(f"\n{'server CPU us for each':<42}{''.join(heads)}".rstrip())
    for operation in next(iter(done.values()))[0]:
        line = f"  {operation:<40}"
        for peer, ours in equals.items():
            mine, theirs = ([each[operation] for each in done[name]] for name in (ours, peer))
            ratios = [their / my for my, their in zip(mine, theirs, strict=True)]
            line += f"{spell(mine, 1):<24}{spell(theirs, 1):<24}{spell(ratios, 2) + 'x':<22}"
        print(line.rstrip())
    for text in reports:
        print(f"  {text}")
