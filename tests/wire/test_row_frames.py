"""Rows as ops: a broker's parser reads back the rows' contents; and acknowledgements, in any chunks."""

from array import array
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sent_ops import read_ops

from headwater.errors import HeaderError, PayloadTooLarge, SubjectError
from headwater.model.header_block import decode_header_block
from headwater.wire.columns import HeaderMap, Text
from headwater.wire.memory import OutputBuffer
from headwater.wire.row_frames import AckCounter, RowFrames, Rows
from headwater.wire.server_ops import ServerOpParser

Pairs = list[tuple[str, list[str]]]


def ends(sizes: Sequence[int]) -> memoryview:
    made = array("i", [0])
    for size in sizes:
        made.append(made[-1] + size)
    return memoryview(made)


def text(values: Sequence[bytes]) -> Text:
    return Text(memoryview(bytearray(b"".join(values))), ends([len(value) for value in values]))


def header_map(maps: Sequence[Pairs]) -> HeaderMap:
    pairs = [pair for each in maps for pair in each]
    values = [value.encode() for _, each in pairs for value in each]
    names = text([name.encode() for name, _ in pairs])
    return HeaderMap(ends([len(each) for each in maps]), names, ends([len(v) for _, v in pairs]), text(values))


def frames_of(rows: Rows, inbox: bytes = b"_INBOX.x.", limit: int = 1 << 20) -> bytes:
    output = OutputBuffer()
    frames = RowFrames(output, rows, inbox, limit)
    sizes = [frames.append(row) for row in range(rows.rows)]
    wire = output.take()
    assert sum(sizes) == len(wire)
    return wire


names = st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,8}", fullmatch=True)
values = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=8).map(
    lambda value: value.strip(" \t")
)
messages = st.tuples(
    st.sampled_from([b"a", b"a.b", b"orders.new", "é".encode()]),
    st.lists(st.tuples(names, st.lists(values, max_size=3)), max_size=3, unique_by=lambda pair: pair[0]),
    st.binary(max_size=20),
)


@given(st.lists(messages, max_size=5), st.booleans())
def test_the_ops_have_the_contents_of_the_rows(rows: list[tuple[bytes, Pairs, bytes]], with_ids: bool) -> None:
    subjects, maps, payloads = [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]
    made = Rows(len(rows), text(subjects), b"", text(payloads), header_map(maps), id_prefix=b"q/" if with_ids else b"")
    read = read_ops(frames_of(made))
    assert [(op.subject, op.reply, op.payload) for op in read] == [
        (subject, b"_INBOX.x.%d" % row, payload) for row, (subject, _, payload) in enumerate(rows)
    ]
    for row, (op, pairs) in enumerate(zip(read, maps, strict=True)):
        expected = [(name, value) for name, each in pairs for value in each]
        expected += [("Nats-Msg-Id", f"q/{row}")] if with_ids else []
        found = decode_header_block(op.block)[1].multi_items() if op.block else []
        assert found == expected


def test_rows_have_their_own_ids_and_blocks_and_common_lines() -> None:
    blocks = text([b"NATS/1.0\r\na: b\r\n\r\n", b""])
    rows = Rows(2, None, b"s", None, blocks=blocks, ids=text([b"x", b"y"]), lines=b"Nats-Expected-Stream: S\r\n")
    first, second = read_ops(frames_of(rows, inbox=b""))
    assert first.block == b"NATS/1.0\r\na: b\r\nNats-Expected-Stream: S\r\nNats-Msg-Id: x\r\n\r\n"
    assert second.block == b"NATS/1.0\r\nNats-Expected-Stream: S\r\nNats-Msg-Id: y\r\n\r\n"
    assert (first.subject, first.reply, first.payload) == (b"s", b"", b"")


def test_instructions_to_another_server_are_left_out() -> None:
    theirs = ["Nats-Msg-Id", "Nats-Rollup", "Nats-Expected-Last-Sequence", "Nats-TTL", "nats-msg-id", "N"]
    theirs += ["Nats-Batch-Id", "Nats-Batch-Sequence", "Nats-Batch-Commit", "Nats-Stream-Source", "Nats-Batched"]
    rows = Rows(1, None, b"s", None, header_map([[(name, ["1"]) for name in theirs]]))
    (op,) = read_ops(frames_of(rows))
    kept = [name for name, _ in decode_header_block(op.block)[1].multi_items()]
    assert kept == ["Nats-TTL", "nats-msg-id", "N", "Nats-Batched"]
    rows = Rows(1, None, b"s", None, header_map([[("Nats-Msg-Id", ["1"])]]))
    assert read_ops(frames_of(rows))[0].block == b""


