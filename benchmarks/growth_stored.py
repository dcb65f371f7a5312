"""Rows of `./hw bench growth` with streams: ever more subjects, messages, streams, consumers. See `growth_core`."""

import json
import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import islice

from contestants import Contestant
from growth_work import PAYLOAD, PIECE, STRIDE, WAIT, Ready, Taken
from load_generator import Failure, open_link
from stream_load import ask, store

TOGETHER = 100  # requests on their way
PORTION = 100_000  # publishes made at once
BATCH = 100  # messages of one get


def manage(server: Contestant, stack: ExitStack) -> socket.socket:
    control = stack.enter_context(open_link(server.port))
    control.settimeout(WAIT)
    control.sendall(b"SUB _INBOX.ask 1\r\n")
    return control


def make(control: socket.socket, requests: Iterable[tuple[str, object]]) -> None:
    """JetStream requests, TOGETHER of them on their way. Raises Failure when one is refused."""
    waiting = iter(requests)
    while batch := list(islice(waiting, TOGETHER)):
        bodies = [(subject, json.dumps(document).encode()) for subject, document in batch]
        control.sendall(b"".join(b"PUB %b _INBOX.ask %d\r\n%b\r\n" % (s.encode(), len(b), b) for s, b in bodies))
        received = b""
        while received.count(b"MSG _INBOX.ask ") < len(batch) or not received.endswith(b"}\r\n"):
            chunk = control.recv(PIECE)
            if not chunk:
                raise Failure("closed instead of an answer")
            if b"PING\r\n" in chunk:
                control.sendall(b"PONG\r\n")
                chunk = chunk.replace(b"PING\r\n", b"")
            received += chunk
        if b'"error"' in received:
            raise Failure(f"a request was refused: {received[received.index(b'error') :][:200]!r}")


def publishes(subject: Callable[[int], bytes], numbers: Sequence[int]) -> list[bytes]:
    return [b"PUB %b _INBOX.fill %d\r\n%b\r\n" % (subject(number), len(PAYLOAD), PAYLOAD) for number in numbers]


def subjects(stack: ExitStack, server: Contestant, count: int, messages: int) -> Ready:
    """A stream that holds a message on each of `count` subjects; then more, each on one of them."""
    control, link = manage(server, stack), stack.enter_context(open_link(server.port))
    taken = Taken(server)
    ask(control, "$JS.API.STREAM.CREATE.GROW", {"name": "GROW", "subjects": ["grow.>"], "storage": "file"})
    store(link, (one for one in publishes(lambda number: b"grow.%08d" % number, range(count))))
    taken.stop()
    again = publishes(lambda number: b"grow.%08d" % number, [n * STRIDE % count for n in range(messages)])
    return Ready(server, lambda: refill(server, again), messages, taken)


def refill(server: Contestant, operations: list[bytes]) -> None:
    with open_link(server.port) as link:
        store(link, operations)


MOST_SUBJECTS = 1_000_000


def stored(stack: ExitStack, server: Contestant, count: int, messages: int) -> Ready:
    """A stream of `count` messages on at most MOST_SUBJECTS subjects; the last message of one after the other is got."""
    wide = min(count, MOST_SUBJECTS)
    wanted = [_get(b".grow.%08d" % (n * STRIDE % wide), b"") for n in range(messages)]
    return _got(stack, server, count, wanted)


def by_sequence(stack: ExitStack, server: Contestant, count: int, messages: int) -> Ready:
    """As `stored`; one message after the other is got by its sequence."""
    wanted = [_get(b"", b'{"seq":%d}' % (n * STRIDE % count + 1)) for n in range(messages)]
    return _got(stack, server, count, wanted)


