"""The JSON of the HTTP interface: what is read, what is refused, and the two shapes that are answered."""

import base64
from typing import Any

import pytest

from headwater import HeaderValue, TypedHeaders
from headwater.errors import HeaderError, IggyError
from headwater.iggy_wire import http_json
from headwater.iggy_wire.commands import Message, Permissions, StreamPermissions, TopicPermissions
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.identifiers import Identifier, Partitioning, PollingStrategy
from headwater.iggy_wire.reply_codec import UserView
from headwater.model.typed_headers import HeaderForm

HEADERS = TypedHeaders([("key 1", "value1"), ("n", HeaderValue.from_uint64(5))])
OLD = {"key 1": {"kind": "string", "value": "dmFsdWUx"}, "n": {"kind": "uint64", "value": "BQAAAAAAAAA="}}
NEW = [
    {"key": {"kind": "string", "value": "a2V5IDE="}, "value": OLD["key 1"]},
    {"key": {"kind": "string", "value": "bg=="}, "value": OLD["n"]},
]


def refused(call: Any, *arguments: Any) -> str:
    with pytest.raises(IggyError) as caught:
        call(*arguments)
    return caught.value.name


def message(**fields: Any) -> dict[str, Any]:
    return {"payload": base64.b64encode(b"x").decode(), **fields}


@pytest.mark.parametrize("seed", [True, False])
@pytest.mark.parametrize("shape", [{"headers": OLD}, {"user_headers": NEW}])
def test_either_shape_of_headers_is_taken_from_anybody(seed: bool, shape: dict[str, Any]) -> None:
    (part,) = http_json.parts([message(id=7, **shape)], 5, seed)
    assert (part.id, part.payload, part.origin) == ((7).to_bytes(16, "little"), b"x", 5)
    assert TypedHeaders.decode(part.headers, HeaderForm.TYPED) == HEADERS


@pytest.mark.parametrize(
    ("written", "number"),
    [("7", 7), (str(2**128 - 1), 2**128 - 1), ("00000000-0000-0000-0000-00000000000A", 10), ("f" * 32, 2**128 - 1)],
)
def test_an_id_may_be_text_or_a_uuid_as_apaches_server_takes_it(written: str, number: int) -> None:
    assert http_json.parts([message(id=written)], 5, False)[0].id == number.to_bytes(16, "little")


@pytest.mark.parametrize(
    ("compression", "part"), [("Deflated", "ServerLogs"), ("deflated", "server_logs"), ("DEFLATED", "serverlogs")]
)
def test_the_parts_of_a_snapshot_have_apaches_names_in_any_spelling(compression: str, part: str) -> None:
    found = http_json.snapshot({"compression": compression, "snapshot_types": [part, "All"]})
    assert (found.compression, found.types) == (2, [5, 100])


@pytest.mark.parametrize("none", [{}, {"headers": None}, {"headers": {}}, {"user_headers": []}])
def test_no_headers_are_none(none: dict[str, Any]) -> None:
    assert http_json.parts([message(**none)], 5, False)[0].headers == b""


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (None, "invalid_messages_count"),
        ([], "invalid_messages_count"),
        (["x"], "invalid_format"),
        ([{"payload": 5}], "invalid_format"),
        ([{}], "invalid_format"),
        ([{"payload": "no base64"}], "invalid_format"),
        ([message(id=-1)], "invalid_format"),
        ([message(id=1 << 128)], "invalid_format"),
        ([message(id=str(1 << 128))], "invalid_format"),
        ([message(id="seven")], "invalid_format"),
        ([message(id=True)], "invalid_format"),
        ([{"payload": ""}], "empty_message_payload"),
    ],
)
def test_messages_that_are_none_are_refused(source: Any, name: str) -> None:
    assert refused(http_json.parts, source, 5, False) == name


