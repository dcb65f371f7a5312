"""Options that both sources share."""

from datetime import UTC, datetime

import pytest

from headwater.errors import ConfigError
from headwater.spark.read_options import ReadOptions, parse_read_options, position


def parsed(**options: str) -> ReadOptions:
    given = {name.lower(): text for name, text in options.items()}
    return ReadOptions(**parse_read_options(given, ("map", "none"), 7, lambda text: position(text, 1)))


def test_everything_has_a_default() -> None:
    assert parsed() == ReadOptions(fetch_batch=7)
    assert parsed().starting_at("anything", "earliest") == "earliest"
    assert parsed().ending_at("anything") == "latest"


def test_a_time_stands_in_place_of_an_offset() -> None:
    assert parsed(startingTimestamp="2026-11-21T00:00:00Z").starting == datetime(2026, 11, 21, tzinfo=UTC)
    with pytest.raises(ConfigError, match="exclude each other"):
        parsed(startingTimestamp="1", startingOffsets="1")


def test_a_read_that_begins_behind_its_end_is_refused() -> None:
    for given in (
        {"startingOffsets": "21", "endingOffsets": "11"},
        {"startingTimestamp": "2026-11-21T00:00:01Z", "endingTimestamp": "2026-11-21T00:00:00Z"},
    ):
        with pytest.raises(ConfigError, match=r"the read begins at .* behind its end at .* the first that is not read"):
            parsed(**given)
    assert parsed(startingOffsets="11", endingOffsets="11").ending == 11


@pytest.mark.parametrize("text", ["0", "-1", "first", "", "1.5"])
def test_a_position_is_a_word_or_a_number_that_there_is(text: str) -> None:
    with pytest.raises(ConfigError, match="option startingOffsets"):
        parsed(startingOffsets=text)
