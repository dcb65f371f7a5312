"""Which options there are, by era, and what protocol 0.12 lets a creation set, an update set and an update reset.

| scope  | 0.11                  | since 0.12                                                                         |
|--------|-----------------------|------------------------------------------------------------------------------------|
| topic  | `OPTIONS`             | its name; `enforce_fsync` is gone, `replication_factor` is back with 0.12.2        |
| stream | none                  | its name; those of encryption, which is not there: 4106, and the source is "none"  |
| user   | none                  | username, status                                                                   |

Names are judged before values, in upstream's order: unknown (4041), kept by the server (4105), set at the creation alone
(4103), without a default to go back to (4104). The words are upstream's, too: its clients over HTTP raise them as they
are. Values are for `options` to judge.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from headwater.errors import IggyError
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.options import NAMES_OF_COMPRESSION, NEVER, OPTIONS, STREAM, TOPIC, USER, TopicOptions
from headwater.iggy_wire.reply_codec import OPTION_FLAGS, OptionView
from headwater.model.typed_header import HeaderKind, HeaderValue
from headwater.model.typed_headers import HeaderForm, TypedHeaders

SETTABLE, RESETTABLE, SECRET, READ_ONLY, CRITICAL = OPTION_FLAGS.values()
_STRING: Final = HeaderKind.STRING
_RESETTABLE: Final = frozenset({"message_expiry", "max_topic_size"})
_OF_TOPICS: Final = (  # in upstream's order
    "compression_algorithm",
    "message_expiry",
    "max_topic_size",
    "segment_size",
    "durability",
    "consumer_offset_durability",
    "partition_resize_policy",
    "messages_required_to_save",
    "size_of_messages_required_to_save",
    "preallocate_segments",
)
REPLICATION: Final = "replication_factor"
ENCRYPTION_KEY: Final = "encryption_key"
_BY_NAME: Final = {option.key: option for option in OPTIONS[TOPIC]}
_NAMED: Final = {
    TOPIC: [OptionView("name", _STRING, b"", "the name of the topic, 1 to 255 bytes", SETTABLE)],
    STREAM: [OptionView("name", _STRING, b"", "the name of the stream, 1 to 255 bytes", SETTABLE)],
    USER: [
        OptionView("username", _STRING, b"", "the name of the user, 3 to 50 bytes", SETTABLE),
        OptionView("status", _STRING, b"", "active, inactive", SETTABLE),
    ],
}
"""Settings that an update has as options, but a creation as fields."""
_ENCRYPTION: Final = [
    OptionView(ENCRYPTION_KEY, HeaderKind.RAW, b"", "refused: nothing is encrypted at rest here", SECRET | CRITICAL),
    OptionView("encryption_key_source", _STRING, b"", "none: nothing is encrypted at rest here", READ_ONLY),
    OptionView("encryption_key_fingerprint", _STRING, b"", "of a stream that is encrypted", READ_ONLY),
    OptionView("encryption_kek_fingerprint", _STRING, b"", "of a stream that is encrypted", READ_ONLY),
]
_INTERNAL: Final = {
    TOPIC: frozenset({"critical_keys"}),
    STREAM: frozenset({"critical_keys", "encryption_key_wrapped"}),
    USER: frozenset({"critical_keys"}),
}
"""Upstream keeps these beside the options: a client may not name them, and its lists do not have them."""
DERIVED_OF_STREAMS: Final = TypedHeaders({"encryption_key_source": "none"}).encode(HeaderForm.TYPED)


def described(scope: int, era: Era) -> list[OptionView]:
    """The options of a scope, as a client of this era gets them."""
    if era < Era.W:
        return OPTIONS.get(scope, [])
    named = _NAMED.get(scope, [])
    if scope == TOPIC:
        return [*named, *_of_topics(era)]
    return [*named, *_ENCRYPTION] if scope == STREAM else named


def _of_topics(era: Era) -> list[OptionView]:
    flags = dict.fromkeys(_RESETTABLE, SETTABLE | RESETTABLE)
    found = [replace(_BY_NAME[name], flags=flags.get(name, 0)) for name in _OF_TOPICS]
    if era >= Era.X:
        one = HeaderValue.from_uint32(1)
        found.append(replace(_BY_NAME[REPLICATION], kind=one.kind, default=one.raw, flags=0))
    return found


def check_creation(scope: int, names: Iterable[str], era: Era) -> None:
    """Judge the names of a creation's options. Raises IggyError; before 0.12 `options` judges alone."""
    if era < Era.W:
        return
    names = sorted(names)
    _known(scope, names, era)
    fields = {option.key for option in _NAMED[scope]}
    for name in names:
        if name in fields:
            raise refusal("invalid_option_value", f"{name!r} is a field of a creation, not an option", name)
        if name == ENCRYPTION_KEY:
            raise refusal("stream_encryption_unavailable", "nothing is encrypted at rest here", name)


def check_update(scope: int, names: Iterable[str], resets: Iterable[str], era: Era) -> None:
    """Judge the names that an update of 0.12 sets, and those that it resets. Raises IggyError."""
    names, resets = sorted(names), list(resets)
    options = _known(scope, [*names, *resets], max(era, Era.W))
    for name in [*names, *resets]:
        if not options[name].flags & SETTABLE:
            raise refusal("option_not_updatable", f"Option cannot be updated after creation: {name}", name)
    for name in resets:
        if not options[name].flags & RESETTABLE:
            raise refusal("option_not_resettable", f"Option cannot be reset: {name}", name)


def _known(scope: int, names: list[str], era: Era) -> dict[str, OptionView]:
    """The options by name, all of `names` among them. Raises IggyError."""
    options, internal = {option.key: option for option in described(scope, era)}, _INTERNAL.get(scope, frozenset())
    for name in names:
        if name not in options and name not in internal:
            raise _unknown(name)
    for name in names:
        if name in internal or options[name].flags & READ_ONLY:
            raise refusal("read_only_option", f"Option is read-only: {name}", name)
    return options


def _unknown(name: str) -> IggyError:
    return refusal("unsupported_option_key", f"Unsupported option key: {name}", name)


def derived(chosen: TopicOptions, explicit: bytes, era: Era) -> bytes:
    """The block of the options that a topic has by default."""
    named = {str(key) for key in TypedHeaders.decode(explicit, HeaderForm.TYPED)} if explicit else set()
    real: dict[str, HeaderValue] = {
        "message_expiry": HeaderValue.from_uint64(chosen.message_expiry or NEVER),
        "max_topic_size": HeaderValue.from_uint64(chosen.max_size or NEVER),
        "compression_algorithm": HeaderValue.from_str(NAMES_OF_COMPRESSION.get(chosen.compression, "none")),
    }
    block = TypedHeaders()
    for name in _BY_NAME if era < Era.W else _OF_TOPICS:
        if name not in named:
            option = _BY_NAME[name]
            block[name] = real.get(name) or HeaderValue(HeaderKind(option.kind), option.default)
    return block.encode(HeaderForm.TYPED)
