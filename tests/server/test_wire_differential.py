"""Random ops with random cuts give the same bytes, subscription by subscription, on nats-server and on our broker.

One script of ops runs on one link of each server while listeners with wildcards stand on links of their own. What must
be equal: for every subscription the exact stream of its deliveries; the order of all other lines (+OK, PONG, -ERR) on
the link; and whether the server closes it. The order among several subscriptions of one link is left open by NATS, and
a queue group picks its member at random: those are compared as far as they are defined. The last op may be mutated at
random, so the same test holds the two parsers against each other on bytes that are no protocol.
"""

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import NamedTuple

import pytest
from support.headwater_server import start_headwater
from support.nats_server import start_nats_server
from support.raw_wire import Delivery, RawLink, connect_op, dial, prove_service, split_deliveries

pytestmark = pytest.mark.interop

SCRIPTS = 60  # seeds; each is one script of up to OPS ops, about 30 ms for both servers together
OPS = 120
LISTENERS = [b">", b"*.*", b"a.>", b"*.b.c", b"a.b", b"b"]
TOKENS = [b"a", b"b", b"c", b"a", b"b", b"*", b">", b"d\xff", b"E"]
QUEUE = b"crew"
ROTATIONS = [bytes.maketrans(b"abcxyz012", bytes(98 + shift for _ in range(9))) for shift in range(6)]


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[int]]:
    """The port of the real server, then of ours."""
    directory: Path = tmp_path_factory.mktemp("differential")
    with start_nats_server(directory / "real", jetstream=False) as real, start_headwater(directory / "ours") as ours:
        yield [real.port, ours.port]


def draw_subject(rng: random.Random, wildcards: float) -> bytes:
    """One to three tokens; a wildcard only with the given probability; now and then an empty token."""
    words = [word for word in TOKENS if rng.random() < wildcards or word not in (b"*", b">")]
    subject = b".".join(rng.choice(words) for _ in range(rng.randint(1, 3)))
    return subject + b"." if rng.random() < 0.02 else subject


def draw_payload(rng: random.Random, limit: int) -> bytes:
    size = rng.choice([0, 1, 2, 7, 100, 500, 4000]) if rng.random() < 0.97 else rng.randint(60_000, 200_000)
    return rng.randbytes(min(size, limit))


def draw_publish(rng: random.Random, limit: int) -> bytes:
    payload = draw_payload(rng, limit)
    head = [draw_subject(rng, 0.05), *([b"answer." + draw_subject(rng, 0.0)] if rng.random() < 0.3 else [])]
    gap = rng.choice([b" ", b" ", b" ", b"  ", b"\t"])
    if rng.random() < 0.6:
        size = b"%0*d" % (rng.choice([1, 1, 1, 4]), len(payload))
        return gap.join([rng.choice([b"PUB", b"pub", b"Pub"]), *head, size]) + b"\r\n" + payload + b"\r\n"
    block = rng.choice([b"NATS/1.0\r\n\r\n", b"NATS/1.0\r\nA: 1\r\nA: 2\r\n\r\n", rng.randbytes(20), b""])
    sizes = [b"%d" % len(block), b"%d" % (len(block) + len(payload))]
    return gap.join([b"HPUB", *head, *sizes]) + b"\r\n" + block + payload + b"\r\n"


def draw_run(rng: random.Random, limit: int) -> bytes:
    """Messages with one control line and different payloads: ours hands them to the router together."""
    line, _, payload = draw_publish(rng, limit).partition(b"\n")
    return b"".join(line + b"\n" + payload.translate(rotation) for rotation in ROTATIONS[: rng.randint(2, 6)])


def draw_op(rng: random.Random, limit: int) -> bytes:
    kind = rng.random()
    sid = b"%d" % rng.randint(1, 12)
    if kind < 0.50:
        return draw_publish(rng, limit)
    if kind < 0.60:
        return draw_run(rng, limit)
    if kind < 0.80:
        queue = [QUEUE + sid] if rng.random() < 0.2 else []  # a group for each sid: its choice of member is no choice
        return b" ".join([b"SUB", draw_subject(rng, 0.6), *queue, sid]) + b"\r\n"
    if kind < 0.92:
        maximum = [rng.choice([b"0", b"1", b"2", b"5", b"-1", b"x"])] if rng.random() < 0.6 else []
        return b" ".join([b"UNSUB", sid, *maximum]) + b"\r\n"
    return rng.choice([b"PING\r\n", b"PING\r\n", b"PONG\r\n", b"+OK\r\n", b"ping\n"])


