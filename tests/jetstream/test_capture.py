"""The way into a stream: a plain message is staged as it is, and all others as the rules have it."""

import asyncio
import errno
import json
from typing import Any

import pytest
from support.recording_files import RecordingFiles

from headwater.errors import JetStreamError, WriteFailed
from headwater.exchange.router import Router
from headwater.group_commit.committer import MAX_STAGED_BYTES, Committer
from headwater.jetstream.capture import Capture
from headwater.jetstream.domain import Domain
from headwater.jetstream.publish_answers import PublishAnswers
from headwater.jetstream.publish_rules import PublishRules
from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_state.contents import Contents
from headwater.jetstream_state.items import Item
from headwater.jetstream_state.publish_checks import MAX_HEADER_BLOCK
from headwater.streams.dedup import DuplicateWindow
from headwater.streams.log import Log, LogOptions


class CountedRules(PublishRules):
    """Rules that note what they were asked to judge."""

    judged: list[bytes]

    def judge(self, subject: bytes, *rest: Any) -> Any:
        self.judged.append(subject)
        return super().judge(subject, *rest)


class Bench:
    """A capture before a log in memory, and what came of it."""

    def __init__(self, **settings: Any) -> None:
        self.files = RecordingFiles()
        self.log = Log.open(self.files, "log", LogOptions(preallocate_bytes=0), 1)
        self.duplicates = DuplicateWindow(100)
        self.durable: list[Item] = []
        config = StreamConfig(name="S", subjects=["orders"], **settings)
        contents = Contents(self.log, config, lambda sequence, subject: None, lambda: None)
        self.rules = CountedRules(contents, self.duplicates, lambda: 42)
        self.rules.judged = []
        self.answers = PublishAnswers("S", Domain())
        self.answers.router = router = Router(lambda callback: None, 1)
        self.received: list[dict[str, Any]] = []
        router.subscribe_internal(b"inbox", lambda _subject, _reply, _block, ack: self.received.append(json.loads(ack)))
        self.capture = Capture(
            self.log.staging, self.duplicates, lambda: 42, lambda: 42, 30, 4, self.rules, self.answers
        )
        self.committer = Committer(self.log, None, self.durable.extend, lambda items, error: None)
        self.capture.committer = self.rules.unwritten = self.committer
        self.capture.unjudged = 2 if self.rules.is_plain else int(self.rules.takes_bare)


def test_a_plain_message_is_staged_and_its_publisher_remembered() -> None:
    async def main() -> None:
        bench = Bench()
        bench.capture.last_message_id = b"of the one before"
        bench.capture.take(b"orders.new", b"inbox", b"", b"payload")
        await bench.committer.flush()
        (item,) = bench.durable
        assert (item.reply, item.ack, item.subject, item.sequence) == (b"inbox", b"", b"orders.new", 1)
        assert item.size == 30 + len(b"orders.new") + len(b"payload")
        assert bench.capture.last_message_id == b""
        (record,) = bench.log.read(0, 9, 999)
        assert (record.subject, record.payload, record.timestamp_ns) == (b"orders.new", b"payload", 42)

    asyncio.run(main())


def test_headers_that_demand_nothing_are_stored_with_the_message() -> None:
    async def main() -> None:
        bench = Bench()
        block = b"NATS/1.0\r\nA: 1\r\n\r\n"
        bench.capture.take(b"orders", b"inbox", block, b"payload")
        await bench.committer.flush()
        (item,) = bench.durable
        assert (item.subject, item.sequence, item.message_id) == (b"orders", 1, b"")
        assert item.size == 30 + 4 + len(b"orders") + len(block) + len(b"payload")
        (record,) = bench.log.read(0, 9, 999)
        assert (record.header_block, record.payload) == (block, b"payload")
        assert bench.rules.judged == []

    asyncio.run(main())


