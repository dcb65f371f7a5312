"""The short way into a stream, and when a message may not take it."""

import asyncio

from support.recording_files import RecordingFiles

from headwater.broker.jetstream.capture import Capture
from headwater.broker.jetstream.committer import Committer
from headwater.broker.jetstream.items import Item
from headwater.broker.jetstream.publish_checks import MAX_HEADER_BLOCK
from headwater.errors import StorageError, WriteFailed
from headwater.streams.dedup import DuplicateWindow
from headwater.streams.log import Log, LogOptions


class Bench:
    """A capture before a log in memory, and what came of it."""

    def __init__(self) -> None:
        self.log = Log.open(RecordingFiles(), "log", LogOptions(preallocate_bytes=0), 1)
        self.duplicates = DuplicateWindow(100)
        self.durable: list[Item] = []
        self.checked: list[bytes] = []
        self.refused: list[tuple[bytes, StorageError]] = []
        self.capture = Capture(
            self.log.staging,
            self.duplicates,
            lambda: 42,
            30,
            4,
            lambda subject, reply, block, payload: self.checked.append(subject),
            lambda reply, error: self.refused.append((reply, error)),
        )
        self.committer = Committer(self.log, None, self.durable.extend, lambda items, error: None)
        self.capture.committer = self.committer
        self.capture.is_plain = True


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
        assert bench.checked == []

    asyncio.run(main())


def test_a_new_message_id_is_remembered_and_a_known_one_leads_to_the_long_way() -> None:
    async def main() -> None:
        bench = Bench()
        block = b"NATS/1.0\r\nNats-Msg-Id: one\r\n\r\n"
        bench.capture.take(b"first", b"", block, b"")
        bench.capture.take(b"again", b"", block, b"")
        await bench.committer.flush()
        assert [(item.subject, item.message_id) for item in bench.durable] == [(b"first", b"one")]
        assert (bench.capture.last_message_id, bench.duplicates.seen(b"one", 42)) == (b"one", 0)
        assert bench.checked == [b"again"]

    asyncio.run(main())


def test_demands_long_blocks_and_settings_lead_to_the_long_way() -> None:
    async def main() -> None:
        bench = Bench()
        bench.capture.take(b"with.demands", b"", b"NATS/1.0\r\nNats-Expected-Stream: S\r\n\r\n", b"")
        bench.capture.take(b"with.many", b"", b"NATS/1.0\r\nA: %b\r\n\r\n" % bytes(MAX_HEADER_BLOCK), b"")
        bench.capture.is_plain = False
        bench.capture.take(b"with.settings", b"", b"", b"")
        assert bench.checked == [b"with.demands", b"with.many", b"with.settings"]
        assert bench.log.next_offset == 0

    asyncio.run(main())


def test_what_the_log_refuses_is_refused_at_once() -> None:
    async def main() -> None:
        bench = Bench()
        bench.log.staging.failure = failure = WriteFailed("the disk is gone")
        bench.capture.take(b"orders", b"inbox", b"", b"")
        assert bench.refused == [(b"inbox", failure)]
        assert not bench.committer.busy

    asyncio.run(main())
