"""`headwater server …`: the servers of a cluster, and checks for monitoring systems (0 OK, 1 WARNING, 2 CRITICAL)."""

import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from msgspec import json

from headwater.cli.commands import Argument, Commands, Exit, Option
from headwater.cli.nats_session import current, jetstream_of, run_app, seconds, spell_bytes, table
from headwater.client.client import Client
from headwater.errors import HeadwaterError
from headwater.operations.servers import (
    CRITICAL,
    Check,
    Limits,
    ask,
    check_connection,
    check_consumer,
    check_jetstream,
    check_stream,
)

app = Commands("Servers.")
check_app = Commands("Checks in the words of Nagios.")
app.add("check", check_app)

Warn = Annotated[float | None, Option("--warn", help="above this it is a WARNING")]
Crit = Annotated[float | None, Option("--critical", help="above this it is CRITICAL")]


def server(arguments: list[str]) -> int:
    """The verb `server`."""
    return run_app(app, "server", arguments)


def _ask(what: str) -> list[dict[str, Any]]:
    return current().run(lambda client: ask(client, what, current().timeout))


@app.command("list")
@app.command("ls", hidden=True)
def list_servers() -> None:
    """All servers of the cluster, by the system account."""
    found = _ask("PING.VARZ")
    if current().json:
        current().show(found, list)
        return
    rows = [
        (
            one["server"]["name"],
            one["server"].get("cluster", ""),
            one["server"]["ver"],
            one["data"]["connections"],
            f"{one['data']['subscriptions']:,}",
            one["data"]["routes"],
            f"{one['data']['cpu']:.0f} %",
            spell_bytes(one["data"]["mem"]),
            one["data"]["slow_consumers"],
            one["data"]["uptime"],
        )
        for one in found
    ]
    headings = ["Name", "Cluster", "Version", "Conns", "Subs", "Routes", "CPU", "Memory", "Slow", "Uptime"]
    table(f"{len(rows)} servers", headings, rows)


@app.command("info")
def server_info(
    name: Annotated[str, Argument(help="name or id; none: the one that we are connected to")] = "",
) -> None:
    """One server, by what it greets with and, to the system account, by all that it says."""

    async def run(client: Client) -> dict[str, Any]:
        if not name:
            await client.flush(current().timeout)
            return {"url": client.server, **_greeting(client)}
        for one in await ask(client, "PING.VARZ", current().timeout):
            if name in (one["server"]["name"], one["server"]["id"]):
                found: dict[str, Any] = one["data"]
                return found
        raise HeadwaterError(f"no server {name!r} answers", value=name)

    found = current().run(run)
    current().show(
        found, lambda: [f"{key:>24}: {value}" for key, value in found.items() if not isinstance(value, dict)]
    )


def _greeting(client: Client) -> dict[str, Any]:
    """The server's INFO as received, without empty fields."""
    info = client.server_info
    fields = ((name, getattr(info, name)) for name in type(info).__annotations__)
    return {name: value for name, value in fields if isinstance(value, str | int | bool) and value}


@app.command("ping")
def ping_servers() -> None:
    """Ask all servers, and say how long each takes to answer."""

    async def run(client: Client) -> list[dict[str, Any]]:
        inbox = client.new_inbox()
        subscription = await client.subscribe(inbox)
        began, found = time.perf_counter(), list[dict[str, Any]]()
        await client.publish("$SYS.REQ.SERVER.PING", b"", reply=inbox)
        try:
            while True:
                message = await subscription.next(0.3 if found else current().timeout)
                rtt = time.perf_counter() - began
                if message.data:
                    found.append({"rtt": rtt, "server": json.decode(message.data)["server"]})
                else:
                    break
        except TimeoutError:
            pass
        return found

    found = current().run(run)
    if not found:
        _ask("PING")  # raises the reason
    current().show(found, lambda: [f"{one['server']['name']:<32} rtt={one['rtt'] * 1000:.3f}ms" for one in found])


