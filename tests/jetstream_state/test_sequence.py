"""The one place where offsets and sequences meet."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.jetstream_state.sequence import offset_of, sequence_of


@given(st.integers(0, 2**62))
def test_the_first_record_is_sequence_1_and_the_way_back_is_exact(offset: int) -> None:
    assert sequence_of(offset) == offset + 1
    assert offset_of(sequence_of(offset)) == offset
