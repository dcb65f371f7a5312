"""Every reply in every era: read as it was written, refused when it is cut."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.iggy_values import values

from headwater.errors import IggyError
from headwater.iggy_wire import reply_codec
from headwater.iggy_wire.commands import Code
from headwater.iggy_wire.eras import Era

ROWS = [(code, era) for code, versions in reply_codec.REPLIES.items() for era, _ in versions]


@given(st.data(), st.sampled_from(ROWS))
def test_a_reply_is_read_as_it_was_written(data: st.DataObject, row: tuple[Code, Era]) -> None:
    code, era = row
    view = data.draw(values(reply_codec.field_of(code, era)))
    written = reply_codec.encode(code, view, era)
    if written:
        assert reply_codec.decode(code, written, era) == view


@given(st.sampled_from(ROWS), st.binary(min_size=1, max_size=120))
def test_any_bytes_are_a_reply_or_refused(row: tuple[Code, Era], raw: bytes) -> None:
    code, era = row
    try:
        found = reply_codec.decode(code, raw, era)
    except IggyError:
        return
    assert reply_codec.decode(code, reply_codec.encode(code, found, era), era) == found or _holds_nan(found)


def _holds_nan(view: Any) -> bool:
    return "nan" in repr(view)


def test_nothing_is_an_empty_reply() -> None:
    assert reply_codec.encode(Code.GET_STREAM, None, Era.V) == b""
    assert reply_codec.decode(Code.GET_STREAM, b"", Era.V) is None
    assert reply_codec.encode(Code.PING, None, Era.S) == b"" and reply_codec.field_of(Code.PING, Era.V) is None
    assert reply_codec.field_of(Code.CREATE_STREAM, Era.S) is None  # the seed's clients got nothing


def test_the_answer_to_one_send_is_that_of_many_with_one() -> None:
    view = reply_codec.SentView(1, 2, 3, 4)
    assert reply_codec.ONE_SENT.pack(1, 1, 2, 3, 4) == reply_codec.encode(Code.SEND_MESSAGES, [view], Era.V)
