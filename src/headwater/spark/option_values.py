"""Parse Spark's option strings into checked values; shared by sources and sinks.

Spark passes strings with lower-cased names and ignores unknown ones. So here an unknown option is an error that suggests
the nearest known name, and an invalid value is an error that names its option. Secrets are never values here, only
references to them (`headwater.spark.server_options`).
"""

import difflib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from headwater.errors import ConfigError, HeadwaterError

T = TypeVar("T")


def lowered(given: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """The options by their lower-cased names. Raises ConfigError for a name that is not in `names`."""
    options = {name.lower(): value for name, value in given.items()}
    known = {name.lower(): name for name in names}
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {known[near[0]]}?" if near else f"known are {', '.join(names)}"
            if name == "path":
                hint = f"load, save and start take no path here: .option('stream', {options[name]!r})"
            raise ConfigError(f"unknown option {name!r}", value=name, hint=hint)
    return options


def parsed(options: Mapping[str, str], name: str, parse: Callable[[str], T], default: T) -> T:
    """The option parsed by `parse`; errors are prefixed with the option's name. Raises ConfigError."""
    text = options.get(name.lower())
    if text is None:
        return default
    try:
        return parse(text.strip())
    except (HeadwaterError, ValueError) as error:
        raise ConfigError(f"option {name}: {error}", value=text) from error


def listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def count(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise ValueError(f"{text!r} is no whole number above 0")
    return int(text)


def seconds(text: str) -> float:
    value = float(text.removesuffix("s"))
    if not 0 < value < float("inf"):
        raise ValueError(f"{text!r} is no time in seconds above 0")
    return value


_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size(text: str) -> int:
    """Bytes, in Spark's notation for sizes: 1048576, 512k, 64m, 1g."""
    number = text.lower().rstrip("kmgb")
    unit = text.lower()[len(number) :]
    unit = unit if len(unit) < 2 else unit.removesuffix("b")
    if unit not in _UNITS:
        raise ValueError(f"{text!r} is no size in bytes, such as 64m")
    return count(number) * _UNITS[unit]


def truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def one_of(*choices: str) -> Callable[[str], str]:
    """A parser that accepts one of the given words, ignoring case."""

    def choose(text: str) -> str:
        if text.lower() not in choices:
            raise ValueError(f"{text!r} is none of {', '.join(choices)}")
        return text.lower()

    return choose


def instant(text: str) -> datetime:
    """A time: ISO 8601 with a zone, or milliseconds since 1970, as in Spark's Kafka source."""
    if text.isascii() and text.isdigit():
        return datetime.fromtimestamp(int(text) / 1000, UTC)
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no time such as 2026-11-21T03:49:36Z, nor milliseconds since 1970") from None
    if value.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return value.astimezone(UTC)
