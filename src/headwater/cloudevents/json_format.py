"""The JSON event format: one JSON object holds the attributes, and `data` or `data_base64`.

Reading splits the object without decoding `data`, which stays a JSON text until it is accessed. What JSON allows but
CloudEvents does not is refused with a specific rule: a repeated attribute, a number with a fraction or above 32 bits, an
object, a lone surrogate. A null member is an unset attribute; a null `data` is a payload.
"""

import base64
import binascii
import json
from typing import Any, Final, NoReturn

import msgspec

from headwater.cloudevents import attributes as rules
from headwater.cloudevents.attributes import (
    AttributeValue,
    check_context,
    check_grammar,
    check_name,
    check_string,
    refuse,
)
from headwater.cloudevents.event import (
    BYTE_ORDER_MARK,
    NOT_A_STRING,
    NOT_JSON,
    CloudEvent,
    DataKind,
    decode_json,
    is_json_type,
    make_event,
)
from headwater.cloudevents.header_value import INVALID_UTF8
from headwater.cloudevents.plain_json import COMPILED, read_plain

NOT_AN_OBJECT: Final = "not an object"
NOT_BYTES: Final = "not bytes"

_JSON: Final = DataKind.JSON
_BINARY: Final = DataKind.BINARY
_TEXT: Final = DataKind.TEXT

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_text = msgspec.json.Decoder(msgspec.Raw)
_value = msgspec.json.Decoder()
_encode = msgspec.json.Encoder().encode


def to_json(event: CloudEvent) -> bytes:
    """The event as UTF-8 JSON text. Raises CloudEventError when data that should be JSON is not."""
    members: dict[str, Any] = event._attributes.copy()
    kind = event._kind
    if kind is _JSON:
        members["data"] = msgspec.Raw(event._payload) if event._verified else _json_text(event._payload)
    elif kind is _BINARY:
        members["data_base64"] = event._payload
    elif kind is _TEXT:
        members["data"] = event._payload.decode()
    return _encode(members)


def _json_text(payload: bytes) -> msgspec.Raw:
    """A JSON payload that can be embedded in another JSON text. Raises CloudEventError."""
    try:
        text = _text.decode(payload.removeprefix(BYTE_ORDER_MARK))
        if not payload.isascii():
            payload.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        refuse(NOT_JSON, "data", payload, why=f"the payload is no JSON: {error}")
    return text


def from_json(text: bytes, strict: bool = False) -> CloudEvent:
    """The event in a JSON text, given as bytes; a byte order mark is ignored. Raises CloudEventError with attribute and
    rule.
    """
    if type(text) is not bytes:  # asked first, because nearly every text is: a tenth of the whole
        if not isinstance(text, (bytes, bytearray, memoryview)):
            refuse(
                NOT_BYTES,
                None,
                text,
                why=f"a JSON text is bytes here, as it travels, not {type(text).__name__}: encode it",
            )
        text = bytes(text)
    if COMPILED and (event := read_plain(text)) is not None:
        if strict:
            check_grammar(event.attributes)
        return event
    return read_any(text, strict)


def read_any(text: bytes, strict: bool) -> CloudEvent:
    """The general path of `from_json`."""
    text = text.removeprefix(BYTE_ORDER_MARK)
    if not text.isascii():
        _check_utf8(text)
    try:
        members = _members.decode(text)
    except msgspec.ValidationError as error:
        refuse(NOT_AN_OBJECT, None, why=str(error))
    except (msgspec.DecodeError, RecursionError) as error:
        _explain(text, error)
    if _shortest(members) != len(text):
        _check_distinct(text)
    data, data_base64 = members.pop("data", None), members.pop("data_base64", None)
    attributes = {name: value for name, raw in members.items() if (value := _attribute(name, raw)) is not None}
    check_context(attributes, strict)
    kind, payload = _data(data, data_base64, attributes.get("datacontenttype"))
    return make_event(CloudEvent, attributes, kind, payload, True)


