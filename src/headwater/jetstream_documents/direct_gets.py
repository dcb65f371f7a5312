"""Reads a DIRECT.GET: a valid request, or the status that refuses it. The texts and their order are nats-server's."""

from msgspec.structs import replace

from headwater.errors import JetStreamError
from headwater.jetstream_documents.requests import DirectGetRequest
from headwater.jetstream_documents.strict_reading import decode_request
from headwater.model.timestamps import parse_time

EMPTY_REQUEST = b"NATS/1.0 408 Empty Request\r\n\r\n"
MALFORMED_REQUEST = b"NATS/1.0 408 Malformed Request\r\n\r\n"
BAD_REQUEST = b"NATS/1.0 408 Bad Request\r\n\r\n"


def read_direct_get(payload: bytes, subject: bytes = b"") -> DirectGetRequest | bytes:
    """The request in `payload`, or the status of its refusal. `subject`: the last message of it is requested, outside of the
    document, which then may only say how to answer (`no_hdr`), as `{}` does."""
    if not payload:
        return DirectGetRequest(last_by_subj=_text(subject)) if subject else EMPTY_REQUEST
    try:
        request = decode_request(payload, DirectGetRequest) if payload.strip() else None
        for time in (request.start_time, request.up_to_time) if request is not None else ():
            if time:
                parse_time(time)
    except (JetStreamError, ValueError):
        request = None
    if request is None:
        return MALFORMED_REQUEST
    if not subject:
        return _refusal(request) or request
    if replace(request, max_bytes=0, no_hdr=False) != DirectGetRequest():
        return BAD_REQUEST
    return replace(request, last_by_subj=_text(subject))


def _text(subject: bytes) -> str:
    return subject.decode("utf-8", "surrogateescape")


def _refusal(request: DirectGetRequest) -> bytes | None:
    """The error status for a request that is contradictory or empty; None for a valid one."""
    by_time, several = bool(request.start_time), bool(request.multi_last)
    if not (request.seq or request.last_by_subj or request.next_by_subj or several or by_time):
        return EMPTY_REQUEST
    contradictory = (
        (request.seq and (request.last_by_subj or by_time))
        or (request.last_by_subj and (request.next_by_subj or several or by_time))
        or (several and (request.next_by_subj or by_time))
        or (request.up_to_seq and request.up_to_time)
    )
    return BAD_REQUEST if contradictory else None
