"""The executor's part: read the messages of a range, in order, each exactly once.

If the stream's server is our own broker, and there is no filter, the range comes as stored batches
(`headwater.spark.stored_replay`). Otherwise it is replayed by an ephemeral pull consumer that starts at its first sequence,
acknowledges nothing and is deleted at the end; nothing of it outlives the read. Two pull requests are outstanding, so that
the server never waits for us. No request is for more than the range can still hold, so the server sends nothing beyond its
end. Servers give messages to the requests in turn, so the reader counts the messages due for all requests together; a
request that ends early (by size or time) reports how many messages it lacks.

    create consumer at `position + 1` ─▶ pull, pull ─▶ feed decoder ─▶ take columns ─▶ … ─▶ range complete
                ▲                                         │
                └──── connection or consumer lost ────────┘

The decoder's `position` is the only state. After any failure (connection, consumer, a delivery missing in the consumer's
own count) the read continues with a new consumer after that position, so no row can be duplicated or skipped. It gives up
when no row has come for `readTimeout`, so a broker restart only costs a query time. A connection reset is the normal result
when Spark does not fetch rows for longer than the server's write deadline (10 s), for example while a JVM compiles its
first job on a busy machine.

A range ends when its last planned sequence, or a later one, was received, or when the stream's leader confirms that the
rest is gone: a consumer of a replicated stream may be on a server that is still catching up, and lack messages for that
reason.

Messages that the stream has lost cannot be read: a recreated stream, or sequences that expire while the range is being
read, cause a `DataLossError`, or a logged warning if `failOnDataLoss` is off.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from headwater.client.blocking import BlockingClient
from headwater.columns.stored_columns import StoredDecoder
from headwater.errors import (
    ConfigError,
    DataLossError,
    HeadwaterError,
    JetStreamError,
    RemoteProtocolError,
    RequestTimeout,
    TransportError,
)
from headwater.model.header_block import lookup, parse_status
from headwater.net.blocking import deadline_after
from headwater.spark import connections
from headwater.spark.offsets import Offset, StreamState
from headwater.spark.options import SourceOptions
from headwater.spark.ranges import Range, check_readable, loss, report
from headwater.spark.stored_replay import ANSWER_BYTES, OFFERED, SMALLEST_ANSWER, NotOffered, StoredReplay
from headwater.spark_runtime.persistence import PASSING, Persistence
from headwater.wire.columns import ColumnDecoder, Columns
from headwater.wire.server_ops import ServerOpParser

logger = logging.getLogger(__name__)

BATCH_ROWS = 8_192  # rows after which a batch is handed on; Spark's speed is flat between 5,000 and 20,000
BATCH_BYTES = 32 << 20  # or bytes in its largest column
OUTSTANDING = 2  # pull requests
# Bytes of one pull request. A server closes a connection with 64 MiB unsent ("slow consumer"), and Spark may well read more
# slowly than a server sends. It is never less than one message may have.
REQUEST_BYTES = 8 << 20
EXPIRES = 5.0  # seconds after which a pull request expires on the server
NO_MESSAGE, NO_STREAM = 10037, 10059  # err_codes
INACTIVE_SECONDS = 30  # after which the server deletes the consumer of a dead reader

REQUEST_ENDED_STATUSES = ("batch completed", "message size exceeds maxbytes")
CONSUMER_LOST_STATUSES = ("consumer deleted", "leadership change", "server shutdown", "consumer is push based")


class _ConsumerLost(TransportError):
    """The consumer ended before the range did; the read may continue with a new one."""


class _StreamBehind(TransportError):
    """The stream ends before the range does: its leader may not have caught up yet, or its end is lost."""

    def __init__(self, loss: DataLossError) -> None:
        super().__init__(str(loss))
        self.loss = loss


def read_range(wanted: Range[str], options: SourceOptions) -> Iterator[Columns]:
    """The rows of `wanted`, a few thousand at a time. Raises DataLossError (see above), the last TransportError or
    RequestTimeout when the server is unavailable, and ConfigError or JetStreamError when it refuses.
    """
    with_raw = options.wants_raw or options.decode == "cloudevents"
    decoder = StoredDecoder(wanted.start, wanted.end, with_map=options.wants_map, with_raw=with_raw)
    persistence = Persistence(options.read_timeout, f"range_interrupted stream={wanted.place}")
    size = ANSWER_BYTES
    while not decoder.complete:
        before = decoder.position
        try:
            yield from _attempt(decoder, wanted, options, size, fresh=persistence.failures > 0)
        except PASSING as error:
            if decoder.position > before:
                persistence.progressed()
            else:
                size = max(size // 8, SMALLEST_ANSWER)  # a connection that fails repeatedly may manage a smaller answer
            try:
                persistence.wait_after(error, f" position={decoder.position}")
            except _StreamBehind as final:
                report(final.loss, options.fail_on_data_loss)
                decoder.finish()
    persistence.succeeded()
    if decoder.rows:
        yield decoder.take()


def _attempt(
    decoder: StoredDecoder, wanted: Range[str], options: SourceOptions, size: int, *, fresh: bool
) -> Iterator[Columns]:
    """Read from the decoder's position on, until the range is complete or an error occurs."""
    client = connections.take(options.server, options.read_timeout, fresh=fresh)
    try:
        state = stream_state(client, wanted.place)
        _refuse_loss(state, wanted, decoder.position + 1, options)
        if state.created == wanted.created:
            offered = state.stored_batches == OFFERED and options.transport == "auto" and not options.subjects
            yield from _replayed(client, decoder, wanted, options, size if offered else 0)
            if decoder.complete:
                _check_head(client, decoder, wanted, options)
        else:
            decoder.finish()  # the loss is accepted; another stream of this name is no part of the range
    except BaseException:
        # The exchange is incomplete: data still on its way must not reach the next reader.
        client.close()
        raise
    connections.give_back(options.server, client)


