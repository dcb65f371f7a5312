"""Rows of `./hw bench growth` without a stream: ever more subscriptions, subjects, connections."""

import socket
from contextlib import ExitStack

from contestants import Contestant
from growth_work import PAYLOAD, PIECE, STRIDE, Cost, Flow, Taken, cheapest
from load_generator import Failure, open_link, read_until


def subscriptions(server: Contestant, count: int, messages: int, subject: bytes = b"grow.%06d.events") -> Cost:
    """One connection with `count` literal subscriptions; each message has another subject."""
    with open_link(server.port) as publisher, open_link(server.port) as receiver:
        taken = Taken(server)
        for first in range(0, count, 1000):
            numbers = range(first, min(first + 1000, count))
            receiver.sendall(b"".join(b"SUB %b %d\r\n" % (subject % number, number) for number in numbers))
        receiver.sendall(b"PING\r\n")
        read_until(receiver, b"PONG\r\n")
        taken.stop()
        order = [position * STRIDE % count for position in range(messages)]
        operations = [b"PUB %b %d\r\n%b\r\n" % (subject % number, len(PAYLOAD), PAYLOAD) for number in order]
        expected = sum(
            len(b"MSG %b %d %d\r\n%b\r\n" % (subject % number, number, len(PAYLOAD), PAYLOAD)) for number in order
        )
        flow = Flow(receiver)
        return Cost(
            cheapest(server, messages, lambda: flow.move(publisher, operations, expected)), taken.bytes, taken.made
        )


def numbered(server: Contestant, count: int, messages: int) -> Cost:
    """The same where subjects differ in their last token only."""
    return subscriptions(server, count, messages, b"grow.events.%06d")


def under_wildcard(server: Contestant, count: int, messages: int, pattern: bytes = b"grow.>") -> Cost:
    """One subscription to `grow.>`; the messages are on `count` subjects in turn."""
    with open_link(server.port) as publisher, open_link(server.port) as receiver:
        taken = Taken(server)
        receiver.sendall(b"SUB %b 1\r\nPING\r\n" % pattern)
        read_until(receiver, b"PONG\r\n")
        order = [position * STRIDE % count for position in range(messages)]
        operations = [b"PUB grow.%06d.events %d\r\n%b\r\n" % (number, len(PAYLOAD), PAYLOAD) for number in order]
        expected = len(b"MSG grow.000000.events 1 %d\r\n%b\r\n" % (len(PAYLOAD), PAYLOAD)) * messages
        flow = Flow(receiver)
        cpu = cheapest(server, messages, lambda: flow.move(publisher, operations, expected))
        taken.stop()
        return Cost(cpu, taken.bytes, 0.0)


def around_wildcard(server: Contestant, count: int, messages: int) -> Cost:
    """The same with a subscription to `grow.*.events`: no beginning of a subject says that it matches."""
    return under_wildcard(server, count, messages, b"grow.*.events")


def connections(server: Contestant, count: int, messages: int) -> Cost:
    """`count` connections with a subscription each, all silent, and one pair that talks."""
    with ExitStack() as stack:
        taken = Taken(server)
        for number in range(count):
            link = stack.enter_context(open_link(server.port))
            link.sendall(b"SUB idle.%d.> 1\r\n" % number)
        publisher, receiver = (stack.enter_context(open_link(server.port)) for _ in range(2))
        receiver.sendall(b"SUB grow.> 1\r\nPING\r\n")
        read_until(receiver, b"PONG\r\n")
        taken.stop()
        operations = [b"PUB grow.a %d\r\n%b\r\n" % (len(PAYLOAD), PAYLOAD)] * messages
        expected = len(b"MSG grow.a 1 %d\r\n%b\r\n" % (len(PAYLOAD), PAYLOAD)) * messages
        flow = Flow(receiver)
        return Cost(
            cheapest(server, messages, lambda: flow.move(publisher, operations, expected)), taken.bytes, taken.made
        )


def talkers(server: Contestant, count: int, messages: int) -> Cost:
    """`count` connections that publish one message each, in turn, to one subscriber: each message is a read of its own."""
    with ExitStack() as stack:
        taken = Taken(server)
        links = [stack.enter_context(open_link(server.port)) for _ in range(count)]
        taken.stop()
        receiver = stack.enter_context(open_link(server.port))
        receiver.sendall(b"SUB grow.> 1\r\nPING\r\n")
        read_until(receiver, b"PONG\r\n")
        operation = b"PUB grow.a %d\r\n%b\r\n" % (len(PAYLOAD), PAYLOAD)
        expected = len(b"MSG grow.a 1 %d\r\n%b\r\n" % (len(PAYLOAD), PAYLOAD))
        flow = Flow(receiver)

        def work() -> None:
            for first in range(0, messages, count):
                some = links[: messages - first]
                for link in some:
                    link.sendall(operation)
                flow.move(receiver, (), expected * len(some))

        return Cost(cheapest(server, messages, work), taken.bytes, taken.made)


def listeners(server: Contestant, count: int, messages: int) -> Cost:
    """`count` connections that subscribe to one subject; one message after the other goes to all: each is
    a write of its own."""
    with ExitStack() as stack:
        publisher = stack.enter_context(open_link(server.port))
        taken = Taken(server)
        links = [stack.enter_context(open_link(server.port)) for _ in range(count)]
        for link in links:
            link.sendall(b"SUB grow.a 1\r\nPING\r\n")
            read_until(link, b"PONG\r\n")
        taken.stop()
        expected = b"MSG grow.a 1 %d\r\n%b\r\n" % (len(PAYLOAD), PAYLOAD)
        rounds = max(1, messages // count)

        def work() -> None:
            for _ in range(rounds):
                publisher.sendall(b"PUB grow.a %d\r\n%b\r\n" % (len(PAYLOAD), PAYLOAD))
                for link in links:
                    receive(link, expected)

        return Cost(cheapest(server, rounds * count, work), taken.bytes, taken.made)


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
