"""One client under measurement, in its own process: `client_load.py SPEC` prints one JSON object.

The result is the CPU time of this process (user and system, all threads) from the first message to the last, per message.
The sender of messages received here, and the responder to requests made here, are other processes: `client_load.py FEED`
with a raw socket and prebuilt buffers, and a responder. So a client never competes with its own peer for CPU in the
measurement.
"""

import asyncio
import json
import os
import resource
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, replace
from itertools import repeat
from typing import Any

# Loops that publish use `itertools.repeat`: creating a number for each message would be measured as the client's work.
PAYLOAD = b"x" * 128
SUBJECT = "bench.client"
WRITE_SIZE = 1 << 16
TIMEOUT = 60.0
HELD = 65536  # messages that a subscription may hold in a flood that is not read


@dataclass(frozen=True, slots=True)
class Spec:
    """One run."""

    role: str  # a key of ROLES
    case: str
    port: int
    messages: int
    loop: str = "asyncio"


@dataclass(frozen=True, slots=True)
class Outcome:
    """`cpu` and `seconds` are for all messages together; `memory` is in MiB, if it was measured."""

    messages: int
    cpu: float
    seconds: float
    memory: float = 0.0


class Stopwatch:
    """CPU and elapsed time since it was created."""

    def __init__(self) -> None:
        self._cpu, self._wall = _cpu(), time.perf_counter()

    def read(self, messages: int) -> Outcome:
        return Outcome(messages, _cpu() - self._cpu, time.perf_counter() - self._wall)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _peak() -> float:
    """The peak resident memory of this process, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def _fed() -> None:
    """Wait until the benchmark reports that everything was sent."""
    await asyncio.to_thread(sys.stdin.readline)


def print_ready() -> None:
    """Report to the benchmark that the subscription is established."""
    print("ready", flush=True)


# ── Headwater ──


async def headwater_client(spec: Spec) -> Outcome:
    import headwater

    client = await headwater.connect(f"nats://127.0.0.1:{spec.port}", reconnect=False)
    run: Callable[[Any, Spec], Awaitable[Outcome]] = {
        "publish": _headwater_publish,
        "publish_many": _headwater_publish_many,
        "iterate": _headwater_iterate,
        "callback": _headwater_callback,
        "coroutine": _headwater_coroutine,
        "flood": _headwater_flood,
        "batches": _headwater_batches,
        "arrow": _headwater_arrow,
        "request1": _headwater_request,
        "request64": _headwater_request,
    }[spec.case]
    outcome = await run(client, spec)
    await client.close()
    return outcome


async def _headwater_publish(client: Any, spec: Spec) -> Outcome:
    watch = Stopwatch()
    for _ in repeat(None, spec.messages):
        await client.publish(SUBJECT, PAYLOAD)
    await client.flush(TIMEOUT)
    return watch.read(spec.messages)


async def _headwater_publish_many(client: Any, spec: Spec) -> Outcome:
    """A tuple is made for each message, as a program would that has payloads for a subject."""
    watch = Stopwatch()
    await client.publish_many(zip(repeat(SUBJECT, spec.messages), repeat(PAYLOAD)))
    await client.flush(TIMEOUT)
    return watch.read(spec.messages)


async def _headwater_subscription(client: Any, spec: Spec) -> Any:
    subscription = await client.subscribe(
        SUBJECT, max_messages=spec.messages, max_pending=spec.messages, max_pending_bytes=1 << 29
    )
    await client.flush()
    print_ready()
    return subscription


async def _headwater_iterate(client: Any, spec: Spec) -> Outcome:
    subscription = await _headwater_subscription(client, spec)
    first = await subscription.next()
    watch = Stopwatch()
    seen = len(first.data)
    async for message in subscription:
        seen += len(message.data)
    return _checked(watch, spec, seen)


async def _headwater_callback(client: Any, spec: Spec) -> Outcome:
    subscription = await _headwater_subscription(client, spec)
    first = await subscription.next()
    seen = len(first.data)

    def take(message: Any) -> None:
        nonlocal seen
        seen += len(message.data)

    watch = Stopwatch()
    subscription.serve(take)
    await subscription.task
    return _checked(watch, spec, seen)


async def _headwater_coroutine(client: Any, spec: Spec) -> Outcome:
    subscription = await _headwater_subscription(client, spec)
    first = await subscription.next()
    seen = len(first.data)

    async def take(message: Any) -> None:
        nonlocal seen
        seen += len(message.data)

    watch = Stopwatch()
    subscription.serve(take)
    await subscription.task
    return _checked(watch, spec, seen)


async def _headwater_flood(client: Any, spec: Spec) -> Outcome:
    subscription = await client.subscribe(SUBJECT, max_pending=HELD)
    await client.flush()
    print_ready()
    before, watch = _peak(), Stopwatch()
    await _fed()
    await client.flush(TIMEOUT)
    outcome = watch.read(spec.messages)
    if (subscription.pending, subscription.dropped) != (HELD, spec.messages - HELD):
        raise SystemExit(f"{subscription.pending} messages wait, and {subscription.dropped} were dropped")
    return replace(outcome, memory=_peak() - before)


async def _headwater_batches(client: Any, spec: Spec) -> Outcome:
    subscription = await _headwater_subscription(client, spec)
    first = await subscription.next()
    watch = Stopwatch()
    count = len(first.data) // len(PAYLOAD)
    async for batch in subscription.batches(1 << 16):
        count += len(batch)
    return _checked(watch, spec, count * len(PAYLOAD))


async def _headwater_arrow(client: Any, spec: Spec) -> Outcome:
    import headwater.client_connection.arrow  # noqa: F401 - its import is not what is measured

    subscription = await _headwater_subscription(client, spec)
    batches = subscription.record_batches(linger=0.005)
    first = await anext(batches)
    watch = Stopwatch()
    rows = first.num_rows
    async for batch in batches:
        rows += batch.num_rows
    return _checked(watch, spec, rows * len(PAYLOAD))


async def _headwater_request(client: Any, spec: Spec) -> Outcome:
    return await _ask(spec, lambda: client.request(SUBJECT, PAYLOAD, timeout=TIMEOUT))


# ── nats-py ──


async def nats_py_client(spec: Spec) -> Outcome:
    import nats

    client = await nats.connect(f"nats://127.0.0.1:{spec.port}", allow_reconnect=False)
    if spec.case == "publish":
        watch = Stopwatch()
        for _ in repeat(None, spec.messages):
            await client.publish(SUBJECT, PAYLOAD)
        await client.flush(int(TIMEOUT))
        outcome = watch.read(spec.messages)
    elif spec.case.startswith("request"):
        outcome = await _ask(spec, lambda: client.request(SUBJECT, PAYLOAD, timeout=TIMEOUT))
    else:
        outcome = await _nats_py_receive(client, spec)
    await client.close()
    return outcome


async def _nats_py_receive(client: Any, spec: Spec) -> Outcome:
    if spec.case == "flood":
        await client.subscribe(SUBJECT, pending_msgs_limit=HELD)
        await client.flush()
        print_ready()
        before, watch = _peak(), Stopwatch()
        await _fed()
        await client.flush(int(TIMEOUT))
        return replace(watch.read(spec.messages), memory=_peak() - before)
    limits = {"pending_msgs_limit": spec.messages + 1, "pending_bytes_limit": 1 << 29}
    began: Stopwatch | None = None
    seen = 0
    done = asyncio.Event()

    async def take(message: Any) -> None:
        nonlocal began, seen
        began = began or Stopwatch()
        seen += len(message.data)
        if seen == spec.messages * len(PAYLOAD):
            done.set()

    if spec.case == "callback":
        await client.subscribe(SUBJECT, cb=take, **limits)
        await client.flush()
        print_ready()
        await done.wait()
    else:
        subscription = await client.subscribe(SUBJECT, **limits)
        await client.flush()
        print_ready()
        async for message in subscription.messages:
            await take(message)
            if done.is_set():
                break
    assert began is not None
    return _checked(began, spec, seen)


# ── natsrpy ──


async def natsrpy_client(spec: Spec) -> Outcome:
    from natsrpy import Nats

    client = Nats([f"nats://127.0.0.1:{spec.port}"])
    await client.startup()
    if spec.case == "publish":
        watch = Stopwatch()
        for _ in repeat(None, spec.messages):
            await client.publish(SUBJECT, PAYLOAD)
        await client.flush()
        outcome = watch.read(spec.messages)
    elif spec.case.startswith("request"):
        outcome = await _ask(spec, lambda: client.request(SUBJECT, PAYLOAD, timeout=TIMEOUT))
    else:
        listening: Any = client.subscribe(SUBJECT)
        async with listening as subscription:
            await client.flush()
            print_ready()
            watch, count = Stopwatch(), 0
            async for _ in subscription:
                count += 1
                if count == 1:
                    watch = Stopwatch()
                if count == spec.messages:
                    break
        outcome = _checked(watch, spec, count * len(PAYLOAD))
    await client.shutdown()
    return outcome


# ── all ──


async def _ask(spec: Spec, ask: Callable[[], Awaitable[Any]]) -> Outcome:
    """Requests with 1 or 64 outstanding, from as many workers with one at a time."""
    workers = 64 if spec.case == "request64" else 1
    each = spec.messages // workers

    async def work(count: int) -> None:
        for _ in range(count):
            await ask()

    await asyncio.gather(*(work(2) for _ in range(workers)))  # creates everything that is created only once
    watch = Stopwatch()
    await asyncio.gather(*(work(each) for _ in range(workers)))
    return watch.read(each * workers)


def _checked(watch: Stopwatch, spec: Spec, seen: int) -> Outcome:
    outcome = watch.read(spec.messages)
    if seen != spec.messages * len(PAYLOAD):
        raise SystemExit(f"{spec.role} {spec.case}: {seen} bytes came, {spec.messages * len(PAYLOAD)} were sent")
    return outcome


async def responder(spec: Spec) -> Outcome:
    """Answers until its parent ends it."""
    import headwater

    client = await headwater.connect(f"nats://127.0.0.1:{spec.port}", reconnect=False)
    client.deliver_directly(SUBJECT, lambda message: message.respond(message.data))
    await client.flush()
    print_ready()
    await client.wait_closed()
    return Outcome(0, 0.0, 0.0)


def feed(spec: Spec) -> Outcome:
    """Publishes `messages` as fast as the server accepts them."""
    link = socket.create_connection(("127.0.0.1", spec.port), TIMEOUT)
    _read_until(link, b"\r\n")
    link.sendall(b'CONNECT {"verbose":false,"pedantic":false}\r\nPING\r\n')
    _read_until(link, b"PONG\r\n")
    op = b"PUB %s %d\r\n%s\r\n" % (SUBJECT.encode(), len(PAYLOAD), PAYLOAD)
    many = WRITE_SIZE // len(op)
    left = spec.messages
    while left > 0:
        link.sendall(op * min(many, left))
        left -= many
    link.sendall(b"PING\r\n")
    _read_until(link, b"PONG\r\n")
    return Outcome(spec.messages, 0.0, 0.0)


def _read_until(link: socket.socket, ending: bytes) -> None:
    received = b""
    while not received.endswith(ending):
        chunk = link.recv(65536)
        if not chunk:
            raise SystemExit(f"the server closed after {received[-200:]!r}")
        received += chunk


ROLES: dict[str, Callable[[Spec], Awaitable[Outcome]]] = {
    "headwater": headwater_client,
    "nats-py": nats_py_client,
    "natsrpy": natsrpy_client,
    "responder": responder,
}


def main() -> int:
    spec = Spec(**json.loads(sys.argv[1]))
    if spec.role == "feed":
        outcome = feed(spec)
    elif spec.loop == "uvloop":
        import uvloop

        outcome = uvloop.run(ROLES[spec.role](spec))  # type: ignore[arg-type]
    else:
        outcome = asyncio.run(ROLES[spec.role](spec))  # type: ignore[arg-type]
    print(json.dumps(asdict(outcome)), flush=True)
    if spec.role == "natsrpy":  # a thread of its own that wants the GIL while the interpreter ends aborts the process
        os._exit(0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
