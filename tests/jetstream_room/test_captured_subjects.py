"""The index of captured subjects finds what comparing with every stream finds, whatever was added, changed and removed."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_room.captured_subjects import CapturedSubjects
from headwater.jetstream_room.whole import overlap

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
    others = [StreamConfig(name=other, subjects=subjects) for other, subjects in streams.items()]
    assert captured.overlap(name, wanted) == overlap(StreamConfig(name=name, subjects=wanted), others)


def test_nothing_is_left_of_streams_that_are_gone() -> None:
    captured = CapturedSubjects()
    captured.put("a", ["x.>", "y", "y.*"])
    captured.put("b", ["x.>"])
    captured.drop("a")
    captured.drop("b")
    assert not captured.overlap("c", [">"])
    assert (captured._begun, captured._beginnings, captured._subjects) == ({}, [], {})
