"""What exists, the rules for it, and its document."""

import pytest

from headwater.errors import IggyError
from headwater.iggy import catalog as rules
from headwater.iggy.catalog import Catalog, GroupEntry, StreamEntry, TokenEntry, TopicEntry, UserEntry, decode, group_of
from headwater.iggy_wire.commands import Permissions, StreamPermissions, TopicPermissions
from headwater.iggy_wire.identifiers import Identifier


def name_of(call: object, *arguments: object, **more: object) -> str:
    assert callable(call)
    with pytest.raises(IggyError) as caught:
        call(*arguments, **more)
    return caught.value.name


def full() -> Catalog:
    topic = TopicEntry(0, 5, "t", 1, [6, 7], 10, 20, 2, 1, 1 << 20, b"\1", [GroupEntry(0, "g")])
    permissions = Permissions(read_users=True, streams={1: StreamPermissions(topics={2: TopicPermissions(True)})})
    user = UserEntry(1, "iggy", b"\0\xff", 3, 1, permissions, [TokenEntry("token", b"\1", 9)])
    return Catalog([StreamEntry(0, "s", 1, [topic])], [user], 8, 2)


def test_the_document_holds_everything() -> None:
    assert decode(full().encode()) == full()
    assert decode(Catalog().encode()) == Catalog()


def test_entries_are_found_by_number_and_by_name() -> None:
    catalog = full()
    for stream, topic in ((0, 0), ("s", "t"), (0, "t")):
        inside, entry = catalog.topic(Identifier(stream), Identifier(topic))
        assert (inside.name, entry.name) == ("s", "t")
    assert catalog.user(Identifier("iggy")) is catalog.user(Identifier(1))
    assert group_of(catalog.streams[0].topics[0], Identifier("g")).id == 0
    assert name_of(catalog.stream, Identifier(9)) == "stream_id_not_found"
    assert name_of(catalog.topic, Identifier("s"), Identifier("x")) == "topic_name_not_found"
    assert name_of(catalog.user, Identifier("x")) == "resource_not_found"
    assert name_of(group_of, catalog.streams[0].topics[0], Identifier(9)) == "consumer_group_id_not_found"


def test_a_uid_is_never_given_twice() -> None:
    catalog = full()
    assert [catalog.new_uid() for _ in range(3)] == [8, 9, 10] and decode(catalog.encode()).new_uid() == 11


def test_ids_are_the_lowest_free_ones_or_what_the_client_wants() -> None:
    entries = [StreamEntry(0, "a", 1), StreamEntry(2, "b", 1)]
    assert rules.free_id(entries, 0, "stream", 0) == 1
    assert rules.free_id(entries, 0, "stream", 1) == 1
    assert rules.free_id([StreamEntry(1, "a", 1)], 0, "stream", 1) == 2
    assert rules.free_id(entries, 7, "stream", 1, given=True) == 7
    assert name_of(rules.free_id, entries, 2, "stream", 1) == "stream_id_already_exists"
    assert name_of(rules.free_id, entries, 0, "stream", 1, given=True) == "invalid_stream_id"


def test_names_have_1_to_255_bytes_and_are_folded_for_the_seed() -> None:
    assert rules.checked_name("Any * name/", "stream") == "Any * name/"
    assert rules.checked_name("Sample Stream", "stream", seed=True) == "sample.stream"
    for wrong in ("", "x" * 256, "é" * 128):
        assert name_of(rules.checked_name, wrong, "topic") == "invalid_topic_name"
    assert name_of(rules.checked_name, "a*b", "stream", seed=True) == "invalid_stream_name"


def test_a_name_is_free_unless_another_has_it() -> None:
    entry = StreamEntry(0, "a", 1)
    rules.check_free_name([entry], "b", "stream")
    rules.check_free_name([entry], "a", "stream", but=entry)
    assert name_of(rules.check_free_name, [entry], "a", "stream") == "stream_name_already_exists"


def test_partitions_are_limited_and_never_is_no_limit() -> None:
    assert rules.checked_partitions(rules.MAX_PARTITIONS) == rules.MAX_PARTITIONS
    assert name_of(rules.checked_partitions, 1, rules.MAX_PARTITIONS) == "too_many_partitions"
    assert (rules.limit(0), rules.limit(5), rules.limit(rules.NEVER)) == (0, 5, 0)
