"""Protocol 0.12 byte for byte, as the crate that defines it writes it (`tests/vectors/iggy_protocol_0_12.json`)."""

import json
from typing import Any

import pytest
from support.checkout import ROOT

from headwater.errors import IggyError
from headwater.iggy_wire import batches, command_codec, eras, reply_codec, vsr_frames
from headwater.iggy_wire import commands as c
from headwater.iggy_wire import reply_codec as views
from headwater.iggy_wire.classic_codec import read_address
from headwater.iggy_wire.commands import Code, Command
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.identifiers import Consumer, Identifier, PollingStrategy
from headwater.iggy_wire.layout import Reader
from headwater.model.typed_headers import HeaderForm, TypedHeaders
from headwater.streams.iggy_batch import BATCH_HEADER_SIZE

VECTORS = {
    name: bytes.fromhex(text)
    for name, text in json.loads((ROOT / "tests/vectors/iggy_protocol_0_12.json").read_text())["vectors"].items()
}
S, T = Identifier("s"), Identifier("t")
SDK: dict[str, Any] = {"version": "0.11.1-edge.8", "protocol": eras.NEWEST_PROTOCOL, "sdk": "rust-sdk"}
SECRET = bytes(range(32))
NEXT = PollingStrategy.next()


def block(name: str, value: str) -> bytes:
    return TypedHeaders({name: value}).encode(HeaderForm.TYPED)


