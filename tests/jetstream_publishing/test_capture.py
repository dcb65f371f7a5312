"""The way into a stream: a plain message is staged as it is, and all others as the rules have it."""

import asyncio
import errno
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.recording_files import RecordingFiles

from headwater.errors import JetStreamError, WriteFailed
from headwater.exchange.router import Router
from headwater.group_commit.committer import MAX_STAGED_BYTES, Committer
from headwater.jetstream_documents.streams import Republish, StreamConfig
from headwater.jetstream_publishing.capture import Capture
from headwater.jetstream_publishing.publish_answers import PublishAnswers
from headwater.jetstream_publishing.publish_rules import PublishRules
from headwater.jetstream_state.contents import Contents
from headwater.jetstream_state.items import Item
from headwater.jetstream_state.publish_checks import MAX_HEADER_BLOCK, ttl_of
from headwater.model.dedup import DuplicateWindow
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
        self.answers = PublishAnswers("S", "", lambda: 0)
        self.answers.router = router = Router(lambda callback: None, 1)
        self.received: list[dict[str, Any]] = []
        router.subscribe_internal(b"inbox", lambda _subject, _reply, _block, ack: self.received.append(json.loads(ack)))
        self.capture = Capture(self.log.staging, self.duplicates, lambda: 42, lambda: 42, self.rules, self.answers)
        self.committer = Committer(self.log, None, self.durable.extend, lambda items, error: None)
        self.capture.committer = self.rules.unwritten = self.committer
        self.capture.unjudged = 2 if self.rules.is_plain else int(self.rules.takes_bare)
        self.subjects = contents.subjects

    def ttl(self, item: Item) -> int:
        """The TTL of a message, as the stream would note it."""
        assert item.particulars is not None
        ttl, block = item.particulars.ttl_ns, item.particulars.header_block
        return (ttl_of(block) or 0 if block and self.rules.config.allow_msg_ttl else 0) if ttl < 0 else ttl


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


def test_the_id_of_a_message_that_cannot_be_staged_may_come_again() -> None:
    async def main(**settings: Any) -> None:
        bench = Bench(**settings)
        bench.capture.options = bench.rules.options if settings else None
        block = b"NATS/1.0\r\nNats-Msg-Id: one\r\n\r\n"
        bench.capture.take(b"s" * 65_536, b"inbox", block, b"")
        assert "too long" in bench.received[0]["error"]["description"]
        bench.capture.take(b"orders", b"inbox", block, b"")
        await bench.committer.flush()
        assert [(item.subject, item.sequence, item.message_id) for item in bench.durable] == [(b"orders", 1, b"one")]
        assert bench.duplicates.seen(b"one", 42) == 0

    asyncio.run(main())
    asyncio.run(main(allow_msg_ttl=True))


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


LINES = [
    b"Nats-TTL: 1h",
    b"Nats-TTL:never",
    b"Nats-TTL: 1ms",
    b"Nats-TTL: ",
    b"Nats-Rollup: sub",
    b"Nats-Rollup: ALL",
    b"Nats-Rollup: x",
    b"Nats-Incr: +1",
    b"Nats-Incr: -12",
    b"Nats-Incr: 999999999999999999999",
    b"Nats-Incr: +",
    b"Nats-Msg-Id: a",
    b"Nats-Msg-Id: b",
    b"Nats-Expected-Last-Sequence: 1",
    b"Nats-Expected-Last-Msg-Id: a",
    b"Nats-Expected-Last-Subject-Sequence: 0",
    b"Nats-Expected-Stream: S",
    b"Nats-Stream-Source: S",
    b"Nats-Request-Info: x",
    b"Nats-Counter-Sources: {}",
    b"Nats-Schedule: @every 1s",
    b"A: Nats-TTL: 1h",
    b"A: 1",
]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"allow_rollup_hdrs": True},
    {"allow_msg_ttl": True},
    {"allow_msg_ttl": True, "subject_delete_marker_ttl": 5_000_000_000, "allow_rollup_hdrs": True},
    {"allow_msg_counter": True},
    {"allow_msg_counter": True, "allow_msg_ttl": True, "allow_rollup_hdrs": True},
    {"republish": Republish(src=">", dest="again.>")},
    {"allow_rollup_hdrs": True, "allow_msg_ttl": True, "storage": "memory"},
    {"allow_rollup_hdrs": True, "no_ack": True},
    {"allow_msg_ttl": True, "max_msg_size": 40},
]
PUBLISHES = st.tuples(
    st.sampled_from([b"orders", b"orders.new"]),
    st.one_of(st.just(None), st.lists(st.sampled_from(LINES), max_size=3)),
    st.sampled_from([b"", b"payload"]),
)


