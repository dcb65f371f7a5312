"""Streams of another face as topics of the stream `nats`, with a face that is a list of logs."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from support.iggy_service import SECOND, Desk, at_desk
from support.recording_files import RecordingFiles

from headwater import HeaderValue, TypedHeaders
from headwater.errors import StorageError
from headwater.iggy.foreign import NAME, STREAM_ID, Foreign, ForeignStream, failure, translated
from headwater.iggy.partition import Done
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.batches import of_messages
from headwater.iggy_wire.commands import Message
from headwater.iggy_wire.identifiers import Consumer, Identifier, PollingStrategy
from headwater.model.headers import Headers
from headwater.streams.log import Log
from headwater.streams.options import LogOptions

NATS, ORDERS, ME = Identifier(NAME), Identifier("orders"), Consumer.single("me")


class Stream:
    """A stream of the other face that stores at once, or says why not."""

    def __init__(self, name: str, created_us: int = 1) -> None:
        self.name = name
        self.created_us = created_us
        self.log = Log.open(RecordingFiles(), name, LogOptions(preallocate_bytes=0), 1)
        self.refuses: StorageError | None = None

    def append(self, messages: Sequence[Foreign], done: Done) -> int:
        first = self.log.next_offset
        if self.refuses is None:
            for message in messages:
                subject = message.subject or f"{self.name}.first"
                self.log.stage(subject.encode(), bytes(message.headers), message.payload, 7_000)
            batch = self.log.seal()
            assert batch is not None
            self.log.write(batch)
            self.log.publish(batch)
        done(self.refuses)
        return first

    async def flush(self) -> None:
        pass

    def store(self, *payloads: bytes) -> None:
        """As the other face's own publishers do."""
        self.append([Foreign("", Headers(), payload) for payload in payloads], lambda error: None)


class Streams:
    def __init__(self, *streams: Stream) -> None:
        self.there = list(streams)

    def streams(self) -> Iterable[ForeignStream]:
        return self.there


async def topics(desk: Desk) -> list[tuple[int, str, int]]:
    return [(topic.id, topic.name, topic.messages) for topic in await desk.do(c.GetTopics(NATS))]


def test_each_stream_is_a_topic_of_one_partition_as_long_as_it_is_there(tmp_path: Path) -> None:
    face = Streams(Stream("orders"))

    async def work(desk: Desk) -> None:
        assert await topics(desk) == [(0, "orders", 0)]
        face.there.append(Stream("events"))
        face.there[0].store(b"a", b"b")
        assert await topics(desk) == [(0, "orders", 2), (1, "events", 0)]
        shown = await desk.do(c.GetStream(NATS))
        assert (shown.id, shown.name, [topic.partitions for topic in shown.details]) == (STREAM_ID, NAME, [1, 1])
        del face.there[0]
        assert await topics(desk) == [(1, "events", 0)]
        face.there.append(Stream("again"))
        assert await topics(desk) == [(1, "events", 0), (2, "again", 0)]

    at_desk(tmp_path, work, face)


def test_the_stream_is_listed_while_there_is_something_in_it_and_keeps_its_time(tmp_path: Path) -> None:
    face = Streams()
    created = []

    async def work(desk: Desk) -> None:
        desk.now += 60 * SECOND
        assert await desk.do(c.GetStreams()) == [] and (await desk.do(c.GetStats())).streams == 0
        assert await topics(desk) == [], "its name is taken, for all that"
        face.there = [Stream("orders")]
        (shown,) = await desk.do(c.GetStreams())
        created.append(shown.created)
        assert (shown.name, shown.topics) == (NAME, 1)
        face.there = []
        assert await desk.do(c.GetStreams()) == []

    at_desk(tmp_path, work, face)
    at_desk(tmp_path, work, face)
    assert created[0] == created[1]


def test_what_is_polled_is_the_other_faces_log_and_offsets_are_ours(tmp_path: Path) -> None:
    orders = Stream("orders")

    async def work(desk: Desk) -> None:
        orders.store(b"a", b"b", b"c")

        def turn() -> list[bytes]:
            return desk.poll(0, PollingStrategy.next(), ME, commit=True, count=2, stream=NATS, topic=ORDERS)[1]

        assert [turn(), turn(), turn()] == [[b"a", b"b"], [b"c"], []]
        assert (await desk.do(c.GetOffset(ME, NATS, ORDERS, 0))).stored_offset == 2

    at_desk(tmp_path, work, Streams(orders))


def test_a_stream_that_was_made_anew_is_another_topic_and_one_that_was_opened_again_is_the_same(tmp_path: Path) -> None:
    face = Streams(Stream("orders", created_us=1))

    async def work(desk: Desk) -> None:
        face.there[0].store(b"a")
        await desk.do(c.StoreOffset(ME, NATS, ORDERS, 0, 0))
        uid = desk.service.topic(NATS, ORDERS)[1].entry.uid
        face.there[0] = Stream("orders", created_us=1)
        face.there[0].store(b"b")
        assert desk.poll(stream=NATS, topic=ORDERS)[1] == [b"b"], "another log of the same stream"
        assert (await desk.do(c.GetOffset(ME, NATS, ORDERS, 0))).stored_offset == 0
        face.there[0] = Stream("orders", created_us=2)
        assert await desk.do(c.GetOffset(ME, NATS, ORDERS, 0)) is None
        assert desk.service.topic(NATS, ORDERS)[1].entry.uid != uid

    at_desk(tmp_path, work, face)


