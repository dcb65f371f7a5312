"""NATS inside WebSocket, against nats-server and ours with the same file: the request, the frames, and what is wrong.

After everything hostile the server still serves others, through WebSocket and without.
"""

import asyncio
import os
import resource
from collections.abc import Iterator

import nats
import psutil
import pytest
from support.certificates import Certificates, make_certificates
from support.configured_servers import KINDS, Running, ServerShelf, shelf
from support.peers import connected
from support.raw_wire import RawLink, closed, connect_op, prove_service, read_info, still_open
from support.tls_wire import trusting
from support.websocket_wire import (
    ACCEPT,
    CLOSE,
    COMPRESSION,
    PING,
    PONG,
    TEXT,
    WebSocketLink,
    deflated,
    frame,
    upgrade_request,
)

__all__ = ["shelf"]

pytestmark = pytest.mark.interop

PLAIN = "websocket { port: -1, no_tls: true }"
COMPRESSED = "websocket { port: -1, no_tls: true, compression: true }"
SHORT = 'websocket { port: -1, no_tls: true, handshake_timeout: "200ms" }'


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    yield str(request.param)


@pytest.fixture
def server(kind: str, shelf: ServerShelf) -> Running:
    return shelf.get(kind, PLAIN)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def prove_both(server: Running) -> None:
    prove_service(server.port)
    with WebSocketLink(server.websocket_port) as link:
        assert link.answer(connect_op() + b"SUB a 1\r\nPUB a 1\r\nx\r\n") == still_open(b"MSG a 1 1\r\nx\r\n")


def test_a_websocket_opens_with_info_in_its_first_frame(server: Running) -> None:
    with WebSocketLink(server.websocket_port) as link:
        assert link.response.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
        assert b"Sec-WebSocket-Accept: " + ACCEPT + b"\r\n" in link.response
        assert b"permessage-deflate" not in link.response
        info = read_info(link.greeting)
        assert info["headers"] is True
        assert info["port"] == server.websocket_port
        assert "tls_required" not in info


def test_it_carries_messages_to_and_from_other_clients(server: Running) -> None:
    payload = bytes(range(256)) * 3000
    with WebSocketLink(server.websocket_port) as web, RawLink(server.port) as plain:
        for link in (web, plain):
            link.send(connect_op() + b"SUB big 1\r\n")
            assert link.settle() == b""
        wanted = b"MSG big 1 %d\r\n%b\r\n" % (len(payload), payload)
        web.send(b"PUB big %d\r\n%b\r\n" % (len(payload), payload))
        assert web.settle() == wanted
        assert plain.settle() == wanted
        plain.send(b"PUB big %d\r\n%b\r\n" % (len(payload), payload))
        assert plain.settle() == wanted
        assert web.settle() == wanted


def test_ops_may_be_cut_anywhere(server: Running) -> None:
    ops = connect_op() + b"SUB a 1\r\nPUB a 2\r\nhi\r\nPING\r\n"
    frames = b"".join(frame(ops[at : at + 1]) for at in range(len(ops)))
    with WebSocketLink(server.websocket_port) as link:
        for at in range(0, len(frames), 3):
            link.send_bytes(frames[at : at + 3])
        assert link.receive_until(b"PONG\r\n") == b"MSG a 1 2\r\nhi\r\nPONG\r\n"
    with WebSocketLink(server.websocket_port) as link:
        parts = [frame(ops[:10], fin=False), frame(ops[10:20], 0, fin=False), frame(b"", PING), frame(ops[20:], 0)]
        link.send_bytes(b"".join(parts))
        assert link.receive_until(b"PONG\r\n") == b"MSG a 1 2\r\nhi\r\nPONG\r\n"
        assert link.pongs == [b""]


