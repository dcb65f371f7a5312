"""Checks commands against a user's permissions. Pure.

A global permission covers every stream, one of a stream covers its topics, and permission to manage includes reading;
the root user (id 1 in upstream's numbering) may do everything. Polling and sending are separate permissions, included
in managing.
"""

from typing import Final

from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Command, Permissions, StreamPermissions, TopicPermissions
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.identifiers import Consumer, Partitioning

ALL: Final = Permissions(True, True, True, True, True, True, True, True, True, True)
NONE: Final = Permissions()

_SERVER_READ: Final = (c.GetStats, c.GetSnapshot, c.GetClients, c.GetClient)
_USERS_READ: Final = (c.GetUser, c.GetUsers)
_USERS_MANAGE: Final = (c.CreateUser, c.DeleteUser, c.UpdateUser, c.UpdatePermissions, c.ChangePassword)
_STREAM_READ: Final = (c.GetStream,)
_STREAM_MANAGE: Final = (c.UpdateStream, c.DeleteStream, c.PurgeStream)
_TOPIC_READ: Final = (c.GetTopic, c.GetGroup, c.GetGroups)
_TOPIC_MANAGE: Final = (
    c.UpdateTopic,
    c.DeleteTopic,
    c.PurgeTopic,
    c.CreatePartitions,
    c.DeletePartitions,
    c.DeleteSegments,
    c.FlushUnsavedBuffer,
)
_GROUP_CHANGE: Final = (c.CreateGroup, c.DeleteGroup, c.JoinGroup, c.LeaveGroup, c.SyncGroup)
_POLL: Final = (
    c.PollMessages,
    c.PollDeferred,
    c.WaitForMessages,
    c.FetchMessages,
    c.GetOffset,
    c.StoreOffset,
    c.DeleteOffset,
)

_NO_STREAM: Final = StreamPermissions()
_NO_TOPIC: Final = TopicPermissions()


def check(command: Command, granted: Permissions, stream: int | None = None, topic: int | None = None) -> None:
    """Raises IggyError (unauthorized) unless the command is allowed; `stream` and `topic` are its target."""
    if not allowed(command, granted, stream, topic):
        raise refusal("unauthorized", f"{type(command).__name__} is not allowed to this user")


def allowed(command: Command, granted: Permissions, stream: int | None, topic: int | None) -> bool:
    """Whether the command is allowed."""
    g = granted
    of_stream = g.streams.get(stream, _NO_STREAM) if stream is not None else _NO_STREAM
    of_topic = of_stream.topics.get(topic, _NO_TOPIC) if topic is not None else _NO_TOPIC
    manages_streams = g.manage_streams or of_stream.manage_stream
    manages_topics = manages_streams or g.manage_topics or of_stream.manage_topics
    reads_streams = manages_streams or g.read_streams or of_stream.read_stream
    reads_topics = manages_topics or reads_streams or g.read_topics or of_stream.read_topics
    match command:
        case _ if isinstance(command, _SERVER_READ):
            return g.manage_servers or g.read_servers
        case _ if isinstance(command, _USERS_READ):
            return g.manage_users or g.read_users
        case _ if isinstance(command, _USERS_MANAGE):
            return g.manage_users
        case c.GetStreams():
            return g.manage_streams or g.read_streams
        case c.CreateStream():
            return g.manage_streams
        case c.GetTopics():
            return reads_topics
        case c.CreateTopic():
            return manages_topics
        case _ if isinstance(command, _STREAM_READ):
            return reads_streams
        case _ if isinstance(command, _STREAM_MANAGE):
            return manages_streams
        case _ if isinstance(command, _TOPIC_READ):
            return reads_topics or of_topic.manage_topic or of_topic.read_topic
        case _ if isinstance(command, _TOPIC_MANAGE):
            return manages_topics or of_topic.manage_topic
        case _ if isinstance(command, _GROUP_CHANGE):
            return reads_topics or of_topic.manage_topic or of_topic.read_topic
        case _ if isinstance(command, _POLL):
            return (
                manages_topics
                or g.poll_messages
                or of_stream.poll_messages
                or of_topic.manage_topic
                or (of_topic.poll_messages)
            )
        case c.SendMessages():
            return (
                manages_topics
                or g.send_messages
                or of_stream.send_messages
                or of_topic.manage_topic
                or (of_topic.send_messages)
            )
        case c.GetPartitionRoute():
            return any(
                allowed(kind, granted, stream, topic)
                for kind in (
                    c.GetOffset(Consumer.single(), command.stream, command.topic, None),
                    c.SendMessages(command.stream, command.topic, Partitioning.balanced()),
                )
            )
        case _:
            return True  # commands about the caller itself: me, tokens, logout, options, cluster
