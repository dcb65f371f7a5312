"""Another attempt at a batch: read what earlier attempts stored, and publish only the rest.

A stream drops message ids that it has seen within its duplicate window. This does not cover an attempt that comes later, or
whose rows are in different places; so everything stored since the first attempt began is read back, and each row is
compared with it (`headwater.spark.stored_rows`). Only attempts after the first pay for this read.
"""

import time
from collections.abc import Iterable
from datetime import UTC, datetime

import pyarrow as pa

from headwater.client.blocking import BlockingClient
from headwater.model.header_block import lookup
from headwater.model.header_names import NatsHeader
from headwater.model.timestamps import parse_time
from headwater.spark.options import SourceOptions
from headwater.spark.planner import first_since
from headwater.spark.range_reader import read_range, stream_state
from headwater.spark.ranges import Range
from headwater.spark.row_publisher import RowPublisher
from headwater.spark.sink_options import SinkOptions
from headwater.spark.sink_rows import rows_of, text_from
from headwater.spark.stored_rows import StoredRows
from headwater.wire.columns import Text
from headwater.wire.row_frames import Rows

CLOCK_MARGIN = 60.0  # seconds that the clocks of driver and executors may differ by; the servers' clocks are read

MSG_ID = NatsHeader.MSG_ID.value.encode()


class Replay:
    """Another attempt at one partition of a batch whose first attempt began at `since`, in seconds since 1970. `job` is the
    prefix of its message ids."""

    def __init__(self, publisher: RowPublisher, options: SinkOptions, job: str, partition: int, since: float) -> None:
        self._publisher = publisher
        self._options = options
        self._partition = partition
        self._prefix = f"{job}/{partition}/".encode()
        self._since = since
        self._stored = StoredRows(job.encode())
        self._subjects: set[bytes] = set()
        self._streams: set[str] = set()

    def left(self, batch: pa.RecordBatch, start: int) -> Rows | None:
        """The rows of `batch` that are not stored yet; None when all are. The first row of the batch has the place `start`.
        Raises ConfigError for a row that differs from the stored one, and whatever reading the streams raises.
        """
        rows = rows_of(batch, self._options, self._prefix, start)
        subjects = values(rows.subjects) if rows.subjects is not None else []
        subjects = [subject or rows.subject for subject in subjects] or [rows.subject] * batch.num_rows
        self._look_into(set(subjects))
        if rows.ids is not None:
            wanted = [self._stored.lacks(one) for one in values(rows.ids)]
        else:
            payloads = values(rows.payloads) if rows.payloads is not None else [b""] * batch.num_rows
            wanted = self._stored.left(self._partition, start, zip(subjects, payloads, strict=True))
        if all(wanted):
            return rows
        kept = batch.filter(pa.array(wanted))
        if not kept.num_rows:
            return None
        if rows.ids is not None:
            return rows_of(kept, self._options, self._prefix, 0)
        ids = [b"%b%d" % (self._prefix, start + row) for row, is_left in enumerate(wanted) if is_left]
        return rows_of(kept, self._options, b"", 0)._replace(ids=text_from(ids))

    def check_end(self, rows: int) -> None:
        """Call it after the last of `rows` rows. Raises ConfigError when an earlier attempt had more."""
        self._stored.check_end(self._partition, rows)

    def _look_into(self, subjects: set[bytes]) -> None:
        """Read the streams of these subjects, each once."""
        new = subjects - self._subjects
        self._subjects |= new
        streams = {self._options.stream} if self._options.stream else self._streams_of(new)
        for stream in sorted(streams - self._streams):
            self._streams.add(stream)
            self._read(stream)

    def _streams_of(self, subjects: Iterable[bytes]) -> set[str]:
        found: set[str] = set()
        for subject in sorted(subjects):
            body = {"subject": subject.decode()}
            answer = self._publisher.ask(lambda client, body=body: client.api("STREAM.NAMES", body))  # type: ignore[misc]
            found.update(str(name) for name in answer.get("streams") or ())
        return found

    def _read(self, stream: str) -> None:
        state, first = self._publisher.ask(lambda client: (stream_state(client, stream), self._first(client, stream)))
        if not first:
            return
        wanted = Range(stream, state.created, first, state.end)
        options = SourceOptions(
            (stream,),
            self._options.server,
            include_headers="raw",
            fail_on_data_loss=False,  # messages that the stream has dropped since cannot be duplicated
            read_timeout=self._options.write_timeout,
        )
        for columns in read_range(wanted, options):
            assert columns.blocks is not None
            for block, subject, payload in zip(
                values(columns.blocks), values(columns.subjects), values(columns.payloads), strict=True
            ):
                message_id = lookup(block, MSG_ID)
                if message_id:
                    self._stored.add(message_id, subject, payload)

    def _first(self, client: BlockingClient, stream: str) -> int:
        """The first sequence that the batch may have stored, 0 for none, by the server's clock if it is known."""
        info = client.api(f"STREAM.INFO.{stream}")
        ahead = parse_time(str(info["ts"])) / 1e9 - time.time() if "ts" in info else 0.0
        return first_since(client, stream, datetime.fromtimestamp(self._since + ahead - CLOCK_MARGIN, UTC))


def values(text: Text) -> list[bytes]:
    """The values of a column."""
    data, offsets = bytes(text.data), text.offsets
    return [data[offsets[row] : offsets[row + 1]] for row in range(len(offsets) - 1)]
