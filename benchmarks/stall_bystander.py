"""A client that only measures how long a PONG takes: `stall_bystander.py PORT`, while another client stalls the server.

The line `watch` on standard input starts measuring, the next line stops it; then a line of JSON has the results: the worst
PING, the one that 99 of 100 do not exceed and the number of PINGs, and the worst wait for INFO on a new connection. A PING
is sent every millisecond, or as soon as the previous one was answered; every INFO_EVERY PINGs a new connection is opened.
It is a separate process, so that the generator's interpreter cannot delay it. The line `hold N` makes it hold N idle
clients, with ten subscriptions each, until it ends.
"""

import json
import resource
import select
import socket
import sys
import time

from load_generator import open_link, read_until

PAUSE = 0.001  # seconds between two PINGs
INFO_EVERY = 50


def ping(link: socket.socket) -> float:
    """Seconds until the PONG."""
    began = time.perf_counter()
    link.sendall(b"PING\r\n")
    received = b""
    while b"PONG\r\n" not in received:
        chunk = link.recv(65536)
        if not chunk:
            raise SystemExit("the bystander was cut off")
        received += chunk
    if b"PING\r\n" in received:
        link.sendall(b"PONG\r\n")
    return time.perf_counter() - began


def greeting(port: int) -> float:
    """Seconds until INFO on a new connection."""
    began = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), 60) as link:
        read_until(link, b"\r\n")
    return time.perf_counter() - began


def watch(link: socket.socket, port: int) -> dict[str, float]:
    """Measure until a line arrives on standard input."""
    pings: list[float] = []
    infos: list[float] = []
    while True:
        pings.append(ping(link))
        if len(pings) % INFO_EVERY == 1:
            infos.append(greeting(port))
        if select.select([sys.stdin], [], [], PAUSE)[0]:
            ordered = sorted(pings)
            p99 = ordered[99 * len(ordered) // 100]
            return {"worst": ordered[-1], "p99": p99, "pings": len(pings), "info": max(infos)}


def hold(port: int, number: int) -> socket.socket:
    """An idle client."""
    subscriptions = b"".join(b"SUB idle.%d %d\r\n" % (n, n) for n in range(10))
    link = socket.create_connection(("127.0.0.1", port), 120)
    options = b'"verbose":false,"user":"bench","pass":"bench","name":"idle%d"' % number
    link.sendall(b"CONNECT {%b}\r\n%bPING\r\n" % (options, subscriptions))
    read_until(link, b"PONG\r\n")
    return link


def main() -> None:
    port = int(sys.argv[1])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    link = open_link(port)
    link.settimeout(120)
    held: list[socket.socket] = []
    while words := sys.stdin.readline().split():
        if words[0] == "hold":
            held += [hold(port, number) for number in range(len(held), int(words[1]))]
            print("held", flush=True)
            continue
        print("watching", flush=True)
        seen = watch(link, port)
        sys.stdin.readline()
        print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    main()
