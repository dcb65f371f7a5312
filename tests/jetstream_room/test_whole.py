"""What the other workers have of an account."""

from hypothesis import example, given
from hypothesis import strategies as st

from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_room.whole import NOTHING, Elsewhere, overlap
from headwater.model.subject import patterns_overlap

tokens = st.sampled_from(["a", "b", "ab", "a*", "*", ">"])
patterns = st.lists(tokens, min_size=1, max_size=4).map(".".join)


def test_what_two_workers_have_is_added_up() -> None:
    one = Elsewhere(streams=2, reserved={"file": 5}, weights={"memory": 1}, configs=[StreamConfig(name="a")])
    other = Elsewhere(overlaps=True, streams=3, reserved={"file": 7, "memory": 1}, reserved_by_all={"file": 9})
    both = one.joined(other)
    assert (both.overlaps, both.streams, both.reserved) == (True, 5, {"file": 12, "memory": 1})
    assert (both.reserved_by_all, both.weights) == ({"file": 9}, {"memory": 1})
    assert both.find("a") == StreamConfig(name="a")
    assert both.find("b") is None
    assert NOTHING.joined(one) == one


def test_streams_of_other_names_overlap_by_their_subjects() -> None:
    mine = StreamConfig(name="a", subjects=["s.*", "t"])
    assert overlap(mine, [StreamConfig(name="b", subjects=["s.x"])])
    assert not overlap(mine, [StreamConfig(name="b", subjects=["s.x.y"]), StreamConfig(name="a", subjects=["t"])])


@given(st.lists(patterns, max_size=3), st.lists(patterns, max_size=3))
@example(["a"], ["a.>"])
@example(["a*"], ["a.b"])
def test_an_overlap_is_found_wherever_two_of_their_subjects_match_the_same(mine: list[str], others: list[str]) -> None:
    found = overlap(StreamConfig(name="a", subjects=mine), [StreamConfig(name="b", subjects=others)])
    assert found == any(patterns_overlap(one.encode(), other.encode()) for one in mine for other in others)