def _replayed(
    client: BlockingClient, decoder: StoredDecoder, wanted: Range[str], options: SourceOptions, size: int
) -> Iterator[Columns]:
    """The rows from the decoder's position on. `size`: bytes of an answer with stored batches; 0 to use a consumer."""
    if size:
        replay = StoredReplay(client, decoder, wanted, size, options.read_timeout, (BATCH_ROWS, BATCH_BYTES))
        try:
            yield from replay.run()
        except NotOffered as error:
            logger.warning("read_through_consumer stream=%s: %s", wanted.place, error)
        else:
            if not decoder.complete:
                check_end(client, decoder.position, wanted, options)
                decoder.finish()
            return
    yield from _Replay(client, decoder, wanted, options).run()


class _Replay:
    """One consumer: created, read to its end, deleted."""

    def __init__(
        self, client: BlockingClient, decoder: ColumnDecoder, wanted: Range[str], options: SourceOptions
    ) -> None:
        self.client = client
        self.decoder = decoder
        self.wanted = wanted
        self.options = options
        self.due = 0  # messages still to come for all outstanding pull requests together
        self.counted = 0  # messages of `decoder.received` that are accounted for
        self.request_bytes = max(REQUEST_BYTES, 2 * client.info.max_payload)
        self.exceeded_at = -1  # position at which a request last reached that limit

    def run(self) -> Iterator[Columns]:
        """Yield columns whenever enough rows have come; the rest stays in the decoder."""
        client, decoder, stream = self.client, self.decoder, self.wanted.place
        consumer, pending = create_consumer(client, stream, decoder.position + 1, self.options.subjects)
        if pending == 0:
            check_end(client, decoder.position, self.wanted, self.options)
            decoder.finish()
        else:
            sid, inbox = client.subscribe()
            decoder.resubscribe(sid)
            parser = ServerOpParser(decoder)
            last_progress = time.monotonic()
            # A consumer that reports no more messages is not trusted, because it counts down from an old number; a new one,
            # created at this position, has a new count.
            while not decoder.complete and not decoder.drained:
                self._top_up(consumer, inbox)
                client.feed(parser, deadline_after(min(EXPIRES, self.options.read_timeout)))
                client.pong(decoder.take_pings())
                if self._account():
                    last_progress = time.monotonic()
                elif time.monotonic() - last_progress > self.options.read_timeout:
                    waited = f"{self.options.read_timeout:g} s"
                    raise RequestTimeout(
                        f"no message of {stream} after {decoder.position} within {waited}", value=stream
                    )
                if decoder.rows >= BATCH_ROWS or decoder.size >= BATCH_BYTES:
                    yield decoder.take()
            client.unsubscribe(sid)
        client.forget_consumer(stream, consumer)

    def _top_up(self, consumer: str, inbox: str) -> None:
        """Keep `OUTSTANDING` pull requests on the server, as far as the range can use them."""
        while self.due <= (OUTSTANDING - 1) * self.options.fetch_batch:
            left = self.wanted.end - 1 - self.decoder.position - self.due
            batch = min(self.options.fetch_batch, left)
            if batch <= 0:
                return
            self.client.pull(self.wanted.place, consumer, inbox, batch, EXPIRES, self.request_bytes)
            self.due += batch

    def _account(self) -> bool:
        """Subtract deliveries from the messages due, and handle statuses; returns whether any message came."""
        decoder = self.decoder
        if decoder.violation is not None:
            raise TransportError(f"the server broke the protocol: {decoder.violation}") from decoder.violation
        if decoder.errors:
            raise TransportError(f"the server answered: {decoder.errors.pop(0)}")
        came = decoder.received - self.counted
        self.counted = decoder.received
        self.due -= came
        for block in decoder.statuses:
            self._act_on(block)
        decoder.statuses.clear()
        if decoder.skipped and not decoder.complete and not decoder.drained:
            raise _ConsumerLost(f"a delivery after sequence {decoder.position} was lost on the way")
        return came > 0

    def _act_on(self, block: bytes) -> None:
        """Handle a status, which ends a pull request, the consumer, or the read (JetStream API, CONSUMER.MSG.NEXT)."""
        status = parse_status(block)
        if status is None or status.code == 100:
            return
        text = (status.description or "").lower()
        if status.code == 408 or (status.code == 409 and text.startswith(REQUEST_ENDED_STATUSES)):
            lacking = lookup(block, b"Nats-Pending-Messages")
            if lacking is None:  # before nats-server 2.9
                raise _ConsumerLost("a pull request ended without the number of messages that it lacks")
            self.due -= int(lacking)
            if text.startswith("message size exceeds"):
                if self.exceeded_at == self.decoder.position:
                    self.request_bytes *= 2  # a single message is larger: it was stored under another max_payload
                self.exceeded_at = self.decoder.position
        elif status.code == 503 or (status.code == 409 and text.startswith(CONSUMER_LOST_STATUSES)):
            raise _ConsumerLost(f"the consumer is gone: {status.code} {status.description or 'no responders'}")
        elif status.code == 409 and text.startswith("exceeded maxrequestbatch"):
            raise ConfigError(
                f"the server refuses pull requests of {self.options.fetch_batch}: {status.description}",
                value=self.options.fetch_batch,
                hint="lower the option fetchBatch",
            )
        else:
            raise HeadwaterError(f"pulling from {self.wanted.place} was refused: {status.code} {status.description}")


