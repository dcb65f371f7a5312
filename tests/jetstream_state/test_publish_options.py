"""The options of a publish are those that the look-up finds, and nothing else concerns the stream."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_state.counters import Sums
from headwater.jetstream_state.publish_checks import rollup_of, ttl_of
from headwater.jetstream_state.publish_options import PublishOptions
from headwater.model.header_block import lookup

PIECES = [
    b"\r\nNats-TTL: ",
    b"\r\nNats-Rollup:",
    b"\r\nNats-Incr: ",
    b"\r\nNats-Msg-Id: ",
    b"\r\nNats-Schedule: ",
    b"Nats-TTL:",
    b"Nats-",
    b"\r\n",
    b"\r",
    b"\n",
    b" ",
    b"1h",
    b"2",
    b"never",
    b"sub",
    b"All",
    b"+1",
    b"-",
]


def options(**settings: Any) -> PublishOptions:
    return PublishOptions(StreamConfig(name="S", **settings), Sums(lambda _: 0, lambda _: None))


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.booleans())
def test_what_is_taken_is_what_the_look_up_finds(pieces: list[bytes], counts: bool) -> None:
    block = b"NATS/1.0" + b"".join(pieces) + b"\r\n\r\n"
    read = options(allow_msg_ttl=True, allow_rollup_hdrs=True, allow_msg_counter=counts)
    if read.read(block, b""):
        assert read.message_id == (lookup(block, b"Nats-Msg-Id") or b"")
        assert read.ttl_ns == (ttl_of(block) or 0)
        assert read.rollup == rollup_of(block)
        assert read.increment == int(lookup(block, b"Nats-Incr") or 0)
        assert lookup(block, b"Nats-Schedule") is None
        assert bool(lookup(block, b"Nats-Incr")) == counts


def test_a_name_that_stands_twice_a_value_that_is_empty_and_what_is_not_allowed_are_left_to_the_rules() -> None:
    everything = options(allow_msg_ttl=True, allow_rollup_hdrs=True)
    assert everything.read(b"NATS/1.0\r\nNats-TTL: 1h\r\nNats-Rollup: sub\r\nNats-Msg-Id: a\r\n\r\n", b"x")
    for lines in (b"Nats-TTL: 1h\r\nNats-TTL: 2h", b"Nats-TTL: ", b"Nats-TTL: 1ms", b"Nats-Rollup: x", b"Nats-Incr: 1"):
        assert not everything.read(b"NATS/1.0\r\n%b\r\n\r\n" % lines, b"")
    for line in (b"Nats-TTL: 1h", b"Nats-Rollup: sub"):
        assert not options().read(b"NATS/1.0\r\n%b\r\n\r\n" % line, b"")
    assert options().read(b"", b"x") and options().read(b"NATS/1.0\r\nA: 1\r\n\r\n", b"x")


def test_an_addition_is_alone_with_its_digits() -> None:
    counter = options(allow_msg_counter=True, allow_rollup_hdrs=True)
    for text, value in ((b"+12", 12), (b"-12", -12), (b"7", 7), (b"9" * 15, 10**15 - 1)):
        assert counter.read(b"NATS/1.0\r\nNats-Incr: %b\r\n\r\n" % text, b"") and counter.increment == value
    for text in (b"9" * 16, b"+", b"1 ", b"1.5", b"+1\r\nNats-Rollup: sub"):
        assert not counter.read(b"NATS/1.0\r\nNats-Incr: %b\r\n\r\n" % text, b"")
    assert not counter.read(b"NATS/1.0\r\nNats-Incr: 1\r\n\r\n", b"payload")
    assert not counter.read(b"", b"")
