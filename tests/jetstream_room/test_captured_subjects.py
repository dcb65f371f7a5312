"""The index of captured subjects finds what comparing with every stream finds, whatever was added, changed and removed."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.jetstream_room.captured_subjects import CapturedSubjects
from headwater.model.subject import patterns_overlap

NAMES = st.sampled_from("abcd")
SUBJECTS = st.lists(st.sampled_from(["a", "ab", "a*", "*", ">"]), min_size=1, max_size=3).map(".".join)


@given(
    st.lists(st.tuples(NAMES, st.none() | st.lists(SUBJECTS, max_size=3)), max_size=12),
    NAMES,
    st.lists(SUBJECTS, min_size=1, max_size=2),
)
def test_it_finds_what_a_comparison_with_every_stream_finds(
    changes: list[tuple[str, list[str] | None]], name: str, wanted: list[str]
) -> None:
    captured = CapturedSubjects()
    streams: dict[str, list[str]] = {}
    for stream, subjects in changes:
        if subjects is None:
            captured.drop(stream)
            streams.pop(stream, None)
        else:
            captured.put(stream, subjects)
            streams[stream] = subjects
    theirs = [subject for other, subjects in streams.items() if other != name for subject in subjects]
    expected = any(patterns_overlap(one.encode(), other.encode()) for one in wanted for other in theirs)
    assert captured.overlap(name, wanted) == expected


def test_nothing_is_left_of_streams_that_are_gone() -> None:
    captured = CapturedSubjects()
    captured.put("a", ["x.>", "y", "y.*"])
    captured.put("b", ["x.>"])
    captured.drop("a")
    captured.drop("b")
    assert not captured.overlap("c", [">"])
    assert (captured._begun, captured._beginnings, captured._subjects) == ({}, [], {})
