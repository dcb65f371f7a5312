"""What is understood and what is refused."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headwater.errors import ConfigError
from headwater.spark.options import FETCH_BATCH, NAMES, SourceOptions, parse_options
from headwater.spark.server_options import NAMES as SERVER_NAMES
from headwater.spark.server_options import ServerOptions


def parsed(**options: str) -> SourceOptions:
    return parse_options({"stream": "ORDERS", **options})


def test_only_the_stream_must_be_named() -> None:
    options = parsed()
    assert options.server == ServerOptions()
    assert (options.starting, options.ending) == (None, None)
    assert options.fetch_batch == FETCH_BATCH
    assert options.fail_on_data_loss
    assert options.wants_map
    assert not options.wants_raw
    with pytest.raises(ConfigError, match="stream is missing"):
        parse_options({})


def test_the_path_of_load_is_no_option_and_the_way_out_is_named() -> None:
    with pytest.raises(ConfigError, match=r"unknown option 'path' .*\.option\('stream', 'ORDERS'\)"):
        parse_options({"path": "ORDERS"})


def test_names_are_matched_in_any_case_because_spark_lowers_them() -> None:
    given = {"STREAM": "ORDERS", "maxoffsetspertrigger": "10", "IncludeHeaders": "BOTH", "failOnDataLoss": "False"}
    options = parse_options(given)
    assert options.max_offsets_per_trigger == 10
    assert options.include_headers == "both"
    assert not options.fail_on_data_loss


def test_every_option_is_understood() -> None:
    values = {
        "stream": "S",
        "subjects": "a.*,b.>",
        "startingOffsets": "earliest",
        "endingOffsets": "9",
        "startingTimestamp": "",
        "endingTimestamp": "",
        "maxOffsetsPerTrigger": "1",
        "maxBytesPerTrigger": "64m",
        "minPartitions": "2",
        "failOnDataLoss": "true",
        "includeHeaders": "raw",
        "includeTimestampNs": "true",
        "decode": "cloudevents",
        "fetchBatch": "100",
        "readTimeout": "2.5s",
        "pushdown": "true",
        "maxMessageBytes": "1m",
        "delivery": "exactly-once",
        "bufferBytes": "1m",
        "transport": "consumer",
    }
    assert set(values) == set(NAMES) - set(SERVER_NAMES)
    options = parse_options({name: value for name, value in values.items() if value})
    assert options.subjects == ("a.*", "b.>")
    assert (options.starting, options.ending) == ("earliest", 9)
    assert (options.max_offsets_per_trigger, options.max_bytes_per_trigger) == (1, 64 << 20)
    assert (options.min_partitions, options.fetch_batch, options.read_timeout) == (2, 100, 2.5)
    assert options.timestamp_ns
    assert options.pushdown
    assert options.transport == "consumer"
    assert options.decode == "cloudevents"


@pytest.mark.parametrize(("text", "position"), [("latest", "latest"), ("17", 17), ('{"ORDERS": 17}', 17)])
def test_positions(text: str, position: object) -> None:
    assert parsed(startingOffsets=text).starting_at("ORDERS", "earliest") == position
    assert parsed().starting_at("ORDERS", "earliest") == "earliest"


def test_several_streams_have_positions_of_their_own() -> None:
    options = parse_options({"stream": "A, B,A", "startingOffsets": '{"A": 17}', "endingOffsets": '{"B":"earliest"}'})
    assert options.streams == ("A", "B")
    assert [options.starting_at(stream, "latest") for stream in "AB"] == [17, "latest"]
    assert [options.ending_at(stream) for stream in "AB"] == ["latest", "earliest"]
    with pytest.raises(ConfigError, match="must say of which stream"):
        parse_options({"stream": "A,B", "startingOffsets": "17"})


@pytest.mark.parametrize("text", ["2026-11-21T04:49:36.5+01:00", "1795232976500"])
def test_a_time_is_a_position(text: str) -> None:
    options = parsed(startingTimestamp=text, endingTimestamp=text)
    assert options.starting == options.ending == datetime(2026, 11, 21, 3, 49, 36, 500000, UTC)
    with pytest.raises(ConfigError, match="exclude each other"):
        parsed(startingTimestamp=text, startingOffsets="latest")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("stream", "a.b"),
        ("stream", " "),
        ("servers", "http://x"),
        ("subjects", "a..b"),
        ("subjects", ","),
        ("startingOffsets", "newest"),
        ("startingOffsets", "0"),
        ("startingOffsets", "-1"),
        ("startingOffsets", "+1"),
        ("startingOffsets", '{"OTHER": 1}'),
        ("startingOffsets", "{"),
        ("startingTimestamp", "2026-11-21T04:49:36"),
        ("endingTimestamp", "yesterday"),
        ("maxBytesPerTrigger", "1t"),
        ("maxOffsetsPerTrigger", "0"),
        ("minPartitions", "many"),
        ("failOnDataLoss", "yes"),
        ("includeHeaders", "all"),
        ("decode", "json"),
        ("fetchBatch", "1e3"),
        ("readTimeout", "-1"),
        ("readTimeout", "nan"),
    ],
)
def test_a_wrong_value_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError):
        parse_options({"stream": "ORDERS", name: value})


def test_a_refusal_names_the_option() -> None:
    with pytest.raises(ConfigError, match="option minPartitions: 'many'"):
        parsed(minPartitions="many")


def test_an_unknown_option_is_refused_with_its_nearest_neighbour() -> None:
    with pytest.raises(ConfigError, match="did you mean subjects"):
        parsed(subject="a")
    with pytest.raises(ConfigError, match="known are stream"):
        parsed(zzz="a")


def test_the_guide_lists_every_option() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\| `(\w+)` \|", guide.split("## Options")[1].split("\n## ")[0], re.MULTILINE)) == NAMES


def test_core_subjects_are_read_by_whoever_says_that_loss_is_meant() -> None:
    options = parse_options({"subjects": "a.>", "delivery": "at-most-once", "bufferBytes": "1k"})
    assert (options.streams, options.subjects, options.buffer_bytes) == ((), ("a.>",), 1024)
    for given, reason in [
        ({"subjects": "a.>"}, "at most once"),
        ({"stream": "S", "delivery": "at-most-once"}, "read exactly once"),
        ({"subjects": "a.>", "delivery": "at-most-once", "startingOffsets": "latest"}, "means nothing"),
    ]:
        with pytest.raises(ConfigError, match=reason):
            parse_options(given)
