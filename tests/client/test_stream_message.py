"""Where a delivered message stands, read from its acknowledgement subject."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.client.stream_message import Metadata, parse_metadata
from headwater.errors import LocalProtocolError

ACK = "$JS.ACK.S.C.1.10.5.1700000000000000000.3"


def test_metadata_of_both_forms_of_the_ack_subject() -> None:
    plain = Metadata("S", "C", 1, 10, 5, 1700000000000000000, 3)
    assert parse_metadata(ACK) == plain
    tail = ACK.removeprefix("$JS.ACK.")
    assert parse_metadata(f"$JS.ACK._.HASH.{tail}") == plain
    assert parse_metadata(f"$JS.ACK._.HASH.{tail}.random") == plain
    assert parse_metadata(f"$JS.ACK.hub.HASH.{tail}").domain == "hub"


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "r",
        "$JS.ACK",
        ACK + ".x",
        ACK.replace("10", "ten"),
        ACK.replace("10", "٣"),
        ACK.replace("$JS", "$JX"),
        ACK[:-2],
    ],
)
def test_what_is_no_ack_subject_is_refused(reply: str) -> None:
    with pytest.raises(LocalProtocolError, match="no acknowledgement subject"):
        parse_metadata(reply)


@given(st.text(alphabet="$JSACK.0123456789_x", max_size=80))
def test_a_reply_subject_of_any_kind_gives_metadata_or_a_clear_error(reply: str) -> None:
    try:
        parse_metadata(reply)
    except LocalProtocolError:
        pass
