"""The JSON objects that open a connection, of clients and of routes: read as Go reads them, into the fields of a record.

Unknown fields are ignored, and a field's name counts in any case; null means that it was not given. Each value must be of
its field's kind: that of its default, or text where that is None.

Few documents in the life of a connection: the standard library's JSON does, and costs a server's start 45 ms less.
"""

import json as json_documents
import re
from collections.abc import Mapping
from typing import Any

_encode = json_documents.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def encode_fields(told: dict[str, object]) -> bytes:
    """The object, without blanks."""
    return _encode(told).encode()


def read_fields(json: bytes, names: Mapping[str, str], defaults: Mapping[str, object]) -> dict[str, Any]:
    """The known fields; `names` says which name on the wire is which field's. Raises ValueError and RecursionError."""
    return typed(_read_as_go_does(json, names), defaults)


def typed(found: dict[str, object], defaults: Mapping[str, object]) -> dict[str, Any]:
    """The same when each value is of its field's kind. Raises ValueError otherwise."""
    for name, value in found.items():
        default = defaults[name]
        if isinstance(default, tuple):
            if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
                raise ValueError(f"{name} is not a list of strings")
            found[name] = tuple([_printable(one) for one in value])
        elif type(value) is not (str if default is None else type(default)):
            raise ValueError(f"{name} is of the wrong type")
    return found


def _read_as_go_does(json: bytes, names: Mapping[str, str]) -> dict[str, object]:
    """The known fields. Go's decoder is lenient about the case of keys, null for "not given", bytes that are no UTF-8,
    any depth.
    """
    text = json.decode("utf-8", "replace")
    try:
        found = json_documents.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        found = json_documents.loads(_without_depth(text), parse_constant=_refuse_constant)
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return {
        names[key.lower()]: _printable(value)
        for key, value in found.items()
        if value is not None and key.lower() in names
    }


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
