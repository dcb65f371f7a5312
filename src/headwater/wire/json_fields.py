"""Decoder and encoder of the JSON objects that open connections of clients and routes, as lenient as Go's.

Unknown fields are ignored, field names match in any case, and null means absent. Each value must have its field's type:
that of the default, or str if the default is None.

A connection has few of these documents, so the standard library's JSON is fast enough, and importing it saves 45 ms of
a server's start.
"""

import json as json_documents
import re
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from headwater.model.record import Record

_encode = json_documents.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
Kinds = Mapping[str, tuple[str, type]]


def wire_names(fields: Iterable[str], renamed: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """The field name for each name on the wire; `renamed` has the wire names of fields whose names differ."""
    return {renamed.get(name, name): name for name in fields}


def kinds_of(names: Mapping[str, str], defaults: Mapping[str, object]) -> Kinds:
    """The field and its type for each name on the wire. `names` map wire names to field names."""
    return {wire: (name, str if defaults[name] is None else type(defaults[name])) for wire, name in names.items()}


def differing(record: Record, names: Mapping[str, str], always: Collection[str] = ()) -> dict[str, object]:
    """The fields that differ from their defaults, and those in `always`, by their names on the wire."""
    values, defaults = record.__dict__, record._defaults
    return {wire: values[name] for wire, name in names.items() if name in always or values[name] != defaults[name]}


def encode_fields(fields: dict[str, object]) -> bytes:
    """The JSON object, without white space."""
    return _encode(fields).encode()


def read_fields(json: bytes, kinds: Kinds) -> dict[str, Any]:
    """The known fields of the object `json`. Raises ValueError and RecursionError.

    As lenient as Go's decoder: keys in any case, null for absent, bytes that are not UTF-8, any depth.
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
    """The known fields of an object. Raises ValueError if one has the wrong type. `escaped`: strings may contain any
    \\uXXXX.
    """
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
    """Replace lone surrogates, which JSON can spell and UTF-8 cannot."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _without_depth(text: str) -> str:
    """The document with each nested array and object replaced by an empty array: no known field is deeper.

    Raises ValueError for brackets that do not match. The text between them is not checked further.
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
