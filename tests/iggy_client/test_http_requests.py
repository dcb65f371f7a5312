"""Each command is the request that Apache's interface has for it; what has none is refused."""

import pytest

from headwater import TypedHeaders
from headwater.errors import IggyError
from headwater.iggy_client.http_requests import login_request, poll_request, request_of, send_request, snapshot_request
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Command, Message
from headwater.iggy_wire.identifiers import Consumer, Identifier, PollingStrategy
from headwater.model.typed_headers import HeaderForm

S, T = Identifier("a/b"), Identifier(2)
OPTIONS = TypedHeaders([("message_expiry", 5), ("segment_size", "16 MiB"), ("preallocate_segments", True)])


@pytest.mark.parametrize(
    ("command", "method", "target"),
    [
        (c.GetTopic(S, T), "GET", "/streams/a%2Fb/topics/2"),
        (c.PurgeTopic(S, T), "DELETE", "/streams/a%2Fb/topics/2/purge"),
        (c.DeletePartitions(S, T, 3), "DELETE", "/streams/a%2Fb/topics/2/partitions?partitions_count=3"),
        (c.DeleteSegments(S, T, 1, 3), "DELETE", "/streams/a%2Fb/topics/2/partitions/1?segments_count=3"),
        (
            c.DeleteOffset(Consumer.single("me"), S, T, 4),
            "DELETE",
            "/streams/a%2Fb/topics/2/consumer-offsets/me?partition_id=4",
        ),
        (c.DescribeOptions(1), "GET", "/options/topic"),
        (c.Logout(), "DELETE", "/users/logout"),
    ],
)
def test_a_command_has_its_path(command: Command, method: str, target: str) -> None:
    assert request_of(command)[:2] == (method, target)


def test_three_settings_of_a_topic_have_fields_of_their_own() -> None:
    block = OPTIONS.encode(HeaderForm.TYPED)
    rest = {"segment_size": "16 MiB", "preallocate_segments": "true"}
    made = request_of(c.CreateTopic(S, "t", 2, options=block)).body
    assert made == {
        "name": "t",
        "partitions_count": 2,
        "compression_algorithm": "none",
        "message_expiry": 5,
        "max_topic_size": 0,
        "options": rest,
    }
    assert request_of(c.UpdateTopic(S, T, "t", options=block)).body == {
        "name": "t",
        "message_expiry": 5,
        "options": rest,
    }


def test_messages_and_polls_are_json_and_a_query() -> None:
    sent = send_request(S, T, 1, [Message(b"x", id=7)])
    assert sent.body == {
        "partitioning": {"kind": "partition_id", "value": "AQAAAA=="},
        "messages": [{"id": 7, "payload": "eA==", "user_headers": None}],
    }
    large = send_request(S, T, 1, [Message(b"x", id=2**64 - 1), Message(b"x", id=2**64)]).body
    assert large is not None
    assert [entry["id"] for entry in large["messages"]] == [2**64 - 1, str(2**64)], (
        "numbers end there for Apache's server"
    )
    command = c.PollMessages(Consumer.single("me"), S, T, 1, PollingStrategy.offset(5), 10, True)
    query = "consumer_id=me&partition_id=1&kind=offset&value=5&count=10&auto_commit=true"
    assert poll_request(command).target == f"/streams/a%2Fb/topics/2/messages?{query}"
    assert login_request(c.LoginWithToken("secret")).target == "/personal-access-tokens/login"


def test_a_snapshot_is_asked_for_by_the_names_that_apaches_server_takes() -> None:
    wanted = snapshot_request(2, [1, 5, 100]).body
    assert wanted == {"compression": "Deflated", "snapshot_types": ["FilesystemOverview", "ServerLogs", "All"]}


def test_what_http_does_not_have_is_refused() -> None:
    group = Identifier("g")
    for command in (c.JoinGroup(S, T, group), c.LeaveGroup(S, T, group), c.SyncGroup(S, T, group), c.GetMe()):
        with pytest.raises(IggyError, match="feature_unavailable"):
            request_of(command)
    with pytest.raises(IggyError, match="feature_unavailable"):
        poll_request(c.PollMessages(Consumer.group("g"), S, T, 0, PollingStrategy.next(), 10))
    with pytest.raises(IggyError, match="invalid_format"):
        snapshot_request(77, [100])
