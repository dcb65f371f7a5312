"""Which options there are by era, and which of them a creation or an update of protocol 0.12 may name."""

import pytest

from headwater import HeaderKind, HeaderValue, TypedHeaders
from headwater.errors import IggyError
from headwater.iggy_wire import reply_codec
from headwater.iggy_wire.commands import Code
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.option_catalog import DERIVED_OF_STREAMS, check_creation, check_update, derived, described
from headwater.iggy_wire.options import NEVER, OPTIONS, STREAM, TOPIC, USER, TopicOptions
from headwater.iggy_wire.reply_codec import StreamView
from headwater.model.typed_headers import HeaderForm

# (key, kind, flags) in the order of the fixtures that upstream generates for its clients, of 0.12.0
OF_TOPICS = [
    ("name", "string", 1),
    ("compression_algorithm", "string", 0),
    ("message_expiry", "uint64", 3),
    ("max_topic_size", "uint64", 3),
    ("segment_size", "uint64", 0),
    ("durability", "string", 0),
    ("consumer_offset_durability", "string", 0),
    ("partition_resize_policy", "string", 0),
    ("messages_required_to_save", "uint32", 0),
    ("size_of_messages_required_to_save", "uint64", 0),
    ("preallocate_segments", "bool", 0),
]
OF_STREAMS = [
    ("name", "string", 1),
    ("encryption_key", "raw", 20),
    ("encryption_key_source", "string", 8),
    ("encryption_key_fingerprint", "string", 8),
    ("encryption_kek_fingerprint", "string", 8),
]


def listed(scope: int, era: Era) -> list[tuple[str, str, int]]:
    return [(option.key, HeaderKind(option.kind).json_name, option.flags) for option in described(scope, era)]


def test_the_catalogue_of_0_12_is_upstreams() -> None:
    assert listed(TOPIC, Era.W) == OF_TOPICS
    assert listed(TOPIC, Era.X) == [*OF_TOPICS, ("replication_factor", "uint32", 0)]
    for era in (Era.W, Era.X):
        assert listed(STREAM, era) == OF_STREAMS
        assert listed(USER, era) == [("username", "string", 1), ("status", "string", 1)]
        assert listed(9, era) == []


def test_the_catalogue_of_0_11_stays() -> None:
    assert described(TOPIC, Era.V) == OPTIONS[TOPIC]
    assert described(STREAM, Era.V) == described(USER, Era.V) == []
    assert {"enforce_fsync", "replication_factor"} <= {option.key for option in OPTIONS[TOPIC]}


CREATIONS = [
    (TOPIC, ["colour"], Era.W, "unsupported_option_key"),
    (TOPIC, ["enforce_fsync"], Era.W, "unsupported_option_key"),
    (TOPIC, ["replication_factor"], Era.W, "unsupported_option_key"),
    (TOPIC, ["encryption_key"], Era.X, "unsupported_option_key"),
    (TOPIC, ["critical_keys"], Era.X, "read_only_option"),
    (TOPIC, ["name"], Era.X, "invalid_option_value"),
    (STREAM, ["encryption_key_source"], Era.X, "read_only_option"),
    (STREAM, ["encryption_key_wrapped"], Era.X, "read_only_option"),
    (STREAM, ["encryption_key"], Era.X, "stream_encryption_unavailable"),
    (STREAM, ["critical_keys", "zzz"], Era.X, "unsupported_option_key"),
    (USER, ["status"], Era.X, "invalid_option_value"),
]


@pytest.mark.parametrize(("scope", "names", "era", "error"), CREATIONS)
def test_a_creation_is_refused_by_category(scope: int, names: list[str], era: Era, error: str) -> None:
    with pytest.raises(IggyError) as caught:
        check_creation(scope, names, era)
    assert caught.value.name == error
    check_creation(scope, names, Era.V)  # there, values and names are judged together


UPDATES: list[tuple[int, list[str], list[str], str]] = [
    (TOPIC, ["compression_algorithm"], [], "option_not_updatable"),
    (TOPIC, [], ["segment_size"], "option_not_updatable"),
    (TOPIC, ["segment_size"], ["critical_keys"], "read_only_option"),
    (TOPIC, [], ["enforce_fsync"], "unsupported_option_key"),
    (TOPIC, [], ["name"], "option_not_resettable"),
    (STREAM, [], ["encryption_key_source"], "read_only_option"),
    (STREAM, [], ["encryption_key"], "option_not_updatable"),
    (STREAM, [], ["name"], "option_not_resettable"),
    (USER, [], ["critical_keys"], "read_only_option"),
    (USER, ["username"], ["status"], "option_not_resettable"),
    (9, ["name"], [], "unsupported_option_key"),
]


@pytest.mark.parametrize(("scope", "names", "resets", "error"), UPDATES)
def test_an_update_is_refused_by_category(scope: int, names: list[str], resets: list[str], error: str) -> None:
    with pytest.raises(IggyError) as caught:
        check_update(scope, names, resets, Era.X)
    assert caught.value.name == error


def test_what_may_be_named_is_taken() -> None:
    every = [key for key, _, flags in OF_TOPICS if key != "name"]
    check_creation(TOPIC, every, Era.W)
    check_creation(TOPIC, [*every, "replication_factor"], Era.X)
    check_update(TOPIC, ["name", "message_expiry"], ["max_topic_size"], Era.W)
    check_update(STREAM, ["name"], [], Era.V)  # an update over HTTP, of a client that logged in with a token


def test_a_topic_has_the_defaults_that_its_client_knows() -> None:
    def keys(era: Era, explicit: bytes = b"") -> list[str]:
        return [str(key) for key in TypedHeaders.decode(derived(TopicOptions(), explicit, era), HeaderForm.TYPED)]

    assert keys(Era.V) == [option.key for option in OPTIONS[TOPIC]]
    assert keys(Era.W) == keys(Era.X) == [key for key, _, flags in OF_TOPICS if key != "name"]
    chosen = TypedHeaders({"segment_size": HeaderValue.from_uint64(1 << 20)}).encode(HeaderForm.TYPED)
    for era in (Era.V, Era.W):
        assert set(keys(era)) - set(keys(era, chosen)) == {"segment_size"}
    found = TypedHeaders.decode(derived(TopicOptions(message_expiry=5), b"", Era.V), HeaderForm.TYPED).to_python()
    assert (found["message_expiry"], found["max_topic_size"]) == (5, NEVER)


def test_a_stream_says_that_nothing_is_encrypted_as_upstream_does() -> None:
    view = StreamView(1, 1_710_000_000_000_000, 0, "plain-stream", 4096, 12, derived=DERIVED_OF_STREAMS)
    reply = "0100000000e090663c1306000000000000100000000000000c000000000000000c706c61696e2d73747265616d"
    reply += "00000000230000000215000000656e6372797074696f6e5f6b65795f736f7572636502040000006e6f6e65"
    assert reply_codec.encode(Code.GET_STREAM, view, Era.X).hex() == reply
