"""The server's cost of key-value and object buckets: the operations of the client libraries, as raw requests on one socket.

A put is a publish to `$KV.<bucket>.<key>` that waits for its ack, a get is a direct get by subject, a watch is a push
consumer that begins with the last message of every key. An object is written in chunks of 128 KiB and read by a push
consumer. Every answer is counted, and an error ends the benchmark.
"""

import socket
from collections.abc import Iterable, Iterator
from itertools import islice

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
_ENDING = b"x\r\n"  # of a value or a chunk, which consists of x; no protocol line ends this way


def bucket_ways(server: Contestant, operations: int) -> dict[str, float]:
    """The server's CPU microseconds per operation; for objects, per chunk."""
    spent: dict[str, float] = {}
    chunks = min(400, max(10, operations // 200))  # 50 MB: nats-server closes a client that has 64 MB unread
    with open_link(server.port) as control:
        control.sendall(b"SUB _INBOX.ask 1\r\n")
        keys = {"name": "KV_bench", "subjects": ["$KV.bench.>"], "max_msgs_per_subject": 1, **BUCKET}
        ask(control, "$JS.API.STREAM.CREATE.KV_bench", keys)
        with open_link(server.port) as link:
            before = read_cpu_time(server.pid)
            store(link, (_put(b"$KV.bench.k%d" % (n % KEYS), PAYLOAD) for n in range(operations)))
            spent["key-value put"] = 1e6 * read_cpu_time(server.pid).since(before).scheduled / operations
        with open_link(server.port) as link:
            before = read_cpu_time(server.pid)
            _get_all(link, operations)
            spent["key-value get"] = 1e6 * read_cpu_time(server.pid).since(before).scheduled / operations
        watches = max(1, operations // KEYS)
        watched = sum(
            _push(server, control, "KV_bench", "last_per_subject", min(KEYS, operations)) for _ in range(watches)
        )
        spent["key-value watch, each key"] = 1e6 * watched / watches / min(KEYS, operations)
        ask(control, "$JS.API.STREAM.DELETE.KV_bench", None)
        objects = {"name": "OBJ_bench", "subjects": ["$O.bench.C.>", "$O.bench.M.>"], **BUCKET}
        ask(control, "$JS.API.STREAM.CREATE.OBJ_bench", objects)
        with open_link(server.port) as link:
            before = read_cpu_time(server.pid)
            store(link, (_put(b"$O.bench.C.one", CHUNK) for _ in range(chunks)), CHUNK_WINDOW)
            spent["object put, each chunk of 128 KiB"] = (
                1e6 * read_cpu_time(server.pid).since(before).scheduled / chunks
            )
        spent["object get, each chunk of 128 KiB"] = 1e6 * _push(server, control, "OBJ_bench", "all", chunks) / chunks
        ask(control, "$JS.API.STREAM.DELETE.OBJ_bench", None)
    return spent


def _put(subject: bytes, size: int) -> bytes:
    return b"PUB %b _INBOX.fill %d\r\n%b\r\n" % (subject, size, b"x" * size)


def _get_all(link: socket.socket, count: int) -> None:
    link.sendall(b"SUB _INBOX.got 3\r\n")
    waiting: Iterator[bytes] = iter(
        b"PUB $JS.API.DIRECT.GET.KV_bench.$KV.bench.k%d _INBOX.got 0\r\n\r\n" % (n % KEYS) for n in range(count)
    )
    unanswered = 0
    for answered in _endings(link):
        unanswered -= answered
        pieces = list(islice(waiting, WINDOW - unanswered))
        if not pieces and not unanswered:
            return
        unanswered += len(pieces)
        link.sendall(b"".join(pieces))


def _push(server: Contestant, control: socket.socket, stream: str, policy: str, count: int) -> float:
    """CPU seconds of the server until a push consumer has delivered `count` messages."""
    with open_link(server.port) as link:
        link.sendall(b"SUB _INBOX.pushed 4\r\nPING\r\n")
        while b"PONG\r\n" not in link.recv(4096):
            pass
        wanted = {
            "name": "P", "deliver_subject": "_INBOX.pushed", "deliver_policy": policy, "ack_policy": "none",
            "filter_subject": "$KV.bench.>" if stream == "KV_bench" else "$O.bench.C.>",
            "inactive_threshold": 60_000_000_000,
        }  # fmt: skip
        before = read_cpu_time(server.pid)
        ask(control, f"$JS.API.CONSUMER.CREATE.{stream}.P", {"stream_name": stream, "config": wanted})
        missing = count
        for delivered in _endings(link):
            missing -= delivered
            if missing <= 0:
                break
        spent = read_cpu_time(server.pid).since(before).scheduled
        ask(control, f"$JS.API.CONSUMER.DELETE.{stream}.P", None)
    if missing:
        raise Failure(f"{count} messages of {stream} were expected, {-missing} more came")
    return spent


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
