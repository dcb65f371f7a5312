"""Values for every field of Iggy's tables, so that a table can be tried as a whole (Hypothesis)."""

from typing import Any

from hypothesis import strategies as st

from headwater.iggy_wire import command_codec, identifiers, layout, reply_codec
from headwater.iggy_wire.commands import Permissions, StreamPermissions, TopicPermissions
from headwater.iggy_wire.identifiers import Consumer, ConsumerKind, Identifier, PollingStrategy, StrategyKind

SHORT = st.text(max_size=40).filter(lambda text: len(text.encode()) <= 255)
NAMES = SHORT.filter(bool)
U32S = st.integers(0, (1 << 32) - 1)
IDENTIFIERS = st.builds(Identifier, U32S | NAMES)
TOPIC_PERMISSIONS = st.builds(TopicPermissions, *[st.booleans()] * 4)
STREAM_PERMISSIONS = st.builds(
    StreamPermissions, *[st.booleans()] * 6, topics=st.dictionaries(U32S, TOPIC_PERMISSIONS, max_size=2)
)
PERMISSIONS = st.builds(
    Permissions, *[st.booleans()] * 10, streams=st.dictionaries(U32S, STREAM_PERMISSIONS, max_size=2)
)
OF_FIELD: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (layout.U8, st.integers(0, 255)),
    (layout.U16, st.integers(0, 65535)),
    (layout.U32, U32S),
    (layout.U64, st.integers(0, (1 << 64) - 1)),
    (layout.F32, st.floats(width=32, allow_nan=False)),
    (layout.BOOL, st.booleans()),
    (layout.NAME8, NAMES),
    (layout.TEXT8, SHORT),
    (layout.TEXT32, SHORT),
    (layout.BYTES32, st.binary(max_size=20)),
    (layout.NAME_REST, SHORT),
    (layout.REST, st.binary(max_size=20)),
    (identifiers.IDENTIFIER, IDENTIFIERS),
    (identifiers.NUMBER_AS_IDENTIFIER, U32S.map(Identifier)),
    (identifiers.CONSUMER, st.builds(Consumer, st.sampled_from(ConsumerKind), IDENTIFIERS)),
    (identifiers.SEED_CONSUMER, st.builds(Consumer, st.sampled_from(ConsumerKind), U32S.map(Identifier))),
    (identifiers.STRATEGY, st.builds(PollingStrategy, st.sampled_from(StrategyKind), st.integers(0, (1 << 64) - 1))),
    (
        command_codec.TARGET,
        st.tuples(st.just(1), st.tuples(IDENTIFIERS, IDENTIFIERS))
        | st.tuples(st.sampled_from((2, 3)), st.tuples(IDENTIFIERS)),
    ),
    (command_codec.MAYBE_PARTITION, st.none() | U32S),
    (command_codec.PERMISSIONS, PERMISSIONS),
    (command_codec.MAYBE_PERMISSIONS, st.none() | PERMISSIONS),
]


def values(field: Any) -> st.SearchStrategy[Any]:
    """What `field` may be asked to write, and must read as it was."""
    for known, strategy in OF_FIELD:
        if field is known:
            return strategy
    match field:
        case layout.Record():
            inner = {name: values(entry) for name, entry in field.fields if name[0] != "_"}
            return st.fixed_dictionaries(inner).map(lambda chosen: field.make(**chosen))
        case layout.Many():
            return st.lists(values(field._inner), max_size=3)
        case layout.Fixed():
            return st.binary(min_size=field._size, max_size=field._size)
        case layout.Sized():
            return st.binary(max_size=20)
        case layout.Rest():
            return st.binary(max_size=40)
        case layout.Optional():
            return st.none() | values(field._inner)
        case reply_codec._Granted():
            return st.none() | PERMISSIONS
        case reply_codec._With():
            entries = values(field._entries)
            return st.tuples(values(field._head), entries).map(lambda both: _with(field._name, *both))
        case _:
            raise AssertionError(f"no values for {field!r}")


def _with(name: str, head: Any, entries: list[Any]) -> Any:
    object.__setattr__(head, name, entries)
    return head
