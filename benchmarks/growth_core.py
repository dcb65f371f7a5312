"""Rows of `./hw bench growth` without a stream: ever more subscriptions, subjects, connections.

Each gives a server `count` of them, on connections that stay open as long as `stack`, and says what is then measured.
"""

import socket
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count as count_up

from contestants import Contestant
from growth_work import PAYLOAD, PIECE, STRIDE, Flow, Ready, Taken, await_bytes
from load_generator import Failure, open_link, read_until

AFTER_EACH = 100  # messages: with 100,000 of them a second, 1,000 changes


def joined(stack: ExitStack, server: Contestant) -> socket.socket:
    return stack.enter_context(open_link(server.port))


def subscribe(link: socket.socket, pattern: bytes) -> None:
    """With the sid 1; returns when that is done."""
    link.sendall(b"SUB %b 1\r\nPING\r\n" % pattern)
    read_until(link, b"PONG\r\n")


def subscriptions(
    stack: ExitStack,
    server: Contestant,
    count: int,
    messages: int,
    subject: bytes = b"grow.%06d.events",
    between: Callable[[], None] | None = None,
) -> Ready:
    """One connection with `count` literal subscriptions; each message has another subject. `between`: after each AFTER_EACH
    of them."""
    publisher, receiver = joined(stack, server), joined(stack, server)
    taken = Taken(server)
    for first in range(0, count, 1000):
        numbers = range(first, min(first + 1000, count))
        receiver.sendall(b"".join(b"SUB %b %d\r\n" % (subject % number, number) for number in numbers))
    receiver.sendall(b"PING\r\n")
    read_until(receiver, b"PONG\r\n")
    taken.stop()
    order = [position * STRIDE % count for position in range(messages)]
    operations = [b"PUB %b %d\r\n%b\r\n" % (subject % number, len(PAYLOAD), PAYLOAD) for number in order]
    empty = len(b"MSG %b  %d\r\n%b\r\n" % (subject % 0, len(PAYLOAD), PAYLOAD))
    expected = empty * messages + sum(len(str(number)) for number in order)
    flow = Flow(publisher, receiver, operations, expected, between, AFTER_EACH)
    return Ready(server, flow.move, messages, taken)


def numbered(stack: ExitStack, server: Contestant, count: int, messages: int) -> Ready:
    """The same where subjects differ in their last token only."""
    return subscriptions(stack, server, count, messages, b"grow.events.%06d")


def churn(
    stack: ExitStack, server: Contestant, count: int, messages: int, subject: bytes = b"come.%06d.events"
) -> Ready:
    """The first of them while another client comes and goes: after each AFTER_EACH messages it has a subscription to a
    subject or pattern of its own, or ends it."""
    other = joined(stack, server)
    changes = count_up()

    def change() -> None:
        number, ends = divmod(next(changes), 2)
        other.sendall(b"UNSUB %d\r\n" % number if ends else b"SUB %b %d\r\n" % (subject % number, number))

    return subscriptions(stack, server, count, messages, between=change)


def churn_of_patterns(stack: ExitStack, server: Contestant, count: int, messages: int) -> Ready:
    """The same with patterns, whose subjects begin as those of the others."""
    return churn(stack, server, count, messages, b"grow.come%06d.*")


def under_wildcard(
    stack: ExitStack, server: Contestant, count: int, messages: int, pattern: bytes = b"grow.>"
) -> Ready:
    """One subscription to `grow.>`; the messages are on `count` subjects in turn, and what is taken is by these."""
    publisher, receiver = joined(stack, server), joined(stack, server)
    taken = Taken(server)
    subscribe(receiver, pattern)
    order = [position * STRIDE % count for position in range(messages)]
    operations = [b"PUB grow.%06d.events %d\r\n%b\r\n" % (number, len(PAYLOAD), PAYLOAD) for number in order]
    expected = len(b"MSG grow.000000.events 1 %d\r\n%b\r\n" % (len(PAYLOAD), PAYLOAD)) * messages
    flow = Flow(publisher, receiver, operations, expected)
    flow.move()
    taken.stop()
    taken.made = 0.0  # that is the messages'
    return Ready(server, flow.move, messages, taken)


def around_wildcard(stack: ExitStack, server: Contestant, count: int, messages: int) -> Ready:
    """The same with a subscription to `grow.*.events`: no beginning of a subject says that it matches."""
    return under_wildcard(stack, server, count, messages, b"grow.*.events")


def connections(stack: ExitStack, server: Contestant, count: int, messages: int) -> Ready:
    """`count` connections with a subscription each, all silent, and one pair that talks."""
    taken = Taken(server)
    for number in range(count):
        joined(stack, server).sendall(b"SUB idle.%d.> 1\r\n" % number)
    publisher, receiver = joined(stack, server), joined(stack, server)
    subscribe(receiver, b"grow.>")
    taken.stop()
    operations = [b"PUB grow.a %d\r\n%b\r\n" % (len(PAYLOAD), PAYLOAD)] * messages
    expected = len(b"MSG grow.a 1 %d\r\n%b\r\n" % (len(PAYLOAD), PAYLOAD)) * messages
    return Ready(server, Flow(publisher, receiver, operations, expected).move, messages, taken)


def talkers(stack: ExitStack, server: Contestant, count: int, messages: int) -> Ready:
    """`count` connections that publish one message each, in turn, to one subscriber: each message is a read of its own."""
    taken = Taken(server)
    links = [joined(stack, server) for _ in range(count)]
    taken.stop()
    receiver = joined(stack, server)
    subscribe(receiver, b"grow.>")
    operation = b"PUB grow.a %d\r\n%b\r\n" % (len(PAYLOAD), PAYLOAD)
    expected = len(b"MSG grow.a 1 %d\r\n%b\r\n" % (len(PAYLOAD), PAYLOAD))

    def work() -> None:
        for first in range(0, messages, count):
            some = links[: messages - first]
            for link in some:
                link.sendall(operation)
            await_bytes(receiver, expected * len(some))

    return Ready(server, work, messages, taken)


def listeners(stack: ExitStack, server: Contestant, count: int, messages: int) -> Ready:
    """`count` connections that subscribe to one subject; one message after the other goes to all: each is
    a write of its own."""
    publisher = joined(stack, server)
    taken = Taken(server)
    links = [joined(stack, server) for _ in range(count)]
    for link in links:
        subscribe(link, b"grow.a")
    taken.stop()
    expected = b"MSG grow.a 1 %d\r\n%b\r\n" % (len(PAYLOAD), PAYLOAD)
    rounds = max(1, messages // count)

    def work() -> None:
        for _ in range(rounds):
            publisher.sendall(b"PUB grow.a %d\r\n%b\r\n" % (len(PAYLOAD), PAYLOAD))
            for link in links:
                receive(link, expected)

    return Ready(server, work, rounds * count, taken)


def receive(link: socket.socket, expected: bytes) -> None:
    """The next message must be these bytes; a PING before it is answered."""
    received = b""
    while len(received) < len(expected):
        chunk = link.recv(PIECE)
        if not chunk:
            raise Failure(f"closed after {received!r}")
        received += chunk
        if b"PING\r\n" in received:
            link.sendall(b"PONG\r\n")
            received = received.replace(b"PING\r\n", b"")
    if received != expected:
        raise Failure(f"{received[:200]!r} came where {expected[:80]!r} was to come")
