"""A broker under a flood whose clients come and go: what the pointers of the compiled modules have to survive.

    .venv/bin/python tests/sanitizer/run.py --run tests/sanitizer/flood.py --seconds 60 [--seed 1]

Publishers send batches over many subjects to a broker in this process. Meanwhile subscriptions with and without wildcards,
queue groups, limits and permissions begin and end in the middle of batches; clients hang up without a word, some while the
broker writes to them, and some stop reading until it closes them. Two clients stay and read all the time: what they get is
compared with what was published, so a flood that loses or mixes up messages fails without a sanitizer, too.

First, and after every 40 rounds, comes a crowd: one client with 70,000 subjects. The table of subjects grows to 16 MiB,
is used while interest changes, and shrinks when the client unsubscribes or hangs up.
"""

import argparse
import asyncio
import logging
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support.embedded_broker import EmbeddedBroker  # noqa: E402

from headwater.net.direct_loop import DirectLoop  # noqa: E402
from headwater.options.access import (  # noqa: E402
    AuthorizationOptions,
    Permissions,
    SubjectRules,
    UserOptions,
)
from headwater.options.broker import BrokerOptions  # noqa: E402

SUBJECTS = 3000
CROWD = 70_000  # subjects: above 65,536 a table has 262,144 slots
CROWD_EVERY = 40  # rounds
LARGE = (1 << 16, 100_000, 700_000)  # bytes of payloads that are written from where they lie
ROUND_LIMIT = 120.0  # seconds, under a sanitizer on a busy machine
FREE, BOUND, NO_ECHO = (b'{"verbose":false,"user":"%b","pass":"x","headers":true,"echo":%b}' % pair for pair in (
    (b"free", b"true"), (b"bound", b"true"), (b"free", b"false")))  # fmt: skip
USERS = (
    UserOptions(username="free", password="x"),
    UserOptions(
        username="bound",
        password="x",
        permissions=Permissions(
            publish=SubjectRules(allow=("f.>", "k.>"), deny=("f.*.7",)),
            subscribe=SubjectRules(allow=("f.>", "_INBOX.>"), deny=("f.3.>",)),
        ),
    ),
)