def test_a_consumer_beyond_the_end_of_a_restored_stream_goes_on_with_its_next_message(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It waited until the stream was as long as before, and what was stored until then never came."""
    face = Streams(Stream("orders"))

    async def work(desk: Desk) -> None:
        face.there[0].store(b"a", b"b", b"c")
        await desk.do(c.StoreOffset(ME, NATS, ORDERS, 0, 2))
        face.there[0] = Stream("orders")
        face.there[0].store(b"a")
        await desk.do(c.GetStreams())
        face.there[0].store(b"new")
        assert desk.poll(0, PollingStrategy.next(), ME, stream=NATS, topic=ORDERS)[1] == [b"new"]
        assert "stream=orders c:'me' at 2, partition 0 ends at 1" in caplog.text

    at_desk(tmp_path, work, face)


def test_a_send_goes_the_other_faces_way_and_hears_its_answer(tmp_path: Path) -> None:
    orders = Stream("orders")

    async def work(desk: Desk) -> None:
        await desk.send(b"one", b"two", stream=NATS, topic=ORDERS)
        records = orders.log.read(0, 10, 1 << 20)
        assert [(record.subject, record.payload) for record in records] == [
            (b"orders.first", b"one"),
            (b"orders.first", b"two"),
        ]
        orders.refuses = failure("nobody captures it")
        with pytest.raises(StorageError, match="nobody captures it"):
            await desk.send(b"three", stream=NATS, topic=ORDERS)
        assert desk.poll(stream=NATS, topic=ORDERS)[1] == [b"one", b"two"]

    at_desk(tmp_path, work, Streams(orders))


def test_a_message_is_translated_with_its_subject_headers_and_id() -> None:
    headers = TypedHeaders([("Nats-Subject", "orders.eu"), ("n", HeaderValue.from_uint8(7))])
    republished = TypedHeaders([("Nats-Subject", "orders.us"), ("Nats-Subject#2", "source.us")])
    batch, _ = of_messages([Message(b"x", headers, id=9), Message(b"y"), Message(b"z", republished)], 1)
    first, second, third = translated(bytes(batch))
    assert (third.subject, third.headers.multi_items()) == ("orders.us", [("Nats-Subject", "source.us")])
    assert (first.subject, first.payload) == ("orders.eu", b"x")
    assert first.headers.multi_items() == [("n", "7"), ("Iggy-Typed", "n uint8"), ("Iggy-Message-Id", "9")]
    assert (second.subject, second.payload, len(second.headers)) == ("", b"y", 0)


def test_what_makes_alters_or_removes_is_the_other_faces_alone(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        commands = [
            c.CreateTopic(NATS, "more", 1),
            c.UpdateStream(NATS, "renamed"),
            c.DeleteStream(Identifier(STREAM_ID)),
            c.PurgeTopic(NATS, ORDERS),
            c.DeleteTopic(NATS, ORDERS),
            c.CreatePartitions(NATS, ORDERS, 1),
            c.DeleteSegments(NATS, ORDERS, 0, 1),
        ]
        for command in commands:
            assert await desk.refused(command) == "feature_unavailable"
        await desk.do(c.CreateGroup(NATS, ORDERS, "g"))
        await desk.do(c.JoinGroup(NATS, ORDERS, Identifier("g")))
        assert (await desk.do(c.SyncGroup(NATS, ORDERS, Identifier("g")))).partitions == [0]

    at_desk(tmp_path, work, Streams(Stream("orders")))


def test_topics_of_the_other_face_keep_id_group_and_offset_over_a_restart(tmp_path: Path) -> None:
    face = Streams(Stream("orders"))

    async def first(desk: Desk) -> None:
        face.there[0].store(b"a", b"b")
        await desk.do(c.CreateGroup(NATS, ORDERS, "g"))
        await desk.do(c.StoreOffset(ME, NATS, ORDERS, 0, 1))

    async def second(desk: Desk) -> None:
        assert [group.name for group in await desk.do(c.GetGroups(NATS, ORDERS))] == ["g"]
        assert (await desk.do(c.GetOffset(ME, NATS, ORDERS, 0))).stored_offset == 1

    at_desk(tmp_path, first, face)
    at_desk(tmp_path, second, face)


def test_numbers_and_offsets_of_new_topics_outlive_a_restart_though_nothing_else_was_changed(tmp_path: Path) -> None:
    face = Streams(Stream("orders"))
    numbers: list[dict[str, int]] = []

    async def see(desk: Desk) -> None:
        found = await desk.do(c.GetTopics(NATS))
        numbers.append({topic.name: topic.id for topic in found})

    async def first(desk: Desk) -> None:
        face.there[0].store(b"a", b"b")
        await desk.do(c.StoreOffset(ME, NATS, ORDERS, 0, 1))
        face.there.insert(0, Stream("earlier"))
        await see(desk)

    async def second(desk: Desk) -> None:
        await see(desk)
        assert (await desk.do(c.GetOffset(ME, NATS, ORDERS, 0))).stored_offset == 1

    at_desk(tmp_path, first, face)
    at_desk(tmp_path, second, face)
    assert numbers[0] == numbers[1]
