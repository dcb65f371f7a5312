"""Reading documents as a server: unknown fields are refused, as in nats-server.

Unknown fields are an error at every level; a client ignores them. As in Go's JSON, `null` stands for an absent field,
and an empty request for an empty object. Unlike in Go, keys are matched with their case. Absent fields have Go's zero
values, which are not always the defaults of clients.
"""

import re
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, inspect

from headwater.errors import JetStreamError
from headwater.jetstream_documents.api_errors import api_error
from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_documents.document import Document
from headwater.jetstream_documents.streams import ExternalStream, Republish, StreamConfig, StreamSource

S = TypeVar("S", bound=Struct)

# Go's zero values of absent fields, where they differ from a client's default or a client must send the field.
_ABSENT: dict[type, dict[str, str]] = {
    ConsumerConfig: {"ack_policy": "none"},
    ExternalStream: {"api": ""},
    Republish: {"dest": ""},
    StreamConfig: {"name": ""},
    StreamSource: {"name": ""},
}


def decode_request(payload: bytes, kind: type[S]) -> S:
    """The request in `payload`. Raises JetStreamError 10025 with a reason in nats-server's words where they are
    known."""
    try:
        found = _without_nulls(msgspec.json.decode(payload)) if payload.strip() not in (b"", b"null") else {}
        _check_known(found, kind)
        _fill_absent(found, kind)
        return msgspec.convert(found, kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid_json(str(error)) from error


def decode_document(payload: bytes, kind: type[S]) -> S:
    """As `decode_request`, for an optional document: a payload that is neither object nor list counts as none."""
    return decode_request(payload if payload.lstrip(b" \t\r\n")[:1] in (b"{", b"[") else b"", kind)


def decode_stored(payload: bytes, kind: type[S]) -> S:
    """A document that a server has stored. Raises msgspec.MsgspecError, also for an unknown field: ignoring it would
    drop a setting."""
    _check_known(msgspec.json.decode(payload), kind)
    return msgspec.json.decode(payload, type=kind)


def is_empty_request(payload: bytes) -> bool:
    """Whether the payload has no document: empty, or an object without fields, as async-nats sends."""
    if not payload.strip():
        return True
    try:
        return bool(msgspec.json.decode(payload) == {})
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False


@cache
def _documents_in(kind: type[Struct]) -> dict[str, type[Struct] | None]:
    """The fields of a document, and the documents that they hold, alone or in a list."""
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)
    return {field.encode_name: _document_in(field.type) for field in described.fields}


def _document_in(described: Any) -> type[Struct] | None:
    if isinstance(described, inspect.StructType):
        return described.cls
    if isinstance(described, inspect.ListType):
        return _document_in(described.item_type)
    if isinstance(described, inspect.UnionType):
        return next((found for each in described.types if (found := _document_in(each)) is not None), None)
    return None


def _check_known(found: object, kind: type[Struct]) -> None:
    for document, kind_here in _walk(found, kind):
        if issubclass(kind_here, Document):
            for name in document:
                if name not in _documents_in(kind_here):
                    raise msgspec.ValidationError(f"Object contains unknown field `{name}`")


def _fill_absent(found: object, kind: type[Struct]) -> None:
    for document, kind_here in _walk(found, kind):
        for documented, values in _ABSENT.items():
            if issubclass(kind_here, documented):
                for name, value in values.items():
                    document.setdefault(name, value)


def _walk(found: object, kind: type[Struct]) -> list[tuple[dict[str, Any], type[Struct]]]:
    """Every JSON object that becomes a document, with its class; msgspec reports other shapes."""
    if isinstance(found, list):
        return [pair for item in found for pair in _walk(item, kind)]
    if not isinstance(found, dict):
        return []
    pairs = [(found, kind)]
    for name, inner in _documents_in(kind).items():
        if inner is not None and name in found:
            pairs += _walk(found[name], inner)
    return pairs


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(.*?)`")
_UNKNOWN_VALUE = re.compile(r"Invalid enum value '(.*?)'(?: - at `\$\.?(.*?)`)?")


def _invalid_json(text: str) -> JetStreamError:
    if found := _UNKNOWN_FIELD.search(text):
        return api_error("invalid_json", reason=f'json: unknown field "{found[1]}"')
    if found := _UNKNOWN_VALUE.search(text):
        if found[2] == "action":
            return api_error("invalid_json", reason=f'unknown consumer action: "{found[1]}"')
        if found[2] == "compression":
            return api_error("invalid_json", reason="unknown compression algorithm")
        return api_error("invalid_json", reason=f'can not unmarshal "\\"{found[1]}\\""')
    if "truncated" in text:
        return api_error("invalid_json", reason="unexpected EOF")
    return api_error("invalid_json", reason=text)
