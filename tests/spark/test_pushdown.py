"""Filters narrow what is fetched and are all given back, so that a wrong guess here can cost nothing but time."""

import pickle
from typing import Any

import pytest
from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, IsNotNull, LessThan, LessThanOrEqual
from support.nats_server import NatsServer
from support.stream_filling import fill, numbered

from headwater.spark.options import parse_options
from headwater.spark.pushdown import PushdownBatchReader, chosen_reader
from headwater.spark.reader import JetStreamBatchReader
from headwater.spark.schema import source_schema

pytestmark = pytest.mark.interop

SEQ, SUBJECT = ("seq",), ("subject",)


@pytest.fixture(scope="module")
def url(nats_server: NatsServer) -> str:
    fill(nats_server.url, "PUSHED", ["pushed.*"], numbered("pushed", 30))
    return nats_server.url


def fetched(url: str, filters: list[Any], **more: str) -> list[int]:
    options = parse_options({"servers": url, "stream": "PUSHED", "pushdown": "true", **more})
    reader = PushdownBatchReader(options, source_schema(options))
    assert list(reader.pushFilters([EqualTo(SUBJECT, "pushed.9"), EqualTo(SEQ, 1)]))  # of an earlier planning
    assert list(reader.pushFilters(filters)) == filters
    reader = pickle.loads(pickle.dumps(reader))
    return [seq for part in reader.partitions() for batch in reader.read(part) for seq in batch["seq"].to_pylist()]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([], range(1, 31)),
        ([IsNotNull(SEQ), GreaterThan(SEQ, 20)], range(21, 31)),
        ([GreaterThanOrEqual(SEQ, 20), LessThan(SEQ, 25)], range(20, 25)),
        ([LessThanOrEqual(SEQ, 3), LessThan(SEQ, 100)], range(1, 4)),
        ([EqualTo(SEQ, 7)], [7]),
        ([EqualTo(SEQ, 99)], []),
        ([GreaterThan(SEQ, 10), LessThan(SEQ, 5)], []),
        ([LessThan(SEQ, -5)], []),
        ([EqualTo(SUBJECT, "pushed.3")], [4, 14, 24]),
        ([EqualTo(SUBJECT, "no subject")], range(1, 31)),
        ([EqualTo(("data",), b"")], range(1, 31)),
    ],
)
def test_what_is_fetched(url: str, filters: list[Any], expected: Any) -> None:
    assert fetched(url, filters) == list(expected)


def test_subjects_that_are_asked_for_stay(url: str) -> None:
    assert fetched(url, [EqualTo(SUBJECT, "pushed.3")], subjects="pushed.4") == [5, 15, 25]


def test_only_who_asks_for_it_gets_it() -> None:
    assert chosen_reader(parse_options({"stream": "S"})) is JetStreamBatchReader
    assert chosen_reader(parse_options({"stream": "S", "pushdown": "true"})) is PushdownBatchReader