def test_a_row_without_a_subject_has_the_one_for_all() -> None:
    rows = Rows(3, text([b"a", b"", b"a"]), b"rest", None)
    assert [op.subject for op in read_ops(frames_of(rows))] == [b"a", b"rest", b"a"]


def test_rows_are_appended_up_to_a_size_without_those_that_are_acknowledged() -> None:
    output = OutputBuffer()
    frames = RowFrames(output, Rows(6, None, b"s", text([b"%d" % row for row in range(6)])), b"", 100)
    acknowledged = bytearray([0, 1, 0, 0, 1, 0])
    assert frames.append_rows(0, 3, acknowledged, 1000) == 3
    assert (output.take(), frames.appended) == (b"PUB s 1\r\n0\r\nPUB s 1\r\n2\r\n", 2)
    assert frames.append_rows(3, 6, acknowledged, 1) == 4  # the first byte is one too many for a second row
    assert frames.append_rows(4, 6, acknowledged, 1000) == 6
    assert (output.take(), frames.appended) == (b"PUB s 1\r\n3\r\nPUB s 1\r\n5\r\n", 4)


def test_any_number_of_subjects_is_written_and_checked() -> None:
    subjects = [b"s.%d" % (row % 3000) for row in range(9000)]
    assert [op.subject for op in read_ops(frames_of(Rows(9000, text(subjects), b"", None)))] == subjects


@pytest.mark.parametrize("subject", [b"", b"a b", b"a..b", b"a.*", b"a\r\nPUB b 0", b"a\t"])
def test_an_invalid_subject_is_refused_before_anything_is_written(subject: bytes) -> None:
    output = OutputBuffer()
    frames = RowFrames(output, Rows(2, text([b"good", subject]), b"", None), b"", 100)
    size = frames.append(0)
    with pytest.raises(SubjectError, match="row 1"):
        frames.append(1)
    assert output.size == size


@pytest.mark.parametrize(("name", "value"), [("a b", "x"), ("", "x"), ("a:", "x"), ("é", "x"), ("a", "x\r\nb: c")])
def test_a_header_that_could_be_another_is_refused(name: str, value: str) -> None:
    with pytest.raises(HeaderError, match="row 0"):
        frames_of(Rows(1, None, b"s", None, header_map([[(name, [value])]])))


@pytest.mark.parametrize("identity", [b"", b"a\nb"])
def test_an_empty_id_is_refused(identity: bytes) -> None:
    with pytest.raises(HeaderError, match="row 0"):
        frames_of(Rows(1, None, b"s", None, ids=text([identity])))


def test_a_message_above_the_servers_limit_is_refused() -> None:
    rows = Rows(1, None, b"s", text([bytes(90)]), header_map([[("a", ["b"])]]))
    size = 90 + len(b"NATS/1.0\r\na: b\r\n\r\n")
    frames_of(rows, limit=size)
    with pytest.raises(PayloadTooLarge) as refused:
        frames_of(rows, limit=size - 1)
    assert (refused.value.value, refused.value.limit) == (size, size - 1)


GOOD = b'{"stream":"S","seq":%d}'


def acked(wire: bytes, cuts: Sequence[int], rows: int = 3) -> AckCounter:
    counter = AckCounter(7, b"_INBOX.x.", rows)
    parser = ServerOpParser(counter)
    buffer = bytearray()
    for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True):
        buffer += wire[start:end]
        del buffer[: parser.parse(buffer, 0, len(buffer))]
    return counter


def answer(row: bytes, payload: bytes, sid: int = 7) -> bytes:
    return b"MSG _INBOX.x.%b %d %d\r\n%b\r\n" % (row, sid, len(payload), payload)


