"""Every public name of apache-iggy 0.9 has its counterpart here, or a reason why it has none."""

from importlib import import_module

import pytest

apache_iggy = pytest.importorskip("apache_iggy", reason="apache-iggy has no wheel for this system")

COMMANDS, VIEWS = "headwater.iggy_wire.commands", "headwater.iggy_wire.reply_codec"
OWN = "headwater.iggy_client"
NOT_NEEDED = "-"  # followed by the reason
HEADER_KINDS = {
    "Raw": "RAW",
    "String": "STRING",
    "Bool": "BOOL",
    **{f"Int{size}": f"INT{size}" for size in (8, 16, 32, 64, 128)},
    **{f"UnsignedInt{size}": f"UINT{size}" for size in (8, 16, 32, 64, 128)},
    **{f"Float{size}": f"FLOAT{size}" for size in (32, 64)},
}
RECONNECTION = {
    "enabled": "reconnect_attempts",
    "max_retries": "reconnect_attempts",
    "interval": "reconnect_wait",
    "reestablish_after": "- the first attempt is made at once, each later one after reconnect_wait",
}
CONNECTING = {
    "server_address": "host",
    "auto_login": "username",
    "reconnection": "reconnect_attempts",
    "heartbeat_interval": "heartbeat",
    "tls_enabled": "tls",
    "tls_domain": "tls_hostname",
    "tls_ca_file": "tls_ca",
    "tls_validate_certificate": "tls_verify",
    "validate_certificate": "tls_verify",
    "server_name": "tls_hostname",
    "nodelay": "- always on",
}
TUNING = "- a constant of net.quic_client, or the library's own"
BUFFERS = "- the link's own buffers, one for all transports"
COUNTED = {
    "created_at": "created",
    "messages_count": "messages",
    "partitions_count": "partitions",
    "topics_count": "topics",
    "segments_count": "segments",
    "members_count": "members",
}
TOPIC = COUNTED | {
    "compression_algorithm": "compression",
    "max_topic_size": "max_size",
    "derived_options": "derived",
}
HTTP = {
    "api_url": "- a URL: iggy+http://user:password@host:3000",
    "has_jwt": "- a token of the interface is fetched, and fetched again, with the user's password or personal access token",
    "heartbeat_interval": "- no connection that a heartbeat would keep",
    "retries": "- what only asks is asked again once; what changes something never is",
}
FLAGS = {name: name for name in ("poll_messages", "send_messages")}

