"""Makes `format("iggy")` known to PySpark, which imports every top-level module named `pyspark_*` at first use."""

from headwater.spark.data_source import LateDataSource


class DefaultSource(LateDataSource):
    """Topics of Iggy streams; `headwater.spark.iggy.options` lists the options."""

    format_name = "iggy"
    made_by = "headwater.spark.iggy.source:IggySource"
    connects_with = ("headwater.iggy_client.blocking", "headwater.iggy_client.requests")
