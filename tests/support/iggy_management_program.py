"""Run in a process of its own by the tests of the Iggy face: all that apache-iggy can ask beside messages, that of 0.9 and
the pre-releases of the next, which alter things by patches and do not purge.

    python iggy_management_program.py tcp|http|ws|quic HOST:PORT

As `iggy_peer_program`: one line of JSON for every step.
"""

import asyncio
import datetime
import sys
from typing import Any

import apache_iggy
from support.iggy_peer_program import step

iggy: Any = apache_iggy  # which release of it, the caller chooses
HOUR = datetime.timedelta(hours=1)
PATCHES = hasattr(iggy, "TopicOptions")


def names(found: list[Any]) -> list[str]:
    return [getattr(one, "name", "") or getattr(one, "username", "") or getattr(one, "key", "") for one in found]


def group_shown(group: Any) -> Any:
    return group and [group.name, group.partitions_count, [list(member.partitions) for member in group.members]]


def topic_shown(topic: Any) -> Any:
    options = {str(key.value): value.value for key, value in topic.options.items()}
    return [topic.name, len(topic.partitions), str(topic.compression_algorithm), str(options.get("segment_size"))]


def user_shown(user: Any) -> Any:
    if user is None:
        return None
    granted = user.permissions and user.permissions.global_permissions
    inner = user.permissions and user.permissions.streams
    topics = [list(stream.topics or ()) for stream in (inner or {}).values()]
    return [user.username, str(user.status), granted and granted.read_streams, list(inner or ()), topics]


async def streams_and_topics(client: Any) -> None:
    await step("stats", client.get_stats, lambda found: found.iggy_server_version)
    for scope in ("topic", "stream", "user"):
        await step(f"options_{scope}", lambda scope=scope: client.describe_options(scope), names)
    await step("create_stream", lambda: client.create_stream("s"))
    await step("update_stream", lambda: client.update_stream("s", "s2"))
    await step("streams", client.get_streams, names)
    limits = {
        "compression_algorithm": "gzip",
        "message_expiry": iggy.IggyExpiry.ExpireDuration(HOUR),
        "max_topic_size": iggy.MaxTopicSize.Custom(1 << 30),
        "segment_size": 1 << 24,
    }
    if PATCHES:
        chosen = iggy.TopicOptions(partitions_count=2, **(limits | {"compression_algorithm": "none"}))
        await step("create_topic", lambda: client.create_topic("s2", "t", chosen))
        await step("update_topic", lambda: client.update_topic("s2", "t", "t2"))
        await patches(client)
    else:
        await step("create_topic", lambda: client.create_topic("s2", "t", 2, **limits))
        await step("update_topic", lambda: client.update_topic("s2", "t", "t2", compression_algorithm="none"))
    await step("create_partitions", lambda: client.create_partitions("s2", "t2", 2))
    await step("delete_partitions", lambda: client.delete_partitions("s2", "t2", 1))
    await step("topic", lambda: client.get_topic("s2", "t2"), topic_shown)
    await step("topics", lambda: client.get_topics("s2"), names)


