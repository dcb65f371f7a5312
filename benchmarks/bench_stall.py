"""How long a bystander waits for a PONG while another client requests something expensive: `./hw bench stall`.

nats-server and ours run all the time, with the same configuration (a thousand accounts); repetitions alternate A B A B. A
row is one kind of expensive request. Another process (`stall_bystander.py`) has its own connection, sends a PING every
millisecond, and occasionally opens a new connection; the result is its worst PING between the request and the end of the
answer. The goal: the median of the worst PINGs is below GOAL, or below twice nats-server's, whichever is more. `nothing` is
the same without a request and shows the machine's own delays. A row that one of the servers does not support says so.
"""

import argparse
import asyncio
import json
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

from contestants import Contestant, describe_machine, refuse_interpreted, start_headwater, start_nats_server
from load_generator import Failure, read_until
from stream_load import ask, store

import headwater
from headwater.operations.backups import save_stream
from headwater.testing.ports import free_port

GOAL = 0.050  # seconds
ACCOUNTS = 1000
REQUEST_SECONDS = 120.0
FLOOD_SECONDS = 1.0
BIG, SMALL, PLAIN = "KV_BIG", "SMALL", "PLAIN"
_PAYLOAD = b"x" * 64


class Sizes(NamedTuple):
    """The amounts of everything on a server."""

    connections: int = 10_000
    subjects: int = 100_000
    consumers: int = 1000
    keys: int = 1_000_000
    poll: int = 64 << 20


SMOKE = Sizes(connections=50, subjects=500, consumers=20, keys=2000, poll=1 << 20)


def open_as(port: int, user: str) -> socket.socket:
    """A connection of one of the configured users."""
    link = socket.create_connection(("127.0.0.1", port), REQUEST_SECONDS)
    read_until(link, b"\r\n")
    link.sendall(b'CONNECT {"verbose":false,"headers":true,"user":"%b","pass":"bench"}\r\nPING\r\n' % user.encode())
    read_until(link, b"PONG\r\n")
    return link


def configuration(directory: Path, accounts: int) -> str:
    """The same for both servers, except for the directory."""
    others = "\n".join(f"  A{n}: {{ users: [{{ user: u{n}, password: bench }}] }}" for n in range(accounts))
    return f"""
http: "127.0.0.1:{free_port()}"
jetstream {{ store_dir: "{directory}" }}
accounts {{
  APP: {{ jetstream: enabled, users: [{{ user: bench, password: bench }}] }}
  SYS: {{ users: [{{ user: sys, password: bench }}] }}
{others}
}}
system_account: SYS
no_auth_user: bench
ping_interval: "1h"
"""


