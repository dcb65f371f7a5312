"""Positions in partitions: what a checkpoint holds, what is a loss, how ranges are split."""

import json

import pytest

from headwater.errors import ConfigError
from headwater.spark.iggy.offsets import (
    PartitionOffset,
    Place,
    from_json,
    loss,
    partition_state,
    to_json,
)
from headwater.spark.offsets import Offset
from headwater.spark.ranges import Range, resumed, split_all

PLACE = Place("t", 1)
STATE = partition_state(PLACE, created=5, end=10, messages=6, size=600)


def at(offset: int, created: int = 5) -> PartitionOffset:
    return Offset(PLACE, offset, created)


def test_offsets_come_back_from_a_checkpoint() -> None:
    offsets = [at(3), Offset(Place("u", 0), 0, 7)]
    found = from_json(json.loads(json.dumps(to_json(offsets))), ["t", "u"])
    assert list(found.values()) == offsets
    for document in (
        {},
        {"v": 2, "topics": {}},
        {"v": 1, "streams": {}},
        to_json([Offset(Place("x", 0), 1, 1)]),
    ):
        with pytest.raises(ConfigError):
            from_json(document, ["t", "u"])


@pytest.mark.parametrize(
    ("start", "words", "resumes"),
    [
        (at(4), None, 4),
        (at(10), None, 10),
        (at(3), "expired or purged", 4),
        (at(11), "purged, or restored", 4),
        (at(7, created=4), "made anew", 4),
    ],
)
def test_what_is_gone_is_a_loss_and_reading_goes_on_at_what_is_left(
    start: PartitionOffset, words: str | None, resumes: int
) -> None:
    problem = loss(start, STATE)
    if words is None:
        assert problem is None
    else:
        assert words in str(problem)
    assert resumed(start, STATE).next == resumes
    assert "is gone" in str(loss(start, None))


def test_an_empty_partition_does_not_tell_whether_offset_0_was_given_out() -> None:
    empty = partition_state(PLACE, created=5, end=0)
    assert loss(at(1), empty) is None
    assert loss(at(2), empty) is not None


def test_ranges_are_split_in_proportion_and_empty_ones_left_out() -> None:
    wholes = [
        Range(Place("t", 0), 5, 0, 90),
        Range(Place("t", 1), 5, 4, 4),
        Range(Place("t", 2), 5, 10, 20),
    ]
    assert split_all(wholes, None) == [wholes[0], wholes[2]]
    pieces = split_all(wholes, 10)
    assert [(piece.place.partition, len(piece)) for piece in pieces] == [(0, 10)] * 9 + [(2, 10)]
    assert STATE.messages_in(250) == 2
