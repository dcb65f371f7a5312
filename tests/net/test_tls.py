"""TLS on a link, over real loopback sockets: the upgrade after a greeting, and everything that must be refused."""

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest
from support.certificates import Certificates, make_certificates

from headwater.errors import ConfigError, TransportError
from headwater.net.link import Link
from headwater.net.tcp import dial, listen
from headwater.net.tls import Beginning, ServerTls, TlsLayer, client_context, secure_link, server_context, upgrade

GREETING = b"INFO {} \r\n"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


class Owner:
    """Stores its input; `receive_all(size)` waits for that many bytes. A server sends a greeting."""

    def __init__(self, greeting: bytes = b"") -> None:
        self.greeting = greeting
        self.link: Link | None = None
        self.received = b""
        self.changed = asyncio.Event()
        self.ended = asyncio.Event()
        self.error: Exception | None = None

    def attach(self, link: Link) -> None:
        self.link = link
        if self.greeting:
            self.send(self.greeting)

    def send(self, data: bytes) -> None:
        assert self.link is not None
        self.link.output.append(data)
        self.link.flush_soon()

    def receive(self, buffer: bytearray, filled: int) -> int:
        self.received += buffer[:filled]
        self.changed.set()
        return filled

    def lost(self, error: Exception | None) -> None:
        self.error = error
        self.ended.set()
        self.changed.set()

    async def receive_all(self, size: int) -> bytes:
        while len(self.received) < size and not self.ended.is_set():
            self.changed.clear()
            await self.changed.wait()
        return self.received


Test = Callable[[Owner, int], Coroutine[None, None, None]]


def serve(settings: ServerTls, test: Test) -> Owner:
    """Run `test(server, port)` with a listener that accepts one connection."""
    server = None

    async def main() -> None:
        nonlocal server
        server = Owner(GREETING)
        owner = server
        listener = await listen("127.0.0.1", 0, lambda: owner, lambda made: secure_link(settings, made))
        async with asyncio.timeout(20):
            await test(server, listener.sockets[0].getsockname()[1])
            if server.link is not None:
                server.link.abort()
                await server.ended.wait()
        listener.close()
        await listener.wait_closed()

    asyncio.run(main())
    assert server is not None
    return server


def settings_of(certificates: Certificates, verify: bool = False, **more: object) -> ServerTls:
    context = server_context(certificates.server_cert, certificates.server_key, certificates.ca, verify=verify)
    return ServerTls(context, **more)  # type: ignore[arg-type]


def test_after_the_greeting_both_sides_speak_tls(certificates: Certificates) -> None:
    payload = bytes(range(256)) * 4096

    async def conversation(server: Owner, port: int) -> None:
        client = Owner()
        link = await dial("127.0.0.1", port, client, 5.0)
        assert await client.receive_all(len(GREETING)) == GREETING
        layer = await upgrade(link, client_context(certificates.ca), "localhost")
        assert layer.version == "TLSv1.3"
        client.send(payload)
        assert await server.receive_all(len(payload)) == payload
        server.send(payload[::-1])
        assert await client.receive_all(len(GREETING) + len(payload)) == GREETING + payload[::-1]
        link.close()
        await server.ended.wait()

    assert serve(settings_of(certificates), conversation).error is None


def test_a_server_that_requires_certificates_accepts_only_trusted_ones(certificates: Certificates) -> None:
    settings = settings_of(certificates, verify=True)

    async def right(server: Owner, port: int) -> None:
        client = Owner()
        link = await dial("127.0.0.1", port, client, 5.0)
        await client.receive_all(len(GREETING))
        context = client_context(certificates.ca, certificates.client_cert, certificates.client_key)
        await upgrade(link, context, "127.0.0.1")
        client.send(b"hello")
        assert await server.receive_all(5) == b"hello"
        assert server.link is not None
        layer = server.link.layer
        assert isinstance(layer, TlsLayer)
        assert ("email", "derek@nats.io") in layer.peer_names["subjectAltName"]  # type: ignore[operator]
        assert layer.peer_certificate
        link.abort()

    serve(settings, right)

    async def wrong(server: Owner, port: int) -> None:
        for context in (
            client_context(certificates.ca),
            client_context(certificates.ca, certificates.stranger_cert, certificates.stranger_key),
        ):
            client = Owner()
            link = await dial("127.0.0.1", port, client, 5.0)
            await client.receive_all(len(GREETING))
            # With TLS 1.3 the client's handshake is done before the server has checked its certificate.
            await upgrade(link, context, "127.0.0.1")
            client.send(b"hello")
            await client.ended.wait()
            assert isinstance(client.error, TransportError)
            assert server.received == b""

    serve(settings, wrong)