def stream_state(client: BlockingClient, stream: str) -> StreamState:
    """The stream's state from STREAM.INFO. Raises JetStreamError, with a hint for a stream that does not exist."""
    return StreamState.from_info(_stream_api(client, "STREAM.INFO", stream, None))


def _stream_api(client: BlockingClient, call: str, stream: str, body: dict[str, Any] | None) -> dict[str, Any]:
    try:
        return client.api(f"{call}.{stream}", body)
    except JetStreamError as error:
        if error.err_code == NO_STREAM:
            error.hint = f"create the stream {stream}, or check the options stream and servers"
        raise


def create_consumer(
    client: BlockingClient,
    stream: str,
    start: int | datetime,
    subjects: Sequence[str] = (),
    *,
    headers_only: bool = False,
) -> tuple[str, int]:
    """Create an ephemeral pull consumer that starts at a sequence or a time; returns its name and its number of messages."""
    config: dict[str, Any] = {
        "ack_policy": "none",
        "replay_policy": "instant",
        "max_deliver": -1,
        "inactive_threshold": INACTIVE_SECONDS * 1_000_000_000,
        "num_replicas": 1,
        "mem_storage": True,
    }
    if isinstance(start, int):
        config |= {"deliver_policy": "by_start_sequence", "opt_start_seq": start}
    else:
        config |= {"deliver_policy": "by_start_time", "opt_start_time": start.isoformat().replace("+00:00", "Z")}
    if headers_only:
        config["headers_only"] = True
    if len(subjects) == 1:
        config["filter_subject"] = subjects[0]
    elif subjects:
        config["filter_subjects"] = list(subjects)
    created = _stream_api(client, "CONSUMER.CREATE", stream, {"stream_name": stream, "config": config})
    try:
        return str(created["name"]), int(created.get("num_pending", 0))
    except (KeyError, ValueError) as error:
        raise RemoteProtocolError("CONSUMER.CREATE was answered without a name", value=created) from error


