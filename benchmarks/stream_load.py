"""The client side of the stream benchmarks: raw sockets that publish, pull and acknowledge.

Everything is checked: every publish was acknowledged, every message came once and in order, every acknowledgement of a
message arrived at its consumer. One socket, few system calls and no parser, so that the generator's own cost stays small.
"""

import json
import re
import socket
import time
from collections.abc import Iterable, Iterator
from itertools import islice

from contestants import Contestant, read_cpu_time
from load_generator import Failure, open_link

PAYLOAD = 128  # bytes
WINDOW = 1000  # unacknowledged publishes while a stream is filled
BATCH = 5000  # messages per pull request
ACK = re.compile(rb'"seq": ?(\d+)')
ACK_SUBJECT = b" $JS.ACK.FULL.R.1."
SEQUENCE = re.compile(re.escape(ACK_SUBJECT) + rb"(\d+)")
WHOLE_ACK_SUBJECT = re.compile(rb" (\$JS\.ACK\.FULL\.R\.1\.\S+)")


def ask(link: socket.socket, subject: str, document: object) -> dict[str, object]:
    """One JetStream request on a link that is subscribed to `_INBOX.ask`. Raises Failure when the server reports an
    error."""
    body = json.dumps(document).encode() if document is not None else b""
    link.sendall(b"PUB %b _INBOX.ask %d\r\n%b\r\n" % (subject.encode(), len(body), body))
    received = bytearray()
    while (head := received.find(b"\r\n")) < 0 or len(received) < head + 4 + int(received[:head].split()[-1]):
        chunk = link.recv(65536)
        if not chunk:
            raise Failure(f"closed instead of an answer to {subject}")
        received += chunk
        if received.startswith(b"PING\r\n"):
            link.sendall(b"PONG\r\n")
            del received[:6]
    end = head + 2 + int(received[:head].split()[-1])
    if b"PING\r\n" in received[end:]:
        link.sendall(b"PONG\r\n")
    answer: dict[str, object] = json.loads(received[head + 2 : end])
    if "error" in answer:
        raise Failure(f"{subject}: {answer['error']}")
    return answer


def fill(link: socket.socket, messages: int, subjects: int) -> None:
    """Publish `messages` into the stream FULL, with WINDOW of them unacknowledged at a time."""
    body = b"x" * PAYLOAD
    store(link, (b"PUB full.%d _INBOX.fill %d\r\n%b\r\n" % (n % subjects, PAYLOAD, body) for n in range(messages)))


def store(link: socket.socket, publishes: Iterable[bytes], window: int = WINDOW) -> None:
    """Send publishes whose acks go to `_INBOX.fill`, with `window` of them unacknowledged at a time, and wait for the last
    ack."""
    link.sendall(b"SUB _INBOX.fill 1\r\n")
    waiting: Iterator[bytes] = iter(publishes)
    unacknowledged = 0
    rest = b""
    while True:
        pieces = list(islice(waiting, window - unacknowledged))
        if not pieces and not unacknowledged:
            return
        unacknowledged += len(pieces)
        if pieces and len(pieces[0]) > 1 << 16:
            for piece in pieces:  # a copy of each was a sixth of the time of an object's chunk
                link.sendall(piece)
        else:
            link.sendall(b"".join(pieces))
        received = rest + link.recv(1 << 18)
        end = received.rfind(b"}\r\n") + 3
        whole, rest = (received[:end], received[end:]) if end > 2 else (b"", received)
        if b"PING\r\n" in whole:
            link.sendall(b"PONG\r\n")
        if b'"error"' in whole or b"duplicate" in whole:
            raise Failure(f"a publish was refused: {whole[:300]!r}")
        unacknowledged -= len(ACK.findall(whole))


def read_all(
    link: socket.socket, messages: int, *, step: int = 1, pull: bool = True, acknowledge: bool = False
) -> None:
    """Pull everything, BATCH per request, or wait until it is pushed; the sequences in the ack subjects must be 1, 1 +
    step, and so on. Of each read the ack subjects are counted, and the first and the last are looked at: to make objects of
    all took the client more than a server took for a message, and the rate was the client's."""
    link.sendall(b"SUB _INBOX.replay 2\r\n")
    request = json.dumps({"batch": BATCH, "expires": 30_000_000_000}).encode()
    seen = requested = kept = 0
    buffer = bytearray(1 << 20)
    while seen < messages:
        if pull and requested - seen < BATCH and requested < messages:
            link.sendall(b"PUB $JS.API.CONSUMER.MSG.NEXT.FULL.R _INBOX.replay %d\r\n%b\r\n" % (len(request), request))
            requested += BATCH
        size = link.recv_into(memoryview(buffer)[kept:])
        if not size:
            raise Failure(f"closed after {seen} messages")
        filled = kept + size
        ending = buffer.rfind(b"x\r\n", 0, filled)  # payloads consist of x: this can only be the end of a message
        end = ending + 3 if ending >= 0 else 0
        found = buffer.count(ACK_SUBJECT, 0, end)
        if found:
            first, last = (
                int(SEQUENCE.match(buffer, at)[1])  # type: ignore[index]
                for at in (buffer.find(ACK_SUBJECT), buffer.rfind(ACK_SUBJECT, 0, end))
            )
            if (first, last) != (1 + step * seen, 1 + step * (seen + found - 1)):
                raise Failure(f"sequences {first} to {last} after {seen} messages")
        seen += found
        if acknowledge and found:
            subjects = WHOLE_ACK_SUBJECT.findall(buffer, 0, end)
            link.sendall(b"".join([b"PUB %b 4\r\n+ACK\r\n" % subject for subject in subjects]))
        if buffer.find(b"PING\r\n", 0, end) >= 0:
            link.sendall(b"PONG\r\n")
        kept = filled - end
        buffer[:kept] = buffer[end:filled]


