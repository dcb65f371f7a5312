"""The JSON objects that open a connection, of clients and of routes: read as Go reads them, into the fields of a record.

Unknown fields are ignored, and a field's name counts in any case; null means that it was not given. Each value must be of
its field's kind: that of its default, or text where that is None.

Few documents in the life of a connection: the standard library's JSON does, and costs a server's start 45 ms less.
"""

import json as json_documents
import re
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from headwater.model.record import Record

_encode = json_documents.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
Kinds = Mapping[str, tuple[str, type]]


def wire_names(fields: Iterable[str], spoken: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """From the name on the wire to that of the field; `spoken`: of fields that are called otherwise there."""
    return {spoken.get(name, name): name for name in fields}


def kinds_of(names: Mapping[str, str], defaults: Mapping[str, object]) -> Kinds:
    """Which field a name on the wire is, and of which kind. `names` go from the wire to the field."""
    return {wire: (name, str if defaults[name] is None else type(defaults[name])) for wire, name in names.items()}


def differing(record: Record, names: Mapping[str, str], always: Collection[str] = ()) -> dict[str, object]:
    """By their names on the wire, the fields that differ from their defaults, and those in `always`."""
    values, defaults = record.__dict__, record._defaults
    return {wire: values[name] for wire, name in names.items() if name in always or values[name] != defaults[name]}


def encode_fields(told: dict[str, object]) -> bytes:
    """The object, without blanks."""
    return _encode(told).encode()


def read_fields(json: bytes, kinds: Kinds) -> dict[str, Any]:
    """The known fields. Raises ValueError and RecursionError.

    Go's decoder is lenient about the case of keys, null for "not given", bytes that are no UTF-8, any depth.
    """
    text = json.decode("utf-8", "replace")
    try:
        found = _decode(text)
    except RecursionError:
        found = _decode(_without_depth(text))
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return typed(found, kinds, escaped="\\u" in text)


def typed(found: dict[str, object], kinds: Kinds, escaped: bool = True) -> dict[str, Any]:
    """The known fields of an object, each of its kind. Raises ValueError otherwise. `escaped`: text may hold any \\uXXXX."""
    fields: dict[str, Any] = {}
    for key, value in found.items():
        known = kinds.get(key) or kinds.get(key.lower())
        if known is None or value is None:
            continue
        name, kind = known
        if kind is tuple:
            if type(value) is not list or not all(type(one) is str for one in value):
                raise ValueError(f"{name} is not a list of strings")
            fields[name] = tuple([_printable(one) for one in value] if escaped else value)
        elif type(value) is not kind:
            raise ValueError(f"{name} is of the wrong type")
        else:
            fields[name] = _printable(value) if escaped else value
    return fields


def _printable(value: object) -> object:
    """JSON can spell half of a surrogate pair, which no other text can hold."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _without_depth(text: str) -> str:
    """The document with each array and object in it replaced by an empty array: no field of ours holds one.

    Raises ValueError for brackets that do not match. What was between them is not looked at otherwise.
    """
    kept: list[str] = []
    closers: list[str] = []
    for piece in re.findall(r'"(?:[^"\\]|\\.)*"|[][{}]|[^][{}"]+|"', text):
        if len(closers) <= 1 and not (closers and piece in "[{"):
            kept.append(piece)
        if piece in "[{":
            closers.append("]" if piece == "[" else "}")
        elif piece in "]}":
            if not closers or closers.pop() != piece:
                raise ValueError("a bracket without its counterpart")
            if len(closers) == 1:
                kept.append("[]")
    return "".join(kept)


def _refuse_constant(name: str) -> object:
    raise ValueError(name)  # NaN and Infinity are Python's, not JSON's


_decode = json_documents.JSONDecoder(parse_constant=_refuse_constant).decode
