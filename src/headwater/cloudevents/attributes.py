"""Context attributes: their names, types and canonical strings, and the rules that values must follow.

CloudEvents has seven types; five of them are strings with a grammar, so in memory values are `str`, `int`, `bool` and
`bytes`. A Timestamp keeps the text it arrived with: RFC 3339 allows nanoseconds, leap seconds and a lower-case z, and a
datetime keeps none of them. Every error is a CloudEventError whose `rule` is one of the names below.

An event made by a program must follow the grammars of RFC 3986 and RFC 2046, unless it is made with `strict=False`. When
an event is read, a URI or a media type only has to be a non-empty String, unless it is read with `strict=True`: senders
put spaces and é into `source`, and dropping their events would serve no purpose.
"""

import base64
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from typing import Final, NoReturn

from headwater.errors import CloudEventError

AttributeValue = str | int | bool | bytes

# Values of `CloudEventError.rule` for attributes.
MISSING: Final = "missing"
EMPTY: Final = "empty"
DUPLICATE: Final = "duplicate"
BAD_NAME: Final = "bad name"
WRONG_TYPE: Final = "wrong type"
NOT_A_TYPE: Final = "not an attribute type"
OUT_OF_RANGE: Final = "out of range"
UNSUPPORTED: Final = "unsupported"
CONTROL: Final = "control character"
SURROGATE: Final = "unpaired surrogate"
NONCHARACTER: Final = "noncharacter"
NOT_RFC3339: Final = "not RFC3339"
NOT_URI: Final = "not a URI"
NOT_URI_REFERENCE: Final = "not a URI-reference"
NOT_MEDIA_TYPE: Final = "not a media type"
NOT_BASE64: Final = "base64"

REQUIRED: Final = ("specversion", "id", "source", "type")
OPTIONAL: Final = ("datacontenttype", "dataschema", "subject", "time")
CORE: Final = frozenset(REQUIRED + OPTIONAL)
_IN_ORDER: Final = REQUIRED + OPTIONAL  # so that the first of several errors does not depend on the hash seed
SPECVERSION: Final = "1.0"


class AttributeType(StrEnum):
    """The CloudEvents type system."""

    BOOLEAN = "Boolean"
    INTEGER = "Integer"
    STRING = "String"
    BINARY = "Binary"
    URI = "URI"
    URI_REFERENCE = "URI-reference"
    TIMESTAMP = "Timestamp"


def refuse(
    rule: str, attribute: str | None, value: object = None, header: str | None = None, why: str = ""
) -> NoReturn:
    """Raise the CloudEventError; the message names the attribute, its header, the value (cut) and the rule."""
    where = "event" if attribute is None else f"attribute {attribute!r}"
    if header is not None:
        where += f" (header {header!r})"
    shown = "" if value is None else f", got {cut(value)}"
    detail = f": {why}" if why else ""
    raise CloudEventError(f"{where}: {rule}{detail}{shown}", attribute=attribute, header=header, value=value, rule=rule)


def cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "…"


_NAME: Final = re.compile(r"[a-z0-9]+")


def is_attribute_name(name: str) -> bool:
    """Whether this is a valid name: lower-case ASCII letters and digits, but not `data`. The length is not limited to
    the recommended 20.
    """
    return _NAME.fullmatch(name) is not None and name != "data"


def check_name(name: str, header: str | None = None) -> None:
    """Raises CloudEventError for an invalid attribute name."""
    if name == "data":
        refuse(BAD_NAME, name, header=header, why="'data' is the payload, not an attribute")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        refuse(BAD_NAME, name, header=header, why="a name is made of a-z and 0-9")


# String: no C0, DEL or C1 controls, no surrogates, no noncharacters.
_BAD_CHARACTER: Final = re.compile(
    "[\0-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(f"{chr(plane * 0x10000 + 0xFFFE)}{chr(plane * 0x10000 + 0xFFFF)}" for plane in range(17))
    + "]"
)


