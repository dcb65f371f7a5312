"""What the messages of a batch stand in for."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.jetstream_state.batch_replaces import previous_of
from headwater.jetstream_state.items import Item, Particulars
from headwater.jetstream_state.subject_table import SubjectTable

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
