"""The executor's part of the sink: publish the rows of one task, many at a time, until all of them are acknowledged.

    rows ─▶ ops, in blocks ─▶ server        up to `window` rows (and `INFLIGHT_BYTES`) without an acknowledgement
      ▲                         │
      └── lost, or silent ◀─────┴─▶ acknowledgements by row number

A batch is done when each of its rows is acknowledged. After a lost connection the unacknowledged rows are published again:
with message ids the stream drops those that it already has, without ids it may store them twice. The publisher gives up
when no row was acknowledged for `writeTimeout`, or when rows to be stored exactly once were first sent longer ago than the
stream remembers their ids; so a broker restart only costs a job time. An answer that refuses a row (the stream is full, a
limit is reached) ends the task with the server's error. A reply from another subscriber to the subject is not an
acknowledgement.

Core NATS acknowledges nothing; there the PONG to a PING after the last row shows that the server has read all rows.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from headwater.client.blocking import BlockingClient
from headwater.client_connection.server_errors import server_error
from headwater.errors import (
    AuthorizationError,
    HeadwaterError,
    JetStreamError,
    NoResponders,
    RequestTimeout,
    TransportError,
)
from headwater.net.blocking import deadline_after
from headwater.spark import connections
from headwater.spark.sink_options import SinkOptions
from headwater.spark_runtime.persistence import PASSING, STORE_FAILED, Persistence, persisted
from headwater.wire.row_frames import AckCounter, RowFrames, Rows
from headwater.wire.server_ops import ServerOpParser

BLOCK_ROWS = 500  # rows written before the socket is polled
BLOCK_BYTES = 256 << 10
INFLIGHT_BYTES = 16 << 20  # nats-server refuses more than 128 MiB waiting to be stored
# err_codes of refusals: the stream is none of the option `stream`, the row is above its max_msg_size, it is sealed.
OTHER_STREAM, TOO_LARGE, SEALED = 10060, 10054, 10109
NOT_ENABLED = 10166, 10168, 10188  # a row's header Nats-TTL, Nats-Incr, or Nats-Schedule
ACK_SECONDS = 5.0  # without data from the server, after which the connection is given up


@dataclass(slots=True)
class Published:
    """The result of a task: rows stored or sent, how many of them the stream already had, and the streams that
    acknowledged."""

    rows: int = 0
    duplicates: int = 0
    streams: set[str] = field(default_factory=set)


T = TypeVar("T")

Check = Callable[[BlockingClient, str], None]  # (client, stream)
CheckDuplicates = Callable[[BlockingClient, Rows, list[tuple[int, bytes]]], None]


class RowPublisher:
    """One task's publisher. `check_stream` is called for each acknowledging stream after its first acknowledgements;
    `check_duplicates` with the rows that a stream dropped as duplicates."""

    def __init__(
        self,
        options: SinkOptions,
        check_stream: Check | None = None,
        check_duplicates: CheckDuplicates | None = None,
    ) -> None:
        self.done = Published()
        self._options = options
        self._check_stream = check_stream
        self._check_duplicates = check_duplicates
        self._client: BlockingClient | None = None

    def publish(self, rows: Rows) -> None:
        """Publish all of `rows`; they are stored in order unless a connection is lost.

        Raises SubjectError, HeaderError or PayloadTooLarge for a row that cannot be sent, JetStreamError for one that is
        refused, AuthorizationError for one that is not permitted, and the last TransportError, RequestTimeout or
        NoResponders when the server stays unavailable.
        """
        counter = AckCounter(0, b"", rows.rows)
        attempt = self._store if self._options.target == "jetstream" else self._send
        persistence = Persistence(self._options.write_timeout, "rows_published_again")
        begun, last = time.monotonic(), None
        while counter.count < rows.rows:
            before = counter.count
            try:
                client = self.client(fresh=persistence.failures > 0)
                if last is not None and self._may_be_forgotten(begun):
                    raise last
                attempt(client, rows, counter)
                self._settle(client, rows, counter)
            except PASSING as error:
                self.close()
                if self._may_be_forgotten(begun):
                    raise
                last = error
                if counter.count > before:
                    persistence.progressed()
                persistence.wait_after(error, f" left={rows.rows - counter.count}")
            except BaseException:
                self.close()
                raise
        persistence.succeeded()
        self.done.rows += rows.rows
        self.done.duplicates += len(counter.duplicates)

    def _may_be_forgotten(self, begun: float) -> bool:
        """Whether the stream may have forgotten the ids of rows first sent at `begun`. Such rows are not published again
        here, but by another attempt at the task, which first reads what is stored."""
        return self._check_stream is not None and time.monotonic() - begun > self._options.min_duplicate_window

    def ask(self, question: Callable[[BlockingClient], T]) -> T:
        """The answer to a request, repeated on a new connection for up to `writeTimeout` while the server is unavailable.
        Raises what `question` raises for a refusal, and the last TransportError or RequestTimeout.
        """
        persistence = Persistence(self._options.write_timeout, "sink_asks_again")
        return persisted(persistence, lambda again: question(self.client(fresh=again)), self.close)

    def finish(self) -> Published:
        """Keep the connection for the next task, and return the result."""
        if self._client is not None:
            connections.give_back(self._options.server, self._client)
            self._client = None
        return self.done

    def close(self) -> None:
        """Close the connection: data still on its way must not reach the next reader."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def client(self, *, fresh: bool = False) -> BlockingClient:
        """The connection, established if necessary."""
        if self._client is None:
            self._client = connections.take(self._options.server, self._options.write_timeout, fresh=fresh)
        return self._client

    def _store(self, client: BlockingClient, rows: Rows, counter: AckCounter) -> None:
        """Publish all unacknowledged rows, and wait until they are acknowledged."""
        sid, inbox = client.subscribe(tokens=True, runs=True)
        prefix = f"{inbox}.".encode()
        counter.listen(sid, prefix)
        frames = RowFrames(client.output, rows, prefix, client.info.max_payload)
        parser = ServerOpParser(counter)
        most = inflight(rows, self._options.window)
        waiting, row = 0, 0
        filling = True  # up to `most`, then wait until half are acknowledged: fewer, larger TCP segments
        answered_at = time.monotonic()
        while counter.count < rows.rows:
            before = counter.count
            if filling:
                last = min(rows.rows, row + min(BLOCK_ROWS, most - waiting))
                appended = frames.appended
                row = frames.append_rows(row, last, counter.acked, BLOCK_BYTES)
                waiting += frames.appended - appended
                client.flush()
                filling = row < rows.rows and waiting < most
            client.feed(parser, deadline_after(0 if filling else ACK_SECONDS))
            client.pong(counter.take_pings())
            raise_refusal(counter, rows, self._options.stream)
            if counter.count > before:
                waiting -= counter.count - before
                filling = filling or (row < rows.rows and waiting <= most // 2)
                answered_at = time.monotonic()
            elif time.monotonic() - answered_at > ACK_SECONDS:
                raise RequestTimeout(
                    f"{rows.rows - counter.count} rows were not acknowledged within {ACK_SECONDS:g} s{elsewhere(counter)}",
                    hint="a stream with no_ack acknowledges nothing, nor does any a row with the header Nats-Trace-Only",
                )
        client.unsubscribe(sid)

    def _send(self, client: BlockingClient, rows: Rows, counter: AckCounter) -> None:
        """Publish all rows, and wait until the server has read them."""
        frames = RowFrames(client.output, rows, b"", client.info.max_payload)
        parser = ServerOpParser(counter)
        row = 0
        while row < rows.rows:
            row = frames.append_rows(row, rows.rows, counter.acked, BLOCK_BYTES)
            if row < rows.rows:
                client.flush()
                client.feed(parser, deadline_after(0))
                client.pong(counter.take_pings())
                raise_refusal(counter, rows, "")
        expected = counter.pongs + 1
        client.ping()
        deadline = deadline_after(ACK_SECONDS)
        while counter.pongs < expected:
            if not client.feed(parser, deadline):
                raise RequestTimeout(f"no PONG behind {rows.rows} rows within {ACK_SECONDS:g} s")
            client.pong(counter.take_pings())
            raise_refusal(counter, rows, "")
        counter.settle()

    def _settle(self, client: BlockingClient, rows: Rows, counter: AckCounter) -> None:
        """Check each acknowledging stream once, and the rows that were duplicates."""
        for sample in counter.samples.values():
            stream = str(msgspec.json.decode(sample, type=dict[str, Any]).get("stream", ""))
            if stream not in self.done.streams:
                self.done.streams.add(stream)
                if self._check_stream is not None:
                    self._check_stream(client, stream)
        if counter.duplicates and self._check_duplicates is not None:
            self._check_duplicates(client, rows, counter.duplicates)


def elsewhere(counter: AckCounter) -> str:
    """A suffix for the error message when a reply did not come from a stream."""
    if not counter.foreign:
        return ""
    return f"; what answered {counter.foreign[:80]!r} is no stream but another subscriber to the subject"


def inflight(rows: Rows, window: int) -> int:
    """The number of rows that may await acknowledgement: `window`, fewer when they are large, but at least one."""
    if rows.payloads is None or not rows.rows:
        return window
    mean = max(1, (rows.payloads.offsets[-1] - rows.payloads.offsets[0]) // rows.rows)
    return max(1, min(window, INFLIGHT_BYTES // mean))


def raise_refusal(counter: AckCounter, rows: Rows, stream: str) -> None:
    """Raise the server's error or refusal, if there is one. `stream`: the option of this name."""
    if counter.violation is not None:
        raise TransportError(f"the server broke the protocol: {counter.violation}") from counter.violation
    if counter.errors:
        failure = server_error(counter.errors[0])
        # Errors other than permissions concern this connection: a shutdown, a stale connection, a slow consumer.
        raise failure if isinstance(failure, AuthorizationError) else TransportError(str(failure))
    if counter.refused:
        row, answer = counter.refused[0]
        subject = subject_of(rows, row)
        if not answer:
            raise NoResponders(
                f"no stream takes {subject!r}, the subject of row {row} of the batch",
                value=subject,
                hint="create a stream for it, or target=core for subscribers alone",
            )
        raise refusal(row, subject, stream, answer)


def subject_of(rows: Rows, row: int) -> str:
    """The subject of a row, its own or the option's."""
    own = b""
    if rows.subjects is not None:
        ends = rows.subjects.offsets
        own = bytes(rows.subjects.data[ends[row] : ends[row + 1]])
    return (own or rows.subject).decode("utf-8", "backslashreplace")


HINTS = {
    OTHER_STREAM: "correct the option stream, or the subjects; without the option any stream takes its rows",
    TOO_LARGE: "raise the stream's max_msg_size, or shorten the row",
    SEALED: "choose another stream: one that is sealed takes nothing any more",
    STORE_FAILED: "the stream or its disk is full: raise its limits, or let it discard old messages",
} | dict.fromkeys(
    NOT_ENABLED, "leave the header that asks for it out of the column headers (map_filter), or let the stream allow it"
)
"""What to do about a refusal, by err_code."""


def refusal(row: int, subject: str, stream: str, answer: bytes) -> HeadwaterError:
    """The error in a stream's answer to a row. `stream`: the one that the options name."""
    try:
        problem = msgspec.json.decode(answer, type=dict[str, Any])["error"]
        code, number, words = int(problem["code"]), int(problem.get("err_code", 0)), str(problem["description"])
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        return TransportError(f"row {row} of the batch, to {subject!r}, was answered with {answer[:80]!r}")
    named = f" for stream {stream}" if stream else ""
    words = f"row {row} of the batch, to {subject!r}{named}, was refused: {words}"
    return JetStreamError(code, number, words, hint=HINTS.get(number, ""))