def test_limits_are_those_of_the_listener() -> None:
    wide = {f"k{number}": {"kind": "raw", "value": base64.b64encode(bytes(255)).decode()} for number in range(250)}
    one = message(headers=wide)
    http_json.parts([one], 5, True)
    for many, seed in (
        ([one, one], True),
        ([message(headers={**wide, **{f"l{k}": v for k, v in wide.items()}})], False),
    ):
        with pytest.raises(HeaderError):
            http_json.parts(many, 5, seed)
    large = [{"payload": base64.b64encode(bytes((10 << 20) + 1)).decode()}]
    assert refused(http_json.parts, large, 5, True) == "too_big_message_payload"


def test_where_a_send_goes() -> None:
    one = base64.b64encode(b"\1\0\0\0").decode()
    assert http_json.partitioning({"kind": "balanced", "value": ""}) == Partitioning.balanced()
    assert http_json.partitioning({"kind": "none"}) == Partitioning.balanced()
    assert http_json.partitioning({"kind": "partition_id", "value": one}) == Partitioning.partition(1)
    assert http_json.partitioning({"kind": "messages_key", "value": one}) == Partitioning.key(b"\1\0\0\0")
    for wrong in (None, {"kind": "nearest"}, {"kind": "messages_key"}):
        assert refused(http_json.partitioning, wrong) == "invalid_format"
    for wrong in ({"kind": "partition_id", "value": "AQ=="}, {"kind": "messages_key", "value": ""}):
        assert refused(http_json.partitioning, wrong) == "invalid_key_value_length"


def test_where_a_poll_begins_and_what_a_path_names() -> None:
    assert http_json.strategy("timestamp", 5) == PollingStrategy.timestamp(5)
    assert refused(http_json.strategy, "nearest", 0) == "invalid_format"
    assert http_json.identifier("12") == Identifier(12)
    assert http_json.identifier("12a") == Identifier("12a") and http_json.identifier("²") == Identifier("²")
    assert http_json.identifier("99999999999") == Identifier("99999999999")


def test_a_body_is_an_object_or_nothing() -> None:
    assert http_json.document(b"") == {} and http_json.document(b'{"a":1}') == {"a": 1}
    for wrong in (b"[]", b"{", b"\xff"):
        assert refused(http_json.document, wrong) == "invalid_format"


def test_the_two_answers_of_a_poll() -> None:
    shown = Message(b"x", HEADERS, id=7, offset=3, timestamp=11, origin_timestamp=9)
    assert http_json.seed_messages([shown, Message(b"y")]) == [
        {"offset": 3, "timestamp": 11, "id": 7, "headers": OLD, "payload": "eA=="},
        {"offset": 0, "timestamp": 0, "id": 0, "headers": None, "payload": "eQ=="},
    ]
    today = http_json.polled([shown], 1, 5)
    assert (today["partition_id"], today["current_offset"], today["count"]) == (1, 5, 1)
    (one,) = today["messages"]
    assert one["user_headers"] == NEW and one["payload"] == "eA=="
    block = len(HEADERS.encode(HeaderForm.TYPED))
    assert one["header"] == {
        "checksum": 0,
        "id": 7,
        "offset": 3,
        "timestamp": 11,
        "origin_timestamp": 9,
        "user_headers_length": block,
        "payload_length": 1,
        "reserved": 0,
    }


def test_users_and_errors_are_told_as_upstream_does() -> None:
    granted = Permissions(
        read_users=True, streams={1: StreamPermissions(topics={2: TopicPermissions(read_topic=True)})}
    )
    reported = http_json.user(UserView(3, 5, 2, "alice", permissions=granted))
    assert (reported["status"], reported["permissions"]["global"]["read_users"]) == ("inactive", True)
    assert reported["permissions"]["streams"][1]["topics"][2]["read_topic"] is True
    assert http_json.user(UserView(3, 5, 1, "alice"))["permissions"] is None
    reported = http_json.error(refusal("stream_id_not_found", "there is no stream 9"), 1009)
    assert (reported["id"], reported["code"]) == (1009, "stream_id_not_found") and "no stream 9" in reported["reason"]
