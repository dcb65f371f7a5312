"""Handles requests for a range as stored batches: limits the size of an answer and sends it.

    $JS.API.HEADWATER.RANGE.<stream>   {"seq":1,"end":500001,"max_bytes":2097152}
                                       ─▶ one message: `columns.range_answer`, or the API's error document

There is no state between requests: an answer gives its end, and the reader continues from there. So a reader that stops
has received at most one unused answer, and permissions apply as to any request under `$JS.API`. An answer is read and
sent in one turn of the loop, about a millisecond for 2 MiB.
"""

import logging
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from headwater.columns.range_answer import RANGE_VERSION, READS_RANGES, AnswerHead
from headwater.errors import JetStreamError, StorageError
from headwater.exchange.router import Router
from headwater.jetstream_documents.answers import TYPE_PREFIX, Answer, encode, error_document
from headwater.jetstream_documents.api_errors import api_error, store_reason
from headwater.jetstream_documents.document import Uint64
from headwater.jetstream_documents.strict_reading import decode_request
from headwater.jetstream_ranges.pieces import send_pieces, sole_client
from headwater.jetstream_state.sequence import offset_of, sequence_of
from headwater.model.header_block import lookup
from headwater.net.piece_queue import as_bytes
from headwater.streams.log import Log

if TYPE_CHECKING:
    from headwater.jetstream_ranges.collecting import Readable

logger = logging.getLogger(__name__)

RANGE_VERB = b"HEADWATER.RANGE."
KIND = "headwater_range_response"
MOST_BYTES = 4 << 20  # upper limit of one answer
USUAL_BYTES = 1 << 20  # below this `max_bytes` also limits the size of a batch
LARGEST_BATCH = 8 << 20  # sent as a whole
PASSED_ON_BYTES = 512 << 10  # of an answer over routes or TLS: below the maximum size of a message there


def offered(header_block: bytes) -> int:
    """The version of stored batches to report to a client that sends this header block with STREAM.INFO; 0 for none."""
    return RANGE_VERSION if lookup(header_block, READS_RANGES) is not None else 0


class RangeRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Sequences `[seq, end)`."""

    seq: Uint64 = 1
    end: Uint64 = (1 << 63) - 1
    max_bytes: Uint64 = MOST_BYTES


class Held(NamedTuple):
    """The stream of a request: its log as stored, the log as the stream reads it, and its creation time."""

    log: Log
    shown: "Readable"
    created_ns: int


def answer_range(router: Router, held: Held | None, reply: bytes, payload: bytes) -> bool:
    """Answer a request; False when it was refused. `held` None: there is no such stream."""
    try:
        if held is None:
            raise api_error("stream_not_found")
        request = decode_request(payload, RangeRequest)
        _send(router, held, request, reply)
    except StorageError as error:
        logger.error("range_failed reason=%s", error)
        _refuse(router, reply, api_error("store_failed", reason=store_reason(error)))
        return False
    except JetStreamError as error:
        _refuse(router, reply, error)
        return False
    return True


def _send(router: Router, held: Held, request: RangeRequest, reply: bytes) -> None:
    client = sole_client(router, reply)
    if client is not None and client.outlet is not None and client.outlet.link.pending > MOST_BYTES:
        raise api_error("too_many_requests")  # earlier answers are still unsent
    limit = MOST_BYTES if client is not None else PASSED_ON_BYTES
    most = max(1, min(request.max_bytes, limit))
    largest = LARGEST_BATCH if client is not None and most >= USUAL_BYTES else most
    requested = max(request.seq, 1)
    from headwater.jetstream_ranges.collecting import Collecting  # here: a start needs it not

    collecting = Collecting(
        held.log, held.shown, max(0, offset_of(request.end)), most, largest, ranges=client is not None
    )
    found = collecting.collect(max(offset_of(requested), held.log.start_offset))
    kept = sequence_of(held.log.start_offset), sequence_of(held.log.end_offset)
    head = AnswerHead(found.batches, held.created_ns, requested, sequence_of(found.next), *kept).encode()
    if client is not None:
        send_pieces(client, reply, [head, *found.pieces])
    else:
        router.publish(reply, b"", b"", b"".join([head, *map(as_bytes, found.pieces)]))


def _refuse(router: Router, reply: bytes, error: JetStreamError) -> None:
    router.publish(reply, b"", b"", encode(Answer(type=TYPE_PREFIX + KIND, error=error_document(error))))
