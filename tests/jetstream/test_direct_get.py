"""Direct get: the message itself, several in a row, and statuses; compared with nats-server by hand, 2.15.1."""

import asyncio
import json
from pathlib import Path

import pytest
from support.jetstream_in_process import Desk, served

GET = "$JS.API.DIRECT.GET.S"


async def filled(desk: Desk) -> None:
    await desk.make("S", allow_direct=True)
    for number in range(1, 9):
        await desk.publish(f"S.{number % 3}", b"m%d" % number)


def test_one_message_comes_with_its_place_in_headers(tmp_path: Path) -> None:
    async def main() -> None:
        clock = [1_700_000_000_123_000_000]
        async with served(tmp_path, clock) as desk:
            await filled(desk)
            by_sequence = await desk.ask(GET, b'{"seq":4}')
            assert by_sequence.payload == b"m4"
            assert by_sequence.header_block == (
                b"NATS/1.0\r\nNats-Stream: S\r\nNats-Subject: S.1\r\nNats-Sequence: 4\r\n"
                b"Nats-Time-Stamp: 2023-11-14T22:13:20.123Z\r\n\r\n"
            )
            assert (await desk.ask(GET + ".S.1")).payload == b"m7"
            assert (await desk.ask(GET, b'{"last_by_subj":"S.2"}')).payload == b"m8"
            assert (await desk.ask(GET, b'{"seq":3,"next_by_subj":"S.2"}')).payload == b"m5"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("payload", "status"),
    [
        (b"", b"408 Empty Request"),
        (b"{}", b"408 Empty Request"),
        (b'{"batch":3}', b"408 Empty Request"),
        (b"{bad", b"408 Malformed Request"),
        (b'{"seq":3,"last_by_subj":"S.2"}', b"408 Bad Request"),
        (b'{"multi_last":["S.>"],"up_to_seq":4,"up_to_time":"2030-01-01T00:00:00Z"}', b"408 Bad Request"),
        (b'{"seq":99}', b"404 Message Not Found"),
        (b'{"seq":99,"batch":2}', b"404 Message Not Found"),
        (b'{"multi_last":["S.9"]}', b"404 No Results"),
    ],
)
def test_what_cannot_be_answered_gets_its_status(tmp_path: Path, payload: bytes, status: bytes) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await filled(desk)
            assert (await desk.ask(GET, payload)).header_block == b"NATS/1.0 %b\r\n\r\n" % status

    asyncio.run(main())


@pytest.mark.parametrize(
    ("document", "expected", "end"),
    [
        ({"seq": 2, "batch": 3}, [b"m2", b"m3", b"m4"], b"Nats-Num-Pending: 4\r\nNats-Last-Sequence: 4"),
        (
            {"seq": 2, "batch": 9, "next_by_subj": "S.1"},
            [b"m4", b"m7"],
            b"Nats-Num-Pending: 0\r\nNats-Last-Sequence: 7",
        ),
        (
            {"multi_last": ["S.>"], "up_to_seq": 4},
            [b"m2", b"m3", b"m4"],
            b"Nats-Num-Pending: 0\r\nNats-Last-Sequence: 4\r\nNats-UpTo-Sequence: 4",
        ),
    ],
)
def test_a_batch_ends_with_what_is_left(tmp_path: Path, document: object, expected: list[bytes], end: bytes) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await filled(desk)
            box = desk.listen("box")
            desk.router.publish(GET.encode(), b"box", b"", json.dumps(document).encode())
            received = await box.take(len(expected) + 1)
            assert [message.payload for message in received[:-1]] == expected
            assert received[-1].header_block == b"NATS/1.0 204 EOB\r\n%b\r\n\r\n" % end

    asyncio.run(main())


def test_a_stream_that_does_not_allow_it_is_not_there(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            assert (await desk.ask(GET, b'{"seq":1}')).header_block.startswith(b"NATS/1.0 503")

    asyncio.run(main())
