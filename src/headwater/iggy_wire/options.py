"""The options of generation V, which `create_topic`, `create_stream` and `create_user` take beside their fields.
What later protocols made of them is in `option_catalog`.

A block of options is written as typed headers with string keys are. Unknown keys are refused, as in upstream. Sizes and
durations may be texts ("128 MiB", "7 days") over every transport; the number is stored and shown.
"""

import re
from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

from headwater.errors import HeaderError, IggyError
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.reply_codec import OptionView
from headwater.model.typed_header import HeaderKind, HeaderValue
from headwater.model.typed_headers import HeaderForm, TypedHeaders

MAX_OPTIONS: Final = 1024
SEGMENT_LIMITS: Final = (1 << 20, 1 << 30)
SECTOR: Final = 512  # a segment is a multiple of it, upstream's rule
LONGEST_EXPIRY: Final = 0xFFFFFFFF * 1_000_000  # µs that a text may say, upstream's bound
MOST_MESSAGES_TO_SAVE: Final = 16 << 20
MOST_BYTES_TO_SAVE: Final = 1 << 30
NEVER: Final = (1 << 64) - 1
_STRING, _BOOL, _UINT8 = HeaderKind.STRING, HeaderKind.BOOL, HeaderKind.UINT8
_UINT32, _UINT64 = HeaderKind.UINT32, HeaderKind.UINT64
_COMPRESSIONS: Final = {"none": 1, "gzip": 2}
NAMES_OF_COMPRESSION: Final = {code: name for name, code in _COMPRESSIONS.items()}
_DURABILITIES: Final = ("replicated", "persisted")
_RESIZE_POLICIES: Final = ("mutable", "fixed")
_FIXED: Final = HeaderValue.from_str("fixed")
UPDATABLE: Final = {1: frozenset({"compression_algorithm", "message_expiry", "max_topic_size"})}
"""The options that an update may change, by scope: a segment size describes existing files."""


_MAKERS: Final[dict[HeaderKind, tuple[type, Callable[[Any], HeaderValue]]]] = {
    _STRING: (str, HeaderValue.from_str),
    _BOOL: (bool, HeaderValue.from_bool),
    _UINT8: (int, HeaderValue.from_uint8),
    _UINT32: (int, HeaderValue.from_uint32),
    _UINT64: (int, HeaderValue.from_uint64),
}


def _option(key: str, kind: HeaderKind, default: int | bool | str, description: str) -> OptionView:
    return OptionView(key, kind, _MAKERS[kind][1](default).raw, description)


OPTIONS: Final = {
    1: [
        _option(
            "message_expiry", _UINT64, NEVER, 'µs that a message is kept, or a text ("7 days"); the default: for ever'
        ),
        _option("max_topic_size", _UINT64, NEVER, 'bytes of the topic, or a text ("1 GiB"); the default: no limit'),
        _option(
            "segment_size",
            _UINT64,
            1 << 30,
            'bytes of a segment, the unit in which old messages go, or a text ("128 MiB"): a multiple of 512 from 1 MiB to '
            "1 GiB. Where none is chosen, segments are cut at 64 MiB already",
        ),
        _option("messages_required_to_save", _UINT32, 1024, "taken and surpassed: an answer means on disk"),
        _option("size_of_messages_required_to_save", _UINT64, 1 << 20, "taken and surpassed: an answer means on disk"),
        _option("enforce_fsync", _BOOL, True, "taken and surpassed: an answer means on disk"),
        _option("preallocate_segments", _BOOL, False, "taken, and left to the log"),
        _option("compression_algorithm", _STRING, "none", "a label for clients: none, gzip"),
        _option("durability", _STRING, "persisted", "taken and surpassed: an answer means on disk"),
        _option("consumer_offset_durability", _STRING, "persisted", "taken and surpassed: an answer means on disk"),
        _option("replication_factor", _UINT8, 1, "there is one node"),
        _option(
            "partition_resize_policy",
            _STRING,
            "mutable",
            "fixed: the topic keeps the number of partitions it began with",
        ),
    ],
}
TOPIC, STREAM, USER = 1, 2, 3
SCOPES: Final = {"topic": TOPIC, "stream": STREAM, "user": USER}


@dataclass(frozen=True, slots=True)
class TopicOptions:
    """`message_expiry` in µs and `max_size` in bytes, 0 for none; `segment_bytes` 0 for the usual size."""

    message_expiry: int = 0
    max_size: int = 0
    compression: int = 1
    replication: int = 1
    segment_bytes: int = 0


def read_options(block: bytes, scope: int, known: TopicOptions | None = None) -> TopicOptions:
    """The options in a block. With `known`, which supplies missing values, it is an update: fewer keys are allowed.
    Raises IggyError."""
    chosen = known or TopicOptions()
    names = {option.key for option in OPTIONS.get(scope, [])}
    for name, value in _entries(block, names if known is None else UPDATABLE.get(scope, frozenset())).items():
        chosen = _with(chosen, name, value)
    return chosen


