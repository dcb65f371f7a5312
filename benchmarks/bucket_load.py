"""The server's cost of key-value and object buckets: the operations of the client libraries, as raw requests on one socket.

A put is a publish to `$KV.<bucket>.<key>` that waits for its ack, a get is a direct get by subject, a watch is a push
consumer that begins with the last message of every key. An object is written in chunks of 128 KiB and read by a push
consumer. Every answer is counted, and an error ends the benchmark.
"""

import socket
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate, repeat
from itertools import count as numbers
from typing import NamedTuple

from contestants import Contestant, read_cpu_time
from load_generator import Failure, open_link
from stream_load import PAYLOAD, ask, store

KEYS = 1000
CHUNK = 128 << 10  # bytes, the chunk size of the client libraries
WINDOW = 500  # unanswered gets; CHUNK_WINDOW is for unacknowledged chunks
CHUNK_WINDOW = 16
BUCKET: dict[str, object] = {
    "storage": "file", "allow_rollup_hdrs": True, "deny_delete": True, "allow_direct": True, "discard": "new",
}  # fmt: skip
GOALS = {"key": ("nats-server, always", 1.0), "object": ("nats-server, default", 1.5)}  # rates, by a way's first word
_ENDING = b"x\r\n"  # of a value or a chunk, which consists of x; no protocol line ends this way
_NUMBERS = numbers(1)


class Way(NamedTuple):
    """What one way into or out of a bucket cost; of an object, each chunk counts."""

    cpu: float  # microseconds of the server for each operation
    rate: float  # operations a second


class _Spent:
    """CPU and elapsed seconds of a server within `measured`."""

    cpu = seconds = 0.0

    def way(self, operations: int) -> Way:
        return Way(1e6 * self.cpu / operations, operations / self.seconds)


@contextmanager
def measured(server: Contestant, spent: _Spent) -> Iterator[None]:
    before, started = read_cpu_time(server.pid), time.perf_counter()
    yield
    spent.cpu += read_cpu_time(server.pid).since(before).scheduled
    spent.seconds += time.perf_counter() - started


