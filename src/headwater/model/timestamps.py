"""Times and durations in JetStream's JSON: RFC 3339 in UTC with nanoseconds, and Go's duration text.

Inside the broker a point in time is an int, nanoseconds since 1970; `ZERO` is Go's zero time, JetStream's "never".
Python's datetime stops at microseconds, so the nanoseconds are carried beside it. As Go does, a fraction loses its
trailing zeros.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

ZERO = "0001-01-01T00:00:00Z"

SECOND = 1_000_000_000  # ns

_UNITS = {
    b"ns": 1,
    b"us": 10**3,
    "µs".encode(): 10**3,
    "μs".encode(): 10**3,
    b"ms": 10**6,
    b"s": 10**9,
    b"m": 60 * 10**9,
    b"h": 3600 * 10**9,
}
_DURATION_PART = re.compile(r"(?=\.?[0-9])([0-9]{0,18})(?:\.([0-9]{0,18}))?(ns|us|µs|μs|ms|s|m|h)".encode())
_LONGEST_DURATION = 1 << 63  # ns, in Go's 64 bits
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_TEXT = datetime(1970, 1, 1)  # without a zone, so that `isoformat` adds none: a third of the time of `strftime`
_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?\d*(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII)


def format_time(ns: int) -> str:
    """`ns` since 1970 as RFC 3339."""
    seconds, fraction = divmod(ns, SECOND)
    text = _text_of_second(seconds)
    digits = f"{fraction:09}".rstrip("0")
    return f"{text}.{digits}Z" if digits else f"{text}Z"


@lru_cache(64)
def _text_of_second(seconds: int) -> str:
    """Without fraction and zone: a stream that republishes writes the time of each message."""
    return (_EPOCH_TEXT + timedelta(seconds=seconds)).isoformat()


def parse_time(text: str) -> int:
    """Nanoseconds since 1970. Raises ValueError for anything that RFC 3339 does not allow."""
    found = _RFC3339.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no RFC 3339 time")
    date, time, fraction, sign, hours, minutes = found.groups()
    moment = datetime.fromisoformat(f"{date}T{time}+00:00")
    if sign:
        shift = timedelta(hours=int(hours), minutes=int(minutes))
        moment += -shift if sign == "+" else shift
    # Whole seconds come by integer arithmetic: a float holds 2**53 ns, which is 104 days.
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * SECOND + int((fraction or "0").ljust(9, "0"))


def tidied_time(text: str) -> str:
    """The time as Go writes it, in the zone that it is given in. Raises ValueError as `parse_time`."""
    parse_time(text)
    head, zone = (text[:-1], "Z") if text[-1] in "Zz" else (text[:-6], text[-6:])
    head = head.upper()
    if "." in head:
        whole, _, fraction = head.partition(".")
        digits = fraction[:9].rstrip("0")
        head = f"{whole}.{digits}" if digits else whole
    return head + ("Z" if zone in ("+00:00", "-00:00") else zone)


def format_duration(ns: int) -> str:
    """A span as Go prints it (`1s`, `1.5s`, `2m0s`, `300ms`), for the texts of statuses."""
    if ns == 0:
        return "0s"
    if abs(ns) < SECOND:
        for size, unit in ((1_000_000, "ms"), (1_000, "µs"), (1, "ns")):
            if abs(ns) >= size:
                return f"{_decimal(ns, size)}{unit}"
    sign, rest = ("-", -ns) if ns < 0 else ("", ns)
    minutes, rest = divmod(rest, 60 * SECOND)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, SECOND)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"


def parse_duration(text: bytes) -> int | None:
    """Nanoseconds of a Go duration such as `1m30s`, `-1.5h` or `.5s`; None for text that is no duration."""
    sign, text = (-1, text[1:]) if text.startswith(b"-") else (1, text.removeprefix(b"+"))
    if text == b"0":
        return 0
    total = at = 0
    while at < len(text):
        part = _DURATION_PART.match(text, at)
        if part is None:
            return None
        whole, fraction, unit = part.groups()
        total += int(whole or b"0") * _UNITS[unit]
        if fraction:
            total += int(fraction) * _UNITS[unit] // 10 ** len(fraction)
        at = part.end()
    return sign * total if text and total < _LONGEST_DURATION else None


def _decimal(value: int, size: int) -> str:
    whole, part = divmod(abs(value), size)
    digits = str(part).zfill(len(str(size)) - 1).rstrip("0") if part else ""
    return ("-" if value < 0 else "") + str(whole) + (f".{digits}" if digits else "")