class Link:
    """One connection, made of bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, port: int, connect: bytes) -> "Link":
        link = cls(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 24))
        await link.reader.readline()
        link.writer.write(b"CONNECT " + connect + b"\r\n")
        return link

    async def settle(self) -> bytes:
        """Everything that comes until the broker has seen all that this link sent."""
        self.writer.write(b"PING\r\n")
        found = await self.reader.readuntil(b"PONG\r\n")
        return found[: -len(b"PONG\r\n")]

    def abort(self) -> None:
        self.writer.transport.abort()


class Flood:
    """The clients; `rounds` of it are numbered, and the number is the payload's beginning."""

    def __init__(self, port: int, seed: int) -> None:
        self.port, self.dice = port, random.Random(seed)
        self.subjects = [f"f.{number % 10}.{number}".encode() for number in range(SUBJECTS)]
        self.others: list[Link] = []

    async def start(self) -> None:
        self.publisher = await Link.open(self.port, FREE)
        self.wildcard = await Link.open(self.port, FREE)
        self.wildcard.writer.write(b"SUB f.> 1\r\n")
        self.literal = await Link.open(self.port, NO_ECHO)
        for number, subject in enumerate(self.subjects[::3]):
            self.literal.writer.write(b"SUB %b %d\r\n" % (subject, number))
        await self.wildcard.settle()
        await self.literal.settle()

    def publishes(self, number: int) -> tuple[bytes, Counter[bytes]]:
        """A batch and the subjects that it publishes to, each as often."""
        pieces: list[bytes] = []
        sent: Counter[bytes] = Counter()
        subject = self.subjects[0]
        for _ in range(self.dice.choice((1, 40, 400))):
            if self.dice.random() < 0.8:
                subject = self.dice.choice(self.subjects)
            large = self.dice.random() < 0.01
            payload = b"%d." % number + b"x" * self.dice.choice(LARGE if large else (0, 1, 16, 100, 1000))
            for _ in range(self.dice.choice((1, 2) if large else (1, 1, 1, 3, 20))):
                sent[subject] += 1
                if self.dice.random() < 0.1:
                    block = b"NATS/1.0\r\nA: b\r\n\r\n"
                    pieces.append(b"HPUB %b %d %d\r\n%b%b\r\n" % (
                        subject, len(block), len(block) + len(payload), block, payload))  # fmt: skip
                else:
                    reply = b"" if self.dice.random() < 0.8 else b"r.%d " % self.dice.randrange(9)
                    pieces.append(b"PUB %b %b%d\r\n%b\r\n" % (subject, reply, len(payload), payload))
        return b"".join(pieces), sent

    async def unheard(self) -> int:
        """Messages that hardly anybody gets: the broker reads up to 1 MiB of them at once."""
        sizes = self.dice.choices((500, 1000, 1000, 1000, 5000, 150_000), k=400)
        for size in sizes:
            self.publisher.writer.write(b"PUB u.%d %d\r\n%b\r\n" % (size, size, b"u" * size))
        await self.publisher.settle()
        return len(sizes)

    async def disturb(self) -> None:
        """One of the other clients begins, ends or changes something; what it gets is not looked at."""
        choice = self.dice.random()
        if choice < 0.25 or not self.others:
            self.others.append(await Link.open(self.port, self.dice.choice((FREE, BOUND, NO_ECHO))))
        link = self.dice.choice(self.others)
        if link.writer.transport.is_closing() or link.reader.at_eof():
            self.others.remove(link)
        elif choice < 0.7:
            for _ in range(self.dice.choice((1, 1, 30))):
                subject = self.dice.choice((*self.dice.choices(self.subjects, k=4), b"f.*.5", b"f.2.>", b">", b"f.*.*"))
                sid = self.dice.randrange(40)
                group = b" g%d" % self.dice.randrange(2) if self.dice.random() < 0.2 else b""
                link.writer.write(b"SUB %b%b %d\r\n" % (subject, group, sid))
                if self.dice.random() < 0.3:
                    link.writer.write(b"UNSUB %d %d\r\n" % (sid, self.dice.randrange(1, 50)))
                if self.dice.random() < 0.3:
                    link.writer.write(b"UNSUB %d\r\n" % self.dice.randrange(40))
                if self.dice.random() < 0.2:
                    link.writer.write(b"PUB k.%d 2\r\nhi\r\n" % sid)
        elif choice < 0.9:
            link.writer.transport.pause_reading()  # type: ignore[attr-defined]
        else:
            self.others.remove(link)
            link.abort()

    async def round(self, number: int) -> int:
        batch, sent = self.publishes(number)
        at = 0
        while at < len(batch):
            step = self.dice.choice((7, 1000, 1 << 16))
            self.publisher.writer.write(batch[at : at + step])
            await self.publisher.writer.drain()
            at += step
            if self.dice.random() < 0.3:
                await self.disturb()
        await self.publisher.settle()
        expected = Counter({subject: sent[subject] for subject in self.subjects[::3] if sent[subject]})
        got = [self.delivered(await link.settle(), number) for link in (self.wildcard, self.literal)]
        assert got == [sent, expected], f"round {number}: {[(sent - got[0]), (expected - got[1])]} are missing"
        return sent.total()

    async def crowd(self) -> int:
        """A client with so many subjects that the table grows; returns the number of messages."""
        while self.others:  # some get everything, and then no message has a single receiver
            self.others.pop().abort()
        subjects = [b"c.%d" % number for number in range(CROWD)]
        crowd = await Link.open(self.port, NO_ECHO)
        for sid, subject in enumerate(subjects):
            crowd.writer.write(b"SUB %b %d\r\n" % (subject, sid))
        await crowd.settle()
        total = 0
        for disturbed in (False, False, True):  # it grows, is used, and has stale slots
            self.dice.shuffle(subjects)
            await self.pass_through(crowd, subjects, disturbed)
            total += len(subjects)
        stay = self.dice.choice((0, 100, 20_000))
        for sid in range(stay, CROWD):
            crowd.writer.write(b"UNSUB %d\r\n" % sid)
        await crowd.settle()
        subjects = [b"c.%d" % number for number in range(stay)]
        for disturbed in (False, True):
            await self.pass_through(crowd, subjects, disturbed)
            total += len(subjects)
        self.publisher.writer.write(b"".join(b"PUB %b 1\r\n.\r\n" % subject for subject in subjects))
        crowd.abort()
        await self.publisher.settle()
        return total

    async def pass_through(self, crowd: Link, subjects: list[bytes], disturbed: bool) -> None:
        """Publish to each of these subjects; they reach the crowd in this order."""
        for first in range(0, len(subjects), 5000):
            batch = subjects[first : first + 5000]
            self.publisher.writer.write(b"".join(b"PUB %b 2\r\n0.\r\n" % subject for subject in batch))
            if disturbed:
                passer = await Link.open(self.port, FREE)
                passer.writer.write(b"SUB %b 1\r\nUNSUB 1\r\nSUB f.1.1 2\r\n" % self.dice.choice(batch))
                passer.abort()
            await self.publisher.settle()
            found = self.delivered(await crowd.settle(), 0)
            assert list(found) == batch, "messages of the crowd are missing or not in order"
            assert found.total() == len(batch)

    @staticmethod
    def delivered(output: bytes, number: int) -> Counter[bytes]:
        """The subjects of the messages in `output`, each as often; every payload is of round `number`."""
        found: Counter[bytes] = Counter()
        at = 0
        while at < len(output):
            end = output.index(b"\r\n", at)
            words = output[at:end].split(b" ")
            if words == [b"PING"]:  # of the broker's first seconds; the links live too short for another one
                at = end + 2
                continue
            assert words[0] in (b"MSG", b"HMSG"), output[at : at + 200]
            head = int(words[-2]) if words[0] == b"HMSG" else 0
            at = end + 2 + int(words[-1]) + 2
            assert output.startswith(b"%d." % number, end + 2 + head)
            assert output[at - 2 : at] == b"\r\n"
            found[words[1]] += 1
        return found