def draw_script(rng: random.Random) -> tuple[bytes, list[int]]:
    """CONNECT with random options, then ops; in one script of three the last op is damaged. And where to cut it.

    A server that closes while input is unread resets the connection, and what is still in its socket's queue is lost,
    with either server. So a damaged script has small payloads, and its last op comes in one piece.
    """
    options = {name: rng.random() < 0.3 for name in ("verbose", "pedantic", "no_responders")}
    damaged = rng.random() < 0.33
    limit = 100 if damaged else 200_000
    ops = [draw_op(rng, limit) for _ in range(rng.randint(1, OPS))]
    last = damage(rng, ops.pop()) if damaged else b""
    script = connect_op(**options, echo=rng.random() < 0.8) + b"".join(ops)
    cuts = sorted(rng.randrange(len(script)) for _ in range(rng.choice([0, 1, 5, 40])))
    return script + last, cuts


def damage(rng: random.Random, op: bytes) -> bytes:
    """Cuts a byte out, puts one in or changes one, near the front where the grammar is."""
    position = rng.randrange(min(len(op), 30))
    middle = rng.choice([b"", rng.randbytes(1), rng.randbytes(1) + op[position : position + 1], b" ", b"\r\n", b"9"])
    return op[:position] + middle + op[position + 1 :]


class Received(NamedTuple):
    """What one server made of a script."""

    by_sid: dict[bytes, list[Delivery]]
    lines: list[bytes]
    listeners: list[list[Delivery]]


def group_by_sid(deliveries: list[Delivery]) -> dict[bytes, list[Delivery]]:
    """Deliveries by sid. No-responders answers make a stream of their own, in which the sid does not count: where several
    subscriptions of the publisher match the reply, nats-server takes any one of them."""
    streams: dict[bytes, list[Delivery]] = {}
    for delivery in deliveries:
        if delivery.body.startswith(b"NATS/1.0 503\r\n"):
            streams.setdefault(b"no responders", []).append(delivery._replace(sid=b""))
        else:
            streams.setdefault(delivery.sid, []).append(delivery)
    return streams


def fold_complaints(lines: list[bytes]) -> list[bytes]:
    """nats-server complains of a publish subject once more when the payload comes in two reads: runs count as one."""
    complaint = b"-ERR 'Invalid Publish Subject'\r\n"
    return [line for before, line in pairwise([b"", *lines]) if line != complaint or before != complaint]


def run_script(port: int, script: bytes, cuts: list[int]) -> Received:
    """Runs the script on one link, with the listeners on links of their own; ends when the server closes the link."""
    listeners = [dial(port) for _ in LISTENERS]
    try:
        for subject, listener in zip(LISTENERS, listeners, strict=True):
            listener.send(b"SUB " + subject + b" 1\r\n")
            assert listener.settle() == b""
        with RawLink(port) as link:
            link.send_in_pieces(script, cuts)
            link.end_sending()
            deliveries, lines = split_deliveries(link.receive_end())
        received = [split_deliveries(listener.settle())[0] for listener in listeners]
    finally:
        for listener in listeners:
            listener.close()
    return Received(group_by_sid(deliveries), fold_complaints(lines), received)


def describe_difference(real: Received, ours: Received) -> str:
    """Where the first differing stream is, shortened: whole scripts are hundreds of kilobytes."""
    streams: list[tuple[str, Sequence[object], Sequence[object]]] = [("lines", real.lines, ours.lines)]
    for sid in real.by_sid | ours.by_sid:
        streams += [(f"sid {sid!r}", real.by_sid.get(sid, []), ours.by_sid.get(sid, []))]
    for subject, theirs, mine in zip(LISTENERS, real.listeners, ours.listeners, strict=True):
        streams += [(f"listener {subject!r}", theirs, mine)]
    for name, wanted, received in streams:
        for index, (want, got) in enumerate(zip_longest(wanted, received)):
            if want != got:
                return f"{name}, item {index}: nats-server {str(want)[:200]}, ours {str(got)[:200]}"
    return "nothing differs"


@pytest.mark.parametrize("seed", range(SCRIPTS))
def test_random_ops_with_random_cuts_give_the_same_streams(ports: list[int], seed: int) -> None:
    script, cuts = draw_script(random.Random(seed))
    real, ours = (run_script(port, script, cuts) for port in ports)
    if ours != real:
        pytest.fail(f"seed {seed}: {describe_difference(real, ours)}\nscript: {script[:1000]!r}")
    for port in ports:
        prove_service(port)
