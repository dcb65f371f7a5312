"""What a planner writes to the JVM for `partitions`: rows beside the partition, for readers that have them."""

import io
import json
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.serializers import SpecialLengths
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming import python_streaming_source_runner
from pyspark.sql.types import LongType, StringType, StructField, StructType

from headwater.spark_runtime.carried_rows import RUNNER, carry_rows, with_rows

runner: Any = python_streaming_source_runner
SCHEMA = StructType([StructField("seq", LongType(), nullable=False), StructField("subject", StringType())])
FOUND, NOT_FOUND, EMPTY = (
    runner.NON_EMPTY_PYARROW_RECORD_BATCHES,
    runner.PREFETCHED_RECORDS_NOT_FOUND,
    runner.EMPTY_PYARROW_RECORD_BATCHES,
)


def batch_of(sequences: list[int]) -> pa.RecordBatch:
    from pyspark.sql.pandas.types import to_arrow_schema

    arrays = [pa.array(sequences, pa.int64()), pa.array([f"s.{seq}" for seq in sequences])]
    return pa.RecordBatch.from_arrays(arrays, schema=to_arrow_schema(SCHEMA, timezone="UTC"))


class WithoutRows(DataSourceStreamReader):
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        raise AssertionError("a planner reads nothing by this")


class Reader(WithoutRows):
    """Plans `count` partitions; `rows`: record batches of the only one, None where workers are to read it."""

    def __init__(self, count: int, rows: list[pa.RecordBatch] | None) -> None:
        self.count = count
        self.rows = rows
        self.calls: list[Any] = []

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [InputPartition((start["at"], end["at"], number)) for number in range(self.count)]

    def carried(self, partition: InputPartition) -> Iterator[pa.RecordBatch] | None:
        self.calls.append(partition.value)
        return None if self.rows is None else iter(self.rows)


def planned(reader: Any, schema: StructType = SCHEMA) -> tuple[int, int, list[int]]:
    """What the JVM reads of the answer: the number of partitions, its word on rows, and the sequences in them."""
    request, answer = io.BytesIO(), io.BytesIO()
    for offset in ({"at": 3}, {"at": 5}):
        runner.write_with_length(json.dumps(offset).encode(), request)
    request.seek(0)
    with_rows(runner.partitions_func)(reader, DataSource({}), schema, 1000, request, answer)
    answer.seek(0)
    count = runner.read_int(answer)
    for _ in range(count):
        assert isinstance(runner.pickleSer._read_with_length(answer), InputPartition)
    word = runner.read_int(answer)
    sequences: list[int] = []
    if word == FOUND:
        assert runner.read_int(answer) == SpecialLengths.START_ARROW_STREAM
        sequences = pa.ipc.open_stream(answer).read_all().column("seq").to_pylist()
    assert answer.read() == b""
    return count, word, sequences


def test_rows_go_with_the_only_partition() -> None:
    reader = Reader(1, [batch_of([3]), batch_of([4])])
    assert planned(reader) == (1, FOUND, [3, 4])
    assert reader.calls == [(3, 5, 0)]


@pytest.mark.parametrize(
    ("reader", "expected"),
    [
        (Reader(1, None), (1, NOT_FOUND, [])),
        (Reader(1, []), (1, EMPTY, [])),
        (Reader(0, [batch_of([3])]), (0, NOT_FOUND, [])),
        (Reader(2, [batch_of([3])]), (2, NOT_FOUND, [])),
        (WithoutRows(), (1, NOT_FOUND, [])),
    ],
)
def test_without_rows_workers_read(reader: DataSourceStreamReader, expected: tuple[int, int, list[int]]) -> None:
    assert planned(reader) == expected


def test_a_schema_that_arrow_does_not_keep_is_read_by_workers() -> None:
    """The JVM compares the schema of carried rows with the declared one, collations included, and would end the query."""
    collated = StructType([SCHEMA[0], StructField("subject", StringType("UNICODE"))])
    reader = Reader(1, [batch_of([3])])
    assert planned(reader, collated) == (1, NOT_FOUND, []) and reader.calls == []


def test_only_the_program_that_is_known_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    main: Any = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert not carry_rows(), "no planner"
    main.__spec__ = SimpleNamespace(name=RUNNER)
    assert not carry_rows(), "a planner without the function"

    def other(reader: Any, infile: Any, outfile: Any) -> None: ...

    main.partitions_func = other
    assert not carry_rows() and main.partitions_func is other
    main.partitions_func = runner.partitions_func
    assert carry_rows()
    ours = main.partitions_func
    assert ours is not runner.partitions_func
    assert carry_rows() and main.partitions_func is ours, "as in a process that was forked from a planner"
