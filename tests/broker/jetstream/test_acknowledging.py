"""The short way of a batch to its publishers, and when it may not take it."""

from support.recording_files import RecordingFiles

from headwater.broker.jetstream.acknowledging import Acknowledging
from headwater.broker.jetstream.items import Item
from headwater.broker.jetstream.subject_table import SubjectTable
from headwater.broker.router import Router
from headwater.streams.log import Log, LogOptions


class Bench:
    """Acknowledging before a log in memory, and what came of it."""

    def __init__(self) -> None:
        self.log = Log.open(RecordingFiles(), "log", LogOptions(preallocate_bytes=0), 1)
        self.consumers: dict[str, object] = {}
        self.rest: list[list[Item]] = []
        self.acknowledging = Acknowledging(self.log, self.consumers, b'{"stream":"S","seq":', self.rest.append)
        self.acknowledging.subjects = SubjectTable()
        self.acknowledging.router = router = Router(lambda callback: None, 1)
        self.acknowledging.is_plain = True
        self.answers: list[tuple[bytes, bytes]] = []
        router.subscribe_internal(b"inbox.*", lambda subject, _reply, _block, ack: self.answers.append((subject, ack)))

    def store(self) -> None:
        """One durable message, so that there is something to delete."""
        self.log.stage(b"s", b"", b"", 1)
        batch = self.log.seal()
        assert batch is not None
        self.log.write(batch)
        self.log.publish(batch)


def item(number: int) -> Item:
    return Item(b"inbox.%d" % number, b"", b"s.%d" % (number % 2), number, 100, b"")


def test_a_plain_batch_is_counted_and_answered_in_order() -> None:
    bench = Bench()
    bench.acknowledging.take([item(1), item(2), item(3)])
    assert bench.answers == [(b"inbox.%d" % n, b'{"stream":"S","seq":%d}' % n) for n in (1, 2, 3)]
    subjects = bench.acknowledging.subjects
    assert subjects is not None
    assert (subjects.messages, subjects.size_bytes, subjects.total(b"s.1"), subjects.total(b"s.0")) == (3, 300, 2, 1)
    assert bench.rest == []


def test_settings_consumers_and_deletions_lead_to_the_long_way() -> None:
    bench = Bench()
    batch = [item(1)]
    bench.acknowledging.is_plain = False
    bench.acknowledging.take(batch)
    bench.acknowledging.is_plain = True
    bench.consumers["c"] = object()
    bench.acknowledging.take(batch)
    bench.consumers.clear()
    bench.store()
    bench.log.discard(0)
    bench.acknowledging.take(batch)
    assert bench.rest == [batch, batch, batch]
    assert bench.answers == []