def test_text_frames_carry_nats_bytes_too(server: Running) -> None:
    with WebSocketLink(server.websocket_port) as link:
        link.send_bytes(frame(connect_op() + b"SUB a\xff 1\r\nPUB a\xff 1\r\n\xfe\r\nPING\r\n", TEXT))
        assert link.receive_until(b"PONG\r\n") == b"MSG a\xff 1 1\r\n\xfe\r\nPONG\r\n"


def test_ping_gets_pong_with_its_payload(server: Running) -> None:
    with WebSocketLink(server.websocket_port) as link:
        link.send_bytes(frame(b"abc", PING) + frame(b"nobody asked", PONG))
        assert link.answer(connect_op()) == still_open()
        assert link.pongs == [b"abc"]


@pytest.mark.parametrize("payload", [b"\x03\xe8", b"\x03\xe8bye", b"\x0f\xa0mine"])
def test_close_is_answered_in_kind(server: Running, payload: bytes) -> None:
    with WebSocketLink(server.websocket_port) as link:
        link.send_bytes(frame(payload, CLOSE))
        assert link.receive_end() == b""
        assert link.closing == int.from_bytes(payload[:2], "big")


def test_compression_is_used_when_both_want_it(kind: str, shelf: ServerShelf) -> None:
    server = shelf.get(kind, COMPRESSED)
    text = b"all work and no play " * 1000
    with WebSocketLink(server.websocket_port) as link:
        assert not link.compresses, "it was not asked for"
    with WebSocketLink(server.websocket_port, None, COMPRESSION) as link:
        assert link.compresses
        link.send(connect_op() + b"SUB a 1\r\n")
        link.send(b"PUB a %d\r\n%b\r\n" % (len(text), text))
        assert link.settle() == b"MSG a 1 %d\r\n%b\r\n" % (len(text), text)
        link.send_bytes(frame(b"PUB a 1\r\nx\r\n"))
        assert link.settle() == b"MSG a 1 1\r\nx\r\n", "a message may be left uncompressed"
        packed = deflated(b"PUB a 2\r\nhi\r\n" * 100)
        link.send_bytes(frame(packed[:5], fin=False, rsv=4) + frame(b"", PING) + frame(packed[5:], 0))
        assert link.settle() == b"MSG a 1 2\r\nhi\r\n" * 100
    with WebSocketLink(shelf.get(kind, PLAIN).websocket_port, None, COMPRESSION) as link:
        assert not link.compresses, "the server does not want it"


def test_wss(kind: str, shelf: ServerShelf, certificates: Certificates) -> None:
    files = f'cert_file: "{certificates.server_cert}", key_file: "{certificates.server_key}"'
    server = shelf.get(kind, f"websocket {{ port: -1, compression: true, tls {{ {files} }} }}")
    payload = bytes(range(256)) * 3000
    for headers in ([], [COMPRESSION]):
        with WebSocketLink(server.websocket_port, trusting(certificates), *headers) as link:
            link.send(connect_op() + b"SUB a 1\r\nPUB a %d\r\n%b\r\n" % (len(payload), payload))
            assert link.settle() == b"MSG a 1 %d\r\n%b\r\n" % (len(payload), payload)
    with RawLink(server.port) as plain:
        assert plain.answer(connect_op()) == still_open()


