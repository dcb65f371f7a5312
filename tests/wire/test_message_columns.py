"""Messages as columns: every row is the message that was appended, whatever its bytes."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from headwater.wire.columns import Text
from headwater.wire.message_columns import MessageColumns
from headwater.wire.message_view import composed

MESSAGES = st.lists(
    st.tuples(st.binary(max_size=8), st.binary(max_size=8), st.binary(max_size=8), st.binary(max_size=40))
)


def values(text: Text) -> list[bytes]:
    data, ends = bytes(text.data), list(text.offsets)
    return [data[start:end] for start, end in itertools.pairwise(ends)]


@given(MESSAGES, MESSAGES)
def test_rows_are_the_messages_in_order_and_taking_starts_anew(
    first: list[tuple[bytes, bytes, bytes, bytes]], second: list[tuple[bytes, bytes, bytes, bytes]]
) -> None:
    columns = MessageColumns()
    for messages in (first, second):
        for subject, reply, block, payload in messages:
            columns.append(composed(subject, reply, block, payload))
        assert columns.rows == len(messages)
        taken = columns.take()
        assert (taken.rows, columns.rows, columns.size) == (len(messages), 0, 0)
        rows = list(zip(*map(values, (taken.subjects, taken.replies, taken.blocks, taken.payloads)), strict=True))
        assert rows == [(_utf8(subject), _utf8(reply), block, payload) for subject, reply, block, payload in messages]


def _utf8(raw: bytes) -> bytes:
    return raw.decode("utf-8", "replace").encode()


def test_a_message_object_becomes_the_same_row() -> None:
    columns = MessageColumns()
    columns.append_message("a.\udcff", "r", b"NATS/1.0\r\n\r\n", b"x")
    taken = columns.take()
    assert values(taken.subjects) == ["a.\ufffd".encode()]
    assert values(taken.payloads) == [b"x"]


def test_values_that_are_absent_for_thousands_of_rows_are_empty() -> None:
    columns = MessageColumns()
    for number in range(3000):
        columns.append(composed(b"a", b"r" if number == 2000 else b"", b"", b"x"))
    columns.append_message("a", "", b"", b"x")
    taken = columns.take()
    assert [at for at, reply in enumerate(values(taken.replies)) if reply] == [2000]
    assert values(taken.blocks) == [b""] * 3001