def bucket_ways(server: Contestant, operations: int) -> dict[str, Way]:
    """Each way of key-value and object buckets."""
    ways: dict[str, Way] = {}
    chunks = min(400, max(10, operations // 100))  # 50 MB: nats-server closes a client that has 64 MB unread
    rounds = max(1, operations // 10_000)
    with open_link(server.port) as control:
        control.sendall(b"SUB _INBOX.ask 1\r\n")
        keys = {"name": "KV_bench", "subjects": ["$KV.bench.>"], "max_msgs_per_subject": 1, **BUCKET}
        ask(control, "$JS.API.STREAM.CREATE.KV_bench", keys)
        with open_link(server.port) as link, measured(server, spent := _Spent()):
            store(link, (_put(b"$KV.bench.k%d" % (n % KEYS), PAYLOAD) for n in range(operations)))
        ways["key-value put"] = spent.way(operations)
        with open_link(server.port) as link, measured(server, spent := _Spent()):
            _get_all(link, operations)
        ways["key-value get"] = spent.way(operations)
        spent, watches, each = _Spent(), max(1, operations // KEYS), min(KEYS, operations)
        for _ in range(watches):
            _push(server, control, "KV_bench", "last_per_subject", each, spent)
        ways["key-value watch, each key"] = spent.way(watches * each)
        ask(control, "$JS.API.STREAM.DELETE.KV_bench", None)
        put, got = _Spent(), _Spent()
        for _ in range(rounds):
            _objects(server, control, chunks, put, got)
        ways["object put, each chunk of 128 KiB"] = put.way(rounds * chunks)
        ways["object get, each chunk of 128 KiB"] = got.way(rounds * chunks)
    return ways


def _objects(server: Contestant, control: socket.socket, chunks: int, put: _Spent, got: _Spent) -> None:
    """A bucket of one object: written, read, deleted."""
    objects = {"name": "OBJ_bench", "subjects": ["$O.bench.C.>", "$O.bench.M.>"], **BUCKET}
    ask(control, "$JS.API.STREAM.CREATE.OBJ_bench", objects)
    with open_link(server.port) as link, measured(server, put):
        store(link, repeat(_put(b"$O.bench.C.one", CHUNK), chunks), CHUNK_WINDOW)
    _push(server, control, "OBJ_bench", "all", chunks, got)
    ask(control, "$JS.API.STREAM.DELETE.OBJ_bench", None)


def _put(subject: bytes, size: int) -> bytes:
    return b"PUB %b _INBOX.fill %d\r\n%b\r\n" % (subject, size, b"x" * size)


def _get_all(link: socket.socket, count: int) -> None:
    """Get keys in turn. The requests for all of them, twice in a row, are made beforehand, and what is sent is a part of
    that: to make each anew cost nearly as much as an answer does."""
    link.sendall(b"SUB _INBOX.got 3\r\n")
    requests = [b"PUB $JS.API.DIRECT.GET.KV_bench.$KV.bench.k%d _INBOX.got 0\r\n\r\n" % key for key in range(KEYS)] * 2
    starts, every = [0, *accumulate(map(len, requests))], memoryview(b"".join(requests))
    sent = unanswered = 0
    for answered in _endings(link):
        unanswered -= answered
        more = min(WINDOW - unanswered, count - sent)
        if not more and not unanswered:
            return
        link.sendall(every[starts[sent % KEYS] : starts[sent % KEYS + more]])
        unanswered += more
        sent += more


def _push(server: Contestant, control: socket.socket, stream: str, policy: str, count: int, spent: _Spent) -> None:
    """Add to `spent` until a push consumer has delivered `count` messages."""
    with open_link(server.port) as link:
        link.sendall(b"SUB _INBOX.pushed 4\r\nPING\r\n")
        while b"PONG\r\n" not in link.recv(4096):
            pass
        # Never one name twice: nats-server with `always` is still deleting the files of the last, and answers with an error.
        name = f"P{next(_NUMBERS)}"
        wanted = {
            "name": name, "deliver_subject": "_INBOX.pushed", "deliver_policy": policy, "ack_policy": "none",
            "filter_subject": "$KV.bench.>" if stream == "KV_bench" else "$O.bench.C.>",
            "inactive_threshold": 60_000_000_000,
        }  # fmt: skip
        missing = count
        with measured(server, spent):
            ask(control, f"$JS.API.CONSUMER.CREATE.{stream}.{name}", {"stream_name": stream, "config": wanted})
            for delivered in _endings(link) if stream == "KV_bench" else _chunks(link):
                missing -= delivered
                if missing <= 0:
                    break
        ask(control, f"$JS.API.CONSUMER.DELETE.{stream}.{name}", None)
    if missing:
        raise Failure(f"{count} messages of {stream} were expected, {-missing} more came")


def _endings(link: socket.socket) -> Iterable[int]:
    """Yield 0 first, then after each read the number of messages that have ended."""
    yield 0
    rest = b""
    while True:
        chunk = link.recv(1 << 20)
        if not chunk:
            raise Failure("closed before everything came")
        received = rest + chunk
        if b"PING\r\n" in received:
            link.sendall(b"PONG\r\n")
            received = received.replace(b"PING\r\n", b"")
        if b"NATS/1.0 4" in received or b"NATS/1.0 5" in received or b"-ERR" in received:
            raise Failure(f"refused: {received[:300]!r}")
        rest = received[-2:]  # an ending may be split
        yield received.count(_ENDING)


def _chunks(link: socket.socket) -> Iterable[int]:
    """As `_endings`, for large payloads, which are passed over by the size that their control line tells: a search of them
    was most of what this benchmark measured of a get."""
    buffer, kept, passing = bytearray(1 << 20), 0, 0
    yield 0
    while size := link.recv_into(memoryview(buffer)[kept:]):
        at, filled, ended = min(passing, size), kept + size, 0
        ended += passing > 0 and passing <= size
        passing -= at
        while not passing and (end := buffer.find(b"\r\n", at, filled)) >= 0:
            line = bytes(buffer[at:end])
            if line == b"PING":
                link.sendall(b"PONG\r\n")
                at = end + 2
                continue
            if not line.startswith(b"MSG "):
                raise Failure(f"refused: {line!r}")
            whole = end + 2 + int(line.rsplit(b" ", 1)[1]) + 2
            ended += whole <= filled
            at, passing = min(whole, filled), max(0, whole - filled)
        kept = filled - at
        buffer[:kept] = buffer[at:filled]
        yield ended
    raise Failure("closed before everything came")


def show(done: dict[str, list[dict[str, Way]]], equals: dict[str, str], spell: Callable[..., str]) -> None:
    """Print a line for each way beside each peer, and what the goals say of it. `done`: by server; `equals`: by peer, which
    of ours promises the same."""
    for peer, ours in equals.items():
        head = f"{'operations/s, k':<42}{ours:<22}{peer:<24}{'ours / theirs':<20}{'CPU, theirs / ours'}"
        print(f"\n{head}")
        for way in done[ours][0]:
            mine, theirs = ([each[way] for each in done[name]] for name in (ours, peer))
            rates = [my.rate / their.rate for my, their in zip(mine, theirs, strict=True)]
            costs = [their.cpu / my.cpu for my, their in zip(mine, theirs, strict=True)]
            judged, goal = GOALS[way.split("-")[0].split()[0]]
            verdict = "met" if statistics.median(rates) >= goal else "MISSED"
            goals = f"goal {goal:g}x the rate: {verdict}" if judged == peer else ""
            own, other = (spell([each.rate / 1000 for each in ways], 1) for ways in (mine, theirs))
            print(
                f"  {way:<40}{own:<22}{other:<24}{spell(rates, 2) + 'x':<20}{spell(costs, 2) + 'x':<22}{goals}".rstrip()
            )