def is_plain(text: str) -> bool:
    """Whether text is printable ASCII, which every String may contain. Several values may be joined for one check."""
    return text.isascii() and text.isprintable()


def check_string(name: str, value: str, header: str | None = None) -> None:
    """Raises CloudEventError for a character that a String may not contain."""
    if is_plain(value):
        return
    match = _BAD_CHARACTER.search(value)
    if match is None:
        return
    code = ord(match[0])
    rule = CONTROL if code < 0xA0 else SURROGATE if 0xD800 <= code <= 0xDFFF else NONCHARACTER
    refuse(rule, name, value, header, f"U+{code:04X} at {match.start()} is not allowed in a String")


_TIMESTAMP: Final = re.compile(
    r"([0-9]{4})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[Tt]([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)"
    r"(?:\.([0-9]+))?(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
)
_LONG_MONTHS: Final = frozenset(("01", "03", "05", "07", "08", "10", "12"))


def is_timestamp(text: str) -> bool:
    """Whether this is an RFC 3339 date-time on a day that exists; any number of fraction digits; second 60 is a leap
    second.
    """
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return False
    year, month, day = match.group(1, 2, 3)
    if day < "29" or month in _LONG_MONTHS:
        return True
    if month != "02":
        return day <= "30"
    y = int(year)
    return day == "29" and y % 4 == 0 and (y % 100 != 0 or y % 400 == 0)


def to_datetime(name: str, text: str) -> datetime:
    """The instant as an aware datetime, cut to microseconds; a leap second becomes the first second of the next minute,
    as in POSIX time. Raises CloudEventError for a year that a datetime cannot hold (0000, or 10000 after a leap second).
    """
    match = _TIMESTAMP.fullmatch(text)
    if match is None or not is_timestamp(text):
        refuse(NOT_RFC3339, name, text)
    year, month, day, hour, minute, second, fraction, sign, zone_hours, zone_minutes = match.groups()
    zone: timezone = UTC
    if sign is not None:
        offset = timedelta(hours=int(zone_hours), minutes=int(zone_minutes))
        zone = timezone(-offset if sign == "-" else offset)
    micros = int((fraction or "")[:6].ljust(6, "0"))
    try:
        start = datetime(int(year), int(month), int(day), int(hour), int(minute), tzinfo=zone)
        return start + timedelta(seconds=int(second), microseconds=micros)
    except (ValueError, OverflowError) as error:
        raise CloudEventError(
            f"attribute {name!r}: {text!r} does not fit a datetime; use its text",
            attribute=name,
            value=text,
            rule=OUT_OF_RANGE,
        ) from error


def from_datetime(name: str, value: datetime) -> str:
    """RFC 3339 text. Raises CloudEventError for a datetime without a time zone, or with an offset finer than minutes."""
    text = value.isoformat()
    text = text[:-6] + "Z" if text.endswith("+00:00") else text
    if not is_timestamp(text):
        refuse(NOT_RFC3339, name, value, why="a datetime needs a time zone, in whole minutes")
    return text


_LITERAL: Final = r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]*"
# No choice for each character: 5 times faster.
_REFERENCE: Final = re.compile(rf"{_LITERAL}(?:%[0-9A-Fa-f]{{2}}{_LITERAL})*")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:.*", re.DOTALL)
_TOKEN: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_MEDIA_TYPE: Final = re.compile(
    rf'{_TOKEN}/{_TOKEN}(?:[ \t]*;[ \t]*{_TOKEN}=(?:{_TOKEN}|"(?:[^"\\]|\\.)*"))*[ \t]*;?[ \t]*'
)


def is_uri_reference(text: str) -> bool:
    """Whether text has only characters that RFC 3986 allows, and at most one `#`."""
    return _REFERENCE.fullmatch(text) is not None and text.count("#") <= 1


def is_uri(text: str) -> bool:
    """Whether this is a URI-reference that begins with a scheme."""
    return is_uri_reference(text) and _SCHEME.fullmatch(text) is not None