@pytest.mark.parametrize("why", ["an authority it does not know", "another name"])
def test_a_client_accepts_only_the_server_that_it_dialled(certificates: Certificates, why: str) -> None:
    async def conversation(server: Owner, port: int) -> None:
        client = Owner()
        link = await dial("127.0.0.1", port, client, 5.0)
        await client.receive_all(len(GREETING))
        ca, name = (
            (certificates.ca, "example.org") if why == "another name" else (certificates.stranger_ca, "localhost")
        )
        with pytest.raises(TransportError, match="TLS handshake failed"):
            await upgrade(link, client_context(ca), name)
        await client.ended.wait()
        assert server.received == b""

    serve(settings_of(certificates), conversation)


@pytest.mark.parametrize("sent", [b"CONNECT {}\r\nPING\r\n", b"\x00", b"\x16nonsense that is longer than a header"])
def test_anything_but_a_tls_hello_ends_the_connection(certificates: Certificates, sent: bytes) -> None:
    async def conversation(server: Owner, port: int) -> None:
        client = Owner()
        await dial("127.0.0.1", port, client, 5.0)
        await client.receive_all(len(GREETING))
        client.send(sent)
        await client.ended.wait()
        assert b"\r\n" not in client.received[len(GREETING) :]

    server = serve(settings_of(certificates), conversation)
    assert isinstance(server.error, TransportError)
    assert server.received == b""


def test_input_of_a_peer_refused_after_the_handshake_is_discarded(certificates: Certificates) -> None:
    async def conversation(server: Owner, port: int) -> None:
        client = Owner()
        link = await dial("127.0.0.1", port, client, 5.0)
        await client.receive_all(len(GREETING))
        await upgrade(link, client_context(certificates.ca), "localhost")
        client.send(b"in the same segment as the end of the handshake, perhaps")
        await client.ended.wait()
        assert client.received == GREETING

    server = serve(settings_of(certificates, accepts=lambda layer: False), conversation)
    assert isinstance(server.error, TransportError)
    assert server.received == b""


def test_silence_instead_of_a_handshake_ends_the_connection(certificates: Certificates) -> None:
    async def conversation(server: Owner, port: int) -> None:
        client = Owner()
        await dial("127.0.0.1", port, client, 5.0)
        assert await client.receive_all(1 << 20) == GREETING
        server.send(b"nothing of this goes out in the clear")

    serve(settings_of(certificates, timeout=0.1), conversation)


def test_handshake_first_sends_nothing_in_the_clear(certificates: Certificates) -> None:
    async def conversation(server: Owner, port: int) -> None:
        client = Owner()
        layer = TlsLayer(client_context(certificates.ca), server_side=False, server_hostname="localhost")
        link = await dial("127.0.0.1", port, client, 5.0, layer)
        assert client.received == b""
        await link.prepared()
        assert await client.receive_all(len(GREETING)) == GREETING
        link.abort()

    serve(settings_of(certificates, beginning=Beginning.FIRST), conversation)


@pytest.mark.parametrize("first", [True, False])
def test_waiting_for_a_hello_serves_both_kinds_of_client(certificates: Certificates, first: bool) -> None:
    async def conversation(server: Owner, port: int) -> None:
        client = Owner()
        if first:
            layer = TlsLayer(client_context(certificates.ca), server_side=False, server_hostname="localhost")
            link = await dial("127.0.0.1", port, client, 5.0, layer)
            await link.prepared()
        else:
            link = await dial("127.0.0.1", port, client, 5.0)
            await client.receive_all(len(GREETING))
            await upgrade(link, client_context(certificates.ca), "localhost")
        client.send(b"hello")
        assert await server.receive_all(5) == b"hello"
        assert await client.receive_all(len(GREETING)) == GREETING
        link.abort()

    serve(settings_of(certificates, beginning=Beginning.WAIT, hello_wait=0.2 if first else 0.01), conversation)


def test_where_clear_text_is_allowed_a_client_may_stay_with_it(certificates: Certificates) -> None:
    async def conversation(server: Owner, port: int) -> None:
        client = Owner()
        link = await dial("127.0.0.1", port, client, 5.0)
        await client.receive_all(len(GREETING))
        client.send(b"hello")
        assert await server.receive_all(5) == b"hello"
        server.send(b"welcome")
        assert await client.receive_all(len(GREETING) + 7) == GREETING + b"welcome"
        link.abort()

    serve(settings_of(certificates, clear_allowed=True), conversation)


