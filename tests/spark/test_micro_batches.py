"""How much one micro-batch holds."""

import pickle

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows

from headwater.errors import ConfigError
from headwater.spark.iggy.offsets import Place
from headwater.spark.micro_batches import RangePartition, check_endless, default_limit, within
from headwater.spark.offsets import LogState
from headwater.spark.options import parse_options
from headwater.spark.ranges import Range

STATES: list[LogState[str] | None] = [
    LogState("A", "c", 1, 101, 100, 1000),
    LogState("B", "c", 1, 301, 300, 30_000),
    None,
]


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({}, ReadAllAvailable()),
        ({"maxOffsetsPerTrigger": "7", "maxBytesPerTrigger": "9"}, ReadMaxRows(7)),
        ({"maxBytesPerTrigger": "9"}, ReadMaxBytes(9)),
    ],
)
def test_the_options_name_a_limit_for_the_engine(options: dict[str, str], limit: ReadLimit) -> None:
    assert default_limit(parse_options({"stream": "S", **options})) == limit


@pytest.mark.parametrize(
    ("limit", "most_bytes", "taken"),
    [
        (ReadAllAvailable(), "1", [100, 300, 0]),
        (ReadMaxRows(40), "", [10, 30, 0]),
        (ReadMaxRows(40), "400", [10, 3, 0]),
        (ReadMaxBytes(400), "", [10, 3, 0]),
    ],
)
def test_a_limit_is_shared_in_rows_and_in_bytes_by_the_mean_size(
    limit: ReadLimit, most_bytes: str, taken: list[int]
) -> None:
    options = parse_options({"stream": "S", **({"maxBytesPerTrigger": most_bytes} if most_bytes else {})})
    assert within(limit, [100, 300, 0], STATES, options) == taken


def test_an_input_partition_survives_pickling() -> None:
    wanted = Range(Place("t", 3), 17, 5, 9, 100)
    assert pickle.loads(pickle.dumps(RangePartition(wanted))).range == wanted


def test_an_end_is_for_batch_reads_only() -> None:
    check_endless(parse_options({"stream": "S"}))
    with pytest.raises(ConfigError, match="has no end") as caught:
        check_endless(parse_options({"stream": "S", "endingOffsets": "latest"}))
    assert "availableNow" in str(caught.value.hint)
