"""The executor's part: read the messages of a range of one Iggy partition, in order, each exactly once.

Two polls are outstanding at any time; the second starts where the first will end if it is answered in full. If it is not
(an answer has at most 32 MiB, and offsets may be missing), the second answer is discarded and the poll repeated. No offset
is committed, and nothing is left on the server.

The decoder's `position` is the only state: after any failure the read continues after it, so no row can be duplicated or
skipped. Messages missing from the partition cause a `DataLossError`, or a logged warning if `failOnDataLoss` is off.
"""

import logging
from collections import deque
from collections.abc import Iterator

from headwater.columns.iggy_columns import IggyColumns, IggyDecoder
from headwater.errors import DataLossError, RequestTimeout, TransportError
from headwater.iggy_client.blocking import BlockingIggy
from headwater.iggy_wire.classic_codec import PREFIX
from headwater.iggy_wire.identifiers import PollingStrategy
from headwater.net.blocking import deadline_after
from headwater.spark.iggy import links
from headwater.spark.iggy.offsets import IggyRange, loss
from headwater.spark.iggy.options import IggySourceOptions
from headwater.spark.iggy.planner import IggyPlanner, poll_command
from headwater.spark.offsets import Offset
from headwater.spark.ranges import report
from headwater.spark_runtime.persistence import Persistence

logger = logging.getLogger(__name__)

BATCH_ROWS = 8_192
BATCH_BYTES = 32 << 20
OUTSTANDING = 2  # polls
POLL_BYTES = 8 << 20  # the approximate size of one poll's answer, by the mean size of the partition's messages


def read_range(wanted: IggyRange, options: IggySourceOptions) -> Iterator[IggyColumns]:
    """The rows of `wanted`, a few thousand at a time. Raises DataLossError, IggyError for a refusal, and the last
    TransportError or RequestTimeout when the server is unavailable for `readTimeout`."""
    decoder = IggyDecoder(
        wanted.start,
        wanted.end,
        with_map=options.wants_map,
        with_blocks=options.decode == "cloudevents",
        with_typed=options.wants_raw or options.wants_typed,
    )
    persistence = Persistence(options.read_timeout, f"iggy_again partition={wanted.place}")
    if not decoder.complete and not _is_there(wanted, decoder.position + 1, options):
        return
    while not decoder.complete:
        before = decoder.position
        client: BlockingIggy | None = None
        try:
            client = links.take(options.server, options.read_timeout, fresh=persistence.failures > 0)
            yield from _polled(client, decoder, wanted, options)
        except (TransportError, RequestTimeout) as error:
            if client is not None:
                client.close()
            if decoder.position > before:
                persistence.progressed()
            persistence.wait_after(error)
            if not _is_there(wanted, decoder.position + 1, options):
                decoder.finish()
        except BaseException:
            if client is not None:
                client.close()
            raise
        else:
            links.give_back(options.server, client)
    persistence.succeeded()
    if decoder.first_gap >= 0:
        _check_gap(wanted, decoder.first_gap, options)
    if decoder.rows:
        yield decoder.take_rows()


def _polled(
    client: BlockingIggy, decoder: IggyDecoder, wanted: IggyRange, options: IggySourceOptions
) -> Iterator[IggyColumns]:
    """Poll from the decoder's position on, until the range is complete or there are no more messages."""
    most = max(1, min(options.fetch_batch, POLL_BYTES // max(1, wanted.mean)))
    open_polls: deque[int] = deque()  # the start of each open poll
    ahead = decoder.position + 1
    while True:
        while not decoder.complete and len(open_polls) < OUTSTANDING and ahead < wanted.end:
            count = min(most, wanted.end - ahead)
            client.ask(poll_command(options.stream, wanted.place, PollingStrategy.offset(ahead), count))
            open_polls.append(ahead)
            ahead += count
        if not open_polls:
            return
        reply = client.answer(deadline_after(options.read_timeout))
        start = open_polls.popleft()
        following = open_polls[0] if open_polls else ahead
        came = 0
        if start <= decoder.position + 1:
            came = decoder.feed(client.buffer, reply.start + PREFIX.size, reply.end)
        client.consume(reply)
        if start <= decoder.position + 1 and not came:
            # No messages from here on, although they were planned: individual deletions at the end, or a loss.
            _drain(client, open_polls, options)
            _check_gap(wanted, decoder.position + 1, options)
            decoder.finish()
            return
        if decoder.position + 1 < following:  # a partial answer: the polls after it start too late
            _drain(client, open_polls, options)
            ahead = decoder.position + 1
        if decoder.rows >= BATCH_ROWS or decoder.size >= BATCH_BYTES:
            yield decoder.take_rows()


def _drain(client: BlockingIggy, open_polls: deque[int], options: IggySourceOptions) -> None:
    """Discard the answers to all open polls."""
    while open_polls:
        client.consume(client.answer(deadline_after(options.read_timeout)))
        open_polls.popleft()


def _is_there(wanted: IggyRange, position: int, options: IggySourceOptions) -> bool:
    """Whether the planned partition can still be read. Raises DataLossError, if losses are not accepted, when it cannot, or
    when part of it from `position` on is lost."""
    planner = IggyPlanner(options)
    state = planner.states(wanted.place.topic).get(wanted.place)
    problem = loss(Offset(wanted.place, position, wanted.created), state)
    if problem is None:
        return True
    same = state is not None and state.created == wanted.created
    if same and state is not None and position < state.first and (planner.first(wanted.place) or 0) <= position:
        return True  # fewer messages than offsets: only individual messages were deleted, none at the front
    report(problem, options.fail_on_data_loss)
    return same


def _check_gap(wanted: IggyRange, gap: int, options: IggySourceOptions) -> None:
    """Offsets from `gap` on were missing while reading. Individual deletions are ordinary; it is a loss when the first
    offset of the partition has moved past the gap, or the partition was recreated."""
    planner = IggyPlanner(options)
    state = planner.states(wanted.place.topic).get(wanted.place)
    if state is None or state.created != wanted.created or state.end < wanted.end:
        report(loss(Offset(wanted.place, max(gap, wanted.end), wanted.created), state), options.fail_on_data_loss)
        return
    first = planner.first(wanted.place)
    if first is None or first > gap:
        problem = DataLossError(
            f"offsets from {gap} on of partition {wanted.place} expired or were purged while they were being read",
            value=(gap, first),
            hint="failOnDataLoss=false reads on from what is left",
        )
        report(problem, options.fail_on_data_loss)
