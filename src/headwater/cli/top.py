"""`headwater top`: a live view of one broker in a terminal, from its monitoring port; works with nats-server, too.

headwater top                            http://127.0.0.1:8222, every two seconds, until Ctrl-C
headwater top -m http://host:8222 -d 5
headwater top --once --json              two measurements, for the rates, and one document, for scripts
"""

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING, Any

from headwater.operations.figures import Look, figures, look

if TYPE_CHECKING:
    from rich.console import Group

SORTS = ("bytes_to", "bytes_from", "msgs_to", "msgs_from", "subs", "pending", "idle", "rtt", "cid")
MOST_ROWS = 30


def main(arguments: list[str]) -> int:
    """The verb `top`."""
    parser = argparse.ArgumentParser(prog="headwater top", description="A live view of one broker.")
    parser.add_argument("-m", "--monitor", default="http://127.0.0.1:8222", metavar="URL", help="the monitoring port")
    parser.add_argument("-d", "--delay", type=float, default=2.0, metavar="SECONDS", help="between two looks")
    parser.add_argument("--sort", choices=SORTS, default="bytes_to", help="of the connections")
    parser.add_argument("--once", action="store_true", help="print once and end")
    parser.add_argument("--json", "-j", action="store_true", help="a document instead of tables; with --once")
    try:
        given = parser.parse_args(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)
    if given.json and not given.once:
        print("headwater top: --json goes with --once", file=sys.stderr)
        return 2
    before = look(given.monitor, time.monotonic(), given.sort)
    if given.once:
        time.sleep(max(given.delay, 0.0))
        found = figures(look(given.monitor, time.monotonic(), given.sort), before)
        if given.json:
            print(json.dumps(found, indent=2))
        else:
            _print_once(found)
        return 0
    return _live(given.monitor, given.delay, given.sort, before)


def _print_once(found: dict[str, Any]) -> None:
    from rich.console import Console

    (Console() if sys.stdout.isatty() else Console(width=4096)).print(view(found))


def _live(url: str, delay: float, sort: str, before: Look) -> int:
    from rich.live import Live

    from headwater.errors import TransportError

    with Live(view(figures(before, None)), screen=True, auto_refresh=False) as live:
        try:
            while True:
                time.sleep(max(delay, 0.1))
                try:
                    now = look(url, time.monotonic(), sort)
                except TransportError as error:
                    live.update(f"{error.message}; trying again", refresh=True)
                    continue
                live.update(view(figures(now, before)), refresh=True)
                before = now
        except KeyboardInterrupt:
            return 0


def view(found: dict[str, Any]) -> "Group":
    """The result of `figures` as tables."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    server, rates = found["server"], found["rates"]
    head = Text(f"{server['server_name']}  {server['version']}  up {server['uptime']}\n", style="bold")
    head.append(
        f"CPU {server['cpu']:.0f} %  memory {_bytes(server['mem'])}  slow consumers {server['slow_consumers']}\n", ""
    )
    head.append(
        f"connections {server['connections']} of {server['max_connections']}  subs {server['subscriptions']}\n", ""
    )
    flows = [
        f"{name.replace('_', ' ')} {_rate(name, rates)}" for name in ("in_msgs", "in_bytes", "out_msgs", "out_bytes")
    ]
    head.append("  ".join(flows))
    streams = Table("Stream", "Account", "Messages", "Bytes", "Writes", "Consumers", "Pending", title="Streams")
    for one in found["streams"][:MOST_ROWS]:
        pending = sum(consumer["num_pending"] or 0 for consumer in one["consumers"])
        writes = "–" if one["writes"] is None else f"{one['writes']:,.0f}/s"
        row = (
            one["name"],
            one["account"],
            f"{one['messages']:,}",
            _bytes(one["bytes"]),
            writes,
            len(one["consumers"]),
            pending,
        )
        streams.add_row(*(Text(str(cell)) for cell in row))
    clients = Table(
        "Id", "Name", "Account", "Client", "RTT", "Pending", "In", "Out", "Subs", "Idle", title="Connections"
    )
    for one in found["connections"][:MOST_ROWS]:
        client = f"{one.get('lang', '')} {one.get('version', '')}".strip()
        counts = (_bytes(one["pending_bytes"]), f"{one['in_msgs']:,}", f"{one['out_msgs']:,}", one["subscriptions"])
        line = (
            one["cid"],
            one.get("name", ""),
            one.get("account", ""),
            client,
            one.get("rtt", ""),
            *counts,
            one["idle"],
        )
        clients.add_row(*(Text(str(cell)) for cell in line))
    return Group(head, *([streams] if found["streams"] else []), clients)


def _rate(name: str, rates: dict[str, float]) -> str:
    if name not in rates:
        return "–"
    return f"{_bytes(rates[name])}/s" if name.endswith("bytes") else f"{rates[name]:,.0f}/s"


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
