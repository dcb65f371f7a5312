"""What a stream holds by subject, against a list."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.jetstream_state.subject_table import SubjectFilter, SubjectTable, stored_size
from headwater.model.subject import matches

subjects = st.lists(st.sampled_from([b"a", b"b"]), min_size=1, max_size=3).map(b".".join)
patterns = st.sampled_from([b">", b"a", b"a.>", b"*.b", b"b.*", b"a.a.a"])


@given(
    st.lists(st.sampled_from([b">", b"a.>", b"a.b.>", b"*.>", b"*.b.>", b"a", b"a.*", b".>", b"a..>"]), min_size=1),
    st.lists(st.sampled_from([b"", b"a", b"b", b"ab", b">", b"*"]), min_size=1, max_size=4).map(b".".join),
)
def test_a_filter_lets_through_what_one_of_its_patterns_matches(wanted: list[bytes], subject: bytes) -> None:
    filtered = SubjectFilter(wanted)
    for _ in range(2):  # the second answer may be one that was kept
        assert filtered.matches(subject) is any(matches(pattern, subject) for pattern in wanted)


@given(st.lists(subjects, max_size=30), patterns)
def test_counts_and_lasts_are_those_of_the_list(stored: list[bytes], pattern: bytes) -> None:
    table = SubjectTable()
    for sequence, subject in enumerate(stored, 1):
        table.add(subject, sequence, stored_size(subject, b"", b"xyz"))
    wanted = SubjectFilter([pattern])
    found = [sequence for sequence, subject in enumerate(stored, 1) if matches(pattern, subject)]
    assert table.messages == len(stored)
    assert len(table) == len(set(stored))
    assert table.count(wanted) == len(found)
    assert table.last(pattern) == (found[-1] if found else 0)
    last = {subject: sequence for sequence, subject in enumerate(stored, 1) if matches(pattern, subject)}
    assert table.lasts(wanted) == sorted(last.values())
    assert table.counts(pattern) == sorted((subject, stored.count(subject)) for subject in last)