@given(st.lists(st.integers(0, 400), max_size=4).map(sorted))
def test_acknowledgements_are_counted_by_row_in_any_chunks(cuts: list[int]) -> None:
    wire = answer(b"2", GOOD % 9) + answer(b"0", b'{"stream":"S","seq":4,"duplicate":true}')
    wire += answer(b"1", b'{"error":{"code":400,"err_code":1,"description":"no"},"stream":"S","seq":0}')
    wire += answer(b"2", GOOD % 9) + b"HMSG _INBOX.x.1 7 16 16\r\nNATS/1.0 503\r\n\r\n\r\n"
    wire += answer(b"3", GOOD % 9) + answer(b"x", GOOD % 9) + answer(b"1", GOOD % 9, sid=8) + b"PING\r\nPONG\r\n"
    counter = acked(wire, [min(cut, len(wire)) for cut in cuts])
    assert (counter.count, bytes(counter.acked)) == (2, b"\1\0\1")
    assert [row for row, _ in counter.duplicates] == [0]
    assert [(row, payload[:8]) for row, payload in counter.refused] == [(1, b'{"error"'), (1, b"")]
    assert set(counter.samples) == {b'{"stream":"S","seq":'}
    assert (counter.take_pings(), counter.take_pings(), counter.pongs) == (1, 0, 1)


@pytest.mark.parametrize(
    ("run", "marks"),
    [
        (b',"run":2', [0, 1, 1, 0]),
        (b',"run":3', [1, 1, 1, 0]),
        (b',"run":99', [1, 1, 1, 0]),
        (b',"ran":2', [0, 0, 1, 0]),
    ],
)
def test_an_acknowledgement_for_a_run_is_one_for_each_of_its_rows(run: bytes, marks: list[int]) -> None:
    wire = answer(b"2", b'{"stream":"S","seq":12' + run + b"}")
    counter = acked(wire, [], rows=4)
    assert (list(counter.acked), counter.count) == (marks, sum(marks))


def test_a_row_within_a_run_counts_once() -> None:
    wire = answer(b"1", GOOD % 1) + answer(b"3", b'{"stream":"S","seq":12,"run":4}') + answer(b"3", GOOD % 1)
    counter = acked(wire, [], rows=4)
    assert (list(counter.acked), counter.count) == ([1, 1, 1, 1], 4)


@pytest.mark.parametrize(
    "reply",
    [
        b"MSG _INBOX.x.0 7 0\r\n\r\n",
        b"HMSG _INBOX.x.0 7 12 12\r\nNATS/1.0\r\n\r\n\r\n",
        b"HMSG _INBOX.x.0 7 18 18\r\nNATS/1.0\r\na: 1\r\n\r\n\r\n",
    ],
)
def test_an_empty_reply_of_a_subscriber_is_neither_a_refusal_nor_an_acknowledgement(reply: bytes) -> None:
    counter = acked(reply + answer(b"0", GOOD % 1), [], rows=1)
    assert (counter.count, counter.refused, counter.foreign) == (1, [], b"an empty message")


def test_a_streams_name_does_not_turn_an_acknowledgement_into_a_refusal() -> None:
    counter = acked(answer(b"0", b'{"stream":"error","domain":"duplicate","seq":4}'), [])
    assert (counter.count, counter.duplicates, counter.refused) == (1, [], [])


def test_each_acknowledging_stream_is_recorded_and_other_answers_are_foreign() -> None:
    others = b'{"stream": "T", "domain": "d", "seq":2}'
    wire = answer(b"0", GOOD % 1) + answer(b"1", others) + answer(b"2", b'{"ok":true}') + answer(b"2", b"+OK")
    counter = acked(wire, [])
    assert (counter.count, bytes(counter.acked), counter.foreign) == (2, b"\1\1\0", b'{"ok":true}')
    assert list(counter.samples.values()) == [GOOD % 1, others]


def test_another_subscription_keeps_acknowledged_rows() -> None:
    counter = acked(answer(b"0", GOOD % 1), [])
    counter.listen(9, b"_INBOX.other.")
    wire = bytearray(answer(b"1", GOOD % 2) + b"MSG _INBOX.other.2 9 %d\r\n%b\r\n" % (len(GOOD % 3), GOOD % 3))
    ServerOpParser(counter).parse(wire, 0, len(wire))
    assert bytes(counter.acked) == b"\1\0\1"
