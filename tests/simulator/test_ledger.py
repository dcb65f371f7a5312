"""Each invariant detects its own violations, and nothing else."""

from collections.abc import Callable

import pytest
from simulator.ledger import Broken, Ledger

Story = Callable[[Ledger], None]


def ledger() -> Ledger:
    made = Ledger()
    made.ack_came("S", 1, b"p:0")
    made.ack_came("S", 3, b"p:1")
    made.saw("S", 3, b"p:1")
    made.confirm(1, 10.0)
    made.fetched(1, 9.0)
    made.fetched(3, 11.0)
    made.member_got("a", b"m")
    made.subscriber_got("s", 0, b"t:1")
    made.subscriber_got("s", 0, b"t:5")
    made.subscriber_got("s", 1, b"t:5")
    made.key_written("k", 4, 6)
    made.key_read("k", 6, 6)
    made.watcher_saw("w", 6)
    made.batch_came("b.1/2")
    made.holds_batches({4: b"b.1/2:0", 5: b"b.1/2:1", 9: b"b.2/1:0"})
    made.sum_came("c", 2, 2)
    made.planned.add(b"l:0")
    made.brought({3: b"l:0"})
    made.is_copy({1: b"p:0"}, {1: b"p:0"})
    made.holds("S", {1: b"p:0", 2: b"q:0", 3: b"p:1"})
    return made


def test_what_keeps_the_promises_is_fine() -> None:
    assert ledger().counts["acknowledged"] == 2


@pytest.mark.parametrize(
    "story",
    [
        lambda made: made.ack_came("S", 3, b"q:0"),
        lambda made: made.saw("S", 1, b"q:0"),
        lambda made: made.holds("S", {1: b"p:0"}),
        lambda made: made.holds("S", {1: b"p:0", 3: b"p:2"}),
        lambda made: made.holds("S", {1: b"p:0", 3: b"p:1", 4: b"p:1"}),
        lambda made: made.holds("S", {1: b"p:0", 2: b"p:2", 3: b"p:1"}),
        lambda made: made.fetched(1, 10.1),
        lambda made: made.member_got("b", b"m"),
        lambda made: made.member_got("a", b"m"),
        lambda made: made.subscriber_got("s", 0, b"t:5"),
        lambda made: made.subscriber_got("s", 0, b"t:4"),
        lambda made: made.key_written("k", 4, 7),
        lambda made: made.key_written("k", 7, 7),
        lambda made: made.key_read("k", 5, 6),
        lambda made: made.watcher_saw("w", 6),
        lambda made: made.holds_batches({}),
        lambda made: made.holds_batches({4: b"b.1/2:0"}),
        lambda made: made.holds_batches({4: b"b.1/2:1", 5: b"b.1/2:0"}),
        lambda made: made.holds_batches({4: b"b.1/2:0", 6: b"b.1/2:1"}),
        lambda made: made.sum_came("c", 3, 2),
        lambda made: made.brought({}),
        lambda made: made.brought({3: b"l:0", 4: b"l:0"}),
        lambda made: made.is_copy({1: b"p:0"}, {2: b"p:0"}),
        lambda made: made.is_copy({1: b"p:0"}, {}),
    ],
)
def test_what_contradicts_a_promise_is_noticed(story: Story) -> None:
    made = ledger()
    with pytest.raises(Broken):
        story(made)
