"""What is left in a dict of remembered results when it is full."""

import random

import pytest

from headwater.model.thinning import SHARE, thin_out

MOST = 256


def share_found(numbers: list[int]) -> float:
    """How many of these a dict of MOST had, by all. What it had is right."""
    known: dict[int, int] = {}
    found = 0
    for number in numbers:
        if number in known:
            assert known[number] == -number
            found += 1
            continue
        if len(known) >= MOST:
            thin_out(known)
        known[number] = -number
        assert len(known) <= MOST
    return found / len(numbers)


@pytest.mark.parametrize(("many", "least"), [(MOST, 0.95), (MOST + 5, 0.75), (MOST + 25, 0.6), (2 * MOST, 0.1)])
def test_most_results_are_still_there_when_a_few_too_many_come_in_turn(many: int, least: float) -> None:
    assert share_found([number % many for number in range(40 * many)]) > least


def test_as_many_results_as_have_room_are_found_of_twice_as_many_at_random() -> None:
    chosen = random.Random(1)
    assert share_found([chosen.randrange(2 * MOST) for _ in range(40 * MOST)]) > 0.4


def test_every_eighth_goes_in_the_order_of_their_addition() -> None:
    known = dict.fromkeys("abcdefghij")
    thin_out(known)
    assert SHARE == 8
    assert "".join(known) == "bcdefghj"


def test_a_dict_with_one_result_is_empty_then() -> None:
    known = {"a": 1}
    thin_out(known)
    thin_out(known)
    assert not known
