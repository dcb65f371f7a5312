"""TLS as a client meets it: demanded, offered, first, mutual, and refused for the right reasons."""

import asyncio
from pathlib import Path

import pytest
import trustme
from support.configured_servers import Running, ServerShelf, shelf
from support.scripted_server import INFO, ScriptedServer, finish
from support.unruly_proxy import UnrulyProxy

import headwater
from headwater.client.client import Client
from headwater.errors import ConfigError, TransportError

__all__ = ["shelf"]


class Papers:
    """An authority, a server's certificate for localhost and 127.0.0.1, and a client's, as files."""

    def __init__(self, directory: Path) -> None:
        authority = trustme.CA()
        self.ca = directory / "ca.pem"
        authority.cert_pem.write_to_path(str(self.ca))
        self.server = self._write(directory, "server", authority.issue_cert("localhost"))
        self.client = self._write(directory, "client", authority.issue_cert("client@example.com"))

    def _write(self, directory: Path, name: str, certificate: trustme.LeafCert) -> tuple[Path, Path]:
        cert, key = directory / f"{name}.pem", directory / f"{name}.key"
        certificate.cert_chain_pems[0].write_to_path(str(cert))
        certificate.private_key_pem.write_to_path(str(key))
        return cert, key


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return Papers(tmp_path_factory.mktemp("papers"))


def _config(papers: Papers, more: str = "") -> str:
    cert, key = papers.server
    files = f'cert_file: "{cert}", key_file: "{key}", ca_file: "{papers.ca}"'
    # Of the two seconds that a handshake may take a busy machine needs more.
    return f'listen: "127.0.0.1:-1"\ntls {{ {files}, timeout: 30{more} }}\n'