REQUESTS: dict[str, tuple[bytes, bytes]] = {
    "POST": (upgrade_request().replace(b"GET", b"POST"), b"405"),
    "no key": (upgrade_request().replace(b"Sec-WebSocket-Key", b"X-Key"), b"400"),
    "a key that is none": (upgrade_request().replace(b"dGhl", b"%%%%"), b"400"),
    "a short key": (upgrade_request().replace(b"dGhlIHNhbXBsZSBub25jZQ==", b"dGhl"), b"400"),
    "another version": (upgrade_request().replace(b"Version: 13", b"Version: 8"), b"400"),
    "no version": (upgrade_request().replace(b"Sec-WebSocket-Version", b"X"), b"400"),
    "no upgrade": (upgrade_request().replace(b"Upgrade: websocket", b"X: y"), b"400"),
    "another upgrade": (upgrade_request().replace(b"Upgrade: websocket", b"Upgrade: h2c"), b"400"),
    "no connection": (upgrade_request().replace(b"Connection: Upgrade", b"Connection: close"), b"400"),
    "no host": (upgrade_request().replace(b"Host: localhost\r\n", b""), b"400"),
    "the path of MQTT": (upgrade_request(path=b"/mqtt"), b"404"),
    "a page": (b"GET /index.html HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
    "no HTTP": (b"CONNECT {}\r\nPING\r\n\r\n\r\n", b"400"),
    "binary": (bytes(range(256)) + b"\r\n\r\n", b"400"),
    "a huge header": (upgrade_request(b"X: " + b"y" * 1_200_000 + b"\r\n"), b"431"),
    "a header without end": (b"GET / HTTP/1.1\r\nX: " + b"y" * 2_000_000, b"431"),
}


@pytest.mark.parametrize("title", REQUESTS)
def test_a_request_that_is_no_upgrade_is_refused(server: Running, title: str) -> None:
    request, status = REQUESTS[title]
    with WebSocketLinkless(server.websocket_port) as link:
        link.send(request)
        answer = link.receive_until(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 " + status), answer
    prove_both(server)


@pytest.mark.parametrize("title", ["a page", "no key", "the path of MQTT"])
def test_a_refused_request_may_be_followed_by_one_that_is_not(server: Running, title: str) -> None:
    request, status = REQUESTS[title]
    with WebSocketLinkless(server.websocket_port) as link:
        for sent in (request, request, upgrade_request(b"X: " + b"y" * 200_000 + b"\r\n", path=b"/?" + b"q" * 70_000)):
            link.send(sent)
            head = link.receive_until(b"\r\n\r\n")
            if sent is request:
                assert head.startswith(b"HTTP/1.1 " + status) and b"Connection: close" not in head
                link.receive_until(b"\n")
        assert head.startswith(b"HTTP/1.1 101 ")


class WebSocketLinkless(RawLink):
    """The bare connection to the WebSocket listener."""

    def __init__(self, port: int) -> None:
        import socket

        self._socket = socket.create_connection(("127.0.0.1", port), 5)
        self._unread = bytearray()


def test_a_request_that_does_not_come_is_not_waited_for(kind: str, shelf: ServerShelf) -> None:
    server = shelf.get(kind, SHORT)
    for sent in (b"", b"GET / HTTP/1.1\r\nHost:"):
        with WebSocketLinkless(server.websocket_port) as link:
            link.send(sent)
            assert b"101" not in link.receive_end()
    prove_both(server)


BAD_FRAMES: dict[str, tuple[bytes, int]] = {
    "no mask": (frame(b"PING\r\n", masked=False), 1002),
    "an unknown opcode": (frame(b"x", 3), 1002),
    "an unknown control opcode": (frame(b"x", 11), 1002),
    "reserved bit 1 without compression": (frame(b"x", rsv=4), 1002),
    "reserved bit 2": (frame(b"x", rsv=2), 1002),
    "reserved bit 3": (frame(b"x", rsv=1), 1002),
    "a control frame that is not final": (frame(b"x", PING, fin=False), 1002),
    "a control frame that is too long": (frame(b"x" * 126, PING), 1002),
    "a message within a message": (frame(b"a", fin=False) + frame(b"b"), 1002),
    "nothing to continue": (frame(b"a", 0), 1002),
    "a close frame of one byte": (frame(b"x", CLOSE), 1002),
    "close with status 1005": (frame(b"\x03\xed", CLOSE), 1002),
    "close with status 999": (frame(b"\x03\xe7", CLOSE), 1002),
    "close with status 2000": (frame(b"\x07\xd0", CLOSE), 1002),
    "close with status 5000": (frame(b"\x13\x88", CLOSE), 1002),
    "close with bad UTF-8": (frame(b"\x03\xe8\xff\xff", CLOSE), 1007),
    "a length with its top bit set": (frame(b"x", length=1 << 63), 1002),
    "the largest length there is": (frame(b"x", length=(1 << 64) - 1), 1002),
}


@pytest.mark.parametrize("title", BAD_FRAMES)
def test_a_frame_that_breaks_the_rules_ends_the_connection(server: Running, title: str) -> None:
    sent, status = BAD_FRAMES[title]
    with WebSocketLink(server.websocket_port) as link:
        link.send_bytes(sent)
        link.receive_end()
        assert link.closing in (status, None), "nats-server's close frame races with its end"
        assert link.closing == status or not server.is_ours
    prove_both(server)


def test_a_frame_of_a_terabyte_is_waited_for_and_costs_nothing(server: Running) -> None:
    before = psutil.Process().memory_info().rss
    with WebSocketLink(server.websocket_port) as link:
        link.send_bytes(frame(b"CONNECT ", length=1 << 40))
        prove_both(server)
    if server.is_ours:
        assert psutil.Process().memory_info().rss - before < 4 << 20


@pytest.mark.parametrize("connected", [False, True])
def test_a_deflate_bomb_is_not_let_grow(kind: str, shelf: ServerShelf, connected: bool) -> None:
    server = shelf.get(kind, COMPRESSED)
    bomb = deflated(b"\0" * (64 << 20))
    with WebSocketLink(server.websocket_port, None, COMPRESSION) as link:
        if connected:
            link.send(connect_op())
            assert link.settle() == b""
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        link.send_bytes(frame(bomb, rsv=4))
        link.receive_end()
        if server.is_ours:
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 << 10, "kilobytes"
    prove_both(server)


def test_violations_of_nats_end_a_websocket_as_they_end_a_connection(server: Running) -> None:
    with WebSocketLink(server.websocket_port) as link:
        link.send(b"FOO\r\n")
        received = link.receive_end()
        assert received == b"-ERR 'Unknown Protocol Operation'\r\n" or not (received or server.is_ours), "it races"
    with WebSocketLink(server.websocket_port) as link:
        link.send(connect_op() + b"PUB a 99999999\r\n")
        assert link.receive_end() == b"-ERR 'Maximum Payload Violation'\r\n"
    prove_both(server)


def test_credentials_are_those_of_the_server_or_of_the_listener(kind: str, shelf: ServerShelf) -> None:
    users = """authorization { users = [
        { user: a, password: p }
        { user: web, password: p, allowed_connection_types: [WEBSOCKET] }
    ] }\n"""
    refused = closed(b"-ERR 'Authorization Violation'\r\n")
    server = shelf.get(kind, users + PLAIN)
    for user, welcome in (("a", True), ("web", True), ("b", False)):
        with WebSocketLink(server.websocket_port) as link:
            assert link.answer(connect_op(**{"user": user, "pass": "p"})) == (still_open() if welcome else refused)
    with RawLink(server.port) as plain:
        assert plain.answer(connect_op(**{"user": "web", "pass": "p"})) == refused
    own = shelf.get(kind, "websocket { port: -1, no_tls: true, authorization { username: w, password: p } }")
    for user, welcome in (("w", True), ("a", False)):
        with WebSocketLink(own.websocket_port) as link:
            assert read_info(link.greeting)["auth_required"] is True
            assert link.answer(connect_op(**{"user": user, "pass": "p"})) == (still_open() if welcome else refused)
    with RawLink(own.port) as plain:
        assert plain.answer(connect_op()) == still_open()


def test_cookies_stand_in_for_credentials(kind: str, shelf: ServerShelf) -> None:
    users = "authorization { user: a, password: p }\n"
    server = shelf.get(kind, users + 'websocket { port: -1, no_tls: true, user_cookie: "u", pass_cookie: "w" }')
    with WebSocketLink(server.websocket_port, None, b"Cookie: x=y; u=a; w=p\r\n") as link:
        assert link.answer(connect_op()) == still_open()
    with WebSocketLink(server.websocket_port, None, b"Cookie: u=a; w=q\r\n") as link:
        assert link.answer(connect_op()) == closed(b"-ERR 'Authorization Violation'\r\n")


ORIGINS = [
    ("same_origin: true", b"http://localhost", True),
    ("same_origin: true", b"http://localhost:80", True),
    ("same_origin: true", b"https://localhost", False),
    ("same_origin: true", b"http://example.org", False),
    ("same_origin: true", b"nonsense", False),
    ("same_origin: true", b"", True),
    ('allowed_origins: ["https://example.org", "http://a:1"]', b"https://example.org", True),
    ('allowed_origins: ["https://example.org", "http://a:1"]', b"https://example.org:443", True),
    ('allowed_origins: ["https://example.org", "http://a:1"]', b"http://a:1", True),
    ('allowed_origins: ["https://example.org", "http://a:1"]', b"http://a:2", False),
    ('allowed_origins: ["https://example.org", "http://a:1"]', b"http://example.org", False),
]


@pytest.mark.parametrize(("option", "origin", "allowed"), ORIGINS)
def test_pages_of_other_origins_can_be_kept_out(
    kind: str, shelf: ServerShelf, option: str, origin: bytes, allowed: bool
) -> None:
    server = shelf.get(kind, f"websocket {{ port: -1, no_tls: true, {option} }}")
    header = [b"Origin: " + origin + b"\r\n"] if origin else []
    with WebSocketLink(server.websocket_port, None, *header) as link:
        assert link.response.startswith(b"HTTP/1.1 101" if allowed else b"HTTP/1.1 403")


@pytest.mark.filterwarnings(
    "ignore:parameter 'timeout' of type 'float' is deprecated:DeprecationWarning"
)  # nats-py's call
@pytest.mark.parametrize("config", [PLAIN, COMPRESSED])
def test_nats_py_connects_through_it(kind: str, shelf: ServerShelf, config: str) -> None:
    server = shelf.get(kind, config)
    payload = os.urandom(50_000)

    async def main() -> None:
        async with asyncio.timeout(20):
            client = await nats.connect(f"ws://127.0.0.1:{server.websocket_port}", allow_reconnect=False)
            subscription = await client.subscribe("a")
            await client.publish("a", payload, headers={"k": "v"})
            message = await subscription.next_msg(5)
            assert (message.data, message.headers) == (payload, {"k": "v"})
            await client.close()

    pytest.importorskip("aiohttp")
    asyncio.run(main())


def test_npms_client_for_browsers_connects_through_it(server: Running) -> None:
    """Skips, with the reason, where node or npm is missing, too old, or the package cannot be had."""

    async def main() -> None:
        async with (
            asyncio.timeout(60),
            connected("transport-node", f"ws://127.0.0.1:{server.websocket_port}") as web,
            connected("nats-py", f"nats://127.0.0.1:{server.port}") as plain,
        ):
            ear = await plain.subscribe("web.>")
            await web.publish("web.1", bytes(range(256)), headers=[("A", "1"), ("A", "2")])
            await web.flush()
            (message,) = await ear.receive(1)
            assert (message.subject, message.data) == ("web.1", bytes(range(256)))
            ear = await web.subscribe("back")
            await plain.publish("back", b"x" * 100_000)
            await plain.flush()
            assert [len(one.data) for one in await ear.receive(1)] == [100_000]

    asyncio.run(main())
    prove_both(server)


def test_natsrpy_connects_through_it(server: Running) -> None:
    async def main() -> None:
        url = f"ws://127.0.0.1:{server.websocket_port}"
        async with asyncio.timeout(20), connected("natsrpy", url) as web:
            async with connected("nats-py", f"nats://127.0.0.1:{server.port}") as plain:
                ear = await plain.subscribe("a")
                await plain.flush()
                await web.publish("a", bytes(100_000))
                assert [message.data for message in await ear.receive(1)] == [bytes(100_000)]

    asyncio.run(main())
