"""What a stream stored goes out again, with its sequence, and the one before it, in headers."""

import asyncio
import os
from pathlib import Path
from threading import Event, Timer

import pytest
from support.jetstream_in_process import served

from headwater.durable_files.files import File, OsFile, OsFiles
from headwater.model.header_block import lookup

SLOW = 0.01  # seconds that send the next writes to a thread: group_commit/pace.py


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
            assert [received_at.subject for received_at in (one, two, three)] == [b"copy.a", b"copy.a", b"copy.b"]
            assert [received_at.payload for received_at in (one, two, three)] == [b"one", b"two", b"three"]
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
            received_at = await box.next()
            assert (received_at.subject, received_at.payload) == (b"copy.S.a", b"")
            assert b"Nats-Msg-Size: 5\r\n" in received_at.header_block

    asyncio.run(main())


def test_the_message_before_is_named_also_where_the_new_one_replaces_it(tmp_path: Path) -> None:
    """Key-value buckets with one value per key republish so."""

    async def main() -> None:
        async with served(tmp_path) as desk:
            for name, limit in (("ONE", {"max_msgs_per_subject": 1}), ("ALL", {})):
                box = desk.listen(f"copy.{name}.>")
                republish = {"src": ">", "dest": f"copy.{name}.>"}
                await desk.make(name, republish=republish, allow_rollup_hdrs=True, **limit)
                for subject, rollup in (
                    ("a", ""),
                    ("a", ""),
                    ("a", "sub"),
                    ("b", ""),
                    ("b", "all"),
                    ("a", ""),
                    ("b", ""),
                ):
                    block = b"NATS/1.0\r\nNats-Rollup: %b\r\n\r\n" % rollup.encode() if rollup else b""
                    await desk.publish(f"{name}.{subject}", b"x", block)
                received_at = await box.take(7)
                found = [lookup(message.header_block, b"Nats-Last-Sequence") for message in received_at]
                assert found == [b"0", b"1", b"2", b"0", b"4", b"0", b"5"]

    asyncio.run(main())


class _HeldFile(OsFile):
    __slots__ = ("released",)

    def __init__(self, descriptor: int, released: Event) -> None:
        super().__init__(descriptor)
        self.released = released

    def fdatasync(self) -> None:
        self.released.wait(20)
        super().fdatasync()


class _HeldFiles(OsFiles):
    """What the stream COPY makes durable waits while `released` is cleared."""

    def __init__(self) -> None:
        super().__init__()
        self.released = Event()
        self.released.set()

    def open(self, path: str) -> File:
        if "/COPY-" not in path:
            return super().open(path)
        return _HeldFile(os.open(path, os.O_RDWR | os.O_CLOEXEC), self.released)

    def create(self, path: str) -> File:
        super().create(path).close()
        return self.open(path)


@pytest.mark.parametrize("verb", ["STREAM.MSG.GET", "DIRECT.GET"])
def test_copy_of_a_message_that_was_acknowledged_is_found_where_it_was_republished_to(
    tmp_path: Path, verb: str
) -> None:
    """The copy has a sync of its own, which is held up here: a get waits for it, and does not deny what is on its way."""

    async def main() -> None:
        files = _HeldFiles()
        async with served(tmp_path, files=files) as desk:
            await desk.make("COPY", subjects=["copy.>"], allow_direct=True)
            await desk.make("S", republish={"src": "S.>", "dest": "copy.>"})
            files.released.clear()
            Timer(3 * SLOW, files.released.set).start()
            await desk.publish("copy.slow")  # from now on a thread writes the copies
            files.released.clear()
            await desk.publish("S.a", b"value")
            pending = asyncio.ensure_future(desk.ask(f"$JS.API.{verb}.COPY", b'{"last_by_subj":"copy.a"}'))
            await asyncio.sleep(0)
            assert not files.released.is_set()
            files.released.set()
            found = await pending
            assert b"Not Found" not in found.header_block and b'"code":404' not in found.payload

    asyncio.run(main())
