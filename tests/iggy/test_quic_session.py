"""Over QUIC, with the released client of today and with classic frames by hand."""

import asyncio
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from aioquic.asyncio.client import connect as quic_connect
from aioquic.quic.configuration import QuicConfiguration
from support.iggy_peers import talk, with_released_client

from headwater.iggy.face import Iggy, IggyOptions
from headwater.iggy.quic_session import MAX_CLASSIC, QuicSession
from headwater.iggy.service import Service
from headwater.iggy_wire import classic_frames, command_codec, vsr_frames
from headwater.iggy_wire.commands import Code, Login
from headwater.iggy_wire.eras import Era
from headwater.net.limits import Limits

OPTIONS = IggyOptions(tcp=None, quic=("127.0.0.1", 0))


@pytest.mark.interop
@with_released_client
def test_the_released_client_runs_its_conversation(tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(60), Iggy(OPTIONS, tmp_path) as iggy:
            steps = await talk(None, "quic", f"127.0.0.1:{iggy.quic_port}", 0, "x")
        failed = {name for name, value in steps.items() if str(value).startswith("error")}
        assert failed == {"poll_nowhere"}
        assert steps["poll"] == [[number, f"x{number}"] for number in range(5)]
        assert len(steps["group"]) == 6
        assert steps["poll_headers"][0][2]["key_3"] == 123456

    asyncio.run(main())


def test_each_request_is_answered_on_its_stream_whatever_the_era(tmp_path: Path) -> None:
    async def main() -> None:
        trust_all = QuicConfiguration(is_client=True, verify_mode=0)
        async with (
            asyncio.timeout(30),
            Iggy(OPTIONS, tmp_path) as iggy,
            quic_connect("127.0.0.1", iggy.quic_port, configuration=trust_all) as link,
        ):

            async def ask(frame: bytes) -> bytes:
                reader, writer = await link.create_stream()
                writer.write(frame[:3])
                writer.write(frame[3:])
                writer.write_eof()
                return await reader.read()

            code, body = command_codec.encode(Login("iggy", "iggy", "0.10.0"), Era.C3)
            assert await ask(classic_frames.request(Code.PING, b"")) == bytes(8)
            assert await ask(classic_frames.request(code, body)) == classic_frames.response(0, bytes(4))
            assert await ask(classic_frames.request(9999, b"")) == classic_frames.response(3)
            assert await ask(b"\1\0\0\0" + bytes(4)) == classic_frames.response(3)
            assert await ask(struct.pack("<II", MAX_CLASSIC + 1, 101)) == classic_frames.response(3)

    asyncio.run(main())


def test_a_frame_of_today_may_be_as_large_as_over_tcp_and_no_larger(tmp_path: Path) -> None:
    class Link:
        def __init__(self) -> None:
            self.sent: list[bytes] = []

        def send(self, stream: int, pieces: Sequence[bytes]) -> None:
            self.sent.append(b"".join(pieces))

    async def main() -> None:
        service = Service(tmp_path)
        await service.start()
        try:
            session, link = QuicSession(service, Limits()), Link()
            session.attach(link, "peer")  # type: ignore[arg-type]
            header = vsr_frames.request(
                Code.SEND_MESSAGES, vsr_frames.MAX_FRAME - vsr_frames.HEADER_SIZE, bytes(16), 1, 1
            )
            assert session.receive(0, bytearray(header)) == 0 and not link.sent
            header = vsr_frames.request(Code.SEND_MESSAGES, vsr_frames.MAX_FRAME, bytes(16), 1, 1)
            assert session.receive(4, bytearray(header)) == len(header)
            assert link.sent == [classic_frames.response(3)]
            session.lost()
        finally:
            await service.stop()

    asyncio.run(main())


def test_a_stranger_may_not_announce_a_large_request(tmp_path: Path) -> None:
    class Link:
        def __init__(self) -> None:
            self.sent: list[bytes] = []

        def send(self, stream: int, pieces: Sequence[bytes]) -> None:
            self.sent.append(b"".join(pieces))

    async def main() -> None:
        service = Service(tmp_path)
        await service.start()
        try:
            session, link = QuicSession(service), Link()
            session.attach(link, "peer")  # type: ignore[arg-type]
            header = vsr_frames.request(Code.SEND_MESSAGES, 1 << 20, bytes(16), 1, 1)
            assert session.receive(0, bytearray(header)) == len(header)
            assert link.sent == [classic_frames.response(3)]
            session.lost()
        finally:
            await service.stop()

    asyncio.run(main())
