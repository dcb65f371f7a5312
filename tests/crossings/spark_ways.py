"""Spark's way in and its two ways out: each one job for a place, however many streams are there.

Spark works in threads and processes of its own while the brokers of the place go on in this loop. It connects by TCP or TLS,
and to whichever worker takes its connection.
"""

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag

from crossings.messages import RICH, Got, Pairs, Sample, Sent, samples
from crossings.table import BUCKET, EVENTS, OBJECTS, TOPIC
from crossings.world import SUBJECTS, World

from headwater.model.headers import Headers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEY = "spark-sink"
ROW = "subject string, data binary, entries array<struct<name: string, texts: array<string>>>, msg_id string"
COLUMNS = (
    "subject",
    "data",
    "map_from_entries(entries) AS headers",
    "msg_id",
)  # a map made of a dict has another order
SHOWN = ("stream", "subject", "seq", "headers_raw", "data")

_numbers = count()


def session_of(world: World) -> "SparkSession":
    session: SparkSession | None = world.spark
    assert session is not None, "cells of Spark are run with a session"
    return session


def connection(world: World, seat: str) -> dict[str, str]:
    """The options that lead to a seat; where that is a WebSocket, to the owner's port for TCP."""
    address = urldefrag(world.owner if seat.startswith("ws") else seat)[0].replace("tls://", "nats://")
    return {"servers": address, **({"tlsCa": str(world.authority)} if world.authority else {})}


# ── in ──


def _rows(tag: str, subject: str, chosen: list[Sample]) -> list[tuple[Any, ...]]:
    found = []
    for one in chosen:
        values: dict[str, list[str]] = {}
        for name, value in one.headers:
            values.setdefault(name, []).append(value)
        found.append(
            (f"{subject}.{one.number}", bytearray(one.payload), list(values.items()) or None, f"{tag}-{one.number}")
        )
    return found


async def sink(world: World, stream: str, subject: str, tag: str) -> list[Sent]:
    """A frame for both streams that Spark writes to, written once."""

    async def write() -> None:
        chosen = [(f"{KEY}@{into}", f"{SUBJECTS[into]}.{KEY}") for into in (EVENTS, BUCKET)]
        rows = [row for a_tag, below in chosen for row in _rows(a_tag, below, _samples(world, a_tag))]
        await asyncio.to_thread(_write_all, world, rows)

    await world.once("spark sink", "", write)
    return [
        Sent(f"{tag}/{one.number}", f"{subject}.{one.number}", one.payload, (*one.headers, _identity(tag, one)), "*")
        for one in _samples(world, tag)
    ]


def _write_all(world: World, rows: list[tuple[Any, ...]]) -> None:
    # Which makes the session that of this thread.
    frame = session_of(world).createDataFrame(rows, ROW).selectExpr(*COLUMNS).coalesce(1)
    frame.write.format("nats").mode("append").options(**connection(world, world.writer)).save()


def _samples(world: World, tag: str) -> list[Sample]:
    """With the values of a name together: a row has a map."""
    names = [name for name, _ in RICH]
    grouped: Pairs = tuple(sorted(RICH, key=lambda pair: names.index(pair[0])))
    return samples(tag, grouped, empty=world.place.empty)


def _identity(tag: str, one: Sample) -> tuple[str, str]:
    return ("Nats-Msg-Id", f"{tag}-{one.number}")


# ── out ──


async def read(world: World, stream: str, *, streaming: bool) -> list[Got]:
    """What the job over all streams found in this one."""

    async def run() -> list[Any]:
        work = _stream_all if streaming else _read_all
        return await asyncio.to_thread(work, world)

    rows = await world.once("spark stream" if streaming else "spark batch", "", run)
    return [_got(row) for row in rows if row["stream"] == stream]


def _options(world: World) -> dict[str, str]:
    streams = [EVENTS, BUCKET, OBJECTS, *([TOPIC] if world.iggy is not None else [])]
    wanted = {"stream": ",".join(streams), "includeHeaders": "raw", "minPartitions": str(len(streams))}
    return {**connection(world, world.reader), **wanted, "startingOffsets": "earliest"}


def _read_all(world: World) -> list[Any]:
    frame: DataFrame = session_of(world).read.format("nats").options(**_options(world)).load()
    return frame.select(*SHOWN).collect()


def _stream_all(world: World) -> list[Any]:
    session, name = session_of(world), f"crossings_{next(_numbers)}"
    source = session.readStream.format("nats").options(**_options(world)).load().select(*SHOWN)
    query = source.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    query.awaitTermination(60)
    return session.table(name).collect()


def _got(row: Any) -> Got:
    block = bytes(row["headers_raw"] or b"")
    pairs = tuple(Headers.parse(block).multi_items()) if block else ()
    return Got(row["subject"], bytes(row["data"]), pairs, sequence=row["seq"])