def by_batch(stack: ExitStack, server: Contestant, count: int, messages: int) -> Ready:
    """As `stored`; BATCH messages are got by one request."""
    each = min(BATCH, count // 2)  # of a smoke run's few messages a hundred never come
    starts = (n * STRIDE % (count - each) + 1 for n in range(max(1, messages // each)))
    wanted = [_get(b"", b'{"seq":%d,"batch":%d}' % (start, each)) for start in starts]
    return _got(stack, server, count, wanted, each)


def _get(key: bytes, payload: bytes) -> bytes:
    return b"PUB $JS.API.DIRECT.GET.GROW%b _INBOX.got %d\r\n%b\r\n" % (key, len(payload), payload)


def _got(stack: ExitStack, server: Contestant, count: int, wanted: list[bytes], each: int = 1) -> Ready:
    """Fill a stream; then these direct gets, of `each` messages."""
    control, link = manage(server, stack), stack.enter_context(open_link(server.port))
    wide = min(count, MOST_SUBJECTS)
    settings = {"name": "GROW", "subjects": ["grow.>"], "storage": "file", "allow_direct": True}
    ask(control, "$JS.API.STREAM.CREATE.GROW", settings)
    taken = Taken(server)
    for first in range(0, count, PORTION):
        numbers = [n % wide for n in range(first, min(first + PORTION, count))]
        store(link, publishes(lambda number: b"grow.%08d" % number, numbers))
    taken.stop()
    return Ready(server, lambda: get_all(server, wanted, each), len(wanted) * each, taken)


def get_all(server: Contestant, wanted: list[bytes], each: int) -> None:
    """Direct gets of `each` messages, TOGETHER messages unanswered."""
    with open_link(server.port) as link:
        link.settimeout(WAIT)
        link.sendall(b"SUB _INBOX.got 1\r\n")
        requests = iter(wanted)
        requested = answered = 0
        rest = b""
        while True:
            some = list(islice(requests, (TOGETHER - (requested - answered)) // each))
            requested += len(some) * each
            if requested == answered:
                return
            link.sendall(b"".join(some))
            received = rest + link.recv(PIECE)
            if b"PING\r\n" in received:
                link.sendall(b"PONG\r\n")
                received = received.replace(b"PING\r\n", b"")
            if b"NATS/1.0 4" in received or b"NATS/1.0 5" in received:
                raise Failure(f"a get was refused: {received[:300]!r}")
            answered += received.count(b"x\r\n")  # the payload's end; no line of the answer ends so
            rest = received[-2:]


def streams(stack: ExitStack, server: Contestant, count: int, messages: int) -> Ready:
    """`count` streams; messages go to one after the other."""
    control = manage(server, stack)
    taken = Taken(server)
    make(
        control,
        (
            (f"$JS.API.STREAM.CREATE.G{n}", {"name": f"G{n}", "subjects": [f"grow.{n}"], "storage": "file"})
            for n in range(count)
        ),
    )
    taken.stop()
    width = min(count, 100)  # at a time: how many files are written to is another question
    again = publishes(lambda number: b"grow.%d" % number, [n % width * (count // width) for n in range(messages)])
    return Ready(server, lambda: refill(server, again), messages, taken)


def consumer(number: int) -> tuple[str, object]:
    """The request that makes it."""
    stream, name = f"G{number // 100}", f"c{number % 100}"
    settings = {"durable_name": name, "ack_policy": "explicit", "filter_subject": f"grow.{number // 100}.{name}"}
    return f"$JS.API.CONSUMER.CREATE.{stream}.{name}", {"stream_name": stream, "config": settings}


def consumers(stack: ExitStack, server: Contestant, count: int, messages: int) -> Ready:
    """`count` pull consumers, a hundred a stream, each with a subject of its own to filter by; messages go to one stream."""
    control = manage(server, stack)
    make(
        control,
        (
            (f"$JS.API.STREAM.CREATE.G{n}", {"name": f"G{n}", "subjects": [f"grow.{n}.*"], "storage": "file"})
            for n in range(max(1, count // 100))
        ),
    )
    taken = Taken(server)
    make(control, (consumer(number) for number in range(count)))
    taken.stop()
    again = publishes(lambda number: b"grow.0.c%d" % number, [n % 100 for n in range(messages)])
    return Ready(server, lambda: refill(server, again), messages, taken)