# ── the ways into and out of a stream ──

WAYS_SUBJECTS = 10  # subjects of the replay, in turn
MESSAGE_ID = b"NATS/1.0\r\nNats-Msg-Id: %d\r\n\r\n"
THREE_HEADERS = b"NATS/1.0\r\nce-id: %d\r\nce-type: of.an.event\r\nce-source: /bench\r\n\r\n"
PUBLISHES = {"publish": b"", "publish, three headers": THREE_HEADERS, "publish, message id": MESSAGE_ID}
ACKNOWLEDGED: dict[str, object] = {"ack_policy": "explicit", "max_ack_pending": 2 * BATCH}
REPLAYS: dict[str, dict[str, object]] = {
    "replay": {"ack_policy": "none"},
    "replay, filter on all": {"ack_policy": "none", "filter_subject": "full.>"},
    "replay, filter on a tenth": {"ack_policy": "none", "filter_subject": "full.0"},
    "pull, each acknowledged": ACKNOWLEDGED,
    "pull, filter on all, each acknowledged": {**ACKNOWLEDGED, "filter_subject": "full.>"},
    "push": {"ack_policy": "none", "deliver_subject": "_INBOX.replay"},
}


def ways(server: Contestant, messages: int) -> dict[str, float]:
    """The server's CPU microseconds per message for each way into or out of a stream."""
    spent: dict[str, float] = {}
    control = open_link(server.port)
    with control:
        control.sendall(b"SUB _INBOX.ask 1\r\n")
        for name, block in PUBLISHES.items():
            if spent:
                ask(control, "$JS.API.STREAM.DELETE.FULL", None)
            ask(control, "$JS.API.STREAM.CREATE.FULL", {"name": "FULL", "subjects": ["full.*"], "storage": "file"})
            with open_link(server.port) as link:
                before = read_cpu_time(server.pid)
                store(link, _publishes(block, messages))
                spent[name] = 1e6 * read_cpu_time(server.pid).since(before).scheduled / messages
        for name, config in REPLAYS.items():
            spent[name] = _replay(server, control, config, messages)
        ask(control, "$JS.API.STREAM.DELETE.FULL", None)
    return spent


def _publishes(block: bytes, messages: int) -> Iterator[bytes]:
    body = b"x" * PAYLOAD
    for number in range(messages):
        subject = number % WAYS_SUBJECTS
        if block:
            headers = block % number
            sizes = (subject, len(headers), len(headers) + PAYLOAD, headers, body)
            yield b"HPUB full.%d _INBOX.fill %d %d\r\n%b%b\r\n" % sizes
        else:
            yield b"PUB full.%d _INBOX.fill %d\r\n%b\r\n" % (subject, PAYLOAD, body)


def _replay(server: Contestant, control: socket.socket, config: dict[str, object], messages: int) -> float:
    step = WAYS_SUBJECTS if config.get("filter_subject") == "full.0" else 1
    count = -(-messages // step)
    named = {"name": "R", "inactive_threshold": 60_000_000_000, **config}
    ask(control, "$JS.API.CONSUMER.CREATE.FULL.R", {"stream_name": "FULL", "config": named})
    with open_link(server.port) as link:
        before = read_cpu_time(server.pid)
        read_all(
            link,
            count,
            step=step,
            pull="deliver_subject" not in config,
            acknowledge=config["ack_policy"] == "explicit",
        )
        info: dict[str, object] = {"num_ack_pending": 1}
        deadline = time.monotonic() + 30
        while info["num_ack_pending"] and time.monotonic() < deadline:  # nats-server processes acks later
            info = ask(control, "$JS.API.CONSUMER.INFO.FULL.R", None)
            time.sleep(0.01)
        spent = read_cpu_time(server.pid).since(before).scheduled
    if info["num_ack_pending"] or info["num_pending"]:
        raise Failure(f"{count} messages were read and acknowledged, the consumer says {info}")
    ask(control, "$JS.API.CONSUMER.DELETE.FULL.R", None)
    return 1e6 * spent / count
