"""What is remembered of a publish until it is acknowledged."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.jetstream_state.items import Item, ItemsBySubject, Particulars, unacknowledged
from headwater.model.subject_match import matches


def test_an_item_keeps_what_it_was_given_and_its_answer_may_change() -> None:
    particulars = Particulars(b"all", b"NATS/1.0\r\n\r\n", b"payload", 5)
    item = Item(b"reply", b"", b"subject", 1 << 40, 77, b"id", particulars)
    assert (item.reply, item.ack, item.subject, item.sequence) == (b"reply", b"", b"subject", 1 << 40)
    assert (item.size, item.message_id, item.particulars) == (77, b"id", particulars)
    item.ack = b"refused"
    assert item.ack == b"refused"
    assert Item(b"", b"", b"", 1, 0, b"").particulars is None


def test_an_item_without_an_acknowledgement_is_one_with_nothing_to_send() -> None:
    item, other = unacknowledged(b"subject", 1 << 40, 77), Item(b"", b"", b"subject", 1 << 40, 77, b"")
    for name in ("reply", "ack", "subject", "sequence", "size", "message_id", "particulars", "answer"):
        assert getattr(item, name) == getattr(other, name)


SUBJECTS = st.sampled_from([b"a", b"a.b", b"a.c", b"b", b""])


@given(st.lists(st.tuples(SUBJECTS, st.booleans(), st.sampled_from([b"a", b"a.*", b">", b"b", b"c"])), max_size=30))
def test_items_are_found_by_subject_as_in_the_lists_while_these_grow_and_are_replaced(
    steps: list[tuple[bytes, bool, bytes]],
) -> None:
    found = ItemsBySubject()
    waiting: list[Item] = []
    writing: list[Item] = []
    for sequence, (subject, is_written, pattern) in enumerate(steps, 1):
        waiting.append(unacknowledged(subject, sequence, 1))
        if is_written:
            writing, waiting = waiting, []
        everything = [*writing, *waiting]
        matching = [item for item in everything if item.subject and matches(pattern, item.subject)]
        assert found.newest((waiting, writing), pattern) is (matching[-1] if matching else None)
        if pattern in (b"a", b"b", b"c"):
            assert found.count((waiting, writing), pattern) == len(matching)
