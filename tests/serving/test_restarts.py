"""A worker that ends is started again at once, one that ends again and again later."""

from headwater.serving.restarts import ENDS_WITHIN, MOST_ENDS, Restarts


def test_a_worker_is_started_at_once_until_it_has_ended_too_often() -> None:
    restarts = Restarts()
    assert [restarts.ended(2, float(now)) for now in range(MOST_ENDS)] == [0.0] * MOST_ENDS
    assert restarts.ended(2, float(MOST_ENDS)) == ENDS_WITHIN - MOST_ENDS
    assert restarts.ended(3, float(MOST_ENDS)) == 0.0  # each for itself
    assert restarts.waiting == {2: ENDS_WITHIN}
    assert restarts.take_due(ENDS_WITHIN - 0.1) == []
    assert restarts.take_due(ENDS_WITHIN) == [2]
    assert restarts.waiting == {}


def test_ends_that_are_far_apart_delay_nothing() -> None:
    restarts = Restarts()
    assert [restarts.ended(1, 13.0 * number) for number in range(100)] == [0.0] * 100


def test_one_that_never_holds_is_started_no_more_than_so_often() -> None:
    restarts, now, starts = Restarts(), 0.0, []
    while now < 10 * ENDS_WITHIN:
        starts.append(now)
        wait = restarts.ended(1, now)
        now += wait or 0.01
        restarts.take_due(now)
    for start in starts:
        assert len([one for one in starts if start <= one < start + ENDS_WITHIN]) <= MOST_ENDS + 1
    assert len(starts) > 5 * MOST_ENDS
