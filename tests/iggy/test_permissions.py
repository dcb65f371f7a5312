"""Who may do what, as a table: each grant, and exactly what it opens."""

import dataclasses
from typing import Any

import pytest

from headwater.errors import IggyError
from headwater.iggy.permissions import ALL, NONE, allowed, check
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Command, Permissions, StreamPermissions, TopicPermissions
from headwater.iggy_wire.identifiers import Consumer, Identifier, Partitioning, PollingStrategy

S, T, G, U = Identifier(1), Identifier(2), Identifier(3), Identifier(4)
ME = Consumer.single(1)
COMMANDS: dict[str, Command] = {
    "stats": c.GetStats(),
    "user": c.GetUser(U),
    "create user": c.CreateUser("alice", "secret", 1, None),
    "streams": c.GetStreams(),
    "create stream": c.CreateStream("s"),
    "stream": c.GetStream(S),
    "delete stream": c.DeleteStream(S),
    "topics": c.GetTopics(S),
    "create topic": c.CreateTopic(S, "t", 1),
    "topic": c.GetTopic(S, T),
    "purge topic": c.PurgeTopic(S, T),
    "join": c.JoinGroup(S, T, G),
    "poll": c.PollMessages(ME, S, T, 0, PollingStrategy.first(), 1, False),
    "store": c.StoreOffset(ME, S, T, 0, 1),
    "send": c.SendMessages(S, T, Partitioning.balanced(), 1),
    "route": c.GetPartitionRoute(S, T, 0),
}
ANYBODYS = {"me": c.GetMe(), "token": c.CreateToken("token", 0), "logout": c.Logout()}
READING, POLLING, SENDING = {"topics", "topic", "join"}, {"poll", "store", "route"}, {"send", "route"}
IN_STREAM = {*READING, *POLLING, *SENDING, "stream", "delete stream", "create topic", "purge topic"}
IN_TOPICS = {*READING, *POLLING, *SENDING, "create topic", "purge topic"}
GLOBAL = {
    "manage_servers": {"stats"},
    "read_servers": {"stats"},
    "manage_users": {"user", "create user"},
    "read_users": {"user"},
    "manage_streams": {*IN_STREAM, "streams", "create stream"},
    "read_streams": {*READING, "streams", "stream"},
    "manage_topics": IN_TOPICS,
    "read_topics": READING,
    "poll_messages": POLLING,
    "send_messages": SENDING,
}
OF_STREAM = {
    "manage_stream": IN_STREAM,
    "read_stream": {*READING, "stream"},
    "manage_topics": IN_TOPICS,
    "read_topics": READING,
    "poll_messages": POLLING,
    "send_messages": SENDING,
}
OF_TOPIC = {
    "manage_topic": {*POLLING, "topic", "join", "purge topic", *SENDING},
    "read_topic": {"topic", "join"},
    "poll_messages": POLLING,
    "send_messages": SENDING,
}


def with_one(kind: type, name: str) -> Any:
    """A value of this kind with one grant."""
    return kind(**{name: True})


def opened(granted: Permissions, stream: int = 1, topic: int = 2) -> set[str]:
    return {name for name, command in COMMANDS.items() if allowed(command, granted, stream, topic)}


@pytest.mark.parametrize("name", GLOBAL)
def test_a_grant_for_everything(name: str) -> None:
    assert opened(with_one(Permissions, name)) == GLOBAL[name]


@pytest.mark.parametrize("name", OF_STREAM)
def test_a_grant_for_one_stream(name: str) -> None:
    granted = Permissions(streams={1: with_one(StreamPermissions, name)})
    assert opened(granted) == OF_STREAM[name]
    assert opened(granted, stream=9) == set()


@pytest.mark.parametrize("name", OF_TOPIC)
def test_a_grant_for_one_topic(name: str) -> None:
    granted = Permissions(streams={1: StreamPermissions(topics={2: with_one(TopicPermissions, name)})})
    assert opened(granted) == OF_TOPIC[name]
    assert opened(granted, topic=9) == opened(granted, stream=9) == set()


def test_every_grant_there_is_has_its_row() -> None:
    fields = [{f.name for f in dataclasses.fields(kind)} for kind in (Permissions, StreamPermissions, TopicPermissions)]
    assert [fields[0] - {"streams"}, fields[1] - {"topics"}, fields[2]] == [set(GLOBAL), set(OF_STREAM), set(OF_TOPIC)]


def test_everything_nothing_and_what_is_ones_own() -> None:
    assert opened(ALL) == set(COMMANDS) and opened(NONE) == set()
    assert all(allowed(command, NONE, None, None) for command in ANYBODYS.values())
    check(COMMANDS["send"], ALL, 1, 2)
    with pytest.raises(IggyError) as refused:
        check(COMMANDS["send"], NONE, 1, 2)
    assert refused.value.number == 41
