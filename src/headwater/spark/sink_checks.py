"""Check the conditions on which exactly-once delivery to JetStream depends.

A stream drops a message whose `Nats-Msg-Id` it has seen within its `duplicate_window`. So publishing again, after a lost
connection, a failed task or a killed query, stores nothing twice on three conditions:

1. The window is long enough: at least `minDuplicateWindow`, or the job does not start. 2. No attempt comes later than that.
A restarted query finds messages of its unfinished batch at the end of the stream; when
   they are older than the window, the stream has forgotten their ids, and the query stops instead of duplicating them.
3. Row i is the same row again. Ids made by the sink are places (query, batch, partition, row), which a source reproduces in
   order, but a shuffle may not. A row that the stream drops as a duplicate is read back and compared; a different row in
   its place stops the query. Rows with a `msg_id` or an event's source and id need no order.

A violated condition is a ConfigError with a hint. At-least-once delivery checks none of them.
"""

import base64
import logging
import time
from datetime import UTC, datetime
from typing import Any

import msgspec

from headwater.client.blocking import BlockingClient
from headwater.errors import ConfigError, JetStreamError, RequestTimeout
from headwater.model.header_block import lookup
from headwater.model.header_names import NatsHeader
from headwater.spark.sink_options import SinkOptions
from headwater.wire.columns import Text
from headwater.wire.row_frames import Rows

logger = logging.getLogger(__name__)

REMEMBERED_SECONDS = 60.0  # during which this process does not check a suitable stream again
NO_MESSAGE = 10037  # err_code

_fit: dict[tuple[SinkOptions, str], float] = {}


def check_window(client: BlockingClient, stream: str, options: SinkOptions) -> None:
    """Condition 1. Raises ConfigError, and JetStreamError when the stream does not exist."""
    key = options, stream
    if time.monotonic() - _fit.get(key, -REMEMBERED_SECONDS) < REMEMBERED_SECONDS:
        return
    config = client.api(f"STREAM.INFO.{stream}")["config"]
    window = int(config.get("duplicate_window", 0)) / 1e9
    if window < options.min_duplicate_window:
        raise ConfigError(
            f"stream {stream} remembers message ids for {window:g} s, and exactly once needs "
            f"{options.min_duplicate_window:g}",
            value=window,
            limit=options.min_duplicate_window,
            hint="raise its duplicate_window, lower minDuplicateWindow, or choose delivery=at-least-once",
        )
    _fit[key] = time.monotonic()


def target_stream(client: BlockingClient, options: SinkOptions) -> str:
    """The stream that receives the rows: the named one, or that of the single subject; "" when it is not known in
    advance."""
    if options.stream or not options.subject:
        return options.stream
    names = client.api("STREAM.NAMES", {"subject": options.subject}).get("streams") or [""]
    return str(names[0])


def check_return(client: BlockingClient, stream: str, prefix: bytes) -> None:
    """Condition 2, for the batch whose message ids begin with `prefix`. Raises ConfigError."""
    info = client.api(f"STREAM.INFO.{stream}")
    try:
        last = _stored(client, stream, int(info["state"]["last_seq"]))
    except RequestTimeout:
        return
    if last is None or not _id_of(last).startswith(prefix):
        return
    window = int(info["config"].get("duplicate_window", 0)) / 1e9
    age = _age(info, last)
    if age > window:
        raise ConfigError(
            f"part of batch {prefix.decode()} was stored in {stream} {age:.0f} s ago, and the stream remembers message "
            f"ids for {window:g} s only: publishing the batch again would double it",
            value=age,
            limit=window,
            hint="choose delivery=at-least-once to do so, and a longer duplicate_window",
        )


def check_order(client: BlockingClient, rows: Rows, duplicates: list[tuple[int, bytes]]) -> None:
    """Condition 3, for rows whose ids are places. Raises ConfigError for a row that differs from the stored one."""
    if rows.ids is not None:
        return
    for row, answer in duplicates:
        ack = msgspec.json.decode(answer, type=dict[str, Any])
        try:
            stored = _stored(client, str(ack["stream"]), int(ack["seq"]))
        except RequestTimeout:
            return  # the server would not answer for the other rows, either
        if stored is None:
            continue
        subject = _value(rows.subjects, row) or rows.subject
        data = base64.b64decode(stored.get("data", ""))
        if (stored["subject"].encode(), data) != (subject, _value(rows.payloads, row)):
            raise ConfigError(
                f"row {rows.id_start + row} of batch {rows.id_prefix.decode()} is another one than the first time: "
                "their order is not the same again",
                value=row,
                hint="give the rows a column msg_id, or publish before the shuffle",
            )


def _stored(client: BlockingClient, stream: str, sequence: int) -> dict[str, Any] | None:
    """A message of a stream; None when it does not exist. Raises RequestTimeout, also when the user may not read it."""
    if sequence < 1:
        return None
    try:
        message: dict[str, Any] = client.api(f"STREAM.MSG.GET.{stream}", {"seq": sequence})["message"]
        return message
    except JetStreamError as error:
        if error.err_code != NO_MESSAGE:
            raise
    except RequestTimeout:  # the server does not answer a request that is not permitted
        logger.warning("sink_cannot_read_back stream=%s: is $JS.API.STREAM.MSG.GET allowed?", stream)
        raise
    return None


def _age(info: dict[str, Any], message: dict[str, Any]) -> float:
    """Seconds since a message was stored, by the server's clock if it is known."""
    now = _time(info["ts"]) if "ts" in info else datetime.now(UTC)
    return (now - _time(message["time"])).total_seconds()


def _id_of(message: dict[str, Any]) -> bytes:
    block = base64.b64decode(message.get("hdrs", ""))
    return lookup(block, NatsHeader.MSG_ID.value.encode()) or b""


def _time(text: str) -> datetime:
    """Parse RFC 3339 with up to nine fraction digits."""
    head, _, tail = text.rstrip("Z").partition(".")
    return datetime.fromisoformat(f"{head}.{tail[:6]:0<6}+00:00")


def _value(text: Text | None, row: int) -> bytes:
    return b"" if text is None else bytes(text.data[text.offsets[row] : text.offsets[row + 1]])
