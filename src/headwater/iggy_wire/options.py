"""The options of generation V: what `create_topic`, `create_stream` and `create_user` may say beyond their fields.

A block of options is written as typed headers with string keys are. A key that is not known is refused, as upstream
does: an option that a server silently ignores is a promise that it does not keep.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from headwater.errors import HeaderError
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.reply_codec import OptionView
from headwater.model.typed_header import HeaderKind, HeaderValue
from headwater.model.typed_headers import HeaderForm, TypedHeaders

MAX_OPTIONS: Final = 1024
SEGMENT_LIMITS: Final = (1 << 20, 1 << 30)
NEVER: Final = (1 << 64) - 1
_STRING, _BOOL, _UINT8 = HeaderKind.STRING, HeaderKind.BOOL, HeaderKind.UINT8
_UINT32, _UINT64 = HeaderKind.UINT32, HeaderKind.UINT64
_COMPRESSIONS: Final = {"none": 1, "gzip": 2}
_DURABILITIES: Final = ("replicated", "persisted")


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
        _option("message_expiry", _UINT64, 0, "microseconds that a message is kept; 0: for ever"),
        _option("max_topic_size", _UINT64, 0, "bytes of the topic; 0: no limit"),
        _option("segment_size", _UINT64, 64 << 20, "bytes of a segment, the unit in which old messages go"),
        _option("messages_required_to_save", _UINT32, 1, "taken and surpassed: an answer means on disk"),
        _option("size_of_messages_required_to_save", _UINT64, 1, "taken and surpassed: an answer means on disk"),
        _option("preallocate_segments", _BOOL, False, "taken, and left to the log"),
        _option("compression_algorithm", _STRING, "none", "a label for clients: none, gzip"),
        _option("durability", _STRING, "persisted", "taken and surpassed: an answer means on disk"),
        _option("consumer_offset_durability", _STRING, "persisted", "taken and surpassed: an answer means on disk"),
        _option("replication_factor", _UINT8, 1, "there is one node"),
    ],
}
SCOPES: Final = {"topic": 1, "stream": 2, "user": 3}


@dataclass(frozen=True, slots=True)
class TopicOptions:
    """`message_expiry` in µs and `max_size` in bytes, 0 for none; `segment_bytes` 0 for the usual size."""

    message_expiry: int = 0
    max_size: int = 0
    compression: int = 1
    replication: int = 1
    segment_bytes: int = 0


def read_options(block: bytes, scope: int, known: TopicOptions | None = None) -> TopicOptions:
    """The options in a block; what it does not name is as in `known`. Raises IggyError."""
    chosen = known or TopicOptions()
    try:
        options = TypedHeaders.decode(block, HeaderForm.TYPED, strict=True)
    except HeaderError as error:
        raise refusal("invalid_option_value", str(error), error.key) from error
    if len(options) > MAX_OPTIONS:
        raise refusal("options_block_too_large", f"{len(options)} options are more than {MAX_OPTIONS}")
    names = {option.key for option in OPTIONS.get(scope, [])}
    for key, value in options.items():
        name = str(key)
        if name not in names:
            raise refusal("unsupported_option_key", f"option {name!r} is not known", name)
        chosen = _with(chosen, name, value)
    return chosen


def _with(chosen: TopicOptions, name: str, value: HeaderValue) -> TopicOptions:
    python = value.python
    match name:
        case "message_expiry" if isinstance(python, int):
            return replace(chosen, message_expiry=0 if python == NEVER else python)
        case "max_topic_size" if isinstance(python, int):
            return replace(chosen, max_size=0 if python == NEVER else python)
        case "replication_factor" if isinstance(python, int):
            return replace(chosen, replication=python)
        case "compression_algorithm" if isinstance(python, str) and python in _COMPRESSIONS:
            return replace(chosen, compression=_COMPRESSIONS[python])
        case "segment_size" if isinstance(python, int) and SEGMENT_LIMITS[0] <= python <= SEGMENT_LIMITS[1]:
            return replace(chosen, segment_bytes=python)
        case "durability" | "consumer_offset_durability" if python in _DURABILITIES:
            return chosen
        case "messages_required_to_save" | "size_of_messages_required_to_save" | "preallocate_segments":
            return chosen
        case _:
            raise refusal("invalid_option_value", f"option {name} cannot be {python!r}", name)


def merged(before: bytes, update: bytes) -> bytes:
    """The block to show after an update: the options it names, the others unchanged."""
    options = TypedHeaders.decode(before, HeaderForm.TYPED)
    for key, value in TypedHeaders.decode(update, HeaderForm.TYPED).items():
        options[key] = value
    return options.encode(HeaderForm.TYPED)


def of_json(given: dict[str, Any], scope: int) -> bytes:
    """The block for options as HTTP has them: texts, or numbers and booleans as JSON has them. Raises IggyError."""
    kinds = {option.key: HeaderKind(option.kind) for option in OPTIONS.get(scope, [])}
    block = TypedHeaders()
    for name, value in given.items():
        if name not in kinds:
            raise refusal("unsupported_option_key", f"option {name!r} is not known", name)
        block[name] = _of_json(name, kinds[name], value)
    return block.encode(HeaderForm.TYPED)


def _of_json(name: str, kind: HeaderKind, value: Any) -> HeaderValue:
    wanted, make = _MAKERS[kind]
    python = value
    if wanted is bool and value in ("true", "false"):
        python = value == "true"
    elif wanted is int and isinstance(value, str) and value.isascii() and value.isdigit():
        python = int(value)
    try:
        if type(python) is wanted:
            return make(python)
    except HeaderError:
        pass
    raise refusal("invalid_option_value", f"option {name} cannot be {value!r}", name)
