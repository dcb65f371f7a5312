"""The Iggy face under the released client: sends and polls, megabytes and messages a second, and what they cost.

    ./hw bench iggy [--smoke]

One apache-iggy 0.9.0 client in a process of its own, one connection, one batch in flight, as `iggy-bench` does it; the
server in another. Sizes: 100 and 1000 bytes, 1000 a batch. `sync` is the default (an answer means on disk), `unsynced`
what Iggy's own server does by default. Payload bytes count, nothing else. The raw copy is a loopback socket between two
processes with reads and writes of a batch's size: what the machine gives, in the same run.

CPU is the server process's own time, user and system, per gigabyte of payload moved.
"""

import argparse
import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import headwater

PER_BATCH = 1000
CLIENT = "--client"
SERVER = "--server"
RAW = "--raw"


# ── the client process ──


async def run_client(port: int, size: int, batches: int) -> dict[str, float]:
    from apache_iggy import Consumer, IggyClient, PollingStrategy, SendMessage

    client = IggyClient.from_connection_string(f"iggy://iggy:iggy@127.0.0.1:{port}")
    await client.connect()
    name = f"bench-{size}"
    await client.create_stream(name)
    await client.create_topic(name, name, 1)
    payload = b"x" * size
    began_building = time.perf_counter()
    ready = [[SendMessage(payload) for _ in range(PER_BATCH)] for _ in range(batches)]
    building = time.perf_counter() - began_building
    cpu = time.process_time()
    began = time.perf_counter()
    for batch in ready:
        await client.send_messages(name, name, 0, batch)
    sending = time.perf_counter() - began
    began, got = time.perf_counter(), 0
    consumer = Consumer.Single(1)
    while got < batches * PER_BATCH:
        found = await client.poll_messages(
            name,
            name,
            consumer=consumer,
            polling_strategy=PollingStrategy.Offset(got),
            count=PER_BATCH,
            auto_commit=False,
            partition_id=0,
        )
        got += len(found)
    polling = time.perf_counter() - began
    return {"send": sending, "poll": polling, "build": building, "cpu": time.process_time() - cpu}


# ── the server process ──


async def run_server(sync: str, directory: str) -> None:
    from headwater.iggy.face import Iggy, IggyOptions
    from headwater.iggy.service import ServiceOptions

    options = IggyOptions(tcp=("127.0.0.1", 0), service=ServiceOptions(sync=sync))  # type: ignore[arg-type]
    async with Iggy(options, Path(directory)) as iggy:
        loop = asyncio.get_running_loop()
        print(iggy.tcp_port, flush=True)
        while await loop.run_in_executor(None, sys.stdin.readline):
            used = resource.getrusage(resource.RUSAGE_SELF)
            print(used.ru_utime + used.ru_stime, flush=True)


class Server:
    """The server process: its port, and its CPU seconds so far."""

    def __init__(self, sync: str, directory: str) -> None:
        command = [sys.executable, __file__, SERVER, sync, directory]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self._line())

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def cpu(self) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self._line())

    def stop(self) -> None:
        self.process.communicate(timeout=20)


# ── the raw copy ──


def raw_receiver(total: int, chunk: int) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    link, _ = listening.accept()
    buffer, got = bytearray(chunk), 0
    while got < total:
        got += link.recv_into(buffer)
    link.sendall(b".")
    link.close()
    listening.close()


def raw_copy(total: int, chunk: int) -> float:
    """MB/s from one process to another over loopback."""
    command = [sys.executable, __file__, RAW, str(total), str(chunk)]
    receiver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert receiver.stdout is not None
    port, payload = int(receiver.stdout.readline()), bytes(chunk)
    with socket.create_connection(("127.0.0.1", port)) as link:
        began = time.perf_counter()
        for _ in range(total // chunk):
            link.sendall(payload)
        link.recv(1)
        seconds = time.perf_counter() - began
    receiver.communicate(timeout=20)
    return total / seconds / 1e6


# ── the comparison ──


def measure(sync: str, size: int, batches: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        server = Server(sync, directory)
        before = server.cpu()
        command = [sys.executable, __file__, CLIENT, str(server.port), str(size), str(batches)]
        client = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=240, check=False)
        cpu = server.cpu() - before
        server.stop()
    times = json.loads(client.stdout.splitlines()[0])  # the client may die in its own clean-up after this line
    messages, megabytes = batches * PER_BATCH, batches * PER_BATCH * size / 1e6
    return {
        "sync": sync,
        "size": size,
        "send MB/s": megabytes / times["send"],
        "send msg/s": messages / times["send"],
        "poll MB/s": megabytes / times["poll"],
        "poll msg/s": messages / times["poll"],
        "client CPU s/GB": times["cpu"] / (2 * megabytes / 1e3),
        "server CPU s/GB": cpu / (2 * megabytes / 1e3),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--smoke", action="store_true", help="small, for CI: shows that it runs")
    arguments = parser.parse_args()
    if not headwater.__compiled__ and not arguments.smoke:
        sys.exit("the hot modules are not compiled: numbers would mislead; run it by ./hw bench")
    batches = 5 if arguments.smoke else 200
    chunk = PER_BATCH * 1000
    raw = raw_copy((20 if arguments.smoke else 600) * chunk, chunk)
    print(f"raw loopback copy, {chunk} bytes at a time: {raw:.0f} MB/s")
    for size in (100, 1000):
        for sync in ("always", "never"):
            row = measure(sync, size, batches)
            name = "sync" if sync == "always" else "unsynced"
            print(
                f"{size:5} B x {PER_BATCH} {name:9} "
                f"send {row['send MB/s']:6.0f} MB/s {row['send msg/s']:9.0f} msg/s   "
                f"poll {row['poll MB/s']:6.0f} MB/s {row['poll msg/s']:9.0f} msg/s   "
                f"CPU s/GB: server {row['server CPU s/GB']:.2f}, client {row['client CPU s/GB']:.2f}"
            )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--client", port, size, batches]:
            print(json.dumps(asyncio.run(run_client(int(port), int(size), int(batches)))), flush=True)
            os._exit(0)  # the released client now and then aborts in its own clean-up
        case ["--server", sync, directory]:
            from headwater.cli.event_loop import loop_factory

            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(run_server(sync, directory))
        case ["--raw", total, chunk]:
            raw_receiver(int(total), int(chunk))
        case _:
            main()
