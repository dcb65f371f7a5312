"""The lines behind a `Headers`: split when looked at, and no longer the block's once changed."""

from headwater.model.header_lines import HeaderLines

BLOCK = b"NATS/1.0\r\nA: 1\r\nb: 2\r\nA:\t3 \r\n\r\n"


def test_block_is_split_when_somebody_looks_and_kept() -> None:
    lines = HeaderLines(BLOCK, None)
    assert lines.pairs() == [("A", "1"), ("b", "2"), ("A", "3")]
    assert lines.block == BLOCK


def test_change_lets_go_of_the_block_and_keeps_its_lines() -> None:
    lines = HeaderLines(BLOCK, None)
    lines.changed().append(("c", "4"))
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
    changed.changed().clear()
    assert changed.is_empty()
