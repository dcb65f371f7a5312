"""What a stream holds by subject, against a list."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.jetstream_state.subject_table import SubjectFilter, SubjectTable, memory_size, stored_size
from headwater.model.subject import matches
from headwater.streams.log_format import StoredRecord

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


@given(st.lists(st.tuples(subjects, st.binary(max_size=3), st.binary(max_size=3)), max_size=9), st.booleans())
def test_records_that_leave_take_their_weight_along(kept: list[tuple[bytes, bytes, bytes]], in_memory: bool) -> None:
    table = SubjectTable()
    size_of = memory_size if in_memory else stored_size
    for sequence, message in enumerate(kept, 1):
        table.add(message[0], sequence, size_of(*message))
    records = [StoredRecord(offset, 0, *message) for offset, message in enumerate(kept)]
    gone = table.remove_records(records[1:], in_memory=in_memory)
    assert gone == [(sequence, message[0]) for sequence, message in enumerate(kept, 1)][1:]
    assert (table.messages, table.size_bytes) == (len(kept[:1]), sum(size_of(*message) for message in kept[:1]))
    assert table.names() == [message[0] for message in kept[:1]]
