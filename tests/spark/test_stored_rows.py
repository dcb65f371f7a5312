"""What is left of a batch: a model of all restarts, windows, producers and partition counts."""

import itertools
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import ConfigError
from headwater.spark.stored_rows import StoredRows

JOB = b"query/7"


def place(partition: int, row: int) -> bytes:
    return b"%b/%d/%d" % (JOB, partition, row)


def test_stored_rows_are_left_out_and_the_others_published() -> None:
    rows = StoredRows(JOB)
    rows.add(place(0, 0), b"s", b"a")
    rows.add(b"query/6/0/1", b"s", b"of another batch")
    rows.add(b"mine", b"s", b"of another producer")
    assert rows.left(0, 0, [(b"s", b"a"), (b"s", b"b")]) == [False, True]
    assert rows.left(1, 0, [(b"s", b"c")]) == [True]
    assert [rows.lacks(one) for one in (b"mine", b"yours", b"")] == [False, True, True]
    rows.check_end(0, 1)


@pytest.mark.parametrize(
    ("partition", "first", "row", "words"),
    [
        (0, 0, (b"s", b"A"), "another one than the first time"),
        (0, 0, (b"t", b"a"), "another one than the first time"),
        (1, 5, (b"s", b"a"), "row of another partition"),
    ],
)
def test_a_row_that_is_not_the_same_again_is_refused(
    partition: int, first: int, row: tuple[bytes, bytes], words: str
) -> None:
    rows = StoredRows(JOB)
    rows.add(place(0, 0), b"s", b"a")
    with pytest.raises(ConfigError, match=words) as caught:
        rows.left(partition, first, [row])
    assert "msg_id" in str(caught.value.hint)
    assert "at-least-once" in str(caught.value.hint)


def test_a_row_that_vanished_is_noticed() -> None:
    rows = StoredRows(JOB)
    rows.add(place(3, 9), b"s", b"a")
    with pytest.raises(ConfigError, match="has 9 rows"):
        rows.check_end(3, 9)


WINDOW = 10


@dataclass
class Stream:
    """A stream with a duplicate window, and its clock."""

    now: int = 0
    messages: list[tuple[bytes, bytes]] = field(default_factory=list)
    known: dict[bytes, int] = field(default_factory=dict)

    def publish(self, message_id: bytes, payload: bytes) -> None:
        seen = self.known.get(message_id)
        if message_id and seen is not None and self.now - seen < WINDOW:
            return
        self.known[message_id] = self.now
        self.messages.append((message_id, payload))


def split(rows: list[bytes], partitions: int) -> list[list[bytes]]:
    edges = [len(rows) * part // partitions for part in range(partitions + 1)]
    return [rows[a:b] for a, b in itertools.pairwise(edges)]


@dataclass
class Try:
    """One attempt: into how many partitions the rows are split, which of them the source lacks, at which row each task dies;
    before it `pause` goes by, and other producers publish."""

    partitions: int
    vanished: int | None
    deaths: list[int]
    pause: int
    others: int


TRIES = st.lists(
    st.builds(
        Try,
        st.integers(1, 4),
        st.none() | st.integers(0, 11),
        st.lists(st.integers(0, 12), min_size=4, max_size=4),
        st.integers(0, 3 * WINDOW),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=5,
)


def attempt(stream: Stream, rows: list[bytes], one: Try, is_again: bool, own_ids: bool) -> bool:
    """Run all tasks until they die; whether the batch is through. Raises ConfigError."""
    through = True
    for partition, part in enumerate(split(rows, one.partitions)):
        found = StoredRows(JOB)
        for message_id, payload in stream.messages if is_again else ():
            found.add(message_id, b"s", payload)
        ids = [b"id-%b" % row if own_ids else place(partition, at) for at, row in enumerate(part)]
        if own_ids:
            wanted = [found.lacks(one_id) for one_id in ids]
        else:
            wanted = found.left(partition, 0, [(b"s", row) for row in part])
        for at, (one_id, row, is_left) in enumerate(zip(ids, part, wanted, strict=True)):
            if at >= one.deaths[partition]:
                through = False
                break
            if is_left:
                stream.publish(one_id, row)
        else:
            if not own_ids:
                found.check_end(partition, len(part))
    return through


@settings(max_examples=300)
@given(TRIES, st.booleans())
def test_each_row_is_stored_once_or_the_query_stops(tries: list[Try], own_ids: bool) -> None:
    stream, rows = Stream(), [b"%d" % number for number in range(12)]
    vanishes = any(one.vanished is not None for one in tries)
    tries = [*tries, Try(tries[-1].partitions, tries[-1].vanished, [99] * 4, 0, 0)]
    for number, one in enumerate(tries):
        stream.now += one.pause
        for other in range(one.others):
            stream.publish(b"other-%d-%d" % (number, other), b"other")
        there = [row for at, row in enumerate(rows) if at != one.vanished]
        try:
            through = attempt(stream, there, one, number > 0, own_ids)
        except ConfigError:
            assert not own_ids
            assert vanishes or len({one.partitions for one in tries}) > 1, "the same rows at the same places go through"
            through = False
            break
        if through:
            break
    held = Counter(payload for _, payload in stream.messages if payload != b"other")
    assert all(count == 1 for count in held.values()), "doubled"
    if through:
        assert set(held) >= set(there), "lost"