def test_a_session_is_resumed_only_while_its_certificate_is_good(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenSSL looks at a client's certificate in full handshakes only, and a session lives for hours."""
    verifying = server_context(certificates.server_cert, certificates.server_key, certificates.ca, verify=True)
    client = client_context(certificates.ca, certificates.client_cert, certificates.client_key)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    agreed = handshake(client, verifying).session
    assert handshake(client, verifying, agreed).session_reused
    monkeypatch.setattr("headwater.net.tls.time.time", lambda: 4e10)  # in 3237; trustme's certificates last until 3000
    verifying.good_until.clear()  # type: ignore[attr-defined]  # as after 20,480 other sessions
    with pytest.raises(TransportError, match="certificate has expired"):
        handshake(client, verifying, agreed)


def test_a_client_whose_certificate_expired_is_told_so_when_it_resumes_its_session(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an alert, as in a full handshake: one that only sees the connection end does not know what to mend."""
    verifying = server_context(certificates.server_cert, certificates.server_key, certificates.ca, verify=True)
    client = client_context(certificates.ca, certificates.client_cert, certificates.client_key)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    agreed = handshake(client, verifying).session
    monkeypatch.setattr("headwater.net.tls.time.time", lambda: 4e10)  # in 3237; trustme's certificates last until 3000
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    end = client.wrap_bio(incoming, outgoing, server_hostname="localhost", session=agreed)
    with pytest.raises(ssl.SSLWantReadError):
        end.do_handshake()
    layer = TlsLayer(verifying, server_side=True)
    with pytest.raises(TransportError, match="certificate has expired"):
        layer.feed(memoryview(outgoing.read()))
    incoming.write(layer.take())
    with pytest.raises(ssl.SSLError, match="certificate expired"):
        end.do_handshake()


def test_with_tls_1_3_each_connection_shows_its_certificate(certificates: Certificates) -> None:
    client = client_context(certificates.ca, certificates.client_cert, certificates.client_key)
    for verify in (False, True):
        context = server_context(certificates.server_cert, certificates.server_key, certificates.ca, verify=verify)
        first = handshake(client, context)
        assert first.version() == "TLSv1.3"
        assert handshake(client, context, first.session).session_reused is not verify


def handshake(client: ssl.SSLContext, server: ssl.SSLContext, session: ssl.SSLSession | None = None) -> ssl.SSLObject:
    """The client's end of a connection to a TlsLayer, after its handshake and the first data from the server, which ends it
    in order: else OpenSSL forgets a session without a ticket."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    end = client.wrap_bio(incoming, outgoing, server_hostname="localhost", session=session)
    layer = TlsLayer(server, server_side=True)
    for attempt in (end.do_handshake, end.do_handshake, lambda: layer.write(memoryview(b"INFO")), end.read):
        try:
            attempt()
        except ssl.SSLWantReadError:
            pass
        if outgoing.pending:
            layer.feed(memoryview(outgoing.read()))
        incoming.write(layer.take())
    assert layer.open
    layer.finish()
    return end


def test_contexts_refuse_old_tls(certificates: Certificates) -> None:
    contexts = [
        server_context(certificates.server_cert, certificates.server_key),
        server_context(certificates.server_cert, certificates.server_key, certificates.ca, verify=True),
        client_context(certificates.ca),
        client_context(certificates.ca, verify=False),
    ]
    assert all(context.minimum_version == ssl.TLSVersion.TLSv1_2 for context in contexts)


def test_files_that_cannot_be_used_are_named(certificates: Certificates, tmp_path: Path) -> None:
    missing = tmp_path / "none.pem"
    with pytest.raises(ConfigError, match=r"none\.pem"):
        server_context(missing, certificates.server_key)
    with pytest.raises(ConfigError, match=r"none\.pem: no such file or directory"):
        server_context(str(missing), str(certificates.server_key))
    with pytest.raises(ConfigError, match=r"client-key\.pem"):
        server_context(certificates.server_cert, certificates.client_key)
    with pytest.raises(ConfigError, match=r"none\.pem"):
        client_context(missing)
    with pytest.raises(ConfigError, match="cipher"):
        server_context(certificates.server_cert, certificates.server_key, ciphers=["NO-SUCH"])
