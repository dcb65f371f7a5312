"""A stream under a disk that fails: publishers get an error at once, nothing that was acknowledged is lost, and an id whose
message could not be written may be used again."""

import asyncio
import errno
import json
import os
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path

from headwater.durable_files.files import File, OsFile, OsFiles
from headwater.errors import JetStreamError
from headwater.exchange.router import Router
from headwater.jetstream.service import JetStream

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


async def ask(
    router: Router, subject: bytes, payload: bytes = b"", message_id: bytes = b"", expected: bytes = b""
) -> dict[str, object]:
    """Publish with a reply subject and wait for the answer. `expected`: the id that the last message is to have."""
    answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    listening = router.subscribe_internal(b"reply", lambda *call: answer.set_result(call[3]))
    headers = {b"Nats-Msg-Id": message_id, b"Nats-Expected-Last-Msg-Id": expected}
    lines = b"".join(b"%b: %b\r\n" % (name, value) for name, value in headers.items() if value)
    router.publish(subject, b"reply", b"NATS/1.0\r\n%b\r\n" % lines if lines else b"", payload)
    try:
        return dict(json.loads(await asyncio.wait_for(answer, 20)))
    finally:
        router.unsubscribe(listening)


def run(
    store: Path,
    test: Callable[[Router, FailingFiles], Coroutine[None, None, None]],
    services: list[JetStream] | None = None,
) -> None:
    async def main() -> None:
        router = Router(asyncio.get_running_loop().call_soon, 1)
        files = FailingFiles()
        service = JetStream(router, store, clock_ns=time.time_ns, files=files)
        if services is not None:
            services.append(service)
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


def test_a_small_limit_does_not_make_of_every_batch_a_segment(tmp_path: Path) -> None:
    services: list[JetStream] = []

    async def publish(router: Router, files: FailingFiles) -> None:
        await ask(router, b"$JS.API.STREAM.UPDATE.S", b'{"name":"S","subjects":["s"],"max_bytes":100000}')
        for number in range(4):
            assert (await ask(router, b"s", bytes(90_000)))["seq"] == number + 1
        stream = services[0].streams["S"]
        assert stream.state().messages == 1
        assert [span.start for span in stream.log.spans] == [0]

    run(tmp_path, publish, services)


def test_a_purge_is_refused_until_the_disk_has_taken_it(tmp_path: Path) -> None:
    async def purge(router: Router, files: FailingFiles) -> None:
        assert (await ask(router, b"s", b"one", b"1"))["seq"] == 1
        files.error = errno.ENOSPC
        for _ in range(2):  # the second one finds no messages any more, but a restart would
            assert "error" in await ask(router, b"$JS.API.STREAM.PURGE.S")
        files.error = 0
        assert (await ask(router, b"$JS.API.STREAM.PURGE.S"))["success"] is True

    run(tmp_path, purge)


def test_the_last_message_id_is_that_of_what_is_stored_when_a_batch_has_failed(tmp_path: Path) -> None:
    async def fail(router: Router, files: FailingFiles) -> None:
        assert (await ask(router, b"s", b"one", b"1"))["seq"] == 1
        files.error = errno.ENOSPC
        assert "error" in await ask(router, b"s", b"two", b"2", expected=b"1")
        assert "error" in await ask(router, b"s", b"two", b"2", expected=b"1")
        files.error = 0
        refused = dict((await ask(router, b"s", b"three", b"3", expected=b"2"))["error"])  # type: ignore[call-overload]
        assert (refused["err_code"], refused["description"]) == (10070, "wrong last msg ID: 1")
        assert "error" not in await ask(router, b"s", b"two", b"2", expected=b"1")
        assert "error" not in await ask(router, b"s", b"three", b"3", expected=b"2")

    run(tmp_path, fail)


def test_the_last_message_id_is_that_of_what_waits_behind_a_batch_that_failed(tmp_path: Path) -> None:
    services: list[JetStream] = []

    async def fail(router: Router, files: FailingFiles) -> None:
        assert (await ask(router, b"s", b"one", b"1"))["seq"] == 1
        stream = services[0].streams["S"]

        def then(subject: bytes, reply: bytes, block: bytes, payload: bytes) -> None:
            files.error = 0
            router.publish(b"s", b"", b"NATS/1.0\r\nNats-Msg-Id: 3\r\n\r\n", b"staged before the refusals are out")

        router.subscribe_internal(b"refused", then)
        files.error = errno.ENOSPC
        router.publish(b"s", b"refused", b"NATS/1.0\r\nNats-Msg-Id: 2\r\n\r\n", b"two")
        await stream.flush()
        assert "error" not in await ask(router, b"s", b"four", b"4", expected=b"3")

    run(tmp_path, fail, services)