async def flood(port: int, seed: int, seconds: float) -> tuple[int, int]:
    """Rounds until the time is over; returns their number and that of the messages."""
    clients = Flood(port, seed)
    await clients.start()
    ends = time.monotonic() + seconds
    number = messages = 0
    while time.monotonic() < ends:
        async with asyncio.timeout(ROUND_LIMIT):
            if number % CROWD_EVERY == 0:
                messages += await clients.crowd() + await clients.unheard()
            number += 1
            messages += await clients.round(number)
    for link in (*clients.others, clients.publisher, clients.wildcard, clients.literal):
        link.abort()
    return number, messages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(2), "big"))
    arguments = parser.parse_args()
    for name in ("asyncio", "headwater"):  # cut connections, slow consumers and refusals are what this is about
        logging.getLogger(name).setLevel(logging.CRITICAL)
    print(f"seed {arguments.seed}", flush=True)
    options = BrokerOptions(
        authorization=AuthorizationOptions(users=USERS),
        max_pending=4 << 20,
        max_payload=1 << 20,
        write_deadline=0.5,
    )
    with EmbeddedBroker(options, DirectLoop()) as broker:
        rounds, messages = asyncio.run(flood(broker.port, arguments.seed, arguments.seconds))
    print(f"{rounds:,} rounds, {messages:,} messages published, all delivered")


if __name__ == "__main__":
    main()
