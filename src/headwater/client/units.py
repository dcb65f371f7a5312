"""The one place where times change their unit: seconds in Python, nanoseconds and RFC 3339 texts on the wire.

A field of a configuration that is declared as `Seconds` takes seconds (an int or a float) or a `timedelta`, and is read as
a float; one declared as `Instant` takes an RFC 3339 text or an aware `datetime`, and is read as the text. They are
converted when the configuration is made, once more before it is sent (it may have been changed), and on the way in by
`read_wire`.

Refused with ConfigError: values that are no time (text, bool, NaN), negative ones, those above 292 years or below a
nanosecond (the wire format has no such values), waits of more than a year, and whole numbers from 10**9 on that end in
six zeros, which are meant as nanoseconds. A naive datetime is refused because it is ambiguous.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeAlias, TypeVar

import msgspec

from headwater.errors import ConfigError, RemoteProtocolError

SECOND = 10**9
YEAR = 366 * 86_400
LONGEST = (1 << 63) // SECOND - 1  # what 64 bits of nanoseconds hold
MILLION = 10**6

Read = TypeVar("Read")
Written = TypeVar("Written")

if TYPE_CHECKING:

    class Setting(Generic[Read, Written]):
        """A field that is read as one type and takes more."""

        def __get__(self, owner: object, kind: type | None = None) -> Read: ...

        def __set__(self, owner: object, value: Written) -> None: ...

    Seconds: TypeAlias = Setting[float, float | timedelta]
    Wait: TypeAlias = Setting[float, float | timedelta]
    Waits: TypeAlias = Setting[list[float] | None, Sequence[float | timedelta] | None]
    Instant: TypeAlias = Setting[str | None, str | datetime | None]
else:

    class Seconds(float):
        """A duration that has been checked."""

        longest = LONGEST

    class Wait(Seconds):
        """A duration that a program waits for: more than a year can only be a mistake."""

        longest = YEAR

    Waits = list[Wait] | None
    _Text = Annotated[str, msgspec.Meta(extra={"instant": True})]
    Instant = _Text | None


Lifetime: TypeAlias = str | float | timedelta


def unset(default: Any = None) -> Any:
    """The default of a field of these types: 0 for durations, None for the others."""
    return msgspec.field(default=default)


class Timed(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Root of the configurations and answers that have times."""

    def __post_init__(self) -> None:
        check_times(self)


def check_times(made: msgspec.Struct) -> None:
    """For `__post_init__`: convert every time of a value. Raises ConfigError."""
    for name, kind in timed_fields(type(made)):
        value = getattr(made, name)
        if value is not None:
            msgspec.structs.force_setattr(made, name, _taken(kind, value, name))  # some are frozen


@cache
def timed_fields(kind: type[msgspec.Struct]) -> list[tuple[str, Any]]:
    """The fields with times, and which of the types above each is declared as."""
    known: tuple[Any, ...] = (Seconds, Wait, Waits, Instant)
    return [(field.name, field.type) for field in msgspec.structs.fields(kind) if field.type in known]


def in_seconds(value: float | timedelta, name: str, longest: float = LONGEST) -> float:
    """A caller's duration in seconds. `name`: the field's name in errors. Raises ConfigError for an invalid one."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise ConfigError(f"{name} is a time in seconds, or a timedelta, not {value!r}", value=value)
    if value < 0:
        raise ConfigError(f"{name} is negative: {value!r}", value=value, limit=0)
    if value >= SECOND and value % MILLION == 0:
        hint = f"for these nanoseconds write {value / SECOND:g}"
        raise ConfigError(f"{name} is in seconds: {value!r} looks like nanoseconds", value=value, hint=hint)
    if value > longest:
        hint = "times are in seconds, not in milliseconds or nanoseconds"
        raise ConfigError(f"{name} is longer than {longest} seconds: {value!r}", value=value, limit=longest, hint=hint)
    if 0 < value < 1 / SECOND:
        raise ConfigError(f"{name} is less than a nanosecond: {value!r}", value=value, limit=1 / SECOND)
    return value


def nanoseconds(value: float) -> int:
    """Checked seconds as the wire has them: 0.1 are 100,000,000, whatever binary fractions say."""
    return value * SECOND if isinstance(value, int) else int(Decimal(repr(float(value))).scaleb(9).to_integral_value())


def instant(value: str | datetime, name: str) -> str:
    """A point in time as RFC 3339. Raises ConfigError for a naive datetime."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            hint = "datetime.now(UTC), or .astimezone()"
            raise ConfigError(f"{name} has no time zone: {value.isoformat()}", value=str(value), hint=hint)
        return value.isoformat()
    if not isinstance(value, str):
        raise ConfigError(f"{name} is an RFC 3339 text or an aware datetime, not {value!r}", value=value)
    return value


def lifetime(value: str | float | timedelta | None) -> str | None:
    """The value of a `Nats-TTL` header: text as it is (`"5s"`, `"never"`), seconds and timedeltas as Go writes them."""
    if value is None or isinstance(value, str):
        return value
    seconds = in_seconds(value, "ttl")
    if not seconds:
        raise ConfigError("ttl is 0", value=value, hint='"never" keeps the message; without ttl the stream decides')
    whole, rest = divmod(nanoseconds(seconds), SECOND)
    return f"{whole}.{rest:09d}".rstrip("0") + "s" if rest else f"{whole}s"


def _taken(kind: Any, value: Any, name: str) -> Any:
    if kind == Instant:
        return instant(value, name)
    if kind in (Seconds, Wait):
        checked_before = isinstance(value, Seconds)  # type: ignore[misc] # a descriptor to mypy
        return value if checked_before else kind(in_seconds(value, name, kind.longest))
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ConfigError(f"{name} is a list of times in seconds, not {value!r}", value=value)
    return [_taken(Wait, each, name) for each in value]


def checked(value: Any) -> Any:
    """A copy of a value to send, with every time checked and converted: fields may have been assigned since."""
    if isinstance(value, msgspec.Struct):
        return type(value)(**{field: checked(getattr(value, field)) for field in value.__struct_fields__})
    if isinstance(value, Mapping):
        return {name: checked(inner) for name, inner in value.items()}
    return [checked(inner) for inner in value] if isinstance(value, list) else value


def write_wire(value: Any) -> Any:
    """The hook of an encoder, for types that it does not support."""
    if isinstance(value, float):  # a Seconds; it writes plain floats itself
        return nanoseconds(value)
    raise NotImplementedError(f"{type(value).__name__} has no JSON")


def read_wire(kind: Any, value: Any) -> Any:
    """The hook of a decoder: nanoseconds to seconds."""
    if kind in (Seconds, Wait) and isinstance(value, int) and not isinstance(value, bool):
        return kind(value / SECOND if value >= 0 else -1.0)  # a negative one means "never"
    if kind is object:
        return value  # of an answer that is not parsed
    raise RemoteProtocolError(f"no time: {value!r}", value=str(value)[:200])