REQUESTS: dict[str, tuple[Code, Command]] = {
    "update_topic": (
        Code.UPDATE_RESOURCE,
        c.UpdateResource((1, (S, Identifier(7))), ["message_expiry", "max_topic_size"], block("name", "t2")),
    ),
    "update_stream": (Code.UPDATE_RESOURCE, c.UpdateResource((2, (S,)), [], block("name", "s2"))),
    "update_user": (
        Code.UPDATE_RESOURCE,
        c.UpdateResource((3, (Identifier("alice"),)), [], block("status", "inactive")),
    ),
    "get_partition_route": (Code.GET_PARTITION_ROUTE, c.GetPartitionRoute(S, T, 3)),
    "poll_deferred": (
        Code.POLL_DEFERRED,
        c.PollDeferred(Consumer.group("g"), S, T, 1, NEXT, 100, True, 5_000_000, 2, 1 << 20, 9_000_000),
    ),
    "fetch_messages": (
        Code.FETCH_MESSAGES,
        c.FetchMessages(
            *(Consumer.single(1), S, T, 1_000_000, 4_000_000, 1, 50, 4096),
            auto_commit=False,
            targets=[
                c.FetchTarget(0, PollingStrategy.offset(5), 1024, 11, 0),
                c.FetchTarget(2, NEXT, 4096, 13, 2),
            ],
        ),
    ),
}
CONTEXT = views.Context(11, 2, 33)
TOPIC = views.TopicView(
    *(1, 2, 1, "t"),
    size=3,
    messages=4,
    options=block("durability", "persisted"),
    derived=block("compression_algorithm", "none"),
)
PARTITION = views.PartitionView(0, 5, 1, 6, 7, 8, CONTEXT)
STREAM = views.StreamView(1, 2, 1, "s", 3, 4, derived=block("encryption_key_source", "none"), details=[TOPIC])
STATS = views.StatsView(
    *(
        1,
        0.5,
        1.5,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        9,
        10,
        11,
        12,
        13,
        14,
        15,
        16,
        "h",
        "o",
        "v",
        "k",
        "0.9.0",
        9000,
        17,
        18,
        19,
        20,
        21,
    )
)
REPLIES: dict[str, tuple[Code, Any]] = {
    "partition_route": (Code.GET_PARTITION_ROUTE, views.RouteView(11, 22, 4)),
    "stream": (Code.GET_STREAM, STREAM),
    "user": (Code.GET_USER, views.UserView(1, 2, 1, "alice", derived=block("a", "b"))),
    "options": (Code.DESCRIBE_OPTIONS, [views.OptionView("name", 2, b"", "d", 1)]),
    "cluster": (
        Code.GET_CLUSTER_METADATA,
        views.ClusterView("c", [views.NodeView("n", "127.0.0.1", 1, 2, 3, 4, replica=3)]),
    ),
    "stats": (Code.GET_STATS, STATS),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_what_the_crate_writes(name: str) -> None:
    code, command = REQUESTS[name]
    assert command_codec.decode(code, VECTORS[name], Era.X) == command
    assert command_codec.encode(command, Era.X) == (code, VECTORS[name])


def test_a_login_brings_a_secret_that_is_never_shown() -> None:
    by_name = c.Login("iggy", "secret", context="ctx", secret=SECRET, **SDK)
    by_token = c.LoginWithToken("token", secret=SECRET, **SDK)
    for name, login in (("login", by_name), ("login_with_token", by_token)):
        assert command_codec.decode_login(VECTORS[name]) == login
        assert command_codec.encode(login, Era.X)[1] == VECTORS[name]
        assert repr(SECRET) not in repr(login)


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_is_what_the_crate_writes(name: str) -> None:
    code, view = REPLIES[name]
    assert reply_codec.encode(code, view, Era.X) == VECTORS[name]
    assert reply_codec.decode(code, VECTORS[name], Era.X) == view


def test_a_partition_names_its_nodes_since_0_12_2_and_not_before() -> None:
    described = views.TopicView(
        **{field: getattr(TOPIC, field) for field in TOPIC.__dataclass_fields__} | {"parts": [PARTITION]}
    )
    newest = reply_codec.encode(Code.GET_TOPIC, described, Era.X)
    assert newest == VECTORS["topic"]
    assert reply_codec.encode(Code.GET_TOPIC, described, Era.W) == newest[: -len(b"\1\0\1\0")]


def test_a_reset_without_a_name_or_another_scope_is_refused() -> None:
    for body in (b"\4" + VECTORS["update_stream"][1:], b"\2\2\1s\1\0", b""):
        with pytest.raises(IggyError):
            command_codec.decode(Code.UPDATE_RESOURCE, body, Era.W)


def test_a_change_that_is_done_is_marked_and_repeats_which_partition_was_meant() -> None:
    head = VECTORS["request_header"]
    request = vsr_frames.find_request(head + b"body", 0, len(head) + 4)
    assert isinstance(request, vsr_frames.Request)
    assert (request.number, request.login, request.incarnation) == (7, 9, 11)
    marked = vsr_frames.reply(request, 33, 4, proves=True)
    assert marked == VECTORS["reply_header"]
    assert vsr_frames.reply(request, 33, 0, status=1, proves=True)[220] == 0, "a refusal proves nothing"
    assert not any(vsr_frames.reply(request, 33, 4)[217:]), "for a client of 0.11 these bytes are zero"


def test_a_client_of_another_protocol_is_told_from_which_to_which_they_go() -> None:
    frame = vsr_frames.eviction(vsr_frames.BAD_PROTOCOL, (0x0102).to_bytes(16, "little"))
    assert frame == VECTORS["eviction"]


def test_the_batch_of_a_producer_is_checked_with_it_and_stored_without() -> None:
    sent = bytearray(VECTORS["send_of_a_producer"])
    reader = Reader(bytes(sent))
    address = read_address(reader)
    batches.admit(sent, reader.at, len(sent), address.count, verify=True)
    other = sent.copy()
    other[reader.at + batches.PRODUCER_AT + 4] ^= 1
    with pytest.raises(IggyError) as caught:
        batches.admit(other, reader.at, len(sent), address.count, verify=True)
    assert caught.value.name == "invalid_batch_checksum"
    batches.forget_producer(sent, reader.at)
    assert not any(sent[reader.at + batches.PRODUCER_AT : reader.at + BATCH_HEADER_SIZE])