VERDICTS: dict[str, tuple[str, dict[str, str]]] = {
    "Durability": (f"{OWN}.values:Durability", {}),
    "SendMessage": (f"{COMMANDS}:Message", {}),
    "SendMessagesResponse": (
        f"{VIEWS}:SentView",
        {"confirmations": "- a send is one batch, its SentView the confirmation"},
    ),
    "SendMessagesConfirmation": (
        f"{VIEWS}:SentView",
        {"stream_id": "stream", "topic_id": "topic", "partition_id": "partition"},
    ),
    "ReceiveMessage": (
        "headwater.iggy_wire.message_codec:ReceivedMessage",
        {"length": "payload", "partition_id": "partition", "user_headers": "headers"},
    ),
    "ReceiveMessageIterator": (f"{OWN}.consumer:TopicConsumer", {}),
    "IggyClient": (
        f"{OWN}.client:Client",
        {
            "connect": f"{OWN}.client:connect",
            "from_connection_string": f"{OWN}.client:connect",
            "consumer_group": "consumer",
            "create_consumer_group": "create_group",
            "delete_consumer_group": "delete_group",
            "get_consumer_group": "group",
            "get_consumer_groups": "groups",
            "get_stats": "stats",
            "get_stream": "stream",
            "get_streams": "streams",
            "get_topic": "topic",
            "get_topics": "topics",
            "get_user": "user",
            "get_users": "users",
            "join_consumer_group": "join_group",
            "leave_consumer_group": "leave_group",
            "login_user": "log_in",
            "logout_user": "log_out",
            "poll_messages": "poll",
            "send_binary_request": "request",
            "send_messages": "send",
        },
    ),
    "IggyProducer": (f"{OWN}.producer:Producer", {"send_with_partitioning": "send", "shutdown": "close"}),
    "ProducerSendError": (
        "headwater.errors:IncompleteSend",
        {"cause": "__init__", "committed": "__init__", "failed": "__init__"},
    ),
    "DirectProducerConfig": (f"{OWN}.producer:Direct", {"batch_length": "batch", "linger_time": "linger"}),
    "BackgroundProducerConfig": (
        f"{OWN}.background:Background",
        {
            "batch_length": "batch",
            "batch_size": "batch_bytes",
            "failure_mode": "wait_for_room",
            "linger_time": "linger",
            "max_buffer_size": "most_bytes",
            "max_in_flight": "in_flight",
            "num_shards": "workers",
            "sharding": "ordered",
        },
    ),
    "ProducerSharding": (f"{OWN}.background:Background", {"BALANCED": "ordered", "ORDERED": "ordered"}),
    "BackpressureMode": (
        f"{OWN}.background:Background",
        dict.fromkeys(("block", "block_with_timeout", "fail_immediately", "timeout"), "wait_for_room"),
    ),
    "AutoLogin": (
        f"{OWN}.options:Options",
        {
            "disabled": f"{OWN}.client:connect",
            "enabled": f"{OWN}.client:connect",
            "personal_access_token": "token",
            "username_password": "password",
        },
    ),
    "TcpConfig": (f"{OWN}.options:Options", CONNECTING),
    "TcpReconnectionConfig": (f"{OWN}.options:Options", RECONNECTION),
    "QuicConfig": (
        f"{OWN}.options:Options",
        CONNECTING
        | dict.fromkeys(
            (
                "client_address",
                "datagram_send_buffer_size",
                "initial_mtu",
                "keep_alive_interval",
                "max_concurrent_bidi_streams",
                "max_idle_timeout",
                "receive_window",
                "response_buffer_size",
                "send_window",
            ),
            TUNING,
        ),
    ),
    "QuicReconnectionConfig": (f"{OWN}.options:Options", RECONNECTION),
    "HttpConfig": (f"{OWN}.options:Options", HTTP),
    "WebSocketConfig": (f"{OWN}.options:Options", CONNECTING | {"framing": BUFFERS}),
    "WebSocketReconnectionConfig": (f"{OWN}.options:Options", RECONNECTION),
    "WebSocketFramingConfig": (
        f"{OWN}.options:Options",
        dict.fromkeys(
            (
                "accept_unmasked_frames",
                "max_frame_size",
                "max_message_size",
                "max_write_buffer_size",
                "read_buffer_size",
                "write_buffer_size",
            ),
            BUFFERS,
        ),
    ),
    "Stream": (f"{VIEWS}:StreamView", COUNTED),
    "StreamDetails": (f"{VIEWS}:StreamView", COUNTED | {"topics": "details"}),
    "Stats": (
        f"{VIEWS}:StatsView",
        COUNTED
        | {
            "cache_metrics": "- no cache of messages here; that of another server is not shown",
            "clients_count": "clients",
            "consumer_groups_count": "groups",
            "free_disk_space": "free_disk",
            "iggy_server_semver": "packed_version",
            "iggy_server_version": "server_version",
            "messages_size_bytes": "messages_size",
            "streams_count": "streams",
            "threads_count": "threads",
            "total_disk_space": "total_disk",
        },
    ),
    "CacheMetrics": (f"{VIEWS}:StatsView", dict.fromkeys(("hit_ratio", "hits", "misses"), "- as cache_metrics")),
    "CacheMetricsKey": (
        f"{VIEWS}:StatsView",
        dict.fromkeys(("partition_id", "stream_id", "topic_id"), "- as cache_metrics"),
    ),
    "Topic": (f"{VIEWS}:TopicView", TOPIC),
    "TopicDetails": (f"{VIEWS}:TopicView", TOPIC | {"partitions": "parts"}),
    "IggyExpiry": (
        f"{OWN}.values:TopicOptions",
        {
            "ExpireDuration": "message_expiry",
            "NeverExpire": f"{OWN}.values:UNLIMITED",
            "ServerDefault": "message_expiry",
        },
    ),
    "MaxTopicSize": (
        f"{OWN}.values:TopicOptions",
        {"Custom": "max_size", "ServerDefault": "max_size", "Unlimited": f"{OWN}.values:UNLIMITED"},
    ),
    "OptionSpec": (f"{VIEWS}:OptionView", {"default_value": "default"}),
    "Partitioning": (
        "headwater.iggy_wire.identifiers:Partitioning",
        {"messages_key": "key", "partition_id": "partition"},
    ),
    "Partition": (f"{VIEWS}:PartitionView", COUNTED),
    "Consumer": ("headwater.iggy_wire.identifiers:Consumer", {"Group": "group", "Single": "single"}),
    "ConsumerGroup": (f"{VIEWS}:GroupView", COUNTED),
    "ConsumerGroupDetails": (f"{VIEWS}:GroupView", COUNTED | {"members": "details"}),
    "ConsumerGroupMember": (f"{VIEWS}:MemberView", {"partitions_count": "partitions"}),
    "PollingStrategy": (
        "headwater.iggy_wire.identifiers:PollingStrategy",
        {name: name.lower() for name in ("First", "Last", "Next", "Offset", "Timestamp")},
    ),
    "IggyConsumer": (
        f"{OWN}.consumer:TopicConsumer",
        {
            "consume_messages": "consume",
            "get_last_consumed_offset": "last_consumed_offset",
            "get_last_stored_offset": "last_stored_offset",
            "iter_messages": "__aiter__",
            "partition_id": "partition",
            "stream": "__init__",
            "topic": "__init__",
        },
    ),
    "AutoCommit": (
        f"{OWN}.auto_commit:AutoCommit",
        {
            "After": "after",
            "Disabled": "at",
            "Interval": "interval",
            "IntervalOrAfter": "interval",
            "IntervalOrWhen": "interval",
            "When": "at",
        },
    ),
    "AutoCommitAfter": (
        f"{OWN}.auto_commit:Moment",
        {"ConsumingAllMessages": "ALL", "ConsumingEachMessage": "EACH", "ConsumingEveryNthMessage": "EVERY"},
    ),
    "AutoCommitWhen": (
        f"{OWN}.auto_commit:Moment",
        {
            "ConsumingAllMessages": "ALL",
            "ConsumingEachMessage": "EACH",
            "ConsumingEveryNthMessage": "EVERY",
            "PollingMessages": "POLLED",
        },
    ),
    "UserStatus": (f"{OWN}.values:UserStatus", {"Active": "ACTIVE", "Inactive": "INACTIVE"}),
    "UserInfo": (f"{VIEWS}:UserView", COUNTED),
    "UserInfoDetails": (f"{VIEWS}:UserView", COUNTED),
    "UserHeaders": ("headwater.model.typed_headers:TypedHeaders", {"to_scalar_dict": "to_python"}),
    "HeaderKey": ("headwater.model.typed_header:HeaderKind", HEADER_KINDS),
    "HeaderValue": ("headwater.model.typed_header:HeaderKind", HEADER_KINDS),
    "Permissions": (f"{COMMANDS}:Permissions", {"global_permissions": "__init__"}),
    "GlobalPermissions": (f"{COMMANDS}:Permissions", FLAGS),
    "StreamPermissions": (f"{COMMANDS}:StreamPermissions", FLAGS),
    "TopicPermissions": (f"{COMMANDS}:TopicPermissions", FLAGS),
}
"""By class of theirs: ours, and by member its name here where it is another, or a dash and the reason why there is none."""

