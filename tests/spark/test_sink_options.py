"""What the sink understands, which columns it takes, and what it refuses before anything is sent."""

import re
from pathlib import Path

import pytest
from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, MapType, StringType, StructField, StructType

from headwater.errors import ConfigError
from headwater.spark.server_options import NAMES as SERVER_NAMES
from headwater.spark.sink_options import COLUMNS, NAMES, SinkOptions, check_columns, parse_sink_options

STRING = StringType()
KINDS: dict[str, DataType] = {
    "string": STRING,
    "binary": BinaryType(),
    "int": IntegerType(),
    "map": MapType(STRING, STRING),
    "lists": MapType(STRING, ArrayType(STRING)),
    "ints": MapType(STRING, IntegerType()),
    "struct": StructType([StructField("id", STRING)]),
}


def schema_of(columns: str) -> StructType:
    """`name:kind name:kind`."""
    pairs = (column.split(":") for column in columns.split())
    return StructType([StructField(name, KINDS[kind]) for name, kind in pairs])


def test_every_option_is_understood() -> None:
    values = {
        "subject": "a.b",
        "stream": "S",
        "target": "JetStream",
        "delivery": "at-least-once",
        "contentMode": "structured",
        "minDuplicateWindow": "5s",
        "window": "10",
        "writeTimeout": "3",
    }
    assert set(values) == set(NAMES) - set(SERVER_NAMES)
    options = parse_sink_options(values)
    assert (options.subject, options.stream, options.target, options.delivery) == (
        "a.b",
        "S",
        "jetstream",
        "at-least-once",
    )
    assert (options.content_mode, options.min_duplicate_window, options.window, options.write_timeout) == (
        "structured",
        5.0,
        10,
        3.0,
    )
    assert not options.exactly_once


def test_a_stream_gets_each_row_once_and_core_at_least_once_unless_told_otherwise() -> None:
    assert parse_sink_options({}).exactly_once
    assert not parse_sink_options({"target": "core"}).exactly_once
    for more in ({"delivery": "exactly-once"}, {"stream": "S"}):
        with pytest.raises(ConfigError, match="core NATS"):
            parse_sink_options({"target": "core", **more})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("subject", "a.*"),
        ("subject", ""),
        ("target", "kafka"),
        ("delivery", "once"),
        ("window", "0"),
        ("writeTimeout", "-1"),
        ("topic", "x"),
        ("password", "hunter2"),
    ],
)
def test_a_wrong_value_is_refused_and_no_secret_shown(name: str, value: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_sink_options({name: value})
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "schema",
    [
        "subject:string data:binary",
        "subject:string data:string headers:map msg_id:string",
        "subject:string data:binary headers:lists",
        "subject:string event:struct",
    ],
)
def test_columns_that_can_be_published(schema: str) -> None:
    check_columns(schema_of(schema), parse_sink_options({}))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("data:binary", "neither a column nor an option subject"),
        ("subject:string", "neither a column data nor a column event"),
        ("subject:string data:binary header:map", "did you mean headers"),
        ("subject:string data:int", "column data is int"),
        ("subject:string data:binary headers:ints", "column headers is map<string,int>"),
        ("subject:binary data:binary", "column subject is binary"),
        ("subject:string event:string", "not a struct"),
        ("subject:string event:struct data:binary", "drop data and headers"),
    ],
)
def test_columns_that_cannot(schema: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(reason)):
        check_columns(schema_of(schema), SinkOptions(server=parse_sink_options({}).server))


def test_the_guide_lists_every_option() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")
    columns, options = guide.split("## Writing")[1].split("\n## ")[0].split("| option |")
    assert tuple(re.findall(r"^\| `(\w+)` \|", columns, re.MULTILINE)) == COLUMNS
    listed = re.findall(r"^\| `(\w+)` \|", options, re.MULTILINE)
    assert listed == [name for name in NAMES if name not in SERVER_NAMES]
