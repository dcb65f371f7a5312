"""How far a copy has come."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.jetstream_sources.progress import Progress
from headwater.jetstream_sources.stamp import Position


def test_what_is_taken_is_ahead_of_what_is_durable() -> None:
    progress = Progress(Position(7, "id"))
    progress.note(101, 8)
    progress.note(102, 12)
    assert progress.taken == 12
    assert progress.after() == Position(12, "id")
    assert progress.position(100) == Position(7, "id")
    assert progress.position(101) == Position(8, "id")
    assert progress.last_here == 102
    assert progress.position(102) == Position(12, "id")
    assert progress.last_here == 0


def test_after_a_failed_write_the_copy_goes_on_behind_what_is_durable() -> None:
    progress = Progress(None)
    for number in range(1, 6):
        progress.note(number, 10 * number)
    progress.forget_staged(3)
    assert progress.after() == Position(30)


def test_another_stream_of_the_same_name_is_copied_from_its_beginning() -> None:
    progress = Progress(Position(7, "old"))
    progress.note(1, 8)
    progress.begin_anew()
    assert progress.after() is None


@given(st.lists(st.integers(0, 3), max_size=50))
def test_the_position_is_never_ahead_of_the_log(ends: list[int]) -> None:
    progress, here, end = Progress(None), 0, 0
    for step in ends:
        here += 1
        progress.note(here, here)
        end = min(here, end + step)
        position = progress.position(end)
        assert (position.sequence if position is not None else 0) == end


@given(st.lists(st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(-1, 9)), max_size=40))
def test_runs_of_any_shape_tell_the_same_as_a_list_of_all(steps: list[tuple[int, int, int]]) -> None:
    """`steps`: how far both sequences go up with a message, and up to where the log is durable then."""
    progress, kept, safe = Progress(None), list[tuple[int, int]](), 0
    here = there = end = 0
    for up_here, up_there, durable in steps:
        here, there = here + up_here, there + up_there
        progress.note(here, there)
        kept.append((here, there))
        end = max(end, here - durable)
        found = progress.position(end)
        safe = max([safe, *[origin for copy, origin in kept if copy <= end]])
        kept = [each for each in kept if each[0] > end]
        assert (found.sequence if found is not None else 0) == safe
        assert progress.taken == there
        assert progress.last_here == (here if kept else 0)
