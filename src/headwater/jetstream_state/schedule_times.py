"""When a scheduled message is due: the values of `Nats-Schedule` (ADR-51 of NATS).

    @at <RFC 3339>        once, at that time
    @every <duration>     again and again, a second apart or more, counted from the full second at which it was stored
    six fields, @daily    as cron (model/cron.py), in UTC or the zone of `Nats-Schedule-Time-Zone`

Missed turns are not made up for: the next one is computed from the present time.
"""

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from headwater.jetstream_documents.api_errors import api_error
from headwater.model.header_block import lookup
from headwater.model.timestamps import SECOND, format_time, parse_duration, parse_time

if TYPE_CHECKING:
    from headwater.model.cron import Cron, OffsetAt

PATTERN = b"Nats-Schedule"
TIME_ZONE = b"Nats-Schedule-Time-Zone"

_EPOCH = datetime(1970, 1, 1)
_AT = re.compile(r"(\d{4}-\d\d-\d\dT)(\d\d?)(:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-](\d\d):(\d\d))", re.ASCII)
_ZERO_TIME = -62_135_596_800 * SECOND  # Go's zero time, 1 January of the year 1


class Turn(NamedTuple):
    """A time at which a schedule is due, ns since 1970. `repeats`: others follow. `text`: the time as the server writes it,
    with the offset of the schedule's zone."""

    at: int
    repeats: bool
    text: str


def next_turn(block: bytes, since: int, now: int) -> Turn | None:
    """The turn after `since`, the time at which the message was stored or last due; None for a message without a schedule.
    Raises JetStreamError 10189 for a wrong pattern, 10223 for a wrong zone, which is refused even without a pattern."""
    zone = _zone(block)
    pattern = (lookup(block, PATTERN) or b"").decode("utf-8", "replace")
    if not pattern:
        return None
    try:
        if pattern.startswith(("@at ", "@every ")):
            if zone is not None:
                raise ValueError("a time zone is for cron patterns only")
            return _at(pattern[4:]) if pattern.startswith("@at ") else _every(pattern[7:], since, now)
        from headwater.model.cron import Cron, utc_offset  # most streams have no such schedule

        return _cron(Cron(pattern), zone or utc_offset, since, now)
    except (ValueError, OverflowError) as error:
        raise api_error("schedule_pattern") from error


def _zone(block: bytes) -> "OffsetAt | None":
    name = lookup(block, TIME_ZONE)
    if name is None:
        return None
    from headwater.model.cron import zone_named

    try:
        return zone_named(name.decode())
    except ValueError as error:
        raise api_error("schedule_time_zone") from error


def _at(text: str) -> Turn | None:
    """As Go reads RFC 3339: an hour may have one digit, a fraction may follow a comma."""
    found = _AT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no time")
    date, hour, rest, fraction, zone, hours, minutes = found.groups()
    if int(hour) > 23 or int(hours or 0) > 24 or int(minutes or 0) > 60:
        raise ValueError(f"{text!r} is out of range")
    at = parse_time(f"{date}{int(hour):02}{rest}.{fraction or 0}{zone}")
    return Turn(at, False, format_time(at)) if at != _ZERO_TIME else None


def _every(text: str, since: int, now: int) -> Turn:
    interval = parse_duration(text.encode())
    if interval is None or interval < SECOND:
        raise ValueError(f"{text!r} is no interval of a second or more")
    at = _rounded(since) + interval
    if at < now:
        at = _rounded(now) + interval
    return Turn(at, True, format_time(at))


def _cron(cron: "Cron", offset_at: "OffsetAt", since: int, now: int) -> Turn:
    at = cron.after(since // SECOND, offset_at)
    if at * SECOND < now:
        at = cron.after(_rounded(now) // SECOND, offset_at)
    offset = offset_at(at)
    if not offset:
        return Turn(at * SECOND, True, format_time(at * SECOND))
    hours, minutes = divmod(abs(offset) // 60, 60)
    local = (_EPOCH + timedelta(seconds=at + offset)).isoformat()
    return Turn(at * SECOND, True, f"{local}{'-' if offset < 0 else '+'}{hours:02}:{minutes:02}")


def _rounded(at: int) -> int:
    return (at + SECOND // 2) // SECOND * SECOND
