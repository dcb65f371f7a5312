"""Makes `format("iggy")` known to PySpark, which imports every top-level module named `pyspark_*` at first use.

An import error here would break the discovery of everybody's data sources, so this module imports nothing of ours until
it is used.
"""

from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class DefaultSource(DataSource):
    """Topics of Iggy streams; `headwater.spark.iggy.options` lists the options."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        from headwater.spark.session import require_pyspark

        require_pyspark()  # before anything of ours asks an older pyspark for what it has not
        from headwater.spark.iggy.source import IggySource

        self._source = IggySource(options)

    @classmethod
    def name(cls) -> str:
        return "iggy"

    def schema(self) -> "StructType":
        return self._source.schema()

    def reader(self, schema: "StructType") -> DataSourceReader:
        return self._source.reader(schema)

    def streamReader(self, schema: "StructType") -> DataSourceStreamReader:
        return self._source.stream_reader(schema)

    def writer(self, schema: "StructType", overwrite: bool) -> DataSourceWriter:
        return self._source.writer(schema, overwrite)

    def streamWriter(self, schema: "StructType", overwrite: bool) -> DataSourceStreamWriter:
        return self._source.stream_writer(schema, overwrite)
