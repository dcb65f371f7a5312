"""Cron patterns of six fields as nats-server reads them (ADR-51 of NATS), and when they are next due.

    second  minute  hour  day-of-month  month  day-of-week       0-59 0-59 0-23 1-31 1-12 0-6, names in any case of letters
    *  ?  N  N-M  N/step (to the end of the field)  N-M/step  and lists of these

A day has to match both day fields where one of them is `*` or `?`, and either of them where both name days.
Patterns of five fields, `7` for Sunday, `L`, `W` and `#` are not understood, which is why no library for cron serves here:
each understands more or less than the server, and both servers must take the same patterns.

Times are whole seconds since 1970. A zone is a function: the seconds to add at such a time to get local time. Where a
clock is put forward, the hour that is missing counts as the one after it; where it is put back, as the first of the two.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

OffsetAt = Callable[[int], int]

YEARS_AHEAD = 5  # a pattern that is not due within them, such as 30 February, is wrong

_NUMBER = re.compile(r"\+?[0-9]{1,18}")
_EPOCH = datetime(1970, 1, 1)
_MONTHS = {name: at for at, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}
_DAYS = {name: at for at, name in enumerate("sun mon tue wed thu fri sat".split())}

NICKNAMES = {
    "@yearly": "0 0 0 1 1 *",
    "@annually": "0 0 0 1 1 *",
    "@monthly": "0 0 0 1 * *",
    "@weekly": "0 0 0 * * 0",
    "@daily": "0 0 0 * * *",
    "@midnight": "0 0 0 * * *",
    "@hourly": "0 0 * * * *",
}


class _Field(NamedTuple):
    """The values of a field that match. `any_day`: it says nothing about the day, as `*`."""

    values: frozenset[int]
    any_day: bool


class Cron:
    """A pattern, or a nickname such as `@daily`. Raises ValueError for any other text."""

    def __init__(self, pattern: str) -> None:
        fields = NICKNAMES.get(pattern, pattern).split()
        if len(fields) != 6:
            raise ValueError(f"a cron pattern has 6 fields, not {len(fields)}")
        self._seconds = _field(fields[0], 0, 59).values
        self._minutes = _field(fields[1], 0, 59).values
        self._hours = _field(fields[2], 0, 23).values
        self._month_days = _field(fields[3], 1, 31)
        self._months = _field(fields[4], 1, 12, _MONTHS).values
        self._week_days = _field(fields[5], 0, 6, _DAYS)

    def after(self, moment: int, offset_at: OffsetAt) -> int:
        """The first time later than `moment` at which it is due. Raises ValueError where there is none for
        `YEARS_AHEAD` years."""
        at = moment + 1
        last_year = _local(at, offset_at).year + YEARS_AHEAD
        while (local := _local(at, offset_at)).year <= last_year:
            if local.month not in self._months:
                at = _instant(_first_of_next_month(local), offset_at)
            elif not self._day_matches(local):
                at = _instant(local.replace(hour=0, minute=0, second=0) + timedelta(days=1), offset_at)
            elif local.hour not in self._hours:
                at = _instant(local.replace(minute=0, second=0), offset_at) + 3600
            elif local.minute not in self._minutes:
                at += 60 - at % 60
            elif local.second not in self._seconds:
                at += 1
            else:
                return at
        raise ValueError("the cron pattern is not due within five years")

    def _day_matches(self, local: datetime) -> bool:
        of_month = local.day in self._month_days.values
        of_week = (local.weekday() + 1) % 7 in self._week_days.values
        if self._month_days.any_day or self._week_days.any_day:
            return of_month and of_week
        return of_month or of_week


def utc_offset(_: int) -> int:
    """The zone UTC."""
    return 0


def zone_named(name: str) -> OffsetAt:
    """The zone of this name in the machine's time zone data (or the package `tzdata`); `Local` for that of the machine.
    Raises ValueError for an unknown one."""
    if name == "UTC":
        return utc_offset
    if name == "Local":
        return lambda at: _offset(datetime.fromtimestamp(at).astimezone())
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # here: it reads where the machine keeps its zones

    try:
        zone = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"there is no time zone {name!r}") from error
    return lambda at: _offset(datetime.fromtimestamp(at, zone))


def _offset(local: datetime) -> int:
    offset = local.utcoffset()
    return int(offset.total_seconds()) if offset is not None else 0


def _local(at: int, offset_at: OffsetAt) -> datetime:
    return _EPOCH + timedelta(seconds=at + offset_at(at))


def _instant(local: datetime, offset_at: OffsetAt) -> int:
    """The time at which a clock of the zone shows `local`, by Go's choice where there is none or two."""
    shown = (local - _EPOCH) // timedelta(seconds=1)
    offset = offset_at(shown)
    return shown - offset_at(shown - offset) if offset else shown


def _first_of_next_month(local: datetime) -> datetime:
    year, month = (local.year + 1, 1) if local.month == 12 else (local.year, local.month + 1)
    return datetime(year, month, 1)


def _field(text: str, lowest: int, highest: int, names: dict[str, int] | None = None) -> _Field:
    values: set[int] = set()
    any_day = False
    for part in filter(None, text.split(",")):
        more, free = _part(part, lowest, highest, names or {})
        values.update(more)
        any_day = any_day or free
    return _Field(frozenset(values), any_day)


def _part(text: str, lowest: int, highest: int, names: dict[str, int]) -> tuple[range, bool]:
    bounds, *steps = text.split("/")
    ends = bounds.split("-")
    free = ends[0] in ("*", "?")
    if free:
        start, end = lowest, highest
    elif len(ends) > 2:
        raise ValueError(f"{text!r} has too many hyphens")
    else:
        start, end = _number(ends[0], names), _number(ends[-1], names)
    if len(steps) > 1:
        raise ValueError(f"{text!r} has too many slashes")
    step = _number(steps[0], {}) if steps else 1
    if steps and len(ends) == 1:
        end = highest
    if not lowest <= start <= end <= highest or not step:
        raise ValueError(f"{text!r} is outside {lowest}-{highest}")
    return range(start, end + 1, step), free and step == 1


def _number(text: str, names: dict[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is no number")
    return int(text)
