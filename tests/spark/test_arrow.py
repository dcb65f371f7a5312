"""Record batches have exactly the schema that Spark will check, and the values of the rows."""

import subprocess
import sys
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema
from support.decoded_rows import NS, decoded

from headwater.spark.arrow import arrow_schema, bitmap_without, record_batch
from headwater.spark.events import event_arrays
from headwater.spark.options import parse_options
from headwater.spark.schema import source_schema

BLOCKS = [
    b"NATS/1.0\r\nA: 1\r\nB: 2\r\nA: 3\r\n\r\n",
    b"",
    b"garbage",
    b"NATS/1.0\r\nA: \xff\r\n\r\n",
]


def batch(blocks: list[bytes], **options: str) -> pa.RecordBatch:
    parsed = parse_options({"stream": "S", **options})
    schema = arrow_schema(source_schema(parsed))
    columns = decoded(blocks)
    events = event_arrays(columns, schema) if parsed.decode == "cloudevents" else None
    made = record_batch(columns, "S", schema, events)
    made.validate(full=True)
    assert made.schema.equals(schema)
    return made


@pytest.mark.parametrize("headers", ["map", "raw", "both", "none"])
@pytest.mark.parametrize("decode", ["none", "cloudevents"])
@pytest.mark.parametrize("ns", ["true", "false"])
@pytest.mark.parametrize("blocks", [[], BLOCKS[:1], BLOCKS, BLOCKS * 10])
def test_every_schema_is_met_exactly(headers: str, decode: str, ns: str, blocks: list[bytes]) -> None:
    made = batch(blocks, includeHeaders=headers, decode=decode, includeTimestampNs=ns)
    assert made.num_rows == len(blocks)


@pytest.mark.parametrize("headers", ["map", "raw", "both", "none"])
@pytest.mark.parametrize("decode", ["none", "cloudevents"])
def test_every_schema_is_found_again_in_arrow(headers: str, decode: str) -> None:
    """The JVM accepts the rows of a plan with such a schema only (`headwater.spark_runtime.carried_rows`)."""
    given = {"includeHeaders": headers, "decode": decode, "includeTimestampNs": "true", "maxMessageBytes": "9"}
    schema = source_schema(parse_options({"stream": "S", **given}))
    assert from_arrow_schema(arrow_schema(schema)) == schema


def test_rows_are_made_without_pandas() -> None:
    """`pa.scalar` and `pa.array` import it, if it is there: 0.2 s of each worker's first task, and of each planner's."""
    program = (
        "import sys, pyarrow as pa; from headwater.spark.arrow import repeated; "
        "assert repeated(b'S', 3, pa.string()).to_pylist() == ['S'] * 3; assert repeated(b'', 0, pa.string()) is not None; "
        "sys.exit('pandas' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_values_are_those_of_the_rows() -> None:
    made = batch(BLOCKS, includeHeaders="both", includeTimestampNs="true").to_pydict()
    assert made["stream"] == ["S"] * 4
    assert made["subject"] == ["s.1", "s.2", "s.3", "s.4"]
    assert made["seq"] == [1, 2, 3, 4]
    assert made["timestamp_ns"] == [NS + 1, NS + 2, NS + 3, NS + 4]
    assert made["timestamp"][0] == datetime.fromtimestamp(1_700_000_000, UTC).replace(microsecond=123456)
    assert made["data"] == [b"p1", b"p2", b"p3", b"p4"]


def test_headers_are_a_map_of_lists_and_null_only_when_malformed() -> None:
    made = batch(BLOCKS).to_pydict()
    assert made["headers"] == [[("A", ["1", "3"]), ("B", ["2"])], [], None, [("A", ["\ufffd"])]]
    assert made["header_error"][:2] == [None, None]
    assert "version line" in made["header_error"][2]
    assert "not UTF-8" in made["header_error"][3]


def test_the_raw_block_is_null_only_when_there_is_none() -> None:
    made = batch(BLOCKS, includeHeaders="raw").to_pydict()
    assert made["headers_raw"] == [BLOCKS[0], None, *BLOCKS[2:]]
    assert batch(BLOCKS[2:], includeHeaders="raw").column("headers_raw").null_count == 0


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 64])
def test_bitmaps(rows: int) -> None:
    nulls = [row for row in range(rows) if row % 3 == 1]
    bits = bitmap_without(nulls, rows).to_pybytes()
    assert [row for row in range(rows) if not bits[row >> 3] >> (row & 7) & 1] == nulls
