"""From events to tables, as plain functions over DataFrames: batch or streaming, in our jobs or in yours.

    source (decode=cloudevents) ─┬─▶ bronze    messages as received, every row
                                 ├─▶ silver    events: attributes typed, JSON data as text
                                 └─▶ rejects   rows that are not events, as received, with the reason     silver ─▶ gold

Silver and rejects divide the rows by one expression, `reason`, so every row is in exactly one of them. A row is rejected
when it violates CloudEvents (`ce_error` of the source has the reason) or when its data is not JSON although its content
type says so. Data without a content type is treated as JSON if it parses as JSON, and as bytes otherwise.

Gold is designed for commit events (`{"repo", "sha", "author", "committed_at", "files", ...}`) and accepts any others:
values that an event does not have are null or zero in its row.
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from headwater.cloudevents.event import NOT_JSON
from headwater.cloudevents.header_value import INVALID_UTF8

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Columns that identify the message, by the format of the source, in its order. They are written out, because a declarative
# pipeline refuses functions that ask a DataFrame for its columns.
PLACES = {
    "nats": {"stream": "stream", "subject": "nats_subject", "seq": "seq", "timestamp": "stored_at"},
    "iggy": {
        "stream": "stream",
        "topic": "topic",
        "partition": "partition",
        "offset": "offset",
        "timestamp": "stored_at",
    },
}
KEYS = {"nats": ("stream", "seq"), "iggy": ("stream", "topic", "partition", "offset")}  # identifies one message
WIRE_COLUMNS = ("headers_raw", "headers", "data")

COMMIT_SCHEMA = (
    "repo string, sha string, author string, authored_at timestamp, committed_at timestamp, subject string, "
    "files array<struct<path: string, added: long, deleted: long>>"
)

# CloudEvents 1.0, JSON format 3.1: */json and */*+json, ignoring parameters.
JSON_TYPE = r"(?i)^\s*[^\s;/]+/([^\s;]+\+)?json\s*(;.*)?$"

SOURCE_OPTIONS = {"decode": "cloudevents", "includeHeaders": "both"}  # required by these functions


def bronze(df: "DataFrame", source: str = "nats") -> "DataFrame":
    """Every row as received: its position in the source, time of storage, headers raw and parsed, data."""
    return df.select(*PLACES[source], *WIRE_COLUMNS)


def silver(df: "DataFrame", source: str = "nats") -> "DataFrame":
    """The rows that are events, with a column per context attribute.

    `data` is the JSON text (null for other content or none), `data_binary` the bytes of data that is not JSON. `commit` is
    a struct if the data describes a commit, else null. `stream`, `nats_subject`, `seq` and `stored_at` (for an Iggy source
    `stream`, `topic`, `partition`, `offset` and `stored_at`) identify the message.
    """
    data = F.col("ce_data")
    text = F.when(_is_json(), data.cast("string"))
    commit = F.from_json(text, COMMIT_SCHEMA)
    return df.where(reason().isNull()).select(
        *(F.col(name).alias(shown) for name, shown in PLACES[source].items()),
        F.col("ce_id").alias("id"),
        F.col("ce_source").alias("source"),
        F.col("ce_type").alias("type"),
        F.col("ce_subject").alias("subject"),
        F.col("ce_time").alias("time"),
        F.col("ce_time_raw").alias("time_raw"),
        F.col("ce_specversion").alias("specversion"),
        F.col("ce_datacontenttype").alias("datacontenttype"),
        F.col("ce_dataschema").alias("dataschema"),
        F.col("ce_extensions").alias("extensions"),
        text.alias("data"),
        F.when(~_is_json() & _has_data(), data).alias("data_binary"),
        # Spark would also parse {"sha": {"a": 1}} as a string: only a value in the form of an object name makes a commit.
        F.when(commit["sha"].rlike("^[0-9a-fA-F]{7,64}$") & commit["repo"].isNotNull(), commit).alias("commit"),
    )


def rejects(df: "DataFrame", source: str = "nats") -> "DataFrame":
    """The rows that are not events, as received, with `reason` as text and `rule`, the broken rule."""
    refused = df.withColumn("reason", reason()).where(F.col("reason").isNotNull())
    ruled = refused.withColumn("rule", F.coalesce("ce_rule", _broken_data()[1]))
    return ruled.select(*PLACES[source], *WIRE_COLUMNS, "reason", "rule")


def with_payload(events: "DataFrame", schema: str) -> "DataFrame":
    """Silver with a column `payload`, the JSON data parsed by a schema (DDL), and `payload_error`, the text of data that
    does not fit it. Fields that the schema does not name stay in `data`, where a later schema finds them."""
    marked = f"{schema}, payload_error string"
    read = F.from_json("data", marked, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "payload_error"})
    with_error = events.withColumn("payload", read).withColumn("payload_error", F.col("payload.payload_error"))
    return with_error.withColumn("payload", F.col("payload").dropFields("payload_error"))


def with_variant(events: "DataFrame") -> "DataFrame":
    """Silver with a column `payload`, the JSON data as Spark's VARIANT; null for other data."""
    return events.withColumn("payload", F.try_parse_json("data"))


