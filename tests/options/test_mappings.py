"""Mappings of an account: which one applies, and how weights are drawn."""

import pytest

from headwater.options.access import MappingOptions
from headwater.options.mappings import Mappings


def mapping(source: str, *destinations: tuple[str, int, str] | str) -> MappingOptions:
    return MappingOptions(
        source=source, destinations=tuple((one, 100, "") if isinstance(one, str) else one for one in destinations)
    )


def test_the_first_matching_mapping_applies_and_its_result_is_not_mapped_again() -> None:
    mappings = Mappings([mapping("a.*", "b.$1"), mapping("a.>", "c.>"), mapping("b.*", "d.$1")], lambda most: 0)
    assert [mappings.apply(name) for name in (b"a.1", b"a.1.2", b"b.1", b"e")] == [b"b.1", b"c.1.2", b"d.1", None]


@pytest.mark.parametrize(("draw", "goes_to"), [(0, b"x"), (29, b"x"), (30, b"y"), (49, b"y"), (50, None), (99, None)])
def test_weights_are_percent_and_the_rest_stays(draw: int, goes_to: bytes | None) -> None:
    mappings = Mappings([mapping("a", ("x", 30, ""), ("y", 20, ""))], lambda most: draw)
    assert mappings.apply(b"a") == goes_to


def test_destinations_of_this_cluster_come_before_those_of_any() -> None:
    options = [mapping("a", ("far", 100, "west"), ("near", 100, ""))]
    assert Mappings(options, lambda most: 0, "west").apply(b"a") == b"far"
    assert Mappings(options, lambda most: 0, "east").apply(b"a") == b"near"


@pytest.mark.parametrize(
    "options",
    [
        mapping("a", ("x", 101, "")),
        mapping("a", ("x", 60, ""), ("y", 60, "")),
        mapping("a", ("x", 10, ""), ("x", 10, "")),
        mapping("a.*", "b.$2"),
        mapping("a.*", "b.*"),
        mapping("a", "b..c"),
    ],
)
def test_what_cannot_work_is_refused(options: MappingOptions) -> None:
    with pytest.raises(ValueError):
        Mappings([options], lambda most: 0)