def test_a_new_message_id_is_remembered_and_a_known_one_is_a_duplicate() -> None:
    async def main() -> None:
        bench = Bench()
        block = b"NATS/1.0\r\nNats-Msg-Id: one\r\n\r\n"
        bench.capture.take(b"first", b"", block, b"")
        bench.capture.take(b"again", b"inbox", block, b"")
        assert bench.received == [], "the original may yet be lost"
        await bench.committer.flush()
        assert [(item.subject, item.sequence) for item in bench.durable] == [(b"first", 1), (b"", 1)]
        assert json.loads(bench.durable[1].ack)["duplicate"] is True
        bench.capture.take(b"again", b"inbox", block, b"")
        assert bench.received == [{"stream": "S", "seq": 1, "duplicate": True}]
        assert (bench.capture.last_message_id, bench.duplicates.seen(b"one", 42)) == (b"one", 0)
        assert bench.rules.judged == [b"again", b"again"]
        assert bench.log.end_offset == 1

    asyncio.run(main())


@pytest.mark.parametrize(
    ("settings", "block", "err_code"),
    [
        ({}, b"NATS/1.0\r\nNats-Expected-Stream: T\r\n\r\n", 10060),
        ({}, b"NATS/1.0\r\nA: %b\r\n\r\n" % bytes(MAX_HEADER_BLOCK), 10097),
        ({"max_msg_size": 3}, b"", 10054),
        ({"sealed": True}, b"", 10109),
        ({"discard": "new", "max_bytes": 20}, b"", 10077),
    ],
)
def test_what_the_rules_refuse_is_answered_and_not_stored(
    settings: dict[str, Any], block: bytes, err_code: int
) -> None:
    async def main() -> None:
        bench = Bench(**settings)
        refused: list[JetStreamError | None] = []
        bench.capture.take(b"orders", b"inbox", block, b"payload")
        bench.capture.appending = b"orders", refused.append
        bench.capture.take(b"orders", b"", block, b"payload")
        assert [answer["error"]["err_code"] for answer in bench.received] == [err_code]
        assert [error.err_code for error in refused if error is not None] == [err_code]
        assert bench.log.next_offset == 0 and not bench.committer.busy
        assert bench.answers.refused == 2

    asyncio.run(main())


def test_what_the_rules_admit_goes_the_same_way_with_its_callback_and_without_an_ack_where_there_is_none() -> None:
    async def main() -> None:
        bench = Bench(no_ack=True, discard="new", max_msgs=2)
        answered: list[JetStreamError | None] = []
        bench.capture.appending = b"orders", answered.append
        bench.capture.take(b"other", b"inbox", b"", b"1")  # a subscriber publishes first
        bench.capture.take(b"orders", b"inbox", b"NATS/1.0\r\nNats-Msg-Id: a\r\n\r\n", b"2")
        bench.capture.take(b"orders", b"inbox", b"", b"too much, what is in flight counts")
        await bench.committer.flush()
        shown = [(item.reply, item.subject, item.message_id, item.answer is not None) for item in bench.durable]
        assert shown == [(b"", b"other", b"", False), (b"", b"orders", b"a", True)]
        assert bench.answers.refused == 1 and bench.received == []

    asyncio.run(main())


def test_what_the_log_or_the_disk_cannot_take_is_refused_at_once() -> None:
    async def main() -> None:
        bench = Bench()
        bench.log.stage(b"lost", b"", b"", 1)
        batch = bench.log.seal()
        assert batch is not None
        bench.files.faults = dict.fromkeys(range(bench.files.attempts, bench.files.attempts + 9), errno.EIO)
        with pytest.raises(WriteFailed):
            bench.log.write(batch)
        bench.capture.take(b"orders", b"inbox", b"", b"")
        assert bench.received[0]["error"]["err_code"] == 10077
        assert not bench.committer.busy
        bench.committer.add(object(), MAX_STAGED_BYTES + 1)
        bench.capture.take(b"orders", b"inbox", b"", b"")
        assert bench.received[1]["error"]["err_code"] == 10167

    asyncio.run(main())
