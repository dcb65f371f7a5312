"""The publishes of one stream: answered when they are durable, refused together when their batch failed."""

import asyncio
import errno
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from support.recording_files import RecordingFiles

from headwater.errors import JetStreamError
from headwater.exchange.router import Router
from headwater.group_commit.committer import INLINE_BYTES
from headwater.group_commit.writers import Writers
from headwater.jetstream.domain import Domain
from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_publishing.publishing import Publishing
from headwater.jetstream_state.contents import Contents
from headwater.jetstream_state.items import Item
from headwater.streams.log import Log, LogOptions

NOW = 1_000


class Bench:
    """Publishes into a log in memory, and what came of them."""

    def __init__(self, **settings: Any) -> None:
        self.files = RecordingFiles()
        self.log = Log.open(self.files, "log", LogOptions(preallocate_bytes=0), 1)
        self.config = StreamConfig(name="S", subjects=["orders"], duplicate_window=1 << 40, **settings)
        contents = Contents(self.log, self.config, lambda sequence, subject: None, lambda: None)
        self.stored: list[tuple[int, int]] = []
        consumers = {"C": object()}
        self.publishing = Publishing(contents, consumers, lambda: NOW, lambda: 10, Domain(), self._on_stored)
        self.router = Router(asyncio.get_running_loop().call_soon, 1)
        self.acks: list[dict[str, Any]] = []
        self.router.subscribe_internal(b"inbox", lambda *call: self.acks.append(json.loads(call[3])))

    def _on_stored(self, first: int, count: int, items: list[Item]) -> None:
        self.stored.append((first, count))

    def publish(self, payload: bytes, message_id: bytes = b"", subject: bytes = b"orders") -> int:
        block = b"NATS/1.0\r\nNats-Msg-Id: %b\r\n\r\n" % message_id if message_id else b""
        return self.router.publish(subject, b"inbox", block, payload)

    async def flush(self) -> None:
        assert self.publishing.committer is not None
        await self.publishing.committer.flush()

    def payloads(self) -> list[bytes]:
        return [record.payload for record in self.log.read(0, 99, 9999)]


def run(
    test: Callable[[Bench], Coroutine[None, None, None]], *, writers: Writers | None = None, **settings: Any
) -> None:
    async def main() -> None:
        bench = Bench(**settings)
        bench.publishing.attach(bench.router, writers)
        await test(bench)

    try:
        asyncio.run(main())
    finally:
        if writers is not None:
            writers.shutdown()


def test_publishes_are_acknowledged_together_and_in_order_once_they_are_durable() -> None:
    async def test(bench: Bench) -> None:
        for number in range(3):
            bench.publish(b"%d" % number)
        assert bench.acks == []
        await bench.flush()
        assert [ack["seq"] for ack in bench.acks] == [1, 2, 3]
        assert bench.payloads() == [b"0", b"1", b"2"]
        assert bench.stored == [(1, 3)]

    run(test)


WRONG = b"NATS/1.0\r\nNats-Expected-Last-Sequence: 77\r\n\r\n"


def test_answers_come_in_the_order_of_their_publishes() -> None:
    async def test(bench: Bench) -> None:
        bench.publish(b"one", b"id")
        await bench.flush()
        bench.publish(b"two")
        bench.router.publish(b"orders", b"inbox", WRONG, b"refused")
        bench.publish(b"again", b"id")
        bench.publish(b"three")
        assert len(bench.acks) == 1, "nothing overtakes what is not durable yet"
        await bench.flush()
        answers = [answer["error"]["err_code"] if "error" in answer else answer["seq"] for answer in bench.acks]
        assert answers == [1, 2, 10071, 1, 3]
        bench.router.publish(b"orders", b"inbox", WRONG, b"refused")
        assert bench.acks[-1]["error"]["err_code"] == 10071, "nothing is before it"
        assert bench.publishing.answers.refused == 2

    run(test)


def test_answers_to_messages_of_batches_come_in_turn_as_well() -> None:
    async def test(bench: Bench) -> None:
        answers: list[bytes] = []
        bench.router.subscribe_internal(b"box.>", lambda *call: answers.append(call[3]))
        bench.router.publish(b"orders", b"box.1", b"", b"")
        for batch, sequence in ((b"kept", 1), (b"unknown", 2)):
            block = b"NATS/1.0\r\nNats-Batch-Id: %b\r\nNats-Batch-Sequence: %d\r\n\r\n" % (batch, sequence)
            bench.router.publish(b"orders", b"box.2", block, b"")
        bench.router.publish(b"orders", b"box.fast.10.fail.3.1.$FI", b"", b"behind a gap")
        bench.router.publish(b"orders", b"box.3", b"", b"")
        assert answers == [], "nothing overtakes what is not durable yet"
        await bench.flush()
        found = [json.loads(answer or b"{}") for answer in answers]
        assert [answer["error"]["err_code"] if "error" in answer else answer.get("seq") for answer in found] == [
            *(1, None, 10176, 10208, 2)
        ]

    run(test, allow_atomic=True, allow_batched=True)


def test_upkeep_is_nothing_that_a_refusal_waits_for() -> None:
    async def test(bench: Bench) -> None:
        answered: list[int] = []

        def start() -> bool:
            bench.router.publish(b"orders", b"inbox", WRONG, b"refused")
            answered.append(len(bench.acks))
            return False

        assert bench.publishing.committer is not None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bench.publishing.committer.upkeep, "start", start)
            bench.publish(b"one")
            await bench.flush()
        assert answered == [2]

    run(test)


def test_a_refusal_keeps_its_reason_beside_a_batch_that_fails() -> None:
    async def test(bench: Bench) -> None:
        bench.publish(b"lost")
        bench.router.publish(b"orders", b"inbox", WRONG, b"refused")
        bench.files.capacity = bench.files.used
        await bench.flush()
        assert [answer["error"]["err_code"] for answer in bench.acks] == [10023, 10071]

    run(test)


