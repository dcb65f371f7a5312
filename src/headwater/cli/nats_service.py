"""`headwater service …` (or `micro`): services that answer on `$SRV`, with the terms and options of the `nats` tool."""

import asyncio
import time
from typing import Annotated, TypeVar

import msgspec

from headwater.cli.commands import Argument, Commands, Option
from headwater.cli.nats_session import current, run_app, table
from headwater.cli.payloads import plain
from headwater.client.client import Client
from headwater.client.service import Request, ServiceInfo, ServicePing, ServiceStats, add_service
from headwater.client.units import read_wire, write_wire
from headwater.errors import ConfigError

app = Commands("Services (micro).")
Name = Annotated[str, Argument(metavar="SERVICE")]
Id = Annotated[str, Argument(metavar="ID", help="of one instance")]
QUIET_SECONDS = 0.5  # after the last answer: the number of instances is unknown

T = TypeVar("T", bound=ServicePing)


def service(arguments: list[str]) -> int:
    """The verbs `service` and `micro`."""
    return run_app(app, "service", arguments)


@app.command("ls")
@app.command("list", hidden=True)
def list_services(name: Name = "") -> None:
    """The services that answer."""
    found = [info for info, _ in current().run(lambda client: _ask_all(client, "INFO", name, "", ServiceInfo))]
    if current().json:
        current().show(found, list)
    elif not found:
        print("No Services found")
    else:
        rows = ((each.name, each.version, each.id, each.description, len(each.endpoints)) for each in found)
        table("All Services", ["Name", "Version", "ID", "Description", "Endpoints"], rows)


@app.command("info")
def info(name: Name, instance: Id = "") -> None:
    """What a service says of itself."""
    found = _first(name, instance, "INFO", ServiceInfo)
    lines = [
        "Service Information",
        "",
        f"        Service: {found.name} ({found.id})",
        f"    Description: {found.description}",
        f"        Version: {found.version}",
        *(f"       Metadata: {key}: {value}" for key, value in found.metadata.items()),
        "",
        "Endpoints:",
        *(f"  {each.name}: {each.subject} in group {each.queue_group}" for each in found.endpoints),
    ]
    current().show(found, lambda: lines)


@app.command("stats")
def stats(name: Name, instance: Id = "") -> None:
    """What the endpoints of a service have done, a row for each of each instance."""
    found = [
        reply for reply, _ in current().run(lambda client: _ask_all(client, "STATS", name, instance, ServiceStats))
    ]
    if not found:
        raise _no_service(name)
    if current().json:
        current().show(found, list)
        return
    table(
        f"{name} Service Statistics",
        ["ID", "Endpoint", "Requests", "Queue Group", "Errors", "Processing Time", "Average Time"],
        (
            (
                each.id,
                endpoint.name,
                f"{endpoint.num_requests:,}",
                endpoint.queue_group,
                endpoint.num_errors,
                f"{endpoint.processing_time * 1e3:.3f}ms",
                f"{endpoint.average_processing_time * 1e3:.3f}ms",
            )
            for each in found
            for endpoint in each.endpoints
        ),
    )


@app.command("ping")
def ping(name: Name = "") -> None:
    """Who answers, and after how long."""
    found = current().run(lambda client: _ask_all(client, "PING", name, "", ServicePing))
    if current().json:
        current().show([{**msgspec.to_builtins(reply, enc_hook=write_wire), "rtt": rtt} for reply, rtt in found], list)
        return
    for reply, rtt in found:
        print(f"{reply.name} {reply.version} {reply.id} rtt={rtt * 1000:.3f}ms")
    if not found:
        print("No Services found")


@app.command("serve")
def serve(
    name: Name,
    version: Annotated[str, Option("--version")] = "1.0.0",
    description: Annotated[str, Option("--description")] = "headwater service serve",
    count: Annotated[int, Option("--count", min=0, help="end after so many requests; 0: never")] = 0,
) -> None:
    """Run a service for trying things out: NAME.echo answers with the request."""

    async def run(client: Client) -> None:
        done = asyncio.Event()
        number = 0

        async def echo(request: Request) -> None:
            nonlocal number
            number += 1
            print(f"[#{number}] Received on subject {request.subject!r}: {plain(request.data)}", flush=True)
            request.respond(request.data)
            if number == count:
                done.set()

        async with await add_service(client, name, version, description=description) as running:
            await running.group(name).endpoint("echo", echo)
            await client.flush(current().timeout)
            print(f"Service {name} ({running.id}) answers on {name}.echo", flush=True)
            await done.wait()

    current().run(run)


async def _ask_all(client: Client, verb: str, name: str, instance: str, kind: type[T]) -> list[tuple[T, float]]:
    """All answers to `$SRV.<verb>[.<name>[.<id>]]`, each with its latency in seconds, sorted by name and id."""
    inbox = client.new_inbox()
    answers = await client.subscribe(inbox)
    began = time.perf_counter()
    client.publish(".".join(["$SRV", verb, *filter(None, (name, instance))]), reply=inbox)
    found: list[tuple[T, float]] = []
    try:
        async with asyncio.timeout(current().timeout) as patience:
            async for message in answers:
                if message.status is not None:
                    break  # no responders
                found.append(
                    (msgspec.json.decode(message.data, type=kind, dec_hook=read_wire), time.perf_counter() - began)
                )
                if instance:
                    break
                now = asyncio.get_running_loop().time()
                patience.reschedule(now + min(current().timeout, QUIET_SECONDS))
    except TimeoutError:
        pass
    finally:
        answers.unsubscribe()
    return sorted(found, key=lambda one: (one[0].name, one[0].id))


def _first(name: str, instance: str, verb: str, kind: type[T]) -> T:
    found = current().run(lambda client: _ask_all(client, verb, name, instance, kind))
    if not found:
        raise _no_service(name)
    return found[0][0]


def _no_service(name: str) -> ConfigError:
    return ConfigError(f"no service {name!r} answers", value=name, hint="headwater service ls")
