"""The decoder compared with a naive one that makes Python objects, for any messages in any chunks."""

from dataclasses import dataclass
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import HeaderError
from headwater.model.header_block import decode_header_block
from headwater.wire.columns import ColumnDecoder, Columns, HeaderMap, Text
from headwater.wire.server_ops import ServerOpParser

SID = 7


@dataclass(frozen=True)
class Sent:
    """A message as a server would deliver it."""

    subject: bytes
    sequence: int
    delivery: int
    timestamp: int = 1_700_000_000_123_456_789
    pending: int = 9
    block: bytes = b""
    payload: bytes = b"data"
    sid: int = SID
    domain: bool = False

    def op(self) -> bytes:
        account = b"hub.ACCHASH." if self.domain else b""
        tail = b".a1b2" if self.domain else b""
        reply = b"$JS.ACK.%bORDERS.c1.1.%d.%d.%d.%d%b" % (
            account,
            self.sequence,
            self.delivery,
            self.timestamp,
            self.pending,
            tail,
        )
        size = len(self.block) + len(self.payload)
        if self.block:
            head = b"HMSG %b %d %b %d %d" % (self.subject, self.sid, reply, len(self.block), size)
        else:
            head = b"MSG %b %d %b %d" % (self.subject, self.sid, reply, size)
        return head + b"\r\n" + self.block + self.payload + b"\r\n"


class Row(NamedTuple):
    subject: str
    sequence: int
    timestamp: int
    headers: list[tuple[str, list[str]]] | None
    error: str | None
    block: bytes
    payload: bytes


def naive(message: Sent) -> Row:
    """One row, all as Python objects."""
    headers: list[tuple[str, list[str]]] | None = []
    error = None
    if message.block:
        try:
            merged: dict[str, list[str]] = {}
            for name, value in decode_header_block(message.block)[1].multi_items():
                text = value.encode("utf-8", "surrogateescape")
                shown = text.decode("utf-8", "replace")
                if shown.encode() != text and error is None:
                    error = f"a value of {name} is not UTF-8: its bad bytes are shown as U+FFFD"
                merged.setdefault(name, []).append(shown)
            headers = list(merged.items())
        except HeaderError as problem:
            headers, error = None, str(problem)
    subject = message.subject.decode("utf-8", "replace")
    return Row(subject, message.sequence, message.timestamp, headers, error, message.block, message.payload)


def texts(text: Text) -> list[bytes]:
    return [bytes(text.data[a:b]) for a, b in zip(text.offsets[:-1], text.offsets[1:], strict=True)]


def maps(headers: HeaderMap) -> list[list[tuple[str, list[str]]]]:
    names = [name.decode() for name in texts(headers.names)]
    values = [value.decode() for value in texts(headers.values)]
    lists = [values[a:b] for a, b in zip(headers.lists[:-1], headers.lists[1:], strict=True)]
    entries = list(zip(names, lists, strict=True))
    return [entries[a:b] for a, b in zip(headers.entries[:-1], headers.entries[1:], strict=True)]


def rows(columns: Columns) -> list[Row]:
    assert columns.blocks is not None
    assert columns.header_map is not None
    headers: list[list[tuple[str, list[str]]] | None] = list(maps(columns.header_map))
    for row in columns.unmapped:
        assert headers[row] == []
        headers[row] = None
    errors: list[str | None] = [None] * columns.rows
    for row, text in columns.header_errors:
        errors[row] = text
    made = zip(
        [subject.decode() for subject in texts(columns.subjects)],
        columns.sequences.tolist(),
        columns.timestamps.tolist(),
        headers,
        errors,
        texts(columns.blocks),
        texts(columns.payloads),
        strict=True,
    )
    return [Row(*row) for row in made]


def decode(
    wire: bytes, start: int = 1, end: int = 1 << 40, chunks: list[int] | None = None, sid: int = SID
) -> tuple[ColumnDecoder, list[Row]]:
    """Feed the bytes in chunks, and take the columns after every chunk."""
    decoder = ColumnDecoder(sid, start, end, with_map=True, with_raw=True)
    parser = ServerOpParser(decoder)
    buffer = bytearray()
    taken: list[Row] = []
    at = 0
    for size in [*(chunks or []), len(wire)]:
        buffer += wire[at : at + size]
        at += size
        del buffer[: parser.parse(buffer, 0, len(buffer))]
        taken += rows(decoder.take())
    assert not buffer
    return decoder, taken


PLAIN = b"NATS/1.0\r\nNats-Msg-Id: 17\r\nce-type: dev.headwater.test\r\n\r\n"

