"""The QUIC listener alone: streams to an owner and back, and the limit on buffered bytes."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.quic.configuration import QuicConfiguration

from headwater.errors import ConfigError, EnvironmentProblem
from headwater.net import quic
from headwater.net.limits import Limits


class Echo:
    """Echoes every line; `size` is the unused part of the last stream."""

    def __init__(self) -> None:
        self.link: quic.QuicLink | None = None
        self.ended = asyncio.Event()
        self.rest = 0

    def attach(self, link: quic.QuicLink, peer: str) -> None:
        assert peer.startswith("127.0.0.1:")
        self.link = link

    def receive(self, stream: int, buffer: bytearray) -> int:
        end = buffer.rfind(b"\n") + 1
        self.rest = len(buffer) - end
        if end and self.link is not None:
            pieces: Sequence[bytes] = [bytes(buffer[: end - 1]), b"\n"]
            self.link.send(stream, pieces)
        return end

    def lost(self) -> None:
        self.ended.set()


def with_echo(work: Callable[[QuicConnectionProtocol, Echo], Awaitable[None]]) -> None:
    async def main() -> None:
        owner = Echo()
        listener = await quic.listen("127.0.0.1", 0, lambda: owner)
        trusting = QuicConfiguration(is_client=True, verify_mode=0)
        try:
            async with asyncio.timeout(30), connect("127.0.0.1", listener.port, configuration=trusting) as link:
                await work(link, owner)
        finally:
            await listener.stop()

    asyncio.run(main())


def test_connections_from_one_address_are_bounded_before_they_have_cost_a_handshake() -> None:
    async def main() -> None:
        limits = Limits(per_address=1)
        listener = await quic.listen("127.0.0.1", 0, Echo, limits=limits)
        reported: list[str] = []
        listener.places.on_turned_away = lambda address, reason: reported.append(f"{address}: {reason}")
        trusting = QuicConfiguration(is_client=True, verify_mode=0)
        async with asyncio.timeout(30):
            async with connect("127.0.0.1", listener.port, configuration=trusting):
                with pytest.raises(ConnectionError):
                    async with connect("127.0.0.1", listener.port, configuration=trusting):
                        pass
            assert reported == ["127.0.0.1: there are 1 from this address"]
            for _ in range(5000):  # the first one gets a farewell
                if listener.places.connections:
                    await asyncio.sleep(0.001)
            async with connect("127.0.0.1", listener.port, configuration=trusting):
                pass
        await listener.stop()

    asyncio.run(main())


def test_a_connection_without_a_request_is_closed() -> None:
    async def main() -> None:
        listener = await quic.listen("127.0.0.1", 0, Echo, limits=Limits(login_seconds=0.3))
        trusting = QuicConfiguration(is_client=True, verify_mode=0)
        async with asyncio.timeout(30), connect("127.0.0.1", listener.port, configuration=trusting) as link:
            await link.wait_closed()
        await listener.stop()

    asyncio.run(main())


def send(link: QuicConnectionProtocol, data: bytes, ended: bool) -> None:
    """Send on a new stream, without waiting for its answer."""
    link._quic.send_stream_data(link._quic.get_next_available_stream_id(), data, ended)
    link.transmit()


def test_a_stream_is_answered_and_ends_when_the_client_has_ended_its_half() -> None:
    async def work(link: QuicConnectionProtocol, owner: Echo) -> None:
        for text in (b"one\n", b"x" * 300_000 + b"\n"):
            reader, writer = await link.create_stream()
            writer.write(text[:2])
            writer.write(text[2:])
            writer.write_eof()
            assert await reader.read() == text

    with_echo(work)


def test_a_connection_with_too_many_buffered_bytes_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quic, "BUFFERED_BYTES", 100_000)

    async def work(link: QuicConnectionProtocol, owner: Echo) -> None:
        for _ in range(3):
            send(link, bytes(50_000), ended=False)
        await owner.ended.wait()

    with_echo(work)


def test_a_request_that_will_never_be_whole_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quic, "BUFFERED_BYTES", 100_000)

    async def work(link: QuicConnectionProtocol, owner: Echo) -> None:
        for _ in range(4):
            send(link, bytes(50_000), ended=True)
        reader, writer = await link.create_stream()
        writer.write(b"still here\n")
        writer.write_eof()
        assert await reader.read() == b"still here\n"

    with_echo(work)


def test_an_unusable_address_or_certificate_is_an_error(tmp_path: Path) -> None:
    async def main() -> None:
        listener = await quic.listen("127.0.0.1", 0, Echo)
        try:
            with pytest.raises(EnvironmentProblem, match="UDP"):
                await quic.listen("127.0.0.1", listener.port, Echo)
            with pytest.raises(ConfigError, match="certificate"):
                await quic.listen("127.0.0.1", 0, Echo, tmp_path / "none.pem", tmp_path / "none.key")
        finally:
            await listener.stop()

    asyncio.run(main())


def test_a_certificate_is_made_for_the_host() -> None:
    certificate, key = quic.made_certificate("example.test")
    assert "localhost" in str(certificate.extensions) and "example.test" in str(certificate.extensions)
    assert key.curve.name == "secp256r1"
