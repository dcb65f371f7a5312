"""A schema of the user's selects columns, and changes none."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from headwater.errors import ConfigError
from headwater.spark.options import parse_options
from headwater.spark.schema import check_schema, source_schema

MADE = source_schema(parse_options({"stream": "S"}))
TEXT = StringType()


def schema(**kinds: DataType) -> StructType:
    made = StructType()
    for name, kind in kinds.items():
        made.add(name, kind)
    return made


@pytest.mark.parametrize(
    "wanted",
    [
        MADE,
        schema(data=BinaryType(), seq=LongType()),
        schema(headers=MapType(TEXT, ArrayType(TEXT)), timestamp=TimestampType()),
        schema(subject=StringType("UNICODE_CI")),  # collations are Spark's own matter
    ],
)
def test_columns_may_be_left_out_and_be_in_another_order(wanted: StructType) -> None:
    check_schema(wanted, MADE)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (schema(seq=IntegerType()), "the schema has the column seq as int, and it is read as bigint"),
        (schema(data=TEXT), "the schema has the column data as string, and it is read as binary"),
        (schema(headers=MapType(TEXT, TEXT)), "the schema has the column headers as map<string,string>"),
        (schema(Subject=TEXT), "did you mean subject"),
        (schema(payload=BinaryType()), "with these options there are stream, subject, seq"),
    ],
)
def test_another_type_or_name_is_refused(wanted: StructType, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_schema(wanted, MADE)
