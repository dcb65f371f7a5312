"""The index of a stream's consumers gives what asking every filter would give, whatever changes in between."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_state import audience as module
from headwater.jetstream_state.audience import Audience
from headwater.jetstream_state.consumer import Consumer
from headwater.jetstream_state.items import Item
from headwater.jetstream_state.subject_table import SubjectFilter
from headwater.model.subject_match import matches


class Counting:
    """A consumer that counts what is new to it, and the looks at its filter."""

    def __init__(self, patterns: Iterable[bytes], position: int = 1) -> None:
        self.state = Consumer(ConsumerConfig(), position)
        self.patterns = tuple(patterns)
        self.wanted = SubjectFilter(self.patterns) if self.patterns else None
        self.new = 0
        self.reads = 0

    @property
    def filter(self) -> SubjectFilter | None:
        return self.wanted

    def on_new(self, count: int) -> None:
        self.new += count

    def takes(self, subject: bytes) -> bool:
        return self.wanted is None or self.wanted.matches(subject)

    def needs(self, sequence: int, subject: bytes) -> bool:
        self.reads += 1
        return sequence >= self.state.position and self.takes(subject)


def items(subjects: Iterable[bytes], first: int) -> list[Item]:
    return [Item(b"", b"", subject, first + place, 8, b"") for place, subject in enumerate(subjects)]


subjects = st.sampled_from([b"a.x", b"a.y", b"a.x.y", b"b.x", b"b", b""])  # b"": the answer to a duplicate, no message
filters = st.lists(
    st.sampled_from([b"a.x", b"a.y", b"b", b"a.*", b"a.*.y", b"a.x.*", b"a.x.>", b"*.x", b"b.>", b">"]), max_size=3
)
steps: st.SearchStrategy[tuple[str, str, list[bytes], int]] = st.one_of(
    st.tuples(st.just("add"), st.sampled_from("ABC"), filters, st.integers(1, 6)),
    st.tuples(st.just("drop"), st.sampled_from("ABC"), st.just([]), st.just(0)),
    st.tuples(st.just("change"), st.sampled_from("ABC"), filters, st.just(0)),
    st.tuples(st.just("store"), st.just(""), st.lists(subjects, max_size=4), st.just(0)),
)


@given(st.lists(steps, max_size=12))
def test_each_consumer_counts_what_its_filter_lets_through_from_its_position_on(
    life: list[tuple[str, str, list[bytes], int]],
) -> None:
    readers: Audience[Counting] = Audience()
    expected: dict[Counting, int] = {}
    following = 1
    for what, name, patterns, position in life:
        if what == "add":
            readers[name] = Counting(patterns, position)
        elif what == "drop":
            readers.pop(name, None)
        elif what == "change" and name in readers:
            readers[name].wanted = SubjectFilter(patterns) if patterns else None
            readers.forget()
        elif what == "store":
            batch = items(patterns, following)
            following += len(batch)
            stored = [item for item in batch if item.subject]
            for reader in readers.values():
                for item in stored:
                    if item.sequence >= reader.state.position and reader.takes(item.subject):
                        expected[reader] = expected.get(reader, 0) + 1
                    wanted = any(r.needs(item.sequence, item.subject) for r in readers.values())
                    assert readers.is_needed(item.sequence, item.subject) == wanted
            if stored:
                readers.on_stored(stored[0].sequence, len(stored), batch)
    for reader in readers.values():
        assert reader.new == expected.get(reader, 0)


def test_of_a_hundred_consumers_only_those_that_the_subject_concerns_are_asked() -> None:
    readers: Audience[Counting] = Audience()
    for number in range(100):
        readers[f"c{number}"] = Counting([b"s.%d" % number])
    readers["wild"] = Counting([b"s.*"])
    assert readers.is_needed(1, b"s.7")
    assert not readers.is_needed(1, b"elsewhere")
    assert sum(reader.reads for reader in readers.values()) == 1


def test_of_a_thousand_patterns_only_those_that_begin_as_the_subject_does_are_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[bytes] = []

    def noted(pattern: bytes, subject: bytes) -> bool:
        compared.append(pattern)
        return matches(pattern, subject)

    monkeypatch.setattr(module, "matches", noted)
    readers: Audience[Counting] = Audience()
    readers["shallow"] = Counting([b"s.*.x"])
    for number in range(1000):
        readers[f"c{number}"] = Counting([b"s.%d.>" % number, b"s.%d.x" % number])
    assert readers.concerned(1, b"s.7.x") == [readers["shallow"], readers["c7"]], "each once, in their order"
    assert sorted(compared) == [b"s.*.x", b"s.7.>", b"s.7.x"]


def test_what_is_known_of_subjects_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_KNOWN", 50)
    readers: Audience[Counting] = Audience()
    readers["wild"] = Counting([b"s.>"])
    for number in range(200):
        readers.on_stored(number + 1, 1, items([b"s.%d" % number], number + 1))
        assert len(readers._known) <= 50
    assert readers["wild"].new == 200


def test_of_subjects_that_come_in_turn_most_are_known_when_there_are_a_few_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[bytes] = []
    look = Audience._look_by_beginning

    def noted(readers: Audience[Counting], subject: bytes) -> list[Counting]:
        looked.append(subject)
        return look(readers, subject)

    monkeypatch.setattr(module, "MOST_KNOWN", 256)
    monkeypatch.setattr(Audience, "_look_by_beginning", noted)
    readers: Audience[Counting] = Audience()
    readers["wild"] = Counting([b"s.>"])
    for turn in range(4):
        looked.clear()
        for number in range(132):  # two entries each
            readers.on_stored(132 * turn + number + 1, 1, items([b"s.%d" % number], 132 * turn + number + 1))
    assert len(looked) < 66
    assert readers["wild"].new == 4 * 132


def test_a_deleted_name_and_a_cleared_stream_have_no_consumers_left() -> None:
    readers: Audience[Counting] = Audience()
    first, second = readers["a"], readers["b"] = Counting([]), Counting([b"s"])
    readers.on_stored(1, 1, items([b"s"], 1))
    del readers["a"]
    readers.on_stored(2, 1, items([b"s"], 2))
    readers.clear()
    readers.on_stored(3, 1, items([b"s"], 3))
    assert (first.new, second.new) == (1, 2)


def test_a_message_that_leaves_concerns_those_whose_filter_lets_it_through_however_many_others_there_are() -> None:
    readers: Audience[Counting] = Audience()
    for number in range(100):
        readers[f"c{number}"] = Counting([b"s.%d" % number])
    everything = readers["all"] = Counting([])
    assert readers.concerned(1, b"s.7") == [everything, readers["c7"]]
    assert readers.concerned(1, b"elsewhere") == [everything]


def test_a_message_that_leaves_concerns_who_had_it_before_its_filter_changed() -> None:
    readers: Audience[Counting] = Audience()
    for number in range(3):
        readers[f"c{number}"] = Counting([b"s.%d" % number])
    holder = readers["c1"]
    holder.state.deliver_new(1, 0)
    readers.filter_changes(holder)
    holder.wanted = SubjectFilter([b"s.9"])
    assert readers.concerned(1, b"s.1") == [holder]
    assert readers.concerned(1, b"s.9") == [holder], "once, though it is found in both ways"
    assert readers.concerned(2, b"s.1") == [], "it came after the change"
    del readers["c1"]
    assert readers.concerned(1, b"s.1") == []