@app.command("report")
def report_servers() -> None:
    """Messages, bytes and JetStream of all servers."""
    found = _ask("PING.VARZ")
    if current().json:
        current().show(found, list)
        return
    rows = []
    for one in found:
        data = one["data"]
        stats = data.get("jetstream", {}).get("stats", {})
        rows.append(
            (
                one["server"]["name"],
                f"{data['in_msgs']:,}",
                f"{data['out_msgs']:,}",
                spell_bytes(data["in_bytes"]),
                spell_bytes(data["out_bytes"]),
                spell_bytes(stats.get("storage", 0)),
                spell_bytes(stats.get("memory", 0)),
                stats.get("api", {}).get("total", 0),
                stats.get("api", {}).get("errors", 0),
            )
        )
    table("Servers", ["Name", "Msgs In", "Msgs Out", "In", "Out", "On Disk", "In Memory", "API", "API Errors"], rows)


# ── checks ──


def _check(name: str, run: Callable[[Client], Awaitable[Check]]) -> None:
    """Print a check; any failure to make it is CRITICAL. Raises Exit with its state."""
    try:
        made = current().run(run)
    except (HeadwaterError, TimeoutError, OSError) as error:
        made = Check(name, CRITICAL, str(getattr(error, "message", error)), {})
    document = {"name": made.name, "state": made.line().split(" ", 1)[0], "text": made.text, "figures": made.figures}
    current().show(document, lambda: [made.line()])
    raise Exit(made.state)


@check_app.command("connection")
def connection(
    warn: Annotated[str, Option("--rtt-warn")] = "", critical: Annotated[str, Option("--rtt-critical")] = ""
) -> None:
    """Whether the server takes us, and how far away it is."""
    limits = Limits(seconds(warn) if warn else None, seconds(critical) if critical else None)

    async def run(client: Client) -> Check:
        began = time.perf_counter()
        await client.flush(current().timeout)
        return check_connection(time.perf_counter() - began, limits)

    _check("Connection", run)


@check_app.command("stream")
def stream(
    name: Annotated[str, Option("--stream")],
    least: Annotated[int, Option("--messages", help="fewer are CRITICAL")] = 0,
    age: Annotated[str, Option("--peer-seen-critical", help="a source that is silent for so long is CRITICAL")] = "0s",
    lag_warn: Annotated[float | None, Option("--lag-warn")] = None,
    lag_critical: Annotated[float | None, Option("--lag-critical")] = None,
) -> None:
    """Whether a stream holds messages and follows its sources."""
    lag = Limits(lag_warn, lag_critical)
    _check(
        f"Stream {name}",
        lambda client: check_stream(jetstream_of(client), name, least=least, most_age=seconds(age), lag=lag),
    )


@check_app.command("consumer")
def consumer(
    stream: Annotated[str, Option("--stream")],
    name: Annotated[str, Option("--consumer")],
    pending_warn: Annotated[float | None, Option("--pending-warn")] = None,
    pending_critical: Annotated[float | None, Option("--pending-critical")] = None,
    unacked_warn: Annotated[float | None, Option("--outstanding-ack-warn")] = None,
    unacked_critical: Annotated[float | None, Option("--outstanding-ack-critical")] = None,
) -> None:
    """Whether a consumer keeps up."""
    pending, unacked = Limits(pending_warn, pending_critical), Limits(unacked_warn, unacked_critical)
    _check(
        f"Consumer {stream} > {name}",
        lambda client: check_consumer(jetstream_of(client), stream, name, pending=pending, unacked=unacked),
    )


@check_app.command("jetstream")
def jetstream(warn: Warn = 75, critical: Crit = 90) -> None:
    """Whether the account has room left, in percent of its limits."""
    _check("JetStream", lambda client: check_jetstream(jetstream_of(client), Limits(warn, critical)))