names = st.one_of(
    st.sampled_from([b"a", b"A", b"ce-id", b"Nats-Msg-Id"]), st.binary(min_size=0, max_size=4), st.just(b"x" * 40)
)
values = st.one_of(st.binary(max_size=8), st.sampled_from([b" padded\t", "blå".encode(), b"\xff", b"", b":"]))
lines = st.tuples(names, st.sampled_from([b":", b": ", b" : ", b""]), values).map(b"".join)
blocks = st.one_of(
    st.just(b""),
    st.just(PLAIN),
    st.lists(lines, max_size=5).map(lambda all: b"NATS/1.0\r\n" + b"".join(line + b"\r\n" for line in all) + b"\r\n"),
    st.binary(min_size=1, max_size=30),
    st.lists(lines, max_size=2).map(lambda all: b"NATS/1.0 100 Idle\r\n" + b"\r\n".join([*all, b"", b""])),
)
subjects = st.one_of(st.sampled_from([b"orders.new", "zahlen.für".encode(), b"\xfe.x"]))
messages = st.tuples(subjects, blocks, st.binary(max_size=40), st.integers(0, (1 << 63) - 1), st.booleans())


@given(st.lists(messages, max_size=6), st.lists(st.integers(1, 60), max_size=8))
def test_rows_are_those_of_a_naive_decoder_in_any_chunks(
    made: list[tuple[bytes, bytes, bytes, int, bool]], chunks: list[int]
) -> None:
    sent = [
        Sent(subject, 10 + 2 * index, index + 1, timestamp=at, block=block, payload=payload, domain=domain)
        for index, (subject, block, payload, at, domain) in enumerate(made)
    ]
    decoder, taken = decode(b"".join(message.op() for message in sent), chunks=chunks)
    assert taken == [naive(message) for message in sent]
    assert decoder.received == len(sent)
    assert decoder.strays == 0
    assert decoder.violation is None


def test_values_of_a_repeated_name_are_one_list_in_order() -> None:
    block = b"NATS/1.0\r\nA: 1\r\nB: 2\r\nA: 3\r\n\r\n"
    _, (row,) = decode(Sent(b"s", 1, 1, block=block).op())
    assert row.headers == [("A", ["1", "3"]), ("B", ["2"])]
    assert row.error is None


def test_more_names_than_are_compared_one_by_one_still_merge() -> None:
    lines = b"".join(b"n%d: v\r\n" % number for number in range(200))
    _, (row,) = decode(Sent(b"s", 1, 1, block=b"NATS/1.0\r\n" + lines + b"n7: w\r\n\r\n").op())
    assert row.headers is not None
    assert len(row.headers) == 200
    assert dict(row.headers)["n7"] == ["v", "w"]


def test_a_malformed_block_makes_only_its_rows_map_null() -> None:
    wire = (
        Sent(b"a", 1, 1, block=PLAIN).op()
        + Sent(b"b", 2, 2, block=b"garbage").op()
        + Sent(b"c", 3, 3, block=PLAIN).op()
    )
    _, taken = decode(wire)
    good = [("Nats-Msg-Id", ["17"]), ("ce-type", ["dev.headwater.test"])]
    assert [row.headers for row in taken] == [good, None, good]
    assert taken[1].error is not None
    assert "version line" in taken[1].error
    assert taken[1].block == b"garbage"


def test_rows_outside_the_range_are_dropped_and_end_it() -> None:
    wire = b"".join(Sent(b"s", sequence, sequence - 3).op() for sequence in range(4, 9))
    decoder, taken = decode(wire, start=5, end=7)
    assert [row.sequence for row in taken] == [5, 6]
    assert decoder.complete
    assert decoder.received == 5


def test_the_last_sequence_of_a_range_completes_it_without_waiting_for_the_next() -> None:
    decoder, _ = decode(Sent(b"s", 5, 1).op() + Sent(b"s", 6, 2).op(), start=5, end=7)
    assert decoder.complete
    decoder, _ = decode(Sent(b"s", 5, 1).op(), start=5, end=7)
    assert not decoder.complete


def test_nothing_pending_drains_the_consumer_but_does_not_complete_the_range() -> None:
    decoder, _ = decode(Sent(b"s", 5, 1, pending=0).op(), start=5, end=100)
    assert decoder.drained
    assert not decoder.complete
    decoder.resubscribe(8)
    assert not decoder.drained
    decoder.finish()
    assert decoder.complete
    assert decoder.first_gap == 6


