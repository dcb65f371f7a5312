"""Spark over NATS: sessions that start, `format("nats")`, and the pipeline from events to tables."""

from headwater.spark.java import java_home as java_home
from headwater.spark.session import session as session
