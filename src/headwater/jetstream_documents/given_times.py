"""The times of a request, as they are stored and shown; they are RFC 3339 texts (document.py says why)."""

from headwater.errors import JetStreamError
from headwater.jetstream_documents.api_errors import api_error
from headwater.model.timestamps import ZERO, format_time, parse_time, tidied_time


def start_time(text: str | None) -> str | None:
    """Where a consumer or a copy starts: in the zone that it was given in. Raises JetStreamError."""
    try:
        return tidied_time(text) if text else None
    except ValueError as error:
        raise _invalid(error) from error


def pause_time(text: str | None) -> str | None:
    """Until when a consumer pauses, in UTC; None for Go's zero time. Raises JetStreamError."""
    try:
        return format_time(parse_time(text)) if text and text != ZERO else None
    except ValueError as error:
        raise _invalid(error) from error


def _invalid(error: ValueError) -> JetStreamError:
    return api_error("invalid_json", reason=str(error))