def check_end(client: BlockingClient, position: int, wanted: Range[str], options: SourceOptions) -> None:
    """Check with the stream's leader a consumer's claim that nothing of `wanted` is left after `position`. A consumer
    counts the messages on its own server, and a replica that is catching up does not have all of them yet.

    Raises TransportError when the leader has more, or has not caught up itself, and DataLossError for a stream on one
    server that ends before the range does.
    """
    stream = wanted.place
    state = stream_state(client, stream)
    if state.created != wanted.created:
        return  # a loss, which `_check_head` reports
    if state.end < wanted.end:
        problem = DataLossError(
            f"stream {stream} ends at sequence {state.end - 1}, and {wanted.end - 1} was planned: its end is lost, or it "
            "was restored from an older state",
            value=state.end,
            limit=wanted.end,
            hint="failOnDataLoss=false reads on from what is left",
        )
        if state.replicas > 1:
            raise _StreamBehind(problem)
        report(problem, options.fail_on_data_loss)
    left = next_kept(client, stream, position + 1, options.subjects) if state.replicas > 1 else None
    if left is not None and left < wanted.end:
        raise _ConsumerLost(f"the consumer's server has not caught up: sequence {left} of {stream} is there")


def next_kept(client: BlockingClient, stream: str, sequence: int, subjects: Sequence[str] = ()) -> int | None:
    """The first sequence of the subjects from `sequence` on that the stream's leader has, or None. Raises JetStreamError,
    and RequestTimeout when the request is not permitted.
    """
    found = []
    for subject in subjects or (">",):
        try:
            answer = client.api(f"STREAM.MSG.GET.{stream}", {"seq": sequence, "next_by_subj": subject})
            found.append(int(answer["message"]["seq"]))
        except JetStreamError as error:
            if error.err_code != NO_MESSAGE:
                raise
    return min(found, default=None)


def _refuse_loss(state: StreamState, wanted: Range[str], position: int, options: SourceOptions) -> None:
    """Before reading, check that the planned stream still has everything from `position` on."""
    check_readable(state)
    here = Offset(wanted.place, position, wanted.created)
    report(loss(here, state), options.fail_on_data_loss)


def _check_head(client: BlockingClient, decoder: ColumnDecoder, wanted: Range[str], options: SourceOptions) -> None:
    """After reading, check for rows that expired under the reader: the stream's first sequence may have moved past a gap.

    Gaps are ordinary (filters, individual deletions); only one that the first sequence has since passed is suspicious. It
    is reported even if it existed before, because a false alarm is better than silent loss.
    """
    gap = decoder.first_gap
    if gap < 0:
        return
    state = stream_state(client, wanted.place)
    if state.created != wanted.created:
        report(loss(Offset(wanted.place, gap, wanted.created), state), options.fail_on_data_loss)
    elif wanted.start < state.first and gap < state.first:
        problem = DataLossError(
            f"sequences of stream {wanted.place} from {gap} on expired or were purged while they were being read",
            value=(gap, state.first),
            hint="failOnDataLoss=false reads on from what is left",
        )
        report(problem, options.fail_on_data_loss)