@pytest.fixture(params=[pytest.param("nats-server", marks=pytest.mark.interop), "headwater"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which of the servers."""
    return str(request.param)


@pytest.fixture
def tls_server(shelf: ServerShelf, kind: str, papers: Papers) -> Running:
    return shelf.get(kind, _config(papers))


def _local(server: Running, scheme: str = "nats", host: str = "localhost") -> str:
    return f"{scheme}://{host}:{server.port}"


async def _round_trip(client: Client) -> None:
    subscription = await client.subscribe("tls.>")
    for size in (0, 1, 100_000, 900_000):
        await client.publish("tls.x", bytes(size), headers={"K": "v"})
        assert len((await subscription.next(5)).data) == size
    await client.close()


@pytest.mark.parametrize("scheme", ["nats", "tls"])
def test_a_server_that_demands_tls_gets_it_and_is_checked(papers: Papers, tls_server: Running, scheme: str) -> None:
    async def main() -> None:
        await _round_trip(await headwater.connect(_local(tls_server, scheme), tls_ca=papers.ca))

    finish(main())


def test_a_server_whose_certificate_nobody_vouches_for_is_refused(tls_server: Running) -> None:
    async def main() -> None:
        with pytest.raises(TransportError, match="certificate"):
            await headwater.connect(_local(tls_server))

    finish(main())


def test_a_certificate_for_another_name_is_refused_unless_that_name_is_meant(
    papers: Papers, tls_server: Running
) -> None:
    async def main() -> None:
        with pytest.raises(TransportError, match=r"127\.0\.0\.1"):
            await headwater.connect(_local(tls_server, host="127.0.0.1"), tls_ca=papers.ca)
        await _round_trip(
            await headwater.connect(_local(tls_server, host="127.0.0.1"), tls_ca=papers.ca, tls_hostname="localhost")
        )

    finish(main())


def test_a_client_certificate_is_shown_where_it_is_asked_for(papers: Papers, shelf: ServerShelf, kind: str) -> None:
    async def main() -> None:
        server = shelf.get(kind, _config(papers, ", verify: true"))
        cert, key = papers.client
        await _round_trip(
            await headwater.connect(_local(server), tls_ca=papers.ca, tls_cert=cert, tls_key=key, reconnect=False)
        )
        with pytest.raises(TransportError):
            await headwater.connect(_local(server), tls_ca=papers.ca, reconnect=False)

    finish(main())


def test_tls_before_the_first_byte(papers: Papers, shelf: ServerShelf, kind: str) -> None:
    async def main() -> None:
        server = shelf.get(kind, _config(papers, ", handshake_first: true"))
        await _round_trip(await headwater.connect(_local(server), tls_ca=papers.ca, tls_first=True))

    finish(main())


def test_a_server_without_tls_is_refused_when_we_insist_on_it() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            connecting = asyncio.create_task(headwater.connect(server.url.replace("nats:", "tls:")))
            (await server.accept()).send(INFO)
            with pytest.raises(ConfigError, match="does not offer TLS"):
                await connecting

    finish(main())


def test_files_that_are_no_certificates_are_a_configuration_error(tls_server: Running, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("hello")

    async def main() -> None:
        with pytest.raises(ConfigError, match=r"ca\.pem"):
            await headwater.connect(_local(tls_server), tls_ca=tmp_path / "ca.pem")
        with pytest.raises(ConfigError, match="both"):
            await headwater.connect(_local(tls_server), tls_cert=tmp_path / "ca.pem")

    finish(main())


def test_a_lost_tls_connection_is_made_anew(papers: Papers, tls_server: Running) -> None:
    async def main() -> None:
        async with UnrulyProxy(_local(tls_server, host="127.0.0.1")) as proxy:
            client = await headwater.connect(
                proxy.url.replace("127.0.0.1", "localhost"),
                tls_ca=papers.ca,
                reconnect_jitter=0.0,
                error_callback=lambda _: None,
            )
            for _ in range(5):
                subscription = await client.subscribe("a")
                client.publish("a", b"1")
                assert (await subscription.next(5)).data == b"1"
                proxy.cut_all()
                await client.reconnect()
            assert client.reconnects == 5
            await client.close()

    finish(main(), 30)


# ── WebSocket ──


@pytest.fixture
def websocket_url(shelf: ServerShelf, kind: str) -> str:
    """A server that speaks WebSocket in the clear."""
    config = 'listen: "127.0.0.1:-1"\nwebsocket { host: "127.0.0.1", port: -1, no_tls: true }\n'
    return f"ws://localhost:{shelf.get(kind, config).websocket_port}"


def test_nats_in_websocket_frames(websocket_url: str) -> None:
    async def main() -> None:
        await _round_trip(await headwater.connect(websocket_url))

    finish(main())


def test_nats_in_websocket_frames_in_tls(papers: Papers, shelf: ServerShelf, kind: str) -> None:
    async def main() -> None:
        cert, key = papers.server
        server = shelf.get(
            kind,
            'listen: "127.0.0.1:-1"\n'
            f'websocket {{ host: "127.0.0.1", port: -1, tls {{ cert_file: "{cert}", key_file: "{key}" }} }}\n',
        )
        await _round_trip(await headwater.connect(f"wss://localhost:{server.websocket_port}", tls_ca=papers.ca))

    finish(main())


def test_a_websocket_connection_is_made_anew(websocket_url: str) -> None:
    async def main() -> None:
        async with UnrulyProxy(websocket_url.replace("localhost", "127.0.0.1")) as proxy:
            client = await headwater.connect(
                proxy.url.replace("nats:", "ws:"), reconnect_jitter=0.0, error_callback=lambda _: None
            )
            subscription = await client.subscribe("a")
            for _ in range(3):
                proxy.cut_all()
                await client.reconnect()
                await client.publish("a", b"1")
                assert (await subscription.next(5)).data == b"1"
            await client.close()

    finish(main(), 30)


def test_what_is_no_websocket_server_is_a_transport_error() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            for answer in (INFO, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"):
                connecting = asyncio.create_task(
                    headwater.connect(server.url.replace("nats:", "ws:"), connect_timeout=0.5)
                )
                peer = await server.accept()
                assert (await peer.receive_line()).startswith(b"GET / HTTP/1.1")
                peer.send(answer)
                with pytest.raises(TransportError):
                    await connecting

    finish(main())