def reset_options(before: TopicOptions, names: Set[str]) -> TopicOptions:
    """With these options at their defaults again."""
    values: dict[str, Any] = {"message_expiry": 0, "max_topic_size": 0, "compression_algorithm": 1}
    fields = {"message_expiry": "message_expiry", "max_topic_size": "max_size", "compression_algorithm": "compression"}
    return replace(before, **{fields[name]: values[name] for name in names if name in fields})


def take_text(block: bytes, name: str) -> tuple[str | None, bytes]:
    """(the text of one option, None if missing; the block without it). Raises IggyError."""
    options = _decoded(block)
    value = options.get(name)
    if value is None:
        return None, block
    del options[name]
    if value.kind is not _STRING:
        raise _impossible(name, value.python)
    return str(value.python), options.encode(HeaderForm.TYPED)


def names_in(block: bytes) -> set[str]:
    """The names of the options in a block. Raises IggyError."""
    return {str(key) for key in _decoded(block)}


def is_fixed(block: bytes) -> bool:
    """Whether the options of a topic forbid another number of partitions."""
    return bool(block) and TypedHeaders.decode(block, HeaderForm.TYPED).get("partition_resize_policy") == _FIXED


def check_update(block: bytes, scope: int) -> None:
    """Raises IggyError for options that an update of this scope does not take."""
    _entries(block, UPDATABLE.get(scope, frozenset()))


def canonical(block: bytes, scope: int) -> bytes:
    """The block in its stored form: every value has its option's kind. A size or time of 0 means the server's default
    and is left out. Raises IggyError."""
    kinds = {option.key: HeaderKind(option.kind) for option in OPTIONS.get(scope, [])}
    kept = TypedHeaders()
    for name, value in _entries(block, set(kinds)).items():
        chosen = _of_kind(kinds[name], name, value)
        if kinds[name] is not _UINT64 or chosen.python:
            kept[name] = chosen
    return kept.encode(HeaderForm.TYPED)


def _decoded(block: bytes) -> TypedHeaders:
    try:
        return TypedHeaders.decode(block, HeaderForm.TYPED, strict=True)
    except HeaderError as error:
        raise refusal("invalid_option_value", str(error), error.key) from error


def _entries(block: bytes, allowed: Set[str]) -> dict[str, HeaderValue]:
    options = _decoded(block)
    if len(options) > MAX_OPTIONS:
        raise refusal("options_block_too_large", f"{len(options)} options are more than {MAX_OPTIONS}")
    for key in options:
        if str(key) not in allowed:
            raise refusal("unsupported_option_key", f"option {str(key)!r} is not known, or not here", str(key))
    return {str(key): value for key, value in options.items()}


def _with(chosen: TopicOptions, name: str, value: HeaderValue) -> TopicOptions:
    kind = next(HeaderKind(option.kind) for option in OPTIONS[1] if option.key == name)
    python: Any = _of_kind(kind, name, value).python
    match name:
        case "message_expiry":
            return replace(chosen, message_expiry=_limit(python)) if python else chosen
        case "max_topic_size":
            return replace(chosen, max_size=_limit(python)) if python else chosen
        case "replication_factor":
            return replace(chosen, replication=int(python))
        case "compression_algorithm" if python in _COMPRESSIONS:
            return replace(chosen, compression=_COMPRESSIONS[python])
        case "segment_size" if not python:
            return chosen
        case "segment_size" if SEGMENT_LIMITS[0] <= python <= SEGMENT_LIMITS[1] and python % SECTOR == 0:
            return replace(chosen, segment_bytes=python)
        case "partition_resize_policy" if python in _RESIZE_POLICIES:
            return chosen
        case "durability" | "consumer_offset_durability" if python in _DURABILITIES:
            return chosen
        case "messages_required_to_save" if 1 <= python <= MOST_MESSAGES_TO_SAVE:
            return chosen
        case "size_of_messages_required_to_save" if python <= MOST_BYTES_TO_SAVE:
            return chosen
        case "preallocate_segments" | "enforce_fsync":
            return chosen
        case _:
            raise _impossible(name, value.python)


def _limit(value: Any) -> int:
    return 0 if value == NEVER else int(value)


def _impossible(name: str, value: object) -> IggyError:
    return refusal("invalid_option_value", f"option {name} cannot be {value!r}", name)


