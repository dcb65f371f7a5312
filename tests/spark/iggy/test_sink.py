"""Rows to Iggy messages: the short way for plain headers says what the table of header mapping says."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import HeaderError
from headwater.spark.iggy.sink import headers_of, mapped_headers, plain_headers, rows_of

NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=":"), min_size=1, max_size=6)
VALUES = st.one_of(
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8),
    st.sampled_from(["", "x" * 255, "x" * 256, "é", None, ["one"], ["one", "two"], [], [None]]),
)


@given(st.dictionaries(st.one_of(NAMES, st.sampled_from(["a", "a#2", "Iggy-Typed"])), VALUES, max_size=4))
def test_the_short_way_says_what_the_table_says(row: dict[str, object]) -> None:
    short = plain_headers(row)
    if short is not None:
        assert short == mapped_headers(row)


def test_plain_headers_take_the_short_way() -> None:
    row = {"Nats-Msg-Id": "17", "ce-type": ["order.placed"], "two words": "no name"}
    assert plain_headers(row) is None
    del row["two words"]
    made = plain_headers(row)
    assert made is not None
    assert {str(key): value.python for key, value in made.items()} == {"Nats-Msg-Id": "17", "ce-type": "order.placed"}
    assert headers_of(row) == made
    assert headers_of({}) is None
    assert headers_of(None) is None
    with pytest.raises(HeaderError, match="256 bytes"):
        headers_of({"long": "x" * 256})


def test_rows_have_their_maps_as_dicts() -> None:
    texts = pa.map_(pa.string(), pa.string())
    event = pa.struct([("id", pa.string()), ("extensions", texts)])
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([b"1", None], pa.binary()),
            pa.array([[("a", "1"), ("b", None)], None], texts),
            pa.array([{"id": "x", "extensions": [("k", "v")]}, None], event),
        ],
        names=["data", "headers", "event"],
    )
    assert rows_of(batch) == batch.to_pylist(maps_as_pydicts="lossy")
    assert rows_of(batch.slice(0, 0)) == []
