"""`spark-pipelines` with a Spark Connect server of its own: run by Spark in place of `pyspark.pipelines.cli`.

Spark starts such a server for each run, on port 15002 by default, and its client always uses 15002. So only one run at a
time would be possible on a machine. `headwater.spark.declarative` requests any free port instead, and here the client gets
the port number from the server in its own JVM. Nothing else is changed.
"""

import runpy

from pyspark.sql import SparkSession
from pyspark.sql.connect.client.core import DefaultChannelBuilder

SERVICE = "org.apache.spark.sql.connect.service.SparkConnectService$"


def own_port() -> int:
    """The port of the server that this process has started; Spark's default when it has started none (`--remote`)."""
    started = SparkSession._instantiatedSession
    return 15002 if started is None else int(getattr(getattr(started._jvm, SERVICE), "MODULE$").localPort())


def main() -> None:
    if not callable(getattr(DefaultChannelBuilder, "default_port", None)):
        raise RuntimeError("this pyspark chooses the port of Spark Connect elsewhere: use its own spark-pipelines")
    DefaultChannelBuilder.default_port = staticmethod(own_port)  # type: ignore[method-assign]
    runpy.run_module("pyspark.pipelines.cli", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
