"""Streams, topics and partitions, command by command, for clients of several eras."""

from pathlib import Path
from typing import Any

import pytest
from support.iggy_service import Desk, G, S, T, at_desk

from headwater import HeaderValue, TypedHeaders
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.identifiers import Consumer, Identifier
from headwater.model.typed_headers import HeaderForm

NEVER = (1 << 64) - 1
HOUR = 3_600_000_000  # microseconds


def options(**values: int) -> bytes:
    chosen = TypedHeaders((name, HeaderValue.from_uint64(value)) for name, value in values.items())
    return chosen.encode(HeaderForm.TYPED)


def test_ids_are_the_lowest_free_ones_from_where_the_era_counts(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        old = desk.client(Era.B)
        made = [(await desk.do(c.CreateStream(name), client)).id for name, client in (("a", None), ("b", old))]
        assert made == [0, 1]
        assert (await desk.do(c.CreateStream("d", id=5), old)).id == 5
        await desk.do(c.DeleteStream(Identifier("a")))
        assert (await desk.do(c.CreateStream("c"), old)).id == 2
        assert (await desk.do(c.CreateStream("e"))).id == 0
        assert await desk.refused(c.CreateStream("f", id=5), old) == "stream_id_already_exists"
        assert await desk.refused(c.CreateStream("e")) == "stream_name_already_exists"
        assert [stream.name for stream in await desk.do(c.GetStreams())] == ["b", "d", "c", "e"]
        assert await desk.refused(c.CreateStream("")) == "invalid_stream_name"
        seed = desk.client(Era.S, user=None)
        assert await desk.refused(c.CreateStream("s"), seed) == "invalid_stream_id", "its clients choose"
        assert (await desk.do(c.CreateStream("My Stream", id=9), seed)).name == "my.stream"

    at_desk(tmp_path, work)


def test_names_change_and_stay_unique(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        await desk.do(c.CreateStream("other"))
        await desk.do(c.CreateTopic(S, "u", 1))
        assert await desk.refused(c.UpdateStream(S, "other")) == "stream_name_already_exists"
        assert await desk.refused(c.UpdateTopic(S, T, "u")) == "topic_name_already_exists"
        await desk.do(c.UpdateStream(S, "s"))
        await desk.do(c.UpdateStream(S, "renamed"))
        await desk.do(c.UpdateTopic(Identifier("renamed"), T, "renamed too"))
        found = await desk.do(c.GetTopics(Identifier("renamed")))
        assert [topic.name for topic in found] == ["renamed too", "u"]
        assert await desk.do(c.GetStream(S)) is None and await desk.do(c.GetTopic(S, T)) is None
        assert await desk.do(c.GetTopics(S)) == [], "as upstream"
        assert await desk.refused(c.GetTopics(S), desk.client(Era.B)) == "stream_name_not_found"

    at_desk(tmp_path, work)


@pytest.mark.parametrize(
    ("era", "given", "kept", "shown"),
    [
        (Era.A, 3600, HOUR, 3600),
        (Era.A2, 0xFFFFFFFF, 0, 0),
        (Era.B, HOUR, HOUR, HOUR),
        (Era.C3, NEVER, 0, NEVER),
        (Era.C1, 0, 0, NEVER),
    ],
)
def test_an_expiry_is_in_the_unit_of_the_era(tmp_path: Path, era: Era, given: int, kept: int, shown: int) -> None:
    async def work(desk: Desk) -> None:
        await desk.do(c.CreateStream("s"))
        client = desk.client(era)
        view = await desk.do(c.CreateTopic(S, "t", 1, message_expiry=given, max_size=NEVER), client)
        assert view.message_expiry == shown
        assert desk.service.catalog.streams[0].topics[0].message_expiry == kept
        assert view.max_size == NEVER and desk.service.catalog.streams[0].topics[0].max_size == 0
        await desk.do(c.UpdateTopic(S, T, "t", message_expiry=given, compression=2), client)
        assert (await desk.do(c.GetTopic(S, T), client)).compression == 2

    at_desk(tmp_path, work)


def test_options_that_an_update_does_not_name_stay(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.do(c.CreateStream("s"))
        await desk.do(c.CreateTopic(S, "t", 1, options=options(message_expiry=HOUR, max_topic_size=1 << 30)))
        await desk.do(c.UpdateTopic(S, T, "t"))
        view = await desk.do(c.GetTopic(S, T))
        assert (view.message_expiry, view.max_size) == (HOUR, 1 << 30)
        await desk.do(c.UpdateTopic(S, T, "t", options=options(message_expiry=2 * HOUR)))
        view = await desk.do(c.GetTopic(S, T))
        assert (view.message_expiry, view.max_size) == (2 * HOUR, 1 << 30)

    at_desk(tmp_path, work)


def test_what_is_refused_leaves_nothing_behind(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.do(c.CreateStream("s"))
        old = desk.client(Era.C3)
        refused: list[tuple[c.Command, Any, str]] = [
            (c.CreateTopic(S, "t", 1001), None, "too_many_partitions"),
            (c.CreateTopic(S, "t", 1, compression=9), old, "invalid_command"),
            (c.CreateTopic(S, "t" * 256, 1), None, "invalid_topic_name"),
            (c.CreateTopic(Identifier("nothing"), "t", 1), None, "stream_name_not_found"),
            (c.CreateTopic(Identifier(7), "t", 1), None, "stream_id_not_found"),
        ]
        for command, client, name in refused:
            assert await desk.refused(command, client) == name
        assert await desk.do(c.GetTopics(S)) == []
        assert list((tmp_path / "logs").iterdir()) == [] and desk.service.topics == {}

    at_desk(tmp_path, work)


def test_a_stream_goes_with_its_topics_logs_offsets_and_memberships(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        await desk.send(b"x")
        await desk.do(c.JoinGroup(S, T, G))
        await desk.do(c.StoreOffset(Consumer.single(), S, T, 0, 0))
        assert len(list((tmp_path / "logs").iterdir())) == 2 and list((tmp_path / "offsets").iterdir())
        await desk.do(c.DeleteStream(S))
        assert list((tmp_path / "logs").iterdir()) == [] and list((tmp_path / "offsets").iterdir()) == []
        assert desk.root.memberships == set()
        await desk.make()
        assert desk.poll() == (0, []), "made anew, it is another one"

    at_desk(tmp_path, work)


def test_a_purged_stream_has_its_topics_and_no_messages(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        await desk.do(c.CreateTopic(S, "u", 1))
        for topic in (T, Identifier("u")):
            await desk.send(b"old", topic=topic)
        await desk.do(c.StoreOffset(Consumer.single(), S, T, 0, 0))
        await desk.do(c.PurgeStream(S))
        assert [topic.messages for topic in await desk.do(c.GetTopics(S))] == [0, 0]
        assert await desk.do(c.GetOffset(Consumer.single(), S, T, 0)) is None
        assert (await desk.send(b"new")).base_offset == 0

    at_desk(tmp_path, work)


def test_partitions_are_added_at_the_end_and_taken_from_there(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make(1)
        await desk.do(c.CreatePartitions(S, T, 2))
        await desk.send(b"x", to=2)
        await desk.do(c.StoreOffset(Consumer.single(), S, T, 2, 0))
        old = await desk.do(c.GetTopic(S, T), desk.client(Era.C1))
        assert [part.id for part in old.parts] == [1, 2, 3] and [part.messages for part in old.parts] == [0, 0, 1]
        assert await desk.refused(c.DeletePartitions(S, T, 4)) == "invalid_partitions_count"
        for none_or_too_many in (
            c.DeletePartitions(S, T, 0),
            c.CreatePartitions(S, T, 0),
            c.CreatePartitions(S, T, 998),
        ):
            assert await desk.refused(none_or_too_many) == "too_many_partitions"
        await desk.do(c.DeletePartitions(S, T, 2))
        await desk.do(c.CreatePartitions(S, T, 2))
        assert desk.poll(2) == (2, [])
        assert await desk.do(c.GetOffset(Consumer.single(), S, T, 2)) is None
        assert await desk.refused(c.CreatePartitions(S, T, 998)) == "too_many_partitions"

    at_desk(tmp_path, work)


def test_only_closed_segments_are_deleted(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.do(c.CreateStream("s"))
        await desk.do(c.CreateTopic(S, "t", 1, options=options(segment_size=1 << 20)))
        for _ in range(4):
            await desk.send(bytes(700_000))
        assert (await desk.do(c.GetTopic(S, T))).parts[0].segments == 4
        await desk.do(c.DeleteSegments(S, T, 0, 2))
        assert len(desk.poll()[1]) == 2
        await desk.do(c.DeleteSegments(S, T, 0, 99))
        assert len(desk.poll()[1]) == 1
        await desk.do(c.DeleteSegments(S, T, 0, 1))
        assert len(desk.poll()[1]) == 1
        assert await desk.refused(c.DeleteSegments(S, T, 1, 1)) == "partition_not_found"

    at_desk(tmp_path, work)


def test_options_may_be_texts_and_what_is_not_known_is_refused_at_every_place(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        texts = TypedHeaders({"segment_size": "128 MiB", "message_expiry": "1 day"}).encode(HeaderForm.TYPED)
        await desk.do(c.CreateStream("s"))
        view = await desk.do(c.CreateTopic(S, "t", 1, options=texts))
        shown = TypedHeaders.decode(view.options, HeaderForm.TYPED).to_python()
        assert shown == {"segment_size": 128 << 20, "message_expiry": 24 * HOUR} and view.message_expiry == 24 * HOUR
        assert "max_topic_size" in TypedHeaders.decode(view.derived, HeaderForm.TYPED).to_python()
        colour = TypedHeaders({"colour": "red"}).encode(HeaderForm.TYPED)
        for command in (
            c.CreateStream("x", options=colour),
            c.UpdateStream(S, "s", colour),
            c.CreateTopic(S, "u", 1, options=colour),
            c.UpdateTopic(S, T, "t", options=colour),
            c.UpdateTopic(S, T, "t", options=options(segment_size=2 << 20)),
        ):
            assert await desk.refused(command) == "unsupported_option_key", command

    at_desk(tmp_path, work)


def test_a_limit_that_cannot_hold_is_refused_and_none_stays_none(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.do(c.CreateStream("s"))
        for count, wrong in (
            (1, options(max_topic_size=4563)),
            (3, options(max_topic_size=2 << 20)),
            (1, options(max_topic_size=2 << 20, segment_size=4 << 20)),
        ):
            assert await desk.refused(c.CreateTopic(S, "t", count, options=wrong)) == "invalid_topic_size"
        view = await desk.do(c.CreateTopic(S, "t", 1))
        assert view.max_size == view.message_expiry == NEVER
        await desk.do(c.UpdateTopic(S, T, "t", options=options(max_topic_size=2 << 20)))
        assert (await desk.do(c.GetTopic(S, T))).max_size == 2 << 20
        await desk.do(c.UpdateTopic(S, T, "t", options=options(max_topic_size=0)))
        assert (await desk.do(c.GetTopic(S, T))).max_size == 2 << 20, "0 leaves it to what was chosen"
        assert await desk.refused(c.UpdateTopic(S, T, "t", options=options(max_topic_size=5))) == "invalid_topic_size"
        assert await desk.refused(c.CreatePartitions(S, T, 2)) == "invalid_topic_size"
        await desk.do(c.UpdateTopic(S, T, "t", options=options(max_topic_size=NEVER)))
        assert (await desk.do(c.GetTopic(S, T))).max_size == NEVER

    at_desk(tmp_path, work)


def test_a_limit_holds_that_was_set_on_a_topic_with_large_segments(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make(1)
        await desk.do(c.UpdateTopic(S, T, "t", options=options(max_topic_size=2 << 20)))
        for _ in range(30):
            await desk.send(bytes(100_000))
        await desk.service._housekeeper.look()
        assert 1 << 20 < (await desk.do(c.GetTopic(S, T))).size <= 2 << 20

    at_desk(tmp_path, work)


def test_a_topic_of_a_thousand_partitions_comes_and_goes(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make(1000)
        assert len(list((tmp_path / "logs").iterdir())) == 1000
        await desk.do(c.DeleteTopic(S, T))
        assert list((tmp_path / "logs").iterdir()) == []

    at_desk(tmp_path, work)


def test_an_empty_topic_has_size_0_and_so_has_a_purged_one(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()

        async def sizes() -> tuple[int, list[int]]:
            view = await desk.do(c.GetTopic(S, T))
            return view.size, [part.size for part in view.parts]

        assert await sizes() == (0, [0, 0])
        await desk.send(b"x")
        whole, parts = await sizes()
        assert whole == parts[0] > 0
        await desk.do(c.PurgeTopic(S, T))
        assert await sizes() == (0, [0, 0])

    at_desk(tmp_path, work)
