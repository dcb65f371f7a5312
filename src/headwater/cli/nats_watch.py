"""`headwater events` and `headwater traffic`: live output until Ctrl-C or --count."""

import asyncio
import json
import sys
import time
from datetime import datetime
from typing import Annotated

from headwater.cli.commands import Commands, Option
from headwater.cli.nats_session import current, run_app, seconds, spell_bytes, table
from headwater.client.client import Client
from headwater.errors import AuthorizationError, ConfigError
from headwater.operations.servers import ask
from headwater.operations.watching import ADVISORIES, OF_SYSTEM, Rates, rates, read_event

events_app = Commands("events")
traffic_app = Commands("traffic")


def events(arguments: list[str]) -> int:
    """The verb `events`."""
    return run_app(events_app, "events", arguments)


def traffic(arguments: list[str]) -> int:
    """The verb `traffic`."""
    return run_app(traffic_app, "traffic", arguments)


@events_app.command()
def show_events(
    count: Annotated[int, Option("--count", min=0, help="end after so many; 0: never")] = 0,
    js_advisory: Annotated[bool, Option("--js-advisory/--no-js-advisory", help="of streams and consumers")] = True,
    srv_advisory: Annotated[
        bool, Option("--srv-advisory/--no-srv-advisory", help="of clients and servers, to the system account")
    ] = True,
    subject: Annotated[list[str] | None, Option("--subject", help="these in place of all; again for more")] = None,
) -> None:
    """Print advisories of streams and consumers; as a user of the system account, also who connects and disconnects."""
    session = current()
    subjects = subject or [*(ADVISORIES if js_advisory else ()), *(OF_SYSTEM if srv_advisory else ())]
    if not subjects:
        raise ConfigError("there is nothing left to print", hint="--js-advisory, --srv-advisory or --subject")

    async def run(client: Client) -> None:
        session.replays = False
        arrived: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
        subscriptions = [await client.subscribe(each) for each in subjects]
        await client.flush(session.timeout)
        print(f"Listening for events on {', '.join(subjects)}", file=sys.stderr, flush=True)
        async with asyncio.TaskGroup() as readers:

            async def read(number: int) -> None:
                async for message in subscriptions[number]:
                    arrived.put_nowait((message.subject, bytes(message.data)))

            tasks = [readers.create_task(read(number)) for number in range(len(subscriptions))]
            shown = 0
            while not count or shown < count:
                _show(*await arrived.get(), as_json=session.json)
                shown += 1
            for task in tasks:
                task.cancel()

    session.run(run)


def _show(subject: str, payload: bytes, *, as_json: bool) -> None:
    event = read_event(subject, payload)
    if as_json:
        print(json.dumps({"subject": subject, "kind": event.kind, "event": event.document}), flush=True)
        return
    print(f"[{datetime.now().astimezone():%H:%M:%S}] [{event.kind}] {event.text}", flush=True)


@traffic_app.command()
def show_traffic(
    interval: Annotated[str, Option("--interval", "-i", help="between two measurements")] = "2s",
    count: Annotated[int, Option("--count", min=0, help="end after so many; 0: never")] = 0,
) -> None:
    """Messages and bytes a second of every server, for users of the system account."""
    session, pause = current(), seconds(interval)
    if pause <= 0:
        raise ConfigError("the interval must be above 0", value=interval)

    async def run(client: Client) -> None:
        before, then = await ask(client, "PING.STATSZ", session.timeout), time.monotonic()
        shown = 0
        while not count or shown < count:
            await asyncio.sleep(pause)
            try:
                after, now = await ask(client, "PING.STATSZ", session.timeout), time.monotonic()
            except AuthorizationError:  # servers answered before: the client is reconnecting
                print("no server answers", file=sys.stderr, flush=True)
                continue
            _print_rates(rates(before, after, now - then), as_json=session.json)
            before, then, shown = after, now, shown + 1

    session.run(run)


def _print_rates(found: list[Rates], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([one._asdict() for one in found]), flush=True)
        return
    rows = [
        (
            one.server,
            one.connections,
            f"{one.messages_in:,.0f}/s",
            f"{one.messages_out:,.0f}/s",
            f"{spell_bytes(int(one.bytes_in))}/s",
            f"{spell_bytes(int(one.bytes_out))}/s",
        )
        for one in found
    ]
    table(f"{datetime.now().astimezone():%H:%M:%S}", ["Server", "Conns", "In", "Out", "Bytes in", "Bytes out"], rows)
