"""What the workers hold in streams, in memory that they share."""

import pytest

from headwater.jetstream_workers.usage import Usage


@pytest.fixture
def small() -> Usage:
    return Usage(3, slots=4)


def test_each_worker_sees_what_the_others_hold(small: Usage) -> None:
    for worker, size in ((1, 10), (2, 20), (3, 40)):
        small.write(worker, "file", size)
    small.write(2, "memory", 5)
    assert [small.elsewhere(worker, "file") for worker in (1, 2, 3)] == [60, 50, 30]
    assert [small.elsewhere(worker, "memory") for worker in (1, 2, 3)] == [5, 0, 5]
    small.close()


def test_accounts_are_told_apart_and_found_again(small: Usage) -> None:
    for name, size in (("A", 1), ("B", 2), ("C", 4)):
        small.account(1, name).write("file", size)
    small.account(1, "A").write("memory", 7)  # as after a restart of the worker
    assert [small.account(2, name).elsewhere("file") for name in ("A", "B", "C", "D")] == [1, 2, 4, 0]
    assert small.account(3, "A").elsewhere("memory") == 7
    assert small.account(1, "A").elsewhere("file") == 0
    small.close()


def test_more_limited_accounts_than_slots_are_refused(small: Usage) -> None:
    for name in "ABCD":
        small.account(1, name)
    with pytest.raises(OverflowError):
        small.account(1, "E")
    small.close()
