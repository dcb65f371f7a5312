"""When a copy tries again, and when its origin counts as silent."""

from headwater.jetstream_sources.patience import FIRST, LONGEST, SILENCE, Patience


def test_tries_come_ever_more_seldom_up_to_a_bound_and_soon_again_after_a_success() -> None:
    patience = Patience(lambda: 0.5)
    waits = [patience.next_try() for _ in range(10)]
    assert waits[:3] == [FIRST, 2 * FIRST, 4 * FIRST]
    assert waits[-1] == LONGEST
    patience.succeeded()
    assert patience.next_try() == FIRST


def test_chance_keeps_a_thousand_copies_apart() -> None:
    assert Patience(lambda: 0.0).next_try() == 0.75 * FIRST
    assert Patience(lambda: 1.0).next_try() == 1.25 * FIRST


def test_an_origin_is_silent_some_seconds_after_its_last_word_or_after_it_was_found() -> None:
    patience = Patience(lambda: 0.0)
    patience.begin(100.0)
    assert not patience.is_silent(100.0 + SILENCE)
    assert patience.is_silent(100.1 + SILENCE)
    patience.note_life(103.0)
    assert not patience.is_silent(103.0 + SILENCE)


def test_how_long_ago_it_was_heard_is_told_and_minus_one_for_never() -> None:
    patience = Patience(lambda: 0.0)
    patience.begin(5.0)
    assert patience.active_ns(6.0) == -1
    patience.note_life(6.0)
    assert patience.active_ns(6.5) == 500_000_000
