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


@pytest.mark.parametrize("text", ["0", "-1", "first", "", "1.5"])
def test_a_position_is_a_word_or_a_number_that_there_is(text: str) -> None:
    with pytest.raises(ConfigError, match="option startingOffsets"):
        parsed(startingOffsets=text)
