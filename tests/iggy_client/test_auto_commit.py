"""When an offset is stored, by every mode: the decisions alone."""

import pytest

from headwater.iggy_client.auto_commit import AutoCommit, Commits, Moment


def run(rule: AutoCommit, polls: list[int]) -> list[tuple[str, int]]:
    """What is stored, and at which end of a message, for polls of so many messages each."""
    commits, found, offset = Commits(rule), [], 0
    for count in polls:
        for place in range(1, count + 1):
            if commits.handed(place == count):
                found.append(("before", offset))
            if commits.done(0, offset, place == count):
                found.append(("after", offset))
            offset += 1
    return found


@pytest.mark.parametrize(
    ("rule", "stored"),
    [
        (AutoCommit(), []),
        (AutoCommit(interval=1.0), []),
        (AutoCommit(at=Moment.POLLED), []),
        (AutoCommit(at=Moment.EACH), [("before", n) for n in range(5)]),
        (AutoCommit(at=Moment.EACH, after=True), [("after", n) for n in range(5)]),
        (AutoCommit(at=Moment.ALL), [("before", 2), ("before", 4)]),
        (AutoCommit(at=Moment.ALL, after=True), [("after", 2), ("after", 4)]),
        (AutoCommit(at=Moment.EVERY, every=2), [("before", 1), ("before", 3)]),
        (AutoCommit(at=Moment.EVERY, every=2, after=True), [("after", 1), ("after", 3)]),
        (AutoCommit(at=Moment.EVERY, every=4, after=True, interval=9.0), [("after", 3)]),
    ],
)
def test_an_offset_is_stored_when_the_rule_says(rule: AutoCommit, stored: list[tuple[str, int]]) -> None:
    assert run(rule, [3, 2]) == stored


def test_only_a_rule_for_polls_leaves_it_to_the_server() -> None:
    assert Commits(AutoCommit(at=Moment.POLLED)).by_server
    assert not any(Commits(AutoCommit(at=moment)).by_server for moment in Moment if moment is not Moment.POLLED)


def test_an_interval_stores_what_is_done_with_and_not_stored_yet() -> None:
    commits = Commits(AutoCommit(interval=1.0))
    commits.handed(is_last=False)
    assert commits.pending() == []
    commits.done(0, 4, is_last=False)
    commits.done(1, 7, is_last=False)
    assert commits.pending() == [(0, 4), (1, 7)]
    commits.stored[0] = 4
    assert commits.pending() == [(1, 7)]
    commits.forget(1)
    assert commits.pending() == []
    without = Commits(AutoCommit())
    without.done(0, 4, is_last=True)
    assert without.pending() == []
