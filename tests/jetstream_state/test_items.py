"""What is remembered of a publish until it is acknowledged."""

from headwater.jetstream_state.items import Item, Particulars, unacknowledged


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
