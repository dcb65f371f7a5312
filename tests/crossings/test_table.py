"""The table itself: every row has its function, and no rule is left over."""

from crossings import places, ways_in, ways_out
from crossings.table import FAILING, IMPOSSIBLE, PLACES, WAYS_IN, WAYS_OUT, cells, failing, impossible


def test_every_row_has_its_function() -> None:
    assert set(ways_in.FUNCTIONS) == {way.key for way in WAYS_IN}
    assert set(ways_out.FUNCTIONS) == {way.key for way in WAYS_OUT}
    assert list(places.FUNCTIONS) == [place.key for place in PLACES]


def test_every_rule_is_the_reason_of_a_cell() -> None:
    existing = [cell for cell in cells() if not impossible(cell)]
    impossibilities, failures = {impossible(cell) for cell in cells()}, {failing(cell) for cell in existing}
    assert [rule.reason for rule in IMPOSSIBLE if rule.reason not in impossibilities] == []
    assert [rule.reason for rule in FAILING if rule.reason not in failures] == []
    assert len(existing) > len(cells()) / 3
