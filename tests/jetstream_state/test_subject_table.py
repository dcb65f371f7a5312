"""What a stream holds by subject, against a list."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.jetstream_state.items import Item, Particulars
from headwater.jetstream_state.subject_table import (
    SubjectFilter,
    SubjectRow,
    SubjectTable,
    memory_size,
    previous_of,
    stored_size,
)
from headwater.model.subject_match import matches
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
    assert [*table.names(9)] == [[message[0]] for message in kept[:1]]


@given(
    st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.integers(1, 9)), max_size=40),
    st.integers(1, 4),
    st.lists(st.integers(1, 40)),
    st.booleans(),
)
def test_histories_are_those_of_the_list(
    stored: list[tuple[bytes, int]], most: int, removed: list[int], together: bool
) -> None:
    """With a limit per subject, by `replace_all` and by `add`; then some messages are removed, and it is restored."""
    table, held = SubjectTable(with_history=True), list[tuple[int, bytes, int]]()
    for sequence, (subject, size) in enumerate(stored, 1):
        held.append((sequence, subject, size))
        of_subject = [one for one in held if one[1] == subject]
        surplus = of_subject[: max(0, len(of_subject) - most)]
        held = [one for one in held if one not in surplus]
        if together:
            item = Item(b"", b"", subject, sequence, size, b"")
            gone = [one[0] for one in surplus], [one[1] for one in surplus]
            assert table.replace_all([item], most) == (sequence, 1, *gone)
        else:
            table.add(subject, sequence, size)
            for older, _, weight in surplus:
                table.remove(subject, older, weight)
    for sequence in removed:
        for one in [one for one in held if one[0] == sequence]:
            table.remove(one[1], one[0], one[2])
            held.remove(one)
    again = SubjectTable(with_history=True)
    again.restore(table.rows(), table.messages, table.size_bytes)
    for each in (table, again):
        assert (each.messages, each.size_bytes) == (len(held), sum(size for _, _, size in held))
        for subject in (b"a", b"b", b"c"):
            history = [(sequence, size) for sequence, name, size in held if name == subject]
            assert each.history(subject) == history
            assert each.last(subject) == (history[-1][0] if history else 0)
            assert each.total(subject) == len(history)
            assert each.sequences_from(SubjectFilter([subject]), 3) == [n for n, _ in history if n >= 3]


@given(st.integers(2, 200), st.lists(st.integers(1, 200)))
def test_messages_leave_a_long_history_in_any_order(count: int, removed: list[int]) -> None:
    table, held = SubjectTable(with_history=True), [(3 * number, number) for number in range(1, count + 1)]
    for sequence, size in held:
        table.add(b"a", sequence, size)
    for number in removed:
        if (3 * number, number) in held:
            table.remove(b"a", 3 * number, number)
            held.remove((3 * number, number))
        assert table.history(b"a") == held
        assert table.last(b"a") == (held[-1][0] if held else 0)


@given(st.lists(subjects, max_size=100), st.integers(1, 100))
def test_batches_of_any_size_count_as_single_messages_do(stored: list[bytes], portion: int) -> None:
    one_by_one, table = SubjectTable(), SubjectTable()
    items = [Item(b"", b"", subject, sequence, 5, b"") for sequence, subject in enumerate(stored, 1)]
    for item in items:
        one_by_one.add(item.subject, item.sequence, item.size)
    for start in range(0, len(items), portion):
        some = items[start : start + portion]
        assert table.add_all(some) == (start + 1, len(some))
    assert sorted(table.rows(), key=_subject) == sorted(one_by_one.rows(), key=_subject)
    assert (table.messages, table.size_bytes) == (one_by_one.messages, one_by_one.size_bytes)


def _subject(row: SubjectRow) -> bytes:
    return row.subject


def test_a_scan_of_names_goes_on_while_subjects_come_and_go() -> None:
    table = SubjectTable()
    for number in range(1000):
        table.add(b"subject.%d" % number, number + 1, 1)
    seen: list[bytes] = []
    for names in table.names(10):
        seen += names
        for name in names[1:]:
            table.remove(name, table.last(name), 1)
        table.add(b"other.%d" % len(seen), 2000 + len(seen), 1)
        if len(seen) > 5000:
            break
    assert {b"subject.%d" % number for number in range(1000)} <= set(seen)
    scan = table.names(10)
    next(scan)
    table.clear()
    table.add(b"new", 5000, 1)
    assert not [*scan]


BATCHES = st.lists(st.lists(st.tuples(st.sampled_from([b"a", b"b", b""]), st.booleans()), max_size=5), max_size=5)


@given(BATCHES)
def test_the_message_before_each_is_the_last_of_its_subject_behind_a_roll_up_of_all(
    batches: list[list[tuple[bytes, bool]]],
) -> None:
    table, last, sequence = SubjectTable(), dict[bytes, int](), 0
    for batch in batches:
        items, expected = [], {}
        for subject, rolls_up in batch:
            sequence += 1
            particulars = Particulars(b"all", b"", b"", 1) if rolls_up and subject else None
            items.append(Item(b"", b"", subject, sequence, 9, b"", particulars))
            if subject:
                expected[sequence] = last.get(subject, 0)
                last = {subject: sequence} if particulars is not None else {**last, subject: sequence}
        assert previous_of(items, table) == expected
        table.clear()
        for subject, at in last.items():
            table.add(subject, at, 9)
