"""Read a range as stored batches, from a broker that offers them (`docs/stored-batches.md`).

    request [position + 1, end) ─▶ one answer: whole batches, and the position up to which it reaches
                 ▲                      │ first the next request is sent, then this answer is decoded
                 └──────────────────────┘

At most one answer is in flight, so a reader that Spark does not drain costs the server nothing. STREAM.INFO states whether
the stream's server supports such requests (`stored_batches`); nats-server and older brokers do not. If the request is not
permitted, or does not reach that server, `NotOffered` is raised and the range is read through a consumer. Losses are
detected in the same place as for consumers: `headwater.spark.range_reader`.
"""

import json
import time
from collections.abc import Iterator

from headwater.client.blocking import BlockingClient
from headwater.columns.range_answer import RANGE_VERSION, AnswerHead
from headwater.columns.stored_columns import StoredDecoder
from headwater.errors import JetStreamError, RemoteProtocolError, RequestTimeout, TransportError
from headwater.model.timestamps import parse_time
from headwater.net.blocking import deadline_after
from headwater.spark.ranges import Range
from headwater.wire.columns import Columns
from headwater.wire.server_ops import ServerOpParser

ANSWER_BYTES = 2 << 20  # of one answer, about 7,000 rows
SMALLEST_ANSWER = 4 << 10
LOOK_SECONDS = 5.0  # between two checks of the clock while no data arrives
OFFERED = RANGE_VERSION


class NotOffered(TransportError):
    """Stored batches are not available on this connection; a consumer may work."""


class StoredReplay:
    """One read of `wanted` from the decoder's position on. `size`: bytes of an answer. `patience`: seconds without an
    answer. `batch`: rows and bytes at which columns are handed on."""

    def __init__(
        self,
        client: BlockingClient,
        decoder: StoredDecoder,
        wanted: Range[str],
        size: int,
        patience: float,
        batch: tuple[int, int],
    ) -> None:
        self._client = client
        self._decoder = decoder
        self._wanted = wanted
        self._size = size
        self._patience = patience
        self._rows, self._bytes = batch
        self._created_ns = parse_time(str(wanted.created))
        self._inbox = ""
        self._answers = 0
        self._ended = False
        self._problem: Exception | None = None

    def run(self) -> Iterator[Columns]:
        """Yield columns whenever enough rows have come; the rest stays in the decoder. The read ends at the end of the
        range or of the stream, which the decoder distinguishes.

        Raises NotOffered, JetStreamError for a refusal, TransportError, and RequestTimeout when no answer comes.
        """
        client, decoder = self._client, self._decoder
        client.expect(2 * self._size)
        sid, self._inbox = client.subscribe()
        decoder.listen(sid, self._on_answer)
        parser = ServerOpParser(decoder)
        seen, last = 0, time.monotonic()
        self._ask(decoder.position + 1)
        while not (decoder.complete or self._ended):
            client.feed(parser, deadline_after(min(LOOK_SECONDS, self._patience)))
            client.pong(decoder.take_pings())
            self._check()
            if self._answers > seen:
                seen, last = self._answers, time.monotonic()
            elif time.monotonic() - last > self._patience:
                raise RequestTimeout(
                    f"no message of {self._wanted.place} after {decoder.position} within {self._patience:g} s",
                    value=self._wanted.place,
                )
            if decoder.rows >= self._rows or decoder.size >= self._bytes:
                yield decoder.take()
                last = time.monotonic()
        client.unsubscribe(sid)
        client.expect(0)

    def _ask(self, sequence: int) -> None:
        self._client.ask_range(self._wanted.place, sequence, self._wanted.end, self._size, self._inbox)

    def _on_answer(self, head: AnswerHead) -> bool:
        """Send the next request; returns whether to decode this answer."""
        self._answers += 1
        if head.created_ns != self._created_ns:
            self._problem = TransportError(f"stream {self._wanted.place} was made anew under the reader")
        elif head.requested != self._decoder.position + 1 or head.next < head.requested:
            self._problem = RemoteProtocolError(
                f"an answer of [{head.requested}, {head.next}) was not asked for", value=head
            )
        elif head.next == head.requested:
            self._ended = True
        elif head.next < self._wanted.end:
            self._ask(head.next)
        return self._problem is None

    def _check(self) -> None:
        """Raise an error that came instead of rows."""
        decoder, stream = self._decoder, self._wanted.place
        if decoder.violation is not None:
            raise TransportError(f"the server broke the protocol: {decoder.violation}") from decoder.violation
        if self._problem is not None:
            raise self._problem
        if decoder.errors:
            text = decoder.errors.pop(0)
            if text.startswith("Permissions Violation for Publish"):
                raise NotOffered(f"stored batches of {stream} are not permitted: {text}")
            raise TransportError(f"the server answered: {text}")
        if decoder.statuses:
            raise NotOffered(f"no server answers for stored batches of {stream}: {decoder.statuses.pop(0)!r}")
        if decoder.refusal:
            raise refusal(decoder.refusal)


def refusal(answer: bytes) -> Exception:
    """The error in an answer without batches."""
    try:
        error = json.loads(answer)["error"]
        return JetStreamError(int(error["code"]), int(error["err_code"]), str(error["description"]))
    except (ValueError, KeyError, TypeError):
        return RemoteProtocolError("a request for stored batches was answered with something else", value=answer[:80])