def _of_kind(kind: HeaderKind, name: str, value: HeaderValue) -> HeaderValue:
    """The value converted to its option's kind: unchanged, or from a text; a compression also from its number."""
    make = _MAKERS[kind][1]
    python: Any = value.python
    if value.kind is kind:
        return value
    if value.kind is _UINT32 and kind is _UINT8 and python < 256:  # of protocol 0.12
        return make(python)
    if name == "compression_algorithm" and value.kind is _UINT8 and python in NAMES_OF_COMPRESSION:
        return make(NAMES_OF_COMPRESSION[python])
    if value.kind is not _STRING:
        raise _impossible(name, python)
    return _of_text(kind, name, str(python))


def _of_text(kind: HeaderKind, name: str, text: str) -> HeaderValue:
    wanted, make = _MAKERS[kind]
    python: Any = None
    if wanted is bool and text in ("true", "false"):
        python = text == "true"
    elif name == "message_expiry":
        python = _expiry(text)
    elif kind is _UINT64:
        python = NEVER if name == "max_topic_size" and text == "unlimited" else _size(text)
    elif wanted is int and text.isascii() and text.isdigit():
        python = int(text)
    try:
        if python is not None:
            return make(python)
    except HeaderError:
        pass
    raise _impossible(name, text)


def _size(text: str) -> int | None:
    """Bytes: "1000", "128 MiB", "1.5 GB"; None for what is no size."""
    if text.lower() in ("unlimited", "none", "server_default"):
        return 0
    found = _SIZE.fullmatch(text)
    if found is None:
        return None
    number, prefix, binary = found.groups()
    power = " kmgtpe".index(prefix.lower()) if prefix else 0
    return int(Decimal(number) * (1024 if binary else 1000) ** power)


def _expiry(text: str) -> int | None:
    """Microseconds: "7 days", "1h 30m", or a number of them; None for what is no duration."""
    if text.lower() in ("unlimited", "none", "never_expire"):
        return NEVER
    if text.lower() in ("default", "server_default"):
        return 0
    if text.isascii() and text.isdigit():
        return int(text)
    return duration_us(text)


def duration_us(text: str) -> int | None:
    """Microseconds of a duration in words: "7 days", "1h 30m"; None for what is none."""
    if not _DURATIONS.fullmatch(text):
        return None
    total = sum(int(number) * _UNITS[unit] for number, unit in _DURATION.findall(text)) // 1000
    return total if total <= LONGEST_EXPIRY else None


def _units() -> dict[str, int]:
    """Nanoseconds by the names that upstream's library knows."""
    second, day = 10**9, 86_400 * 10**9
    table = {
        "nanos nsec ns": 1,
        "usec us": 1000,
        "millis msec ms": 10**6,
        "seconds second secs sec s": second,
        "minutes minute mins min m": 60 * second,
        "hours hour hrs hr h": 3600 * second,
        "days day d": day,
        "weeks week w": 7 * day,
        "months month M": 2_630_016 * second,
        "years year y": 31_557_600 * second,
    }
    return {name: size for names, size in table.items() for name in names.split()}


_UNITS: Final = _units()
_DURATION: Final = re.compile(r"([0-9]{1,20})\s*([A-Za-z]+)")
_DURATIONS: Final = re.compile(rf"(?:\s*[0-9]{{1,20}}\s*(?:{'|'.join(sorted(_UNITS, key=len, reverse=True))}))+\s*")
_SIZE: Final = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,9})?)\s*(?:([kmgtpeKMGTPE])(i)?)?[bB]?")


def merged(before: bytes, update: bytes, without: Set[str] = frozenset()) -> bytes:
    """The block to show after an update: the options it names, those of `without` gone, the others unchanged."""
    options = TypedHeaders.decode(before, HeaderForm.TYPED)
    for name in without:
        if name in options:
            del options[name]
    for key, value in TypedHeaders.decode(update, HeaderForm.TYPED).items():
        options[key] = value
    return options.encode(HeaderForm.TYPED)


def of_json(given: dict[str, Any], scope: int) -> bytes:
    """The block for options as HTTP has them: texts, or numbers and booleans as JSON has them. One that is not known has
    the kind of its JSON: the command that takes the block knows which there are. Raises IggyError."""
    kinds = {option.key: HeaderKind(option.kind) for option in OPTIONS.get(scope, [])}
    block = TypedHeaders()
    for name, value in given.items():
        block[name] = _of_json(name, kinds.get(name) or _KINDS_OF_JSON.get(type(value), _STRING), value)
    return block.encode(HeaderForm.TYPED)


_KINDS_OF_JSON: Final = {str: _STRING, bool: _BOOL, int: _UINT64}


def _of_json(name: str, kind: HeaderKind, value: Any) -> HeaderValue:
    wanted, make = _MAKERS[kind]
    if isinstance(value, str) and wanted is not str:
        return _of_text(kind, name, value)
    try:
        if type(value) is wanted:
            return make(value)
    except HeaderError:
        pass
    raise _impossible(name, value)