def test_the_first_gap_is_remembered() -> None:
    decoder, _ = decode(Sent(b"s", 5, 1).op() + Sent(b"s", 8, 2).op() + Sent(b"s", 12, 3).op(), start=5, end=13)
    assert decoder.first_gap == 6
    decoder, _ = decode(Sent(b"s", 5, 1).op() + Sent(b"s", 6, 2).op(), start=5, end=7)
    assert decoder.first_gap == -1


def test_a_delivery_that_is_missing_in_the_consumers_count_stops_the_decoder() -> None:
    wire = Sent(b"s", 1, 1).op() + Sent(b"s", 3, 3).op() + Sent(b"s", 4, 4).op()
    decoder, taken = decode(wire)
    assert [row.sequence for row in taken] == [1]
    assert decoder.skipped
    assert decoder.position == 1


def test_after_a_new_subscription_decoding_continues_and_old_deliveries_are_strays() -> None:
    decoder, _ = decode(Sent(b"s", 1, 1).op() + Sent(b"s", 2, 2).op())
    decoder.resubscribe(8)
    parser = ServerOpParser(decoder)
    wire = Sent(b"s", 3, 3).op() + Sent(b"s", 2, 1, sid=8).op() + Sent(b"s", 3, 2, sid=8).op()
    parser.parse(bytearray(wire), 0, len(wire))
    assert [row.sequence for row in rows(decoder.take())] == [3]
    assert decoder.strays == 1


def test_statuses_are_kept_apart_from_rows() -> None:
    status = b"NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 5\r\n\r\n"
    op = b"HMSG _INBOX.x %d %d %d\r\n%b\r\n" % (SID, len(status), len(status), status)
    decoder, taken = decode(op + Sent(b"s", 1, 1).op() + op)
    assert len(taken) == 1
    assert decoder.statuses == [status, status]
    assert decoder.received == 1


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"some.reply",
        b"$JS.ACK.S.c.1.2.3.4",
        b"$JS.ACK.S.c.1.x.1.4.5",
        b"$JS.ACK.S.c.1.0.1.4.5",
        b"$JS.ACK.S.c.1.99999999999999999999.1.4.5",
        b"$JS.ACK.S.c.1.9223372036854775808.1.4.5",
        b"$JS.ACK.S.c.1.2.1.4.",
        b"$JS.ACK." + b"1." * 20 + b"1",
    ],
)
def test_a_message_without_an_acknowledgement_subject_is_a_stray(reply: bytes) -> None:
    decoder, taken = decode(b"MSG s %d %b 2\r\nhi\r\n" % (SID, reply))
    assert taken == []
    assert decoder.strays == 1


def test_pings_and_errors_are_there_for_the_owner_of_the_socket() -> None:
    decoder, _ = decode(b"PING\r\nPING\r\n-ERR 'Stale Connection'\r\n")
    assert decoder.take_pings() == 2
    assert decoder.take_pings() == 0
    assert decoder.errors == ["Stale Connection"]


def test_bytes_that_are_no_protocol_are_a_violation_and_keep_the_rows() -> None:
    decoder, taken = decode(Sent(b"s", 1, 1).op() + b"HTTP/1.1 400 Bad Request\r\n")
    assert decoder.violation is not None
    assert len(taken) == 1


def test_columns_that_were_taken_do_not_change_any_more() -> None:
    decoder = ColumnDecoder(SID, 1, 100, with_map=True, with_raw=True)
    parser = ServerOpParser(decoder)
    first, second = Sent(b"first", 1, 1, block=PLAIN).op(), Sent(b"other", 2, 2, payload=b"x" * 9).op()
    parser.parse(bytearray(first), 0, len(first))
    taken = decoder.take()
    before = rows(taken)
    parser.parse(bytearray(second), 0, len(second))
    assert rows(taken) == before
    assert rows(decoder.take()) == [naive(Sent(b"other", 2, 2, payload=b"x" * 9))]


def test_columns_grow_past_their_first_size() -> None:
    sent = [Sent(b"s.%d" % number, number, number, block=PLAIN) for number in range(1, 3001)]
    _, taken = decode(b"".join(message.op() for message in sent))
    assert taken == [naive(message) for message in sent]


def test_columns_that_are_not_requested_are_not_made() -> None:
    decoder = ColumnDecoder(SID, 1, 100, with_map=False, with_raw=False)
    op = Sent(b"s", 1, 1, block=PLAIN).op()
    ServerOpParser(decoder).parse(bytearray(op), 0, len(op))
    taken = decoder.take()
    assert taken.rows == 1
    assert taken.blocks is None
    assert taken.header_map is None