class Appending:
    """Messages appended to the stream `S` as another face of it does, and the answers: None for durable, else the number of
    the error."""

    def __init__(self, service: JetStream) -> None:
        self.stream = service.streams["S"]
        self.answers: list[int | None] = []

    def append(self, payload: bytes, message_id: bytes = b"", subject: bytes = b"s") -> None:
        block = b"NATS/1.0\r\nNats-Msg-Id: %b\r\n\r\n" % message_id if message_id else b""
        self.stream.append([(subject, block, payload)], self.answered)

    def answered(self, error: JetStreamError | None) -> None:
        self.answers.append(None if error is None else error.err_code)


def test_an_appended_message_is_answered_by_its_callback_when_it_is_durable(tmp_path: Path) -> None:
    services: list[JetStream] = []

    async def append(router: Router, files: FailingFiles) -> None:
        received: list[tuple[bytes, ...]] = []
        router.subscribe_internal(b">", lambda *call: received.append(call))
        appending = Appending(services[0])
        appending.append(b"one")
        appending.append(b"two", b"id")
        appending.append(b"two", b"id")  # a duplicate of what is not durable yet
        assert appending.answers == []
        await appending.stream.flush()
        assert appending.answers == [None, None, None]
        appending.append(b"two", b"id")  # and of what is
        assert appending.answers == [None, None, None, None]
        assert appending.stream.state().messages == 2
        assert [(call[0], call[1], call[3]) for call in received] == [
            (b"s", b"", payload) for payload in (b"one", b"two", b"two", b"two")
        ]

    run(tmp_path, append, services)


def test_an_appended_message_that_is_lost_is_refused_and_so_is_its_duplicate(tmp_path: Path) -> None:
    services: list[JetStream] = []

    async def fail(router: Router, files: FailingFiles) -> None:
        appending = Appending(services[0])
        appending.append(b"kept", b"0")
        await appending.stream.flush()
        files.error = errno.ENOSPC
        appending.append(b"lost", b"1")
        appending.append(b"lost", b"1")
        appending.append(b"kept", b"0")
        await appending.stream.flush()
        assert sorted(appending.answers, key=str) == [10023, 10023, None, None]
        files.error = 0
        appending.append(b"lost", b"1")
        await appending.stream.flush()
        assert appending.answers[4:] == [None]
        files.error = errno.EIO
        appending.append(b"late")
        await appending.stream.flush()
        appending.append(b"later")
        assert appending.answers[5:] == [10077, 10077]

    run(tmp_path, fail, services)


def test_a_subject_that_is_not_captured_is_refused_and_no_later_publish_answers_for_it(tmp_path: Path) -> None:
    services: list[JetStream] = []

    async def miss(router: Router, files: FailingFiles) -> None:
        appending = Appending(services[0])
        appending.append(b"x", subject=b"elsewhere")
        assert appending.answers == [10077]
        assert (await ask(router, b"s"))["seq"] == 1
        assert appending.answers == [10077]
        appending.stream._publishing.unsubscribe()
        appending.append(b"x")
        assert appending.answers == [10077, 10077]

    run(tmp_path, miss, services)


def test_what_a_subscriber_publishes_meanwhile_into_the_same_stream_does_not_take_the_answer(tmp_path: Path) -> None:
    services: list[JetStream] = []

    async def publish(router: Router, files: FailingFiles) -> None:
        await ask(router, b"$JS.API.STREAM.CREATE.W", b'{"name":"W","subjects":["w.>"],"max_msg_size":9}')
        stream = services[0].streams["W"]
        stream._publishing.unsubscribe()
        router.subscribe_internal(b"w.1", lambda *call: router.publish(b"w.2", b"", b"", b"far too large"))
        stream._publishing.subscribe()  # behind the subscriber
        answers: list[JetStreamError | None] = []
        stream.append([(b"w.1", b"", b"x")], answers.append)
        await stream.flush()
        assert answers == [None] and stream.state().messages == 1

    run(tmp_path, publish, services)