def gold(events: "DataFrame") -> "DataFrame":
    """One row per source, type and month of silver: the number of events and authors, and the first and last time.

    An event that was published twice (same source and id) counts once. The month is that of the event's time, or of its
    storage without one. `authors`, `files`, `lines_added` and `lines_deleted` come from commit data and are 0 for other
    events.
    """
    when = F.coalesce("commit.committed_at", "time", "stored_at")
    files = F.coalesce(F.col("commit.files"), F.array())
    return (
        events.dropDuplicates(["source", "id"])
        .withColumn("when", when)
        .groupBy("source", "type", F.date_trunc("month", "when").cast("date").alias("month"))
        .agg(
            F.count("id").alias("events"),
            F.count_distinct("commit.author").alias("authors"),
            F.sum(F.size(files)).alias("files"),
            F.sum(_total("added")).alias("lines_added"),
            F.sum(_total("deleted")).alias("lines_deleted"),
            F.min("when").alias("first_time"),
            F.max("when").alias("last_time"),
        )
        .orderBy("source", "type", "month")
    )


def reason() -> "Column":
    """The reason why a decoded row is not an event; null when it is one."""
    return F.coalesce("ce_error", _broken_data()[0])


def _broken_data() -> "tuple[Column, Column]":
    """The reason and rule for data that is not JSON although its content type says so; null for other rows."""
    text = F.col("ce_data").cast("string")
    claims = _has_data() & _declares_json()
    words = "data: datacontenttype says JSON, the payload is not "
    not_text = ~F.is_valid_utf8(text)
    not_json = F.try_parse_json(text).isNull()
    return (
        F.when(claims, F.when(not_text, words + "UTF-8").when(not_json, words + "JSON")),
        F.when(claims, F.when(not_text, INVALID_UTF8).when(not_json, NOT_JSON)),
    )


def _has_data() -> "Column":
    return F.coalesce(F.octet_length("ce_data") > 0, F.lit(False))


def _declares_json() -> "Column":
    return F.coalesce(F.col("ce_datacontenttype").rlike(JSON_TYPE), F.lit(False))


def _is_json() -> "Column":
    """Whether there is JSON data: declared by its content type, or parsed as JSON without a content type."""
    text = F.col("ce_data").cast("string")
    reads = F.col("ce_datacontenttype").isNull() & F.is_valid_utf8(text) & F.try_parse_json(text).isNotNull()
    return _has_data() & (_declares_json() | F.coalesce(reads, F.lit(False)))


def _total(field: str) -> "Column":
    """The sum of a number over the files of a commit; 0 without files."""
    numbers = F.transform(
        F.coalesce(F.col(f"commit.files.{field}"), F.array().cast("array<bigint>")), lambda n: F.coalesce(n, F.lit(0))
    )
    return F.aggregate(numbers, F.lit(0).cast("long"), lambda total, n: total + n)