def _attribute(name: str, raw: msgspec.Raw) -> AttributeValue | None:
    """The value of one member; None for null."""
    if not rules.is_attribute_name(name):
        check_name(name)
    try:
        value = _value.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        refuse(rules.NOT_A_TYPE, name, bytes(raw), why=str(error))
    if isinstance(value, str):
        check_string(name, value)
    elif value is None or isinstance(value, bool):
        pass
    elif not isinstance(value, int):
        rule = rules.WRONG_TYPE if name in rules.CORE else rules.NOT_A_TYPE
        refuse(rule, name, value, why="a JSON string, a boolean or a 32-bit integer")
    elif not -(2**31) <= value < 2**31:
        refuse(rules.OUT_OF_RANGE, name, value, why="an Integer has 32 bits")
    return value  # type: ignore[no-any-return]


def _data(
    data: msgspec.Raw | None, data_base64: msgspec.Raw | None, content_type: AttributeValue | None
) -> tuple[DataKind, bytes]:
    if data is not None and data_base64 is not None and bytes(data_base64) != b"null":
        refuse(rules.DUPLICATE, "data_base64", why="data and data_base64 exclude each other")
    if data is not None:
        text = bytes(data)
        if content_type is None or is_json_type(str(content_type)):
            return DataKind.JSON, text
        value = decode_json(text) if text.startswith(b'"') else None
        if not isinstance(value, str):
            refuse(NOT_A_STRING, "data", text, why=f"with content type {content_type!r} data is a JSON string")
        return DataKind.TEXT, value.encode()
    if data_base64 is None or bytes(data_base64) == b"null":
        return DataKind.ABSENT, b""
    encoded = decode_json(bytes(data_base64))
    try:
        if not isinstance(encoded, str):
            refuse(rules.NOT_BASE64, "data_base64", encoded, why="it is a JSON string")
        return DataKind.BINARY, base64.b64decode(encoded.encode(), validate=True)
    except binascii.Error as error:
        refuse(rules.NOT_BASE64, "data_base64", encoded, why=str(error))


def _shortest(members: dict[str, msgspec.Raw]) -> int:
    """The length of an object with these members and no white space. A text of exactly this length has no others: a
    second `id`, an escape in a name or a blank would make it longer.
    """
    names = "".join(members)
    length = len(names) if names.isascii() else len(names.encode())
    return length + sum([len(memoryview(raw)) for raw in members.values()]) + 4 * len(members) + 1


class _Members(list[tuple[str, Any]]):
    """An object as a list of members, including repeated ones."""


def _check_distinct(text: bytes) -> None:
    """Raises CloudEventError for a repeated member. `text` is a JSON object."""
    compact = msgspec.json.format(text, indent=-1)
    if _shortest(_members.decode(compact)) == len(compact):
        return
    seen = set()
    for name, value in _all_members(text):
        if name in seen:
            refuse(rules.DUPLICATE, name, value, why="an attribute appears at most once")
        seen.add(name)


def _all_members(text: bytes) -> list[tuple[str, Any]]:
    def refuse_constant(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is no JSON")

    try:
        members = json.loads(text, object_pairs_hook=_Members, parse_constant=refuse_constant, parse_int=float)
    except (ValueError, RecursionError) as error:
        refuse(NOT_JSON, None, why=str(error))
    if not isinstance(members, _Members):
        refuse(NOT_AN_OBJECT, None)
    return members


def _check_utf8(text: bytes) -> None:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        refuse(INVALID_UTF8, None, why=f"byte {error.start} of the JSON text")


def _explain(text: bytes, error: Exception) -> NoReturn:
    """Refuse a text that msgspec cannot read: for a lone surrogate in an attribute, else as malformed JSON."""
    for name, value in _all_members(text):
        if isinstance(value, str):
            check_string(name, value)
    refuse(NOT_JSON, None, why=str(error))
