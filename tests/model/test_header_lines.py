"""The lines behind a `Headers`: split when looked at, no longer the block's once changed, indexed when there are many."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.model.header_lines import HeaderLines

BLOCK = b"NATS/1.0\r\nA: 1\r\nb: 2\r\nA:\t3 \r\n\r\n"


def test_block_is_split_when_somebody_looks_and_kept() -> None:
    lines = HeaderLines(BLOCK, None)
    assert lines.pairs() == [("A", "1"), ("b", "2"), ("A", "3")]
    assert lines.block == BLOCK


def test_change_lets_go_of_the_block_and_keeps_its_lines() -> None:
    lines = HeaderLines(BLOCK, None)
    lines.append("c", "4")
    assert lines.block is None
    assert lines.pairs() == [("A", "1"), ("b", "2"), ("A", "3"), ("c", "4")]


def test_name_is_found_the_same_way_the_first_time_and_the_tenth() -> None:
    lines = HeaderLines(BLOCK, None)
    assert [lines.first("A") for _ in range(10)] == ["1"] * 10
    assert [HeaderLines(BLOCK, None).first(name) for name in ("A", "b", "c")] == ["1", "2", None]


def test_names_match_exactly() -> None:
    lines = HeaderLines(BLOCK, None)
    assert (lines.first("A"), lines.first("a"), lines.first("B")) == ("1", None, None)
    assert (lines.values("A"), lines.values("a")) == (["1", "3"], [])


def test_pairs_that_were_read_already_are_taken_as_they_are() -> None:
    assert HeaderLines(b"NATS/1.0\r\nA: 1\r\n B\r\n\r\n", [("A", "1 B")]).first("A") == "1 B"


def test_values_are_a_list_of_the_callers_own() -> None:
    lines = HeaderLines(BLOCK, None)
    lines.values("A").clear()
    assert lines.values("A") == ["1", "3"]


def test_emptiness_is_known_without_splitting() -> None:
    for block, empty in ((b"NATS/1.0\r\n\r\n", True), (b"NATS/1.0 503\r\n\r\n", True), (BLOCK, False)):
        assert HeaderLines(block, None).is_empty() == empty
    assert HeaderLines(None, []).is_empty()
    changed = HeaderLines(BLOCK, None)
    changed.clear()
    assert changed.is_empty()


NAMES = st.sampled_from([f"{letter}{number}" for letter in "aAbB" for number in range(20)])
STEPS = st.lists(st.tuples(st.sampled_from(["append", "discard", "discard folded", "read"]), NAMES), max_size=60)


@given(start=st.lists(NAMES, max_size=80), steps=STEPS)
def test_many_lines_are_found_and_removed_as_few_are(start: list[str], steps: list[tuple[str, str]]) -> None:
    plain = [(name, str(place)) for place, name in enumerate(start)]
    lines = HeaderLines(None, list(plain))
    for action, name in steps:
        if action == "append":
            plain.append((name, "new"))
            lines.append(name, "new")
        elif action == "discard":
            plain = [pair for pair in plain if pair[0] != name]
            lines.discard(name, False)
        elif action == "discard folded":
            plain = [pair for pair in plain if pair[0].lower() != name.lower()]
            lines.discard(name.lower(), True)
        else:
            assert lines.pairs() == plain
        values = [value for other, value in plain if other == name]
        assert (lines.values(name), lines.first(name)) == (values, values[0] if values else None)
        assert lines.folded(name.lower()) == [pair for pair in plain if pair[0].lower() == name.lower()]
        assert lines.is_empty() == (not plain)
    assert lines.pairs() == plain


def test_what_is_asked_for_and_is_no_name_is_not_found_among_many() -> None:
    lines = HeaderLines(None, [(f"n{number}", "") for number in range(100)])
    assert (lines.first(7), lines.values(None)) == (None, [])


def test_a_block_is_empty_when_it_has_no_lines_split_or_not() -> None:
    empty = b"NATS/1.0 503\r\n\r\n"
    assert HeaderLines(empty, None).is_empty()
    assert HeaderLines(empty + b"trailing", []).is_empty(), "what is behind the end of the block is no line"
    assert HeaderLines(None, []).is_empty()
    assert not HeaderLines(BLOCK, None).is_empty()
    assert not HeaderLines(BLOCK, [("A", "1")]).is_empty()
