"""Tables: a batch written twice is there once, readers never see half a table, one writer at a time."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.errors import EnvironmentProblem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def test_a_batch_that_is_written_again_replaces_itself(spark: "SparkSession", tmp_path: Path) -> None:
    from headwater.spark_tables.tables import Tables

    tables = Tables(tmp_path)
    assert tables.count("bronze") == 0
    assert tables.write_batch("bronze", 0, spark.range(5)) == 5
    assert tables.write_batch("bronze", 1, spark.range(7)) == 7
    assert tables.write_batch("bronze", 1, spark.range(3)) == 3
    assert tables.count("bronze") == 8
    assert {row["batch_id"] for row in spark.read.parquet(str(tmp_path / "bronze")).collect()} == {0, 1}
    assert tables.write_batch("rejects", 0, spark.range(0)) == 0
    assert tables.replace("gold", spark.range(4)) == 4
    assert tables.replace("gold", spark.range(2)) == 2
    assert tables.count("gold") == spark.read.parquet(str(tmp_path / "gold")).count() == 2
    assert [path.name for path in (tmp_path / "gold").iterdir()] == ["part-00000.parquet"]
    tables.clean()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bronze", "gold", "rejects"]


def test_a_write_that_fails_leaves_the_batch_as_it_was(spark: "SparkSession", tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    from headwater.spark_tables.tables import Tables

    tables = Tables(tmp_path)
    tables.write_batch("bronze", 0, spark.range(5))
    with pytest.raises(PySparkException):
        tables.write_batch("bronze", 0, spark.range(3).selectExpr("raise_error('no') as id"))
    assert tables.count("bronze") == 5


def test_a_directory_has_one_writer_at_a_time(spark: "SparkSession", tmp_path: Path) -> None:
    from headwater.spark_tables.tables import Tables

    first, second = Tables(tmp_path), Tables(tmp_path)
    with first.locked(spark):
        with pytest.raises(EnvironmentProblem, match="another job writes"), second.locked(spark, wait=0.2):
            pass
        staged = tmp_path / ".staging" / "left behind by a kill"
        staged.mkdir(parents=True)
    with second.locked(spark):
        assert not staged.exists()
