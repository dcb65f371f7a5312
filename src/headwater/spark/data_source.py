"""The base of `pyspark_nats` and `pyspark_iggy`: a data source that creates ours when Spark first uses it.

PySpark imports every top-level module named `pyspark_*` at the first use of any data source, and an import error in one
breaks all of them. So until it is used this imports only pyspark and the modules of `import headwater.spark`, which need no
extra package.
"""

from collections.abc import Callable, MutableMapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

from headwater.errors import ConfigError
from headwater.spark_runtime.carried_rows import carry_rows
from headwater.spark_runtime.planner_template import offer
from headwater.spark_runtime.quiet_end import leave_quietly

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

leave_quietly()  # effective only in a worker in which Spark has imported this module


class LateDataSource(DataSource):
    """`format_name`: the argument of `format(...)`. `made_by`, `module:class`, creates the source from the options.
    `connects_with`: what the first connection imports.
    """

    format_name: ClassVar[str]
    made_by: ClassVar[str]
    connects_with: ClassVar[tuple[str, ...]] = ()

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        from headwater.spark.session import require_pyspark

        require_pyspark()  # before our modules import names that an older pyspark lacks
        self._source: Any = resolve_name(self.made_by)(options)

    @classmethod
    def name(cls) -> str:
        return cls.format_name

    def schema(self) -> "StructType":
        made: StructType = briefly(self._source.schema)
        return made

    def reader(self, schema: "StructType") -> DataSourceReader:
        briefly(self._check, schema)
        made: DataSourceReader = briefly(self._source.reader, schema)
        return made

    def streamReader(self, schema: "StructType") -> DataSourceStreamReader:
        briefly(self._check, schema)
        made: DataSourceStreamReader = briefly(self._source.stream_reader, schema)
        carry_rows()
        offer(self.connects_with)
        return made

    def writer(self, schema: "StructType", overwrite: bool) -> DataSourceWriter:
        made: DataSourceWriter = briefly(self._source.writer, schema, overwrite)
        return made

    def streamWriter(self, schema: "StructType", overwrite: bool) -> DataSourceStreamWriter:
        made: DataSourceStreamWriter = briefly(self._source.stream_writer, schema, overwrite)
        return made

    def _check(self, schema: "StructType") -> None:
        from headwater.spark.schema import check_schema

        check_schema(schema, self._source.schema())


def briefly(make: Callable[..., Any], *arguments: Any) -> Any:
    """The result of `make`. A ConfigError leaves its traceback and cause behind: Spark shows all of them, and what is wrong
    with an option would stand below thirty lines of ours."""
    try:
        return make(*arguments)
    except ConfigError as error:
        raise error.with_traceback(None) from None