class Side:
    """One server with all its contents, and its bystander."""

    def __init__(self, server: Contestant, config: Path, sizes: Sizes, iggy_port: int, stack: ExitStack) -> None:
        self.server, self.sizes, self.iggy_port = server, sizes, iggy_port
        self.name = server.name
        self._config = config
        text = config.read_text()
        self._http = int(text.split('http: "127.0.0.1:')[1].split('"')[0])
        script = str(Path(__file__).with_name("stall_bystander.py"))
        self._bystander = subprocess.Popen(
            [sys.executable, script, str(server.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        stack.callback(self._end)
        self.link = stack.enter_context(open_as(server.port, "bench"))
        self.link.sendall(b"SUB _INBOX.ask 1\r\n")
        self.system = stack.enter_context(open_as(server.port, "sys"))
        self.system.sendall(b"SUB _INBOX.ask 1\r\n")

    def _end(self) -> None:
        self._bystander.kill()
        self._bystander.wait(10)

    def watched(self, request: Callable[["Side"], None]) -> dict[str, float]:
        """The bystander's measurements while `request` was made."""
        self._command("watch", "watching")
        began = time.perf_counter()
        request(self)
        took = time.perf_counter() - began
        seen: dict[str, float] = json.loads(self._command("end"))
        return {**seen, "took": took}

    def _command(self, line: str, expected: str = "") -> str:
        """Send a line to the bystander; returns its answer."""
        pipe_in, pipe_out = self._bystander.stdin, self._bystander.stdout
        assert pipe_in is not None and pipe_out is not None
        print(line, file=pipe_in, flush=True)
        answer = pipe_out.readline().strip()
        if not answer or expected not in answer:
            raise Failure("the bystander has ended")
        return answer

    # ── contents ──

    def connect_many(self) -> None:
        """Idle clients with ten subscriptions each."""
        self._command(f"hold {self.sizes.connections}", "held")

    def fill_big(self) -> None:
        """A bucket of many keys, the last of which has a special name."""
        config = {"subjects": ["$KV.BIG.>"], "max_msgs_per_subject": 1, "allow_direct": True, "discard": "new",
                  "allow_rollup_hdrs": True, "deny_delete": True}  # fmt: skip
        self.fill(BIG, config, b"$KV.BIG.k", self.sizes.keys)
        self.publish([b"$KV.BIG.last"])

    def fill(self, name: str, config: dict[str, Any], subject: bytes, messages: int) -> None:
        """A stream that holds one message on each of `messages` subjects; a full one is kept."""
        try:
            if ask(self.link, f"$JS.API.STREAM.INFO.{name}", None)["state"]["messages"] >= messages:  # type: ignore[index]
                return
        except Failure:
            ask(self.link, f"$JS.API.STREAM.CREATE.{name}", {"name": name, "storage": "file", **config})
        self.publish(b"%b.%d" % (subject, number) for number in range(messages))

    def publish(self, subjects: Any) -> None:
        with open_as(self.server.port, "bench") as link:
            store(link, (b"PUB %b _INBOX.fill %d\r\n%b\r\n" % (one, len(_PAYLOAD), _PAYLOAD) for one in subjects))

    def add_consumers(self) -> None:
        """Durable consumers on a stream of their own."""
        ask(self.link, f"$JS.API.STREAM.CREATE.{PLAIN}", {"name": PLAIN, "subjects": ["plain"], "storage": "memory"})
        for number in range(self.sizes.consumers):
            config = {"durable_name": f"C{number}", "ack_policy": "explicit"}
            document = {"stream_name": PLAIN, "config": config}
            ask(self.link, f"$JS.API.CONSUMER.DURABLE.CREATE.{PLAIN}.C{number}", document)

    # ── requests ──

    def get(self, path: str) -> None:
        """One GET, with its body read to the end."""
        with socket.create_connection(("127.0.0.1", self._http), REQUEST_SECONDS) as link:
            link.sendall(b"GET %b HTTP/1.0\r\n\r\n" % path.encode())
            while link.recv(1 << 20):
                pass

    def read_until_status(self, request: bytes, *endings: bytes) -> None:
        """Send `request` on a new connection, and read until one of `endings` appears."""
        with open_as(self.server.port, "bench") as link:
            link.sendall(b"SUB _INBOX.much 1\r\n" + request)
            received = b""
            while not any(ending in received for ending in endings):
                chunk = link.recv(1 << 20)
                if not chunk:
                    raise Failure("cut off in the middle of an answer")
                received = received[-max(map(len, endings)) :] + chunk

    def reload(self) -> None:
        """Reload the configuration with one more account; it is done when a user of that account can connect."""
        text = self._config.read_text()
        name = f"N{time.time_ns()}"
        account = f"  {name}: {{ users: [{{ user: {name}, password: bench }}] }}\n}}\nsystem_account"
        self._config.write_text(text.replace("}\nsystem_account", account))
        os.kill(self.server.pid, signal.SIGHUP)
        deadline = time.monotonic() + REQUEST_SECONDS
        while time.monotonic() < deadline:
            try:
                open_as(self.server.port, name).close()
                return
            except (Failure, ConnectionError):
                time.sleep(0.05)
        raise Failure("the reload brought no account")


def request(subject: str, document: object) -> Callable[[Side], None]:
    """A JetStream request whose answer is one message."""
    return lambda side: void(ask(side.link, subject, document))


def void(_: object) -> None:
    """Discards a value, for use in a lambda."""


def ask_system(subject: str, document: object) -> Callable[[Side], None]:
    return lambda side: void(ask(side.system, subject, document))


def connz(side: Side) -> None:
    side.get(f"/connz?limit={side.sizes.connections + 10}&subs=1")


def subsz(side: Side) -> None:
    side.get(f"/subsz?subs=1&limit={10 * side.sizes.connections + 100}")


def system_connz(side: Side) -> None:
    ask_system("$SYS.REQ.SERVER.PING.CONNZ", {"limit": side.sizes.connections + 10, "subscriptions": True})(side)


def system_subsz(side: Side) -> None:
    limit = 10 * side.sizes.connections + 100
    ask_system("$SYS.REQ.SERVER.PING.SUBSZ", {"limit": limit, "subscriptions": True})(side)


def consumer_list(side: Side) -> None:
    for offset in range(0, side.sizes.consumers, 256):
        ask(side.link, f"$JS.API.CONSUMER.LIST.{PLAIN}", {"offset": offset})


def direct_batch(side: Side) -> None:
    body = json.dumps({"seq": 1, "batch": side.sizes.subjects}).encode()
    op = b"PUB $JS.API.DIRECT.GET.%b _INBOX.much %d\r\n%b\r\n" % (BIG.encode(), len(body), body)
    side.read_until_status(op, b"204 EOB")


def direct_last(side: Side) -> None:
    body = json.dumps({"multi_last": ["$KV.BIG.>"], "batch": 1000}).encode()
    op = b"PUB $JS.API.DIRECT.GET.%b _INBOX.much %d\r\n%b\r\n" % (BIG.encode(), len(body), body)
    side.read_until_status(op, b"204 EOB", b" 413 ")  # nats-server refuses this many


def sparse_filter(side: Side) -> None:
    """From after the first message, so that the number of matches can only be found by reading the log."""
    name = f"S{time.time_ns()}"
    config = {"filter_subject": "$KV.BIG.last", "deliver_policy": "by_start_sequence", "opt_start_seq": 2,
              "deliver_subject": "_INBOX.much", "ack_policy": "none", "name": name}  # fmt: skip
    body = json.dumps({"stream_name": BIG, "config": config}).encode()
    op = b"PUB $JS.API.CONSUMER.CREATE.%b.%b.$KV.BIG.last _INBOX.made %d\r\n%b\r\n"
    side.read_until_status(op % (BIG.encode(), name.encode(), len(body), body), b"MSG $KV.BIG.last")
    ask(side.link, f"$JS.API.CONSUMER.DELETE.{BIG}.{name}", None)


def keys(side: Side) -> None:
    """Like `kv.keys()`: the last message of each subject, headers only; the last key ends it."""
    name = f"K{time.time_ns()}"
    config = {"filter_subject": "$KV.BIG.>", "deliver_policy": "last_per_subject", "headers_only": True,
              "deliver_subject": "_INBOX.much", "ack_policy": "none", "name": name}  # fmt: skip
    body = json.dumps({"stream_name": BIG, "config": config}).encode()
    op = b"PUB $JS.API.CONSUMER.CREATE.%b.%b.$KV.BIG.> _INBOX.made %d\r\n%b\r\n"
    side.read_until_status(op % (BIG.encode(), name.encode(), len(body), body), b"MSG $KV.BIG.last")
    ask(side.link, f"$JS.API.CONSUMER.DELETE.{BIG}.{name}", None)


def snapshot(side: Side) -> None:
    """A backup of the bucket, as made by `headwater stream backup`."""

    async def save() -> None:
        with tempfile.TemporaryDirectory() as directory:
            async with await headwater.connect(f"nats://bench:bench@127.0.0.1:{side.server.port}") as client:
                await save_stream(client, client.jetstream(), BIG, Path(directory) / BIG, lambda messages, size: None)

    asyncio.run(save())


def fill_topic(side: Side) -> None:
    """A topic that holds more than one poll returns."""
    from headwater.iggy_client.client import connect
    from headwater.iggy_wire.commands import Message

    async def fill() -> None:
        async with await connect(f"iggy://iggy:iggy@127.0.0.1:{side.iggy_port}") as client:
            await client.create_stream("stall")
            await client.create_topic("stall", "stall")
            for _ in range(0, side.sizes.poll, 1 << 20):
                await client.send("stall", "stall", [Message(b"x" * 1024)] * 1024)

    asyncio.run(fill())


def iggy_poll(side: Side) -> None:
    from headwater.iggy_client.client import connect
    from headwater.iggy_wire.identifiers import PollingStrategy

    async def poll() -> None:
        async with await connect(f"iggy://iggy:iggy@127.0.0.1:{side.iggy_port}") as client:
            count = max(1000, side.sizes.poll // 1024 - 4096)  # less than 64 MiB including overhead
            if not await client.poll("stall", "stall", count=count, strategy=PollingStrategy.first()):
                raise Failure("an empty poll")

    asyncio.run(poll())


def flood(write_size: int) -> Callable[[Side], None]:
    """A second of publishes of 128 bytes, in writes of about `write_size` bytes; one client is subscribed to them."""

    def publish(side: Side) -> None:
        op = b"PUB flood 128\r\n%b\r\n" % (b"x" * 128)
        buffer = op * max(1, write_size // len(op))
        with open_as(side.server.port, "bench") as reader, open_as(side.server.port, "bench") as link:
            reader.sendall(b"SUB flood 1\r\nPING\r\n")
            read_until(reader, b"PONG\r\n")
            reader.settimeout(0)
            deadline = time.monotonic() + FLOOD_SECONDS
            while time.monotonic() < deadline:
                link.sendall(buffer)
                with suppress(BlockingIOError):
                    while reader.recv(1 << 20):
                        pass

    return publish


def nothing(side: Side) -> None:
    time.sleep(0.5)


class Row(NamedTuple):
    """One kind of request. `prepare` is called before each repetition; `only` names the server that supports it."""

    name: str
    request: Callable[[Side], None]
    prepare: Callable[[Side], None] = nothing
    only: str = ""


def rows(sizes: Sizes) -> list[Row]:
    with_clients, big = Side.connect_many, Side.fill_big
    subjects = {"subjects": ["small.>"]}
    small: Callable[[Side], None] = lambda side: side.fill(SMALL, subjects, b"small", sizes.subjects)  # noqa: E731
    purge = {"filter": "$KV.BIG.k.>"}
    return [
        Row("nothing", nothing),
        Row("flood of publishes", flood(1 << 16)),
        Row("flood, one message a write", flood(0)),
        Row("/connz, all clients", connz, with_clients),
        Row("/subsz, all subscriptions", subsz, with_clients),
        Row("/metrics", lambda side: side.get("/metrics"), with_clients, "headwater"),
        Row("$SYS CONNZ, all clients", system_connz, with_clients),
        Row("$SYS SUBSZ, all subscriptions", system_subsz, with_clients),
        Row("STREAM.INFO, all subjects", request(f"$JS.API.STREAM.INFO.{SMALL}", {"subjects_filter": ">"}), small),
        Row("CONSUMER.LIST", consumer_list, _once(Side.add_consumers)),
        Row("/jsz, all consumers", lambda side: side.get("/jsz?consumers=1&config=1")),
        Row("reload of 1,000 accounts", Side.reload),
        Row("direct get, batch", direct_batch, big),
        Row("direct get, multi_last", direct_last, big),
        Row("sparse filter", sparse_filter, big),
        Row("kv keys", keys, big),
        Row("STREAM.INFO of the bucket", request(f"$JS.API.STREAM.INFO.{BIG}", {"subjects_filter": ">"}), big),
        Row("snapshot", snapshot, big),
        Row("purge by subject", request(f"$JS.API.STREAM.PURGE.{BIG}", purge), big),
        Row("Iggy poll", iggy_poll, _once(fill_topic), "headwater"),
    ]


def _once(work: Callable[[Side], None]) -> Callable[[Side], None]:
    done: set[str] = set()

    def prepare(side: Side) -> None:
        if side.name not in done:
            done.add(side.name)
            work(side)

    return prepare


def start(directory: Path, sizes: Sizes, stack: ExitStack) -> list[Side]:
    """Start nats-server and ours."""
    sides = []
    for name in ("nats-server", "headwater"):
        config = directory / f"{name}.conf"
        config.write_text(configuration(directory / name, 20 if sizes is SMOKE else ACCOUNTS))
        port = free_port()
        if name == "headwater":
            server = start_headwater("-c", str(config), "--iggy", f"127.0.0.1:{port}")
        else:
            server = start_nats_server("-c", str(config))
        sides.append(Side(stack.enter_context(server), config, sizes, port, stack))
    return sides


def measure(row: Row, sides: list[Side], repetitions: int) -> dict[str, list[dict[str, float]]]:
    """The bystanders' measurements, by server."""
    seen: dict[str, list[dict[str, float]]] = {side.name: [] for side in sides if row.only in ("", side.name)}
    for _ in range(repetitions):
        for side in sides:
            if side.name in seen:
                if row.prepare is not nothing:
                    row.prepare(side)
                seen[side.name].append(side.watched(row.request))
    return seen


def spell(found: list[dict[str, float]]) -> str:
    """The worst PING of each repetition in ms (median, lowest, highest), the worst wait for INFO in ms, and the duration in
    s."""
    if not found:
        return "-"
    worst = [1e3 * one["worst"] for one in found]
    info, took = max(1e3 * one["info"] for one in found), statistics.median(one["took"] for one in found)
    return f"{statistics.median(worst):7.1f} ({min(worst):.1f}-{max(worst):.1f}) {info:7.1f} {took:6.2f}"


def verdict(seen: dict[str, list[dict[str, float]]]) -> str:
    """Compare with the goal; a wait for INFO counts like one for PONG."""
    if not seen.get("headwater"):
        return ""
    ours, theirs = (
        statistics.median([max(one["worst"], one["info"]) for one in seen.get(name) or []] or [0.0])
        for name in ("headwater", "nats-server")
    )
    return "met" if ours <= max(GOAL, 2 * theirs) else "MISSED"


def main() -> int:
    parser = argparse.ArgumentParser(prog="hw bench stall", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="small sizes, once: only proves that it runs")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--cases", default="", help="comma-separated parts of the rows' names")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    parser.add_argument("--allow-interpreted", action="store_true")
    parser.add_argument("--dir", type=Path, help="where the streams are kept (default: the system's temporary folder)")
    arguments = parser.parse_args()
    mode = refuse_interpreted(allow=arguments.allow_interpreted or arguments.smoke)
    repetitions, sizes = (1, SMOKE) if arguments.smoke else (max(1, arguments.repetitions), Sizes())
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    heading = (
        f"{describe_machine()}; load average {os.getloadavg()[0]:.1f}; headwater {mode}; {repetitions} repetitions; "
        + ", ".join(f"{value:,} {name}" for name, value in sizes._asdict().items())
    )
    wanted = [part for part in arguments.cases.split(",") if part]
    chosen = [row for row in rows(sizes) if not wanted or any(part in row.name for part in wanted)]
    results: dict[str, dict[str, list[dict[str, float]]]] = {}
    if not arguments.json:
        columns = "worst PING ms (range), worst INFO ms, seconds"
        print(f"{heading}\n\n{'':<32}{'nats-server: ' + columns:<64}headwater: the same", flush=True)
    with tempfile.TemporaryDirectory(dir=arguments.dir) as directory, ExitStack() as stack:
        sides = start(Path(directory), sizes, stack)
        for row in chosen:
            seen = results[row.name] = measure(row, sides, repetitions)
            if not arguments.json:
                received = [spell(seen.get(side.name, [])) for side in sides]
                note = row.only if row.only not in ("", "headwater") else verdict(seen)
                print(f"{row.name:<32}{received[0]:<44}{received[1]:<44}{note}", flush=True)
    missed = [name for name, seen in results.items() if verdict(seen) == "MISSED"]
    if arguments.json:
        print(json.dumps({"machine": heading, "rows": results, "missed": missed}, indent=1))
    elif arguments.smoke:
        print("\nSmoke run: it proves that the benchmark runs; its figures mean nothing.")
    else:
        print(f"\nGoal ({1e3 * GOAL:.0f} ms, or twice nats-server's): missed by {', '.join(missed) or 'no row'}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
