"""Whether the loop may wait for the disk: one slow write says no, and it takes quick ones to say yes again."""

from headwater.group_commit.pace import Pace


def test_one_write_that_took_long_is_enough_and_one_quick_one_makes_it_good() -> None:
    pace = Pace()
    assert pace.is_quick()
    pace.note(0.02)
    assert not pace.is_quick()
    pace.note(0.0001)
    assert pace.is_quick()


def test_writes_that_are_not_quick_are_forgiven_a_dozen_times_in_a_row() -> None:
    pace = Pace()
    for _ in range(20):
        pace.note(0.0001)
    allowed = 0
    while pace.is_quick() and allowed < 100:
        pace.note(0.003)
        allowed += 1
    assert 10 <= allowed <= 16
    pace.note(0.0002)
    assert pace.is_quick()


def test_links_that_were_ready_count_until_a_write_begins_however_often_the_pace_is_read() -> None:
    events = 0
    pace = Pace(lambda: events)
    pace.note(0.015)
    pace.begin()
    events = 5
    assert not pace.lets_wait()
    assert not pace.lets_wait(), "the write waited for a thread, and nothing was written meanwhile"
    pace.begin()
    assert pace.lets_wait()