async def patches(client: Any) -> None:
    """One setting at a time: what is not named stays, what is reset has its default again."""
    day = iggy.IggyExpiry.ExpireDuration(24 * HOUR)
    limits = lambda topic: [topic.message_expiry.duration // HOUR, type(topic.max_topic_size).__name__]  # noqa: E731
    await step("update_expiry", lambda: client.update_topic("s2", "t2", message_expiry=day))
    await step("topic_patched", lambda: client.get_topic("s2", "t2"), limits)
    await step("reset_size", lambda: client.update_topic("s2", "t2", reset=[iggy.OptionKey.MaxTopicSize]))
    await step("topic_reset", lambda: client.get_topic("s2", "t2"), limits)
    await step("update_segments", lambda: client.update_topic("s2", "t2", options={"segment_size": "1 MiB"}))
    await step("reset_name", lambda: client.update_stream("s2", raw_reset=["name"]))
    fixed = iggy.TopicOptions(partitions_count=1, partition_resize_policy=iggy.PartitionResizePolicy.Fixed)
    await step("create_fixed", lambda: client.create_topic("s2", "fixed", fixed))
    await step("resize_fixed", lambda: client.create_partitions("s2", "fixed", 1))
    await step("delete_fixed", lambda: client.delete_topic("s2", "fixed"))
    await step("changes", lambda: client.get_metadata_changes(iggy.MetadataChangeStart.Latest()))


async def messages_and_groups(client: Any) -> None:
    await step("send", lambda: client.send_messages("s2", "t2", 0, [iggy.SendMessage(b"x", id=7)]))
    first = {"polling_strategy": iggy.PollingStrategy.First(), "count": 10, "auto_commit": False, "partition_id": 0}
    poll = lambda: client.poll_messages("s2", "t2", consumer=iggy.Consumer.Single(1), **first)  # noqa: E731
    await step("poll", poll, lambda found: [[one.id(), one.payload().decode()] for one in found])
    await step("create_group", lambda: client.create_consumer_group("s2", "t2", "g"))
    await step("groups", lambda: client.get_consumer_groups("s2", "t2"), names)
    await step("join", lambda: client.join_consumer_group("s2", "t2", "g"))
    await step("group", lambda: client.get_consumer_group("s2", "t2", "g"), group_shown)
    await step("leave", lambda: client.leave_consumer_group("s2", "t2", "g"))
    await step("delete_group", lambda: client.delete_consumer_group("s2", "t2", "g"))
    await step("group_gone", lambda: client.get_consumer_group("s2", "t2", "g"), group_shown)
    if not PATCHES:
        await step("purge_topic", lambda: client.purge_topic("s2", "t2"))
        await step("poll_purged", poll, len)
        await step("purge_stream", lambda: client.purge_stream("s2"))


async def users(client: Any) -> None:
    topics = {5: iggy.TopicPermissions(send_messages=True)}
    streams = {3: iggy.StreamPermissions(read_stream=True, topics=topics)}
    granted = iggy.Permissions(iggy.GlobalPermissions(read_streams=True), streams)
    await step(
        "create_user", lambda: client.create_user("alice", "secret", iggy.UserStatus.Inactive, granted), user_shown
    )
    await step("user", lambda: client.get_user("alice"), user_shown)
    await step("update_user", lambda: client.update_user("alice", "alicia", iggy.UserStatus.Active))
    await step("users", client.get_users, names)
    await step("update_permissions", lambda: client.update_permissions("alicia", None))
    await step("user_after", lambda: client.get_user("alicia"), user_shown)
    await step("change_password", lambda: client.change_password("alicia", "secret", "secret2"))
    await step("wrong_password", lambda: client.change_password("alicia", "secret", "secret3"))
    await step("delete_user", lambda: client.delete_user("alicia"))
    await step("user_gone", lambda: client.get_user("alicia"), user_shown)


async def main(transport: str, address: str) -> None:
    http = transport == "http"
    scheme = "iggy+ws" if transport == "ws" else "iggy"
    client: Any
    if http:
        client = iggy.IggyClient(iggy.HttpConfig(api_url=f"http://{address}", retries=0))
    elif transport == "quic":
        client = iggy.IggyClient(iggy.QuicConfig(server_address=address, validate_certificate=False))
    else:
        client = iggy.IggyClient.from_connection_string(f"{scheme}://iggy:iggy@{address}")
    await step("connect", client.connect)
    await step("login", lambda: client.login_user("iggy", "iggy"))
    await streams_and_topics(client)
    await messages_and_groups(client)
    await users(client)
    await step("delete_topic", lambda: client.delete_topic("s2", "t2"))
    await step("delete_stream", lambda: client.delete_stream("s2"))
    await step("delete_stream_again", lambda: client.delete_stream("s2"))
    await step("logout", client.logout_user)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