def canonical_string(name: str, value: object, declared: AttributeType | None = None) -> str:
    """The canonical string of an attribute value; `declared` is the type that a str must match. CloudEvents has neither
    floating-point numbers nor containers. Raises CloudEventError.
    """
    if isinstance(value, bool):
        kind, text = AttributeType.BOOLEAN, "true" if value else "false"
    elif isinstance(value, int):
        if not -(2**31) <= value < 2**31:
            refuse(OUT_OF_RANGE, name, value, why="an Integer has 32 bits")
        kind, text = AttributeType.INTEGER, str(int(value))
    elif isinstance(value, (bytes, bytearray, memoryview)):
        kind, text = AttributeType.BINARY, base64.b64encode(value).decode()
    elif isinstance(value, datetime):
        kind, text = AttributeType.TIMESTAMP, from_datetime(name, value)
    elif isinstance(value, str):
        check_string(name, value)
        return _of_grammar(name, str.__str__(value), declared)
    else:
        refuse(NOT_A_TYPE, name, value, why=f"{type(value).__name__} is none of the CloudEvents types")
    if declared is not None and declared is not kind:
        refuse(WRONG_TYPE, name, value, why=f"{kind} where {declared} is declared")
    return text


def _of_grammar(name: str, text: str, declared: AttributeType | None) -> str:
    """Return `text` if it is a canonical string of the declared type. Raises CloudEventError."""
    match declared:
        case None | AttributeType.STRING:
            pass
        case AttributeType.TIMESTAMP:
            if not is_timestamp(text):
                refuse(NOT_RFC3339, name, text)
        case AttributeType.URI:
            if not is_uri(text):
                refuse(NOT_URI, name, text)
        case AttributeType.URI_REFERENCE:
            if not is_uri_reference(text):
                refuse(NOT_URI_REFERENCE, name, text)
        case _:
            refuse(WRONG_TYPE, name, text, why=f"String where {declared} is declared")
    return text


def check_context(attributes: Mapping[str, AttributeValue], strict: bool = False, prefix: str | None = None) -> None:
    """Check the attributes of one event together; their Strings have passed `check_string`. `prefix`: that of the
    headers they came in, for the errors. Raises CloudEventError.
    """
    for name in REQUIRED:
        if name not in attributes:
            refuse(MISSING, name, header=_header(prefix, name), why="REQUIRED")
    for name in _IN_ORDER:
        value = attributes.get(name)
        if value is None:
            continue
        if not isinstance(value, str):
            refuse(WRONG_TYPE, name, value, _header(prefix, name), "it is a string")
        if not value:
            refuse(EMPTY, name, header=_header(prefix, name), why="it must not be empty")
    if attributes["specversion"] != SPECVERSION:
        refuse(UNSUPPORTED, "specversion", attributes["specversion"], _header(prefix, "specversion"), "only 1.0 is")
    time = attributes.get("time")
    if time is not None and not is_timestamp(str(time)):
        refuse(NOT_RFC3339, "time", time, _header(prefix, "time"))
    if strict:
        check_grammar(attributes, prefix)


def check_grammar(attributes: Mapping[str, AttributeValue], prefix: str | None = None) -> None:
    """The additional checks of `strict`: the grammars of RFC 3986 and RFC 2046. Raises CloudEventError."""
    for name, rule, fulfils in (
        ("source", NOT_URI_REFERENCE, is_uri_reference),
        ("dataschema", NOT_URI, is_uri),
        ("datacontenttype", NOT_MEDIA_TYPE, _MEDIA_TYPE.fullmatch),
    ):
        value = attributes.get(name)
        if value is not None and not fulfils(str(value)):
            encoded = "percent-encode what is not ASCII" if not str(value).isascii() else ""
            refuse(rule, name, value, _header(prefix, name), encoded)


def _header(prefix: str | None, name: str) -> str | None:
    return None if prefix is None else prefix + name
