"""What a bare word stands for: a number, a size, a boolean, a date, or just itself. And what a duration in quotes means.

    42  -7  1.5          numbers
    1k  64MB  1GiB       sizes: k, m, g, t, p, e alone count by 1000, with b, i or ib behind them by 1024
    true yes on …        booleans, in any case
    2026-11-21T08:00:00Z a date, always UTC
    127.0.0.1:4222       a string, because it has a second dot
    10m30s               a string; but 2m is two million: durations belong in quotes

Raises ValueError with a sentence; the parser adds the place. The sentence never quotes the word: it may be a password.
"""

import re
from datetime import UTC, datetime

from headwater.model.timestamps import SECOND, parse_duration

Scalar = str | bool | int | float | datetime

BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
LARGEST = 1 << 63  # numbers have 64 bits, with a sign

_POWERS = "kmgtpe"
_NUMBER = re.compile(r"(-?[0-9]+)(?:([kmgtpe])([bi]*))?", re.IGNORECASE)
_FLOAT = re.compile(r"-?[0-9]+\.[0-9]+")
_ADDRESS = re.compile(r"[0-9]+\.[0-9]+\.[0-9.:-]*")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_DATE_LIKE = re.compile(r"[0-9]+-")
_FRACTION_LIKE = re.compile(r"-?[0-9]+\.")


def scalar(word: str) -> Scalar:
    """The value of a bare word without escapes and without a `$` in front."""
    first = word[:1]
    if first == "." or first == "-" or (first.isascii() and first.isdigit()):
        return _number(word)
    boolean = BOOLEANS.get(word.lower())
    return word if boolean is None else boolean


def _number(word: str) -> Scalar:
    if found := _NUMBER.fullmatch(word):
        return _integer(found[1], (found[2] or "").lower(), (found[3] or "").lower())
    if _FLOAT.fullmatch(word):
        return float(word)
    if _DATE.fullmatch(word):
        return _date(word)
    if _ADDRESS.fullmatch(word):
        return word
    if word[0] == ".":
        raise ValueError("a number starts with a digit, not with a dot")
    if word[0] == "-":
        raise ValueError("this is no number; a string that starts with - needs quotes")
    if _DATE_LIKE.match(word):
        raise ValueError("this is no date of the form 2026-11-21T08:00:00Z; a string needs quotes here")
    if _FRACTION_LIKE.match(word):
        raise ValueError("this is neither a number nor an address; a string needs quotes here")
    return word


def _integer(digits: str, power: str, unit: str) -> int:
    if len(digits) > 20:
        raise ValueError("the number does not fit in 64 bits")
    number = int(digits)
    if power:
        if unit not in ("", "b", "i", "ib"):
            raise ValueError("there is no such size suffix: use k, kb or kib, and so on for m, g, t, p, e")
        number *= (1024 if unit else 1000) ** (_POWERS.index(power) + 1)
    if not -LARGEST <= number < LARGEST:
        raise ValueError("the number does not fit in 64 bits")
    return number


def _date(word: str) -> datetime:
    try:
        return datetime.strptime(word, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError as error:
        raise ValueError("this is no date") from error


def duration(text: str) -> float:
    """Seconds of a duration as Go writes it: `1h30m`, `250ms`, `1.5s`, `0`. Raises ValueError for anything else."""
    nanoseconds = parse_duration(text.encode("utf-8", "surrogateescape"))
    if nanoseconds is None:
        raise ValueError(
            f'{text!r} is no duration, or longer than 292 years; write for example "2m", "1.5s" or "250ms"'
        )
    return nanoseconds / SECOND