INHERITED = {"ProducerSendError": Exception, "UserHeaders": dict, "Durability": str}


def members(name: str) -> list[str]:
    base = INHERITED.get(name, object)
    return [member for member in dir(getattr(apache_iggy, name)) if member[0] != "_" and not hasattr(base, member)]


def found(home: str) -> object:
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)


def has(ours: object, member: str) -> bool:
    return hasattr(ours, member) or member in getattr(ours, "__annotations__", ())


def test_every_class_has_a_verdict() -> None:
    public = {name for name in dir(apache_iggy) if isinstance(getattr(apache_iggy, name), type)}
    assert public == set(VERDICTS)


@pytest.mark.parametrize("name", sorted(VERDICTS))
def test_every_member_has_a_counterpart_or_a_reason(name: str) -> None:
    home, renamed = VERDICTS[name]
    ours = found(home)
    for member in members(name):
        verdict = renamed.get(member, member)
        if verdict.startswith(NOT_NEEDED):
            assert len(verdict) > 10, f"{name}.{member} has no reason"
        elif ":" in verdict:
            found(verdict)
        else:
            assert has(ours, verdict), f"{name}.{member} should be {verdict} of {home}"


def test_no_verdict_is_about_a_name_that_is_not_there() -> None:
    shared = set(CONNECTING) | set(RECONNECTION) | set(COUNTED) | set(TOPIC)
    stale = [
        (name, member) for name, (_, table) in VERDICTS.items() for member in set(table) - set(members(name)) - shared
    ]
    assert [pair for pair in stale if pair[1] not in FLAGS] == []
