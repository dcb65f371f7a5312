"""The header that tells where a sourced message comes from."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.jetstream_sources.stamp import Position, cleaned, identity_of, read_stamp, stamped
from headwater.model.header_block import decode_header_block
from headwater.model.timestamps import parse_time


def test_an_identity_is_a_short_name_of_the_time_at_which_the_stream_was_made() -> None:
    assert identity_of(parse_time("2026-11-22T03:53:29.878290765Z")) == "CWxsGP6q"  # as nats-server 2.15.1 sent it


def test_a_stamp_stands_behind_the_headers_of_the_message_and_is_read_back() -> None:
    block = stamped(b"NATS/1.0\r\nX: y\r\n\r\n", b"P2 p2.> >", 3, b"p2.a", b"GIwlYNxL")
    assert block == b"NATS/1.0\r\nX: y\r\nNats-Stream-Source: P2 3 p2.> > p2.a GIwlYNxL\r\n\r\n"
    assert read_stamp(block) == ("P2 p2.> >", Position(3, "GIwlYNxL"))


@given(sequence=st.integers(1, 1 << 62), subject=st.from_regex(rb"[a-z]{1,5}(\.[a-z]{1,5}){0,3}", fullmatch=True))
def test_what_is_stamped_is_read_back(sequence: int, subject: bytes) -> None:
    assert read_stamp(stamped(b"", b"S > >", sequence, subject, b"")) == ("S > >", Position(sequence))


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("ORD 7", ("ORD", Position(7))),
        ("$JS.ACK.ORD.c.1.7.3.1690000000000000000.0", ("ORD", Position(7))),
        ("$JS.ACK._.hash.ORD.c.1.7.3.1690000000000000000.0", ("ORD", Position(7))),
        ("ORD 7 >", None),
        ("ORD x > > a", None),
        ("ORD ² > > a", None),
        (f"ORD {'9' * 5000} > > a", None),
        ("$JS.ACK.ORD", None),
        ("", None),
    ],
)
def test_older_stamps_are_read_and_strange_ones_are_none(value: str, found: object) -> None:
    assert read_stamp(b"NATS/1.0\r\nNats-Stream-Source: %b\r\n\r\n" % value.encode()) == found


def test_headers_that_concerned_the_origin_alone_are_dropped() -> None:
    block = (
        b"NATS/1.0\r\nA: 1\r\nNats-Expected-Stream: O\r\nNats-Msg-Id: i\r\nNats-Batch-Id: b\r\n"
        b"Nats-Stream-Source: O 1 > > a\r\nB: 2\r\n\r\n"
    )
    _, headers = decode_header_block(cleaned(block, of_stamp=True))
    assert headers.multi_items() == [("A", "1"), ("Nats-Msg-Id", "i"), ("B", "2")]
    _, kept = decode_header_block(cleaned(block))
    assert kept.multi_items() == [
        ("A", "1"),
        ("Nats-Msg-Id", "i"),
        ("Nats-Stream-Source", "O 1 > > a"),
        ("B", "2"),
    ]
    assert cleaned(b"NATS/1.0\r\nNats-Expected-Stream: O\r\n\r\n") == b""
    assert cleaned(b"NATS/1.0\r\nNats-Msg-Id: i\r\n\r\n") == b"NATS/1.0\r\nNats-Msg-Id: i\r\n\r\n"


def test_a_stamp_that_is_no_utf_8_can_be_kept_in_a_document() -> None:
    stamp = read_stamp(b"NATS/1.0\r\nNats-Stream-Source: O\xff 7\r\n\r\n")
    assert stamp is not None
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(stamp)) == ["O\ufffd", [7, ""]]
