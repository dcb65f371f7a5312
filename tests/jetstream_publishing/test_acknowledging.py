"""The way of a batch to its publishers: counted and answered in order, and the stream learns of it where it has to."""

import pytest
from support.fake_link import make_outlet
from support.recording_files import RecordingFiles

from headwater.exchange.router import Router
from headwater.exchange.sublist import Subscription
from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_publishing.acknowledging import Acknowledging
from headwater.jetstream_state.contents import Contents
from headwater.jetstream_state.items import Item
from headwater.streams.log import Log, LogOptions


class Bench:
    """Acknowledging before a log in memory, and what came of it."""

    def __init__(self, **settings: int) -> None:
        self.log = Log.open(RecordingFiles(), "log", LogOptions(preallocate_bytes=0), 1)
        config = StreamConfig(name="S", **settings)  # type: ignore[arg-type]
        self.contents = Contents(self.log, config, lambda sequence, subject: None, lambda: None)
        self.consumers: dict[str, object] = {}
        self.stored: list[tuple[int, int, list[bytes]]] = []
        self.acknowledging = Acknowledging(self.contents, self.consumers, b'{"stream":"S","seq":', self._on_stored)
        self.acknowledging.subjects = self.contents.subjects if self.contents.only_counts else None
        self.acknowledging.router = router = Router(lambda callback: None, 1)
        self.acknowledging.is_plain = True
        self.answers: list[tuple[bytes, bytes]] = []
        router.subscribe_internal(b"inbox.*", lambda subject, _reply, _block, ack: self.answers.append((subject, ack)))

    def _on_stored(self, first: int, count: int, items: list[Item]) -> None:
        assert len(self.answers) >= count, "publishers come first"
        self.stored.append((first, count, [item.subject for item in items]))

    def store(self, count: int) -> None:
        """Durable messages in the log."""
        for _ in range(count):
            self.log.stage(b"s.1", b"", b"", 1)
        batch = self.log.seal()
        assert batch is not None
        self.log.write(batch)
        self.log.publish(batch)


def item(number: int) -> Item:
    return Item(b"inbox.%d" % number, b"", b"s.%d" % (number % 2), number, 100, b"")


def test_a_plain_batch_is_counted_and_answered_in_order_and_nobody_else_learns_of_it() -> None:
    bench = Bench()
    bench.acknowledging.take([item(1), item(2), item(3)])
    assert bench.answers == [(b"inbox.%d" % n, b'{"stream":"S","seq":%d}' % n) for n in (1, 2, 3)]
    subjects = bench.contents.subjects
    assert (subjects.messages, subjects.size_bytes, subjects.total(b"s.1"), subjects.total(b"s.0")) == (3, 300, 2, 1)
    assert bench.stored == []


@pytest.mark.parametrize("reason", ["settings", "consumers", "deletions"])
def test_the_stream_learns_of_a_batch_that_something_has_to_follow(reason: str) -> None:
    bench = Bench()
    if reason == "settings":
        bench.acknowledging.is_plain = False
    elif reason == "consumers":
        bench.consumers["c"] = object()
    else:
        bench.store(1)
        bench.log.discard(0)
    bench.acknowledging.take([item(4), item(5)])
    assert bench.stored == [(4, 2, [b"s.0", b"s.1"])]
    assert len(bench.answers) == 2


def test_answers_to_duplicates_alone_are_no_news_to_the_stream() -> None:
    bench = Bench()
    bench.acknowledging.is_plain = False
    bench.acknowledging.take([Item(b"inbox.1", b"again", b"", 1, 0, b"")])
    assert (bench.answers, bench.stored) == ([(b"inbox.1", b"again")], [])


def test_the_limit_per_subject_holds_as_soon_as_a_message_is_counted() -> None:
    bench = Bench(max_msgs_per_subject=1)
    bench.store(2)
    bench.acknowledging.take([Item(b"inbox.%d" % n, b"", b"s.1", n, 100, b"") for n in (1, 2)])
    assert bench.contents.subjects.total(b"s.1") == 1
    assert bench.log.is_absent(0) and not bench.log.is_absent(1)


@pytest.mark.parametrize("reason", ["alone", "others end too", "not known", "another face", "no reply", "callback"])
def test_the_publisher_of_a_lone_message_is_answered_before_it_is_counted_and_only_once(reason: str) -> None:
    bench = Bench()
    acknowledging, router = bench.acknowledging, bench.acknowledging.router
    assert router is not None
    link, outlet = make_outlet()
    router.subscribe(Subscription(b"mine", b"", b"1", outlet))
    acknowledging.alone = None if reason == "not known" else lambda: reason != "others end too"
    reply = {"no reply": b"", "callback": b"inbox.1"}.get(reason, b"mine")
    answered: list[object] = []
    lone = Item(reply, b"", b"s.1", 1, 100, b"", None, answered.append if reason == "another face" else None)
    acknowledging.answer_first(lone)
    assert link.flushed == (b'MSG mine 1 22\r\n{"stream":"S","seq":1}\r\n' if reason == "alone" else b"")
    assert (bench.answers, answered, bench.contents.subjects.messages) == ([], [], 0)
    acknowledging.take([lone])
    outlet.link.flush()
    assert link.flushed.count(b"MSG") == (reason not in ("no reply", "callback"))
    assert (len(bench.answers), len(answered)) == (reason == "callback", reason == "another face")
    assert bench.contents.subjects.messages == 1
