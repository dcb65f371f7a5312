"""What `format("iggy")` understands and what it refuses, before anything connects."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headwater.errors import ConfigError
from headwater.spark.iggy.options import (
    SINK_NAMES,
    SOURCE_NAMES,
    IggyServer,
    IggySourceOptions,
    parse_sink_options,
    parse_source_options,
)

REQUIRED = {"stream": "s", "topic": "t,u"}


def parsed(**options: str) -> IggySourceOptions:
    return parse_source_options({**REQUIRED, **options})


def test_stream_and_topic_are_all_that_is_needed() -> None:
    options = parsed()
    assert (options.stream, options.topics, options.server) == ("s", ("t", "u"), IggyServer())
    assert options.starting_at(("t", 0), "latest") == "latest"
    assert options.ending_at(("t", 0)) == "latest"
    assert options.wants_map


def test_positions_are_for_all_or_by_topic_and_partition() -> None:
    options = parsed(startingOffsets='{"t": {"0": 7, "1": "latest"}}', endingTimestamp="2026-11-21T00:00:00Z")
    assert [options.starting_at(("t", number), "earliest") for number in range(3)] == [7, "latest", "earliest"]
    assert options.starting_at(("u", 0), "earliest") == "earliest"
    assert options.ending_at(("u", 9)) == datetime(2026, 11, 21, tzinfo=UTC)
    assert parsed(startingOffsets="0").starting_at(("t", 3), "latest") == 0


def test_servers_come_with_or_without_a_port() -> None:
    server = parsed(servers="iggy://a:1, b", user="u", password="env:P", tlsCa="/ca.pem").server
    assert server.addresses == (("a", 1), ("b", 8090))
    assert (server.user, server.password, server.tls) == ("u", "env:P", True)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"stream": ""}, "option stream is missing"),
        ({"topic": " "}, "option topic is missing"),
        ({"startingOffsets": '{"x": {"0": 1}}'}, "none of t, u"),
        ({"startingOffsets": '{"t": 5}'}, "of which partitions"),
        ({"startingOffsets": "-1"}, "whole number from 0"),
        ({"startingOffsets": "1", "startingTimestamp": "1"}, "exclude each other"),
        ({"servers": "iggy://u:p@a"}, "must not hold credentials"),
        ({"servers": "http://a"}, "no iggy://"),
        ({"includeHeaders": "all"}, "includeHeaders"),
        ({"topics": "t"}, "did you mean topic"),
    ],
)
def test_what_is_wrong_is_named(options: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        parsed(**options)


@pytest.mark.parametrize("name", ["password", "token"])
def test_a_secret_is_refused_without_being_quoted(name: str) -> None:
    for parse in (parse_source_options, parse_sink_options):
        with pytest.raises(ConfigError) as refused:
            parse({**REQUIRED, name: "hunter2"})
        assert "hunter2" not in str(refused.value)


def test_the_reference_names_every_option() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "spark.md").read_text(encoding="utf-8")
    section = guide.split("## Iggy\n")[1].split("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", section))
    assert {*SOURCE_NAMES, *SINK_NAMES} - named == set()