def test_a_detached_stream_has_written_what_was_staged_and_takes_nothing_more() -> None:
    async def test(bench: Bench) -> None:
        bench.publish(b"before")
        await bench.publishing.detach()
        assert [ack["seq"] for ack in bench.acks] == [1]
        assert bench.publish(b"after") == 0
        bench.publishing.store_own(b"orders", b"")
        assert bench.payloads() == [b"before"]

    run(test)


def test_a_failed_batch_refuses_each_of_its_publishes_and_their_duplicates_and_frees_their_ids() -> None:
    async def test(bench: Bench) -> None:
        bench.files.capacity = bench.files.used
        bench.publish(b"lost", b"a")
        bench.publish(b"again", b"a")
        await bench.flush()
        assert [ack["error"]["err_code"] for ack in bench.acks] == [10023, 10023]
        assert bench.publishing.last_message_id == b""
        bench.files.capacity = None
        bench.publish(b"kept", b"a")
        await bench.flush()
        assert bench.acks[-1]["seq"] == 2, "the sequence of a refused message is not used again"
        assert bench.payloads() == [b"kept"]
        assert bench.publishing.last_message_id == b"a"

    run(test)


def test_a_duplicate_of_a_durable_message_is_confirmed_beside_a_batch_that_fails() -> None:
    async def test(bench: Bench) -> None:
        bench.publish(b"kept", b"a")
        await bench.flush()
        bench.files.capacity = bench.files.used
        bench.publish(b"lost")
        bench.publish(b"again", b"a")
        await bench.flush()
        assert bench.acks[1]["error"]["err_code"] == 10023
        assert (bench.acks[2]["seq"], bench.acks[2]["duplicate"]) == (1, True)

    run(test)


@pytest.mark.parametrize(
    ("expected", "is_refused"),
    [
        (b"Nats-Expected-Last-Sequence: 3", True),
        (b"Nats-Expected-Last-Subject-Sequence: 3", True),
        (b"Nats-Expected-Last-Msg-Id: b", True),
        (b"Nats-Expected-Stream: S", False),
    ],
)
def test_what_expected_a_message_that_the_disk_refused_is_refused_with_it(expected: bytes, is_refused: bool) -> None:
    async def test(bench: Bench) -> None:
        bench.publish(b"kept")
        await bench.flush()
        bench.files.capacity = bench.files.used + 1000  # for the small one alone
        for message_id in (b"a", b"b"):
            bench.publish(bytes(INLINE_BYTES), message_id)
        await asyncio.sleep(0)
        assert bench.publishing.committer is not None
        assert len(bench.publishing.committer.writing) == 2
        bench.router.publish(b"orders", b"inbox", b"NATS/1.0\r\n%b\r\n\r\n" % expected, b"next")
        assert len(bench.publishing.committer.waiting) == 1
        await bench.flush()
        answers = [ack["error"]["err_code"] if "error" in ack else ack["seq"] for ack in bench.acks]
        assert answers == [1, 10023, 10023, 10023 if is_refused else 4]
        assert bench.payloads() == [b"kept"] + [b"next"] * (not is_refused)
        bench.files.capacity = None
        bench.publish(b"after")
        await bench.flush()
        assert bench.acks[-1]["seq"] > 3

    run(test, writers=Writers(1, "test"))


def test_a_disk_that_failed_refuses_what_comes_later_at_once() -> None:
    async def test(bench: Bench) -> None:
        bench.files.faults[bench.files.attempts] = errno.EIO
        bench.publish(b"lost")
        await bench.flush()
        bench.publish(b"later")
        assert ["error" in ack for ack in bench.acks] == [True, True]

    run(test)


def test_an_appended_message_is_answered_by_its_callback_and_one_that_is_not_captured_is_refused() -> None:
    async def test(bench: Bench) -> None:
        answers: list[JetStreamError | None] = []
        bench.publishing.append(b"orders", b"", b"appended", answers.append)
        await bench.flush()
        assert answers == [None]
        bench.publishing.append(b"elsewhere", b"", b"appended", answers.append)
        assert isinstance(answers[1], JetStreamError)
        bench.publish(b"other")
        await bench.flush()
        assert len(answers) == 2
        assert bench.payloads() == [b"appended", b"other"]

    run(test)


def test_other_subjects_are_captured_from_the_configuration_on() -> None:
    async def test(bench: Bench) -> None:
        bench.publishing.configure(StreamConfig(name="S", subjects=["bills"]))
        bench.publishing.choose_ways()
        assert bench.publish(b"old") == 0
        bench.publish(b"new", subject=b"bills")
        await bench.flush()
        assert bench.payloads() == [b"new"]

    run(test)


def test_ids_of_an_earlier_run_are_known_again_by_the_time_of_day() -> None:
    async def test(bench: Bench) -> None:
        publishing = bench.publishing
        assert publishing.ticks_apart() == NOW - 10
        publishing.restore([(b"a", 4, NOW)], b"a")
        assert publishing.last_message_id == b"a"
        assert publishing.duplicates.seen(b"a", 10) == 4
        assert publishing.duplicates.dump(publishing.ticks_apart()) == [(b"a", 4, NOW)]

    run(test)


def test_only_a_stream_that_asks_nothing_of_its_messages_takes_the_short_way() -> None:
    async def test(bench: Bench) -> None:
        assert bench.publishing.is_plain
        bench.publishing.limit_room(lambda size: size < 100)
        assert not bench.publishing.is_plain
        bench.publish(bytes(200))
        assert [ack["error"]["err_code"] for ack in bench.acks] == [10002]

    run(test)
