"""A stream under a disk that fails: publishers hear it at once, nothing that was acknowledged is lost, and an id whose
message could not be written may be used again."""

import asyncio
import errno
import json
import os
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path

from headwater.broker.jetstream.service import JetStream
from headwater.broker.router import Router
from headwater.streams.files import File, OsFile, OsFiles

Answers = list[dict[str, object]]


class FailingFile(OsFile):
    """A file whose syncs, or for want of room whose writes, fail while its tree says so."""

    __slots__ = ("tree",)

    def __init__(self, descriptor: int, tree: "FailingFiles") -> None:
        super().__init__(descriptor)
        self.tree = tree

    def pwrite(self, pieces: Sequence[bytes], position: int) -> None:
        if self.tree.error == errno.ENOSPC:
            raise OSError(self.tree.error, "made to fail")
        super().pwrite(pieces, position)

    def fdatasync(self) -> None:
        if self.tree.error and self.tree.error != errno.ENOSPC:
            raise OSError(self.tree.error, "made to fail")
        super().fdatasync()


class FailingFiles(OsFiles):
    """The real file system, until `error` is set: then every sync fails with it; with ENOSPC every write."""

    def __init__(self) -> None:
        self.error = 0

    def open(self, path: str) -> File:
        return FailingFile(os.open(path, os.O_RDWR | os.O_CLOEXEC), self)

    def create(self, path: str) -> File:
        super().create(path).close()
        return self.open(path)


async def ask(router: Router, subject: bytes, payload: bytes = b"", message_id: bytes = b"") -> dict[str, object]:
    """Publish with a reply subject and wait for the answer."""
    answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    listening = router.subscribe_internal(b"reply", lambda *call: answer.set_result(call[3]))
    block = b"NATS/1.0\r\nNats-Msg-Id: %b\r\n\r\n" % message_id if message_id else b""
    router.publish(subject, b"reply", block, payload)
    try:
        return dict(json.loads(await asyncio.wait_for(answer, 20)))
    finally:
        router.unsubscribe(listening)


def run(store: Path, test: Callable[[Router, FailingFiles], Coroutine[None, None, None]]) -> None:
    async def main() -> None:
        router = Router(asyncio.get_running_loop().call_soon, 1)
        files = FailingFiles()
        service = JetStream(router, store, clock_ns=time.time_ns, files=files)
        await service.start()
        await ask(router, b"$JS.API.STREAM.CREATE.S", b'{"name":"S","subjects":["s"],"duplicate_window":60000000000}')
        await test(router, files)
        files.error = 0
        await service.stop()

    asyncio.run(main())


def test_a_publish_is_acknowledged_in_order_and_a_duplicate_with_the_originals_sequence(tmp_path: Path) -> None:
    async def publish(router: Router, files: FailingFiles) -> None:
        answers: Answers = []
        done = asyncio.Event()

        def answered(subject: bytes, reply: bytes, block: bytes, payload: bytes) -> None:
            answers.append(json.loads(payload))
            if len(answers) == 100:
                done.set()

        router.subscribe_internal(b"acks", answered)
        for number in range(100):
            block = b"NATS/1.0\r\nNats-Msg-Id: %d\r\n\r\n" % (number % 50)
            router.publish(b"s", b"acks", block, b"%d" % number)
        await asyncio.wait_for(done.wait(), 20)
        assert [answer["seq"] for answer in answers] == [*range(1, 51), *range(1, 51)]
        assert [bool(answer.get("duplicate")) for answer in answers] == [False] * 50 + [True] * 50

    run(tmp_path, publish)


def test_a_failed_sync_is_told_to_every_publisher_at_once_and_the_stream_stays_closed(tmp_path: Path) -> None:
    async def fail(router: Router, files: FailingFiles) -> None:
        assert (await ask(router, b"s", b"kept", b"1"))["seq"] == 1
        files.error = errno.EIO
        refused = await ask(router, b"s", b"lost", b"2")
        assert "error" in refused
        files.error = 0
        # After a failed fsync a later success proves nothing: the stream takes no more writes.
        again = await ask(router, b"s", b"lost", b"2")
        assert dict(again["error"])["code"] == 503  # type: ignore[call-overload]
        info = await ask(router, b"$JS.API.STREAM.INFO.S")
        assert dict(info["state"])["messages"] == 1  # type: ignore[call-overload]

    run(tmp_path, fail)


def test_a_full_disk_refuses_and_takes_the_same_id_again_when_room_returns(tmp_path: Path) -> None:
    async def fill(router: Router, files: FailingFiles) -> None:
        assert (await ask(router, b"s", b"one", b"1"))["seq"] == 1
        files.error = errno.ENOSPC
        refused = await ask(router, b"s", b"two", b"2")
        assert dict(refused["error"])["err_code"] == 10023  # type: ignore[call-overload]
        files.error = 0
        taken = await ask(router, b"s", b"two", b"2")
        assert "error" not in taken
        assert not taken.get("duplicate")
        assert (await ask(router, b"s", b"two", b"2"))["duplicate"] is True

    run(tmp_path, fill)
