"""Requests that are usual, odd or wrong, held against nats-server's monitoring port, whose HTTP is Go's.

What is compared of each answer: the status line, `Connection`, `Location`, the content type and the body; and whether a
second request is answered on the same connection. Go's server and router do more than the standard asks for, and scripts
and probes meet it.
"""

import asyncio
import re
import socket
from pathlib import Path

import pytest
from support.monitored import monitored, monitored_nats_server

pytestmark = pytest.mark.interop

PROBE = b"GET /probe HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"  # sent behind each case; answered if that one kept on
SILENCE = 10.0  # seconds without the end of a connection


def request(line: str, *headers: str, body: bytes = b"") -> bytes:
    """`line`: method, target, and the version where it is not 1.1."""
    method, target, version = (*line.split(" "), "1.1")[:3]
    lines = [f"{method} {target} HTTP/{version}", *(["Host: x"] if version == "1.1" else []), *headers, "", ""]
    return "\r\n".join(lines).encode() + body


PERSISTS = "Connection: keep-alive"
EXPECTS = "Expect: 100-continue"
METHODS = [*"GET HEAD POST PUT PATCH DELETE OPTIONS FROB".split()]
TARGETS = """
//healthz //healthz?a=b&c=%20 /./healthz /a/../healthz /../../etc/passwd /healthz/ /healthz// // /. /.. /healthz/. /a/b/..
/%2e%2e/healthz /%2fhealthz /%68ealthz //a%20b //a%3cb%22 //%c3%a9 /%zz http://x/healthz http://x//healthz http://x healthz
/HEALTHZ /nope /healthz#x /connz?limit=x /connz?limit=x;a=b /connz?cid=-1 /connz?limit=%zz /ipqueuesz /ipqueuesz?all=x *
""".split()
CASES = {
    **{f"{method} /healthz": request(f"{method} /healthz") for method in METHODS},
    **{f"{method} //healthz": request(f"{method} //healthz") for method in METHODS},
    **{f"GET {target}": request(f"GET {target}") for target in TARGETS},
    "OPTIONS *": request("OPTIONS *"),
    "HEAD /nope": request("HEAD /nope"),
    "1.0": request("GET /healthz 1.0"),
    "1.0, persists": request("GET /healthz 1.0", PERSISTS),
    "1.0, persists in other letters": request("GET /healthz 1.0", "connection: Keep-Alive"),
    "1.0, persists twice": request("GET /healthz 1.0", PERSISTS) * 2,
    "1.0, persists, HEAD": request("HEAD /healthz 1.0", PERSISTS),
    "1.0, persists, not found": request("GET /nope 1.0", PERSISTS),
    "1.0, persists, redirected": request("GET //healthz 1.0", PERSISTS),
    "1.0, persists, body": request("POST /healthz 1.0", PERSISTS, "Content-Length: 3", body=b"abc"),
    "1.0, body that does not come": request("POST /healthz 1.0", "Content-Length: 3"),
    "1.0, expects": request("POST /healthz 1.0", EXPECTS, "Content-Length: 3"),
    "1.0, expects something else": request("GET /healthz 1.0", "Expect: other"),
    "1.1, closes": request("GET /healthz", "Connection: close"),
    "1.1, persists": request("GET /healthz", PERSISTS),
    "1.2": request("GET /healthz 1.2", "Host: x"),
    "2.0": request("GET /healthz 2.0", "Host: x"),
    "expects": request("POST /healthz", EXPECTS, "Content-Length: 3"),
    "expects in other letters": request("POST /healthz", "Expect: 100-CONTINUE", "Content-Length: 3"),
    "expects, chunked": request("POST /healthz", EXPECTS, "Transfer-Encoding: chunked"),
    "expects, without a body": request("GET /healthz", EXPECTS),
    "expects, with an empty body": request("POST /healthz", EXPECTS, "Content-Length: 0"),
    "expects something else": request("GET /healthz", "Expect: other"),
    "body": request("POST /healthz", "Content-Length: 3", body=b"abc"),
    "body of a form": request(
        "POST /connz", "Content-Type: application/x-www-form-urlencoded", "Content-Length: 7", body=b"limit=x"
    ),
    "body in chunks": request("POST /healthz", "Transfer-Encoding: chunked", body=b"3\r\nabc\r\n0\r\n\r\n"),
    "body of 256 KiB": request("POST /healthz", "Content-Length: 262144", body=b"x" * 262144),
    "body above 256 KiB": request("POST /healthz", "Content-Length: 300000", body=b"x" * 300_000),
    "length that is no number": request("POST /healthz", "Content-Length: x"),
    "negative length": request("POST /healthz", "Content-Length: -1"),
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "two hosts": request("GET /healthz", "Host: y"),
    "no version": b"GET /healthz\r\n\r\n",
    "no request": b"nonsense\r\n\r\n",
    "lines end in LF": b"GET /healthz HTTP/1.1\nHost: x\n\n",
    "upgrade": request("GET /healthz", "Connection: Upgrade", "Upgrade: websocket"),
    "range": request("GET /healthz", "Range: bytes=0-3"),
}
MASKED = re.compile(rb'"(?:N[A-Z2-7]{55}|20\d\d-[^"]*)"')


def exchange(port: int, sent: bytes) -> bytes:
    """What is answered to this, and to the probe behind it."""
    with socket.create_connection(("127.0.0.1", port), SILENCE) as link:
        output = b""
        try:
            link.sendall(sent + PROBE)
            while piece := link.recv(1 << 16):
                output += piece
        except ConnectionError:
            pass  # closed while some of it was unread
        return output


def shape(output: bytes) -> list[tuple[object, ...]]:
    """Each answer: what is compared of it."""
    found: list[tuple[object, ...]] = []
    for answer in re.split(rb"(?=HTTP/1\.[01] \d\d\d )", output)[1:]:
        head, _, body = answer.partition(b"\r\n\r\n")
        status, *lines = head.split(b"\r\n")
        headers = dict(
            line.lower().split(b": ", 1) if b"ocation" not in line else line.split(b": ", 1) for line in lines
        )
        connection = headers.get(b"connection", b"")
        if b"HTTP/1.0" in status and connection == b"close":
            connection = b""  # it is what 1.0 means
        wanted = (connection, headers.get(b"Location"), headers.get(b"content-type"))
        found.append((status, *wanted, MASKED.sub(b'"X"', body).strip()))
    return found


def test_requests_are_answered_as_by_nats_server(tmp_path: Path) -> None:
    with monitored_nats_server(tmp_path) as (_, port):
        real = {name: shape(exchange(port, sent)) for name, sent in CASES.items()}

    async def ours() -> dict[str, list[tuple[object, ...]]]:
        async with monitored(jetstream=True, store_dir=tmp_path / "ours", server_name="n") as server:
            found = {}
            for name, sent in CASES.items():
                found[name] = shape(await asyncio.to_thread(exchange, server.monitoring.port, sent))
            return found

    assert asyncio.run(ours()) == real
