from headwater.iggy.upkeep import surplus_end
from headwater.streams.log import Span

SPANS = [Span(0, 10, 100, 5), Span(10, 20, 100, 15), Span(20, 30, 100, 25)]


def test_nothing_goes_without_a_limit_or_within_it() -> None:
    assert surplus_end(SPANS, 1000, 0, 0) == 0
    assert surplus_end(SPANS, 30, 26, 300) == 0
    assert surplus_end([], 30, 1, 1) == 0


def test_old_segments_go_the_newest_too() -> None:
    assert surplus_end(SPANS, 30, 25, 0) == 10
    assert surplus_end(SPANS, 30, 15, 0) == 20
    assert surplus_end(SPANS, 30, 1, 0) == 30


def test_what_is_too_much_goes_but_never_the_newest() -> None:
    assert surplus_end(SPANS, 30, 0, 299) == 10
    assert surplus_end(SPANS, 30, 0, 1) == 20


def test_an_empty_segment_has_no_age() -> None:
    assert surplus_end([Span(0, 0, 100, None)], 30, 1, 0) == 0
