"""Memory shared by the workers."""

import os

import pytest

from headwater.jetstream_workers.shared_slots import SharedSlots, key_of


def test_what_another_process_writes_is_summed_here_until_its_row_is_cleared() -> None:
    slots = SharedSlots(3, 0, 1, slots=8)
    child = os.fork()
    if child == 0:
        slots.numbers[slots.slot(2, key_of("A"), make=True) + 1] = 5
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    slots.numbers[slots.slot(3, key_of("A"), make=True) + 1] = 2
    assert [slots.elsewhere(number, key_of("A"), 1) for number in (1, 2, 3)] == [7, 2, 5]
    assert slots.elsewhere(1, key_of("B"), 1) == 0
    slots.clear(2)
    assert [slots.elsewhere(number, key_of("A"), 1) for number in (1, 2, 3)] == [2, 2, 0]
    slots.close()


def test_one_account_more_than_slots_has_none() -> None:
    slots = SharedSlots(1, 2, 1, slots=2)
    assert slots.slot(1, 7, make=True) != slots.slot(1, 9, make=True)
    assert slots.slot(1, 11) == -1
    with pytest.raises(OverflowError):
        slots.slot(1, 11, make=True)
    slots.close()
