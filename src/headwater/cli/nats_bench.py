"""`headwater bench pub|sub|request|js`: the throughput of this client with a server, with the terms of `nats bench`.

Every figure is from this one process, and gives a first impression of a server. `./hw bench` compares clients and servers
carefully.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Annotated

from headwater.cli.commands import Argument, Commands, Option
from headwater.cli.nats_session import current, run_app, size, spell_bytes
from headwater.client.client import Client, connect_with

app = Commands("Measure a server with this client.")
Subject = Annotated[str, Argument()]
Messages = Annotated[int, Option("--msgs", min=1, help="messages of each client")]
Size = Annotated[str, Option("--size", help="of the payload")]
Clients = Annotated[int, Option("--clients", min=1)]
Quiet = Annotated[bool, Option("--no-progress")]


def bench(arguments: list[str]) -> int:
    """The verb `bench`."""
    return run_app(app, "bench", arguments)


Step = Callable[[int], None]
Work = Callable[[Client, Step], Awaitable[None]]


def _measure(what: str, clients: int, messages: int, payload: int, work: Work, *, quiet: bool) -> None:
    """Run `work` on this many clients at once, with a progress bar, and print the total."""
    session = current()

    async def run() -> float:
        from rich.console import Console
        from rich.progress import Progress

        connected = [await connect_with(session.options) for _ in range(clients)]
        try:
            with Progress(console=Console(stderr=True), disable=quiet or session.json) as progress:
                bar = progress.add_task(what, total=clients * messages)
                began = time.perf_counter()
                await asyncio.gather(
                    *(work(client, lambda count: progress.advance(bar, count)) for client in connected)
                )
                seconds = time.perf_counter() - began
                progress.update(bar, completed=clients * messages)  # publishers report every so many only
                return seconds
        finally:
            for client in connected:
                await client.close()

    seconds = asyncio.run(run())
    total = clients * messages
    document = {
        "what": what,
        "clients": clients,
        "messages": total,
        "size": payload,
        "seconds": seconds,
        "messages_per_second": total / seconds,
        "bytes_per_second": total * payload / seconds,
    }
    rate = f"{total / seconds:,.0f} msgs/sec ~ {spell_bytes(int(total * payload / seconds))}/sec"
    session.show(document, lambda: [f"{what} stats: {rate}", f" {total:,} messages of {payload} B in {seconds:.3f} s"])


@app.command("pub")
def bench_pub(
    subject: Subject,
    msgs: Messages = 100_000,
    size_text: Size = "128",
    clients: Clients = 1,
    no_progress: Quiet = False,
) -> None:
    """Publish."""
    payload = bytes(size(size_text))

    async def work(client: Client, step: Step) -> None:
        for number in range(1, msgs + 1):
            await client.publish(subject, payload)
            if number % 10_000 == 0:
                step(10_000)
        await client.flush(60.0)

    _measure("NATS Core publisher", clients, msgs, len(payload), work, quiet=no_progress)


@app.command("sub")
def bench_sub(
    subject: Subject,
    msgs: Messages = 100_000,
    size_text: Size = "128",
    clients: Clients = 1,
    no_progress: Quiet = False,
) -> None:
    """Receive what `bench pub`, elsewhere, publishes; each client receives all of it."""

    async def work(client: Client, step: Step) -> None:
        subscription = await client.subscribe(subject, max_messages=msgs, max_pending=msgs)
        await client.flush()
        async for batch in subscription.batches(1 << 14):
            step(len(batch))

    _measure("NATS Core subscriber", clients, msgs, size(size_text), work, quiet=no_progress)


@app.command("pubsub")
def bench_both(subject: Subject, msgs: Messages = 100_000, size_text: Size = "128", no_progress: Quiet = False) -> None:
    """Publish and receive, on a connection each."""
    payload = bytes(size(size_text))
    session = current()

    async def work(client: Client, step: Step) -> None:
        async with await connect_with(session.options) as other:
            subscription = await other.subscribe(subject, max_messages=msgs, max_pending=msgs)
            await other.flush()

            async def publish() -> None:
                for _ in range(msgs):
                    await client.publish(subject, payload)

            publishing = asyncio.create_task(publish())
            async for batch in subscription.batches(1 << 14):
                step(len(batch))
            await publishing

    _measure("NATS Core publisher and subscriber", 1, msgs, len(payload), work, quiet=no_progress)


@app.command("request")
def bench_request(
    subject: Subject,
    msgs: Messages = 10_000,
    size_text: Size = "128",
    outstanding: Annotated[int, Option("--outstanding", min=1, help="requests at a time")] = 1,
    no_progress: Quiet = False,
) -> None:
    """Ask, and answer on a connection of its own; prints the latency too."""
    payload = bytes(size(size_text))
    session = current()
    times: list[float] = []

    async def work(client: Client, step: Step) -> None:
        async with await connect_with(session.options) as service:
            service.deliver_directly(subject, lambda message: message.respond(message.data))
            await service.flush()

            async def ask(count: int) -> None:
                for _ in range(count):
                    began = time.perf_counter()
                    await client.request(subject, payload, timeout=session.timeout)
                    times.append(time.perf_counter() - began)
                    step(1)

            share, more = divmod(msgs, outstanding)
            await asyncio.gather(*(ask(share + (number < more)) for number in range(outstanding)))

    _measure("Request and reply", 1, msgs, len(payload), work, quiet=no_progress)
    if not session.json and len(times) > 1:
        cuts = statistics.quantiles(times, n=100)
        print(f" latency p50 {cuts[49] * 1e6:.0f} us, p99 {cuts[98] * 1e6:.0f} us")


@app.command("js")
def bench_jetstream(
    subject: Subject,
    msgs: Messages = 10_000,
    size_text: Size = "128",
    window: Annotated[int, Option("--window", "--batch", min=1, help="unacknowledged at a time")] = 500,
    no_progress: Quiet = False,
) -> None:
    """Publish to the stream that captures SUBJECT."""
    payload = bytes(size(size_text))
    session = current()

    async def work(client: Client, step: Step) -> None:
        async with client.jetstream(timeout=session.timeout).publisher(window) as publisher:
            for number in range(1, msgs + 1):
                await publisher.publish(subject, payload)
                if number % 1000 == 0:
                    step(1000)

    _measure("JetStream publisher", 1, msgs, len(payload), work, quiet=no_progress)
