"""Makes `format("nats")` known to PySpark, which imports every top-level module named `pyspark_*` at first use."""

from headwater.spark.data_source import LateDataSource


class DefaultSource(LateDataSource):
    """JetStream streams; `headwater.spark.options` and `sink_options` list the options."""

    format_name = "nats"
    made_by = "headwater.spark.source:JetStreamSource"
    connects_with = ("headwater.client.contexts", "headwater.client.options", "headwater.spark.record_batches")
