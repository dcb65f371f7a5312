"""Options: what is understood, what is refused, and that no secret shows."""

import re
from pathlib import Path

import pytest

from headwater.errors import ConfigError
from headwater.spark.options import FETCH_BATCH, NAMES, SourceOptions, parse_options


def parsed(**options: str) -> SourceOptions:
    return parse_options({"stream": "ORDERS", **options})


def test_only_the_stream_must_be_named() -> None:
    options = parsed()
    assert options.servers == ("nats://127.0.0.1:4222",)
    assert (options.starting, options.ending) == (None, "latest")
    assert options.fetch_batch == FETCH_BATCH
    assert options.fail_on_data_loss
    assert options.wants_map
    assert not options.wants_raw
    with pytest.raises(ConfigError, match="stream is missing"):
        parse_options({})


def test_names_are_matched_in_any_case_because_spark_lowers_them() -> None:
    given = {"STREAM": "ORDERS", "maxoffsetspertrigger": "10", "IncludeHeaders": "BOTH", "failOnDataLoss": "False"}
    options = parse_options(given)
    assert options.max_offsets_per_trigger == 10
    assert options.include_headers == "both"
    assert not options.fail_on_data_loss


def test_every_option_is_understood() -> None:
    values = {
        "servers": "nats://a:1, b:2",
        "stream": "S",
        "subjects": "a.*,b.>",
        "startingOffsets": "earliest",
        "endingOffsets": "9",
        "maxOffsetsPerTrigger": "1",
        "minPartitions": "2",
        "failOnDataLoss": "true",
        "includeHeaders": "raw",
        "includeTimestampNs": "true",
        "decode": "cloudevents",
        "fetchBatch": "100",
        "readTimeout": "2.5s",
        "user": "u",
        "password": "env:P",
        "token": "file:/t",
    }
    assert set(values) == set(NAMES)
    options = parse_options(values)
    assert options.servers == ("nats://a:1", "b:2")
    assert options.subjects == ("a.*", "b.>")
    assert (options.starting, options.ending) == ("earliest", 9)
    assert (options.min_partitions, options.fetch_batch, options.read_timeout) == (2, 100, 2.5)
    assert options.timestamp_ns
    assert options.decode == "cloudevents"


@pytest.mark.parametrize(("text", "position"), [("latest", "latest"), ("17", 17), ('{"ORDERS": 17}', 17)])
def test_positions(text: str, position: object) -> None:
    assert parsed(startingOffsets=text).starting == position


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
    with pytest.raises(ConfigError, match="known are servers"):
        parsed(zzz="a")


@pytest.mark.parametrize("name", ["password", "token"])
@pytest.mark.parametrize("value", ["hunter2", "env:", "file", "plain:hunter2"])
def test_a_secret_itself_is_refused_and_not_quoted(name: str, value: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_options({"stream": "ORDERS", name: value})
    assert "hunter2" not in f"{refused.value} {refused.value.value} {refused.value.__cause__}"


def test_references_are_resolved_where_they_are_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("sesame\n")
    options = parsed(user="me", password="env:HW_TEST_PASSWORD", token=f"file:{secret}")
    with pytest.raises(ConfigError, match="HW_TEST_PASSWORD"):
        options.credentials()
    monkeypatch.setenv("HW_TEST_PASSWORD", "hunter2")
    credentials = options.credentials()
    assert (credentials.user, credentials.password, credentials.token) == ("me", "hunter2", "sesame")
    assert "hunter2" not in repr(options)
    secret.unlink()
    with pytest.raises(ConfigError, match="cannot read"):
        options.credentials()


def test_the_guide_lists_every_option() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\| `(\w+)` \|", guide.split("## Options")[1].split("\n## ")[0], re.MULTILINE)) == NAMES