@given(st.sampled_from(SETTINGS), st.lists(st.lists(PUBLISHES, max_size=6), max_size=4))
def test_messages_with_options_are_stored_and_answered_as_the_rules_would_judge_them(
    settings: dict[str, Any], batches: list[list[tuple[bytes, list[bytes] | None, bytes]]]
) -> None:
    def shown(item: Item) -> tuple[Any, ...]:
        work = item.particulars
        done = (work.rollup, work.header_block, work.payload, work.timestamp_ns) if work is not None else None
        rolls_up = done if work is not None and (work.rollup or "republish" in settings) else None
        return item.reply, item.ack, item.subject, item.sequence, item.size, item.message_id, rolls_up

    async def outcome(*, with_options: bool) -> list[Any]:
        bench = Bench(**settings)
        bench.capture.options = bench.rules.options if with_options else None
        ends = []
        for batch in batches:
            for subject, lines, payload in batch:
                block = b"" if lines is None else b"\r\n".join([b"NATS/1.0", *lines, b"", b""])
                bench.capture.take(subject, b"inbox", block, payload)
                ends.append(bench.capture.last_message_id)
            durable = len(bench.durable)
            await bench.committer.flush()
            bench.rules.note_done(bench.durable[durable:])
            bench.subjects.add_all(bench.durable[durable:])
        expiries = [
            (item.sequence, item.particulars.timestamp_ns + ttl)
            for item in bench.durable
            if item.particulars is not None and (ttl := bench.ttl(item))
        ]
        records = [
            (r.offset, r.subject, r.header_block, r.payload, r.timestamp_ns) for r in bench.log.read(0, 99, 9999)
        ]
        return [[shown(item) for item in bench.durable], expiries, records, bench.received, ends, bench.answers.refused]

    async def main() -> None:
        assert await outcome(with_options=True) == await outcome(with_options=False)

    asyncio.run(main())


def test_options_that_the_stream_allows_are_not_judged() -> None:
    async def main() -> None:
        bench = Bench(allow_msg_ttl=True, allow_rollup_hdrs=True)
        bench.capture.options = bench.rules.options
        bench.capture.take(b"orders", b"", b"NATS/1.0\r\nNats-TTL: 1h\r\nNats-Rollup: sub\r\n\r\n", b"")
        assert bench.rules.judged == []
        await bench.committer.flush()
        (item,) = bench.durable
        assert item.particulars is not None
        assert (item.particulars.rollup, item.particulars.ttl_ns) == (b"sub", 3_600_000_000_000)

    asyncio.run(main())


def test_a_status_is_left_out_whatever_options_the_message_has() -> None:
    """A pull consumer's client took a stored `NATS/1.0 503` for the answer to its request."""

    async def main() -> None:
        for settings in ({}, {"allow_msg_ttl": True}):
            bench = Bench(**settings)
            bench.capture.take(b"orders", b"inbox", b"NATS/1.0 503 No Responders\r\n\r\n", b"1")
            bench.capture.take(b"orders", b"inbox", b"NATS/1.0 404\r\nNats-Msg-Id: 5\r\nA: b\r\n\r\n", b"2")
            await bench.committer.flush()
            assert [item.message_id for item in bench.durable] == [b"", b"5"]
            stored = [record.header_block for record in bench.log.read(0, 9, 999)]
            assert stored == [b"", b"NATS/1.0\r\nNats-Msg-Id: 5\r\nA: b\r\n\r\n"]

    asyncio.run(main())
