"""What a stream stored goes out again, with its sequence, and the one before it, in headers."""

import asyncio
from pathlib import Path

from support.jetstream_in_process import served


def test_messages_go_out_under_their_new_subject_with_what_the_stream_knows(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            box = desk.listen("copy.>")
            await desk.make("S", republish={"src": "S.*", "dest": "copy.{{wildcard(1)}}"})
            await desk.publish("S.a", b"one")
            await desk.publish("S.a", b"two", b"NATS/1.0\r\nOwn: kept\r\n\r\n")
            await desk.publish("S.b.c", b"does not match")
            await desk.publish("S.b", b"three")
            one, two, three = await box.take(3)
            assert [heard.subject for heard in (one, two, three)] == [b"copy.a", b"copy.a", b"copy.b"]
            assert [heard.payload for heard in (one, two, three)] == [b"one", b"two", b"three"]
            assert b"Nats-Stream: S\r\nNats-Subject: S.a\r\nNats-Sequence: 1\r\n" in one.header_block
            assert b"Own: kept\r\n" in two.header_block
            assert b"Nats-Sequence: 2\r\n" in two.header_block
            assert b"Nats-Last-Sequence: 1\r\n" in two.header_block
            assert b"Nats-Last-Sequence: 0\r\n" in three.header_block

    asyncio.run(main())


def test_headers_only_says_how_large_the_message_was(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            box = desk.listen("copy.>")
            await desk.make("S", republish={"src": ">", "dest": "copy.>", "headers_only": True})
            await desk.publish("S.a", b"12345")
            heard = await box.next()
            assert (heard.subject, heard.payload) == (b"copy.S.a", b"")
            assert b"Nats-Msg-Size: 5\r\n" in heard.header_block

    asyncio.run(main())
