from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from headwater.model.xorshift import Xorshift


def drawn(seed: int, limit: int, count: int) -> list[int]:
    numbers = Xorshift(seed)
    return [numbers.below(limit) for _ in range(count)]


@given(seed=st.integers(), limit=st.integers(1, 2**31))
def test_numbers_are_below_the_limit_and_the_same_for_the_same_seed(seed: int, limit: int) -> None:
    numbers = drawn(seed, limit, 20)
    assert numbers == drawn(seed, limit, 20)
    assert all(0 <= number < limit for number in numbers)


def test_members_of_a_group_of_seven_are_drawn_alike_often() -> None:
    counts = Counter(drawn(0, 7, 70_000))
    assert set(counts) == set(range(7))
    # The standard deviation of each count is 93; five of them.
    assert all(abs(count - 10_000) < 465 for count in counts.values())


def test_the_seed_that_would_stay_zero_does_not() -> None:
    assert len(set(drawn(0, 1 << 30, 10))) == 10
