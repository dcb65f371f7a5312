# cython: annotation_typing=False
"""`CloudEvent`: context attributes and data, validated once and frozen; the data stays encoded until it is read.

Data is held as the bytes that a NATS message in binary mode would carry, plus their kind:

    ABSENT   no data at all
    BINARY   opaque bytes; in JSON they travel as `data_base64`, whatever the content type says
    TEXT     characters for a content type that is not JSON; held as UTF-8
    JSON     a JSON text, decoded at each access to `data`, so that the event cannot be changed through it

Attributes and text are copied by value when the event is made: a member of `class Kind(str, Enum)` becomes its text, one
of an IntEnum its number, so that no encoder can write the member's name instead.

An id or a time is never invented: an event without an id is an error, and one without a time has no time.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, Self, TypeVar

import msgspec

from headwater.cloudevents import attributes as rules
from headwater.cloudevents.attributes import (
    AttributeValue,
    canonical_string,
    check_context,
    check_grammar,
    check_name,
    refuse,
)
from headwater.cloudevents.extensions import ExtensionValue, Registry, documented
from headwater.cloudevents.plain_text import is_common
from headwater.errors import CloudEventError

JSON_CONTENT_TYPE: Final = "application/json"
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

NOT_JSON: Final = "JSON"
NOT_A_STRING: Final = "data is not a string"


class DataKind(Enum):
    ABSENT = "absent"
    BINARY = "binary"
    TEXT = "text"
    JSON = "json"


# Names of this module: to ask an Enum for a member costs as much as to make an event's str.
_ABSENT: Final = DataKind.ABSENT
_BINARY: Final = DataKind.BINARY
_TEXT: Final = DataKind.TEXT
_JSON: Final = DataKind.JSON


def media_type(content_type: str) -> str:
    """`type/subtype` in lower case, parameters dropped."""
    return content_type.partition(";")[0].strip(" \t").lower()


def is_text_type(content_type: str) -> bool:
    """Whether data of this type is text: `text/*`, `*/xml`, `*/*+xml`, or any type with a charset parameter."""
    if ";" in content_type and charset_of(content_type):
        return True
    main, _, subtype = media_type(content_type).partition("/")
    return main == "text" or subtype == "xml" or subtype.endswith("+xml")


def charset_of(content_type: str) -> str:
    """The `charset` parameter in lower case, without quotes; empty when it is missing."""
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip(" \t").lower() == "charset":
            return value.strip(' \t"').lower()
    return ""


def text_of(payload: bytes, content_type: str) -> bytes | None:
    """The body of a text type as UTF-8; None when it is not valid in its charset (UTF-8 by default)."""
    charset = charset_of(content_type)
    try:
        text = payload.decode(charset or "utf-8")
        return payload if charset in ("", "utf-8", "utf8", "us-ascii") else text.encode()
    except (LookupError, UnicodeError):
        return None


def kind_of_body(body: bytes, content_type: str | None) -> tuple[DataKind, bytes]:
    """The kind and payload of a body in binary mode; its content type decides whether it is JSON, text or bytes."""
    if not body:
        return _ABSENT, body
    if content_type is not None:
        if is_json_type(content_type):
            return _JSON, body
        if is_text_type(content_type) and (text := text_of(body, content_type)) is not None:
            return _TEXT, text
    return _BINARY, body


def is_json_type(content_type: str) -> bool:
    """Whether the media type is `*/json` or `*/*+json`."""
    if content_type == JSON_CONTENT_TYPE:
        return True
    subtype = media_type(content_type).partition("/")[2]
    return subtype == "json" or subtype.endswith("+json")


E = TypeVar("E", bound="CloudEvent")


class CloudEvent:
    """One event of CloudEvents 1.0.

    `data`: None means no data; bytes are opaque; a str is text, or a JSON string when the content type is JSON or
    missing; anything else is encoded as JSON at once. `msgspec.Raw` holds JSON text that is encoded already, so
    `msgspec.Raw(b"null")` is an explicit null payload. `time`: RFC 3339 text, kept as given, or an aware datetime.
    `extensions`: String, Integer, Boolean, Binary (bytes) and Timestamp (aware datetime) values by name; None means
    unset. `strict=False` skips the grammar check of source, dataschema and datacontenttype, as reading does: use it for
    events that are forwarded.

    Raises CloudEventError, which names attribute, value and rule. Two events are equal when their attributes and data
    are: JSON data is compared decoded, text equals its encoded bytes, and no data equals empty data, because a message
    in binary mode cannot distinguish them. The hash covers source and id, which identify an event.
    """

    __slots__ = ("_attributes", "_kind", "_payload", "_verified")

    def __init__(
        self,
        *,
        id: str,
        source: str,
        type: str,
        data: Any = None,
        datacontenttype: str | None = None,
        dataschema: str | None = None,
        subject: str | None = None,
        time: str | datetime | None = None,
        extensions: Mapping[str, AttributeValue | datetime | None] | None = None,
        specversion: str = rules.SPECVERSION,
        strict: bool = True,
    ) -> None:
        context: dict[str, AttributeValue | datetime | None] = {
            "specversion": specversion,
            "id": id,
            "source": source,
            "type": type,
            "datacontenttype": datacontenttype,
            "dataschema": dataschema,
            "subject": subject,
            "time": time,
        }
        for name, value in (extensions or {}).items():
            if name in context:
                refuse(rules.DUPLICATE, name, value, why="it is no extension attribute")
            check_name(name)
            context[name] = value
        self._attributes: dict[str, AttributeValue] = _checked(context, strict)
        self._kind: DataKind
        self._payload: bytes
        self._kind, self._payload = _encoded(data, self.datacontenttype)
        self._verified = True  # whether the payload is known to be of `_kind`

    @classmethod
    def from_attributes(cls, attributes: Mapping[str, Any], data: Any = None, strict: bool = True) -> Self:
        """An event from one mapping of all attributes, including extensions; None means unset. Raises CloudEventError."""
        checked = _checked(attributes, strict)
        if len(checked) != len(attributes):  # the names of unset attributes are checked, too
            for name in attributes:
                check_name(name)
        content_type = checked.get("datacontenttype")
        kind, payload = _encoded(data, None if content_type is None else str(content_type))
        return make_event(cls, checked, kind, payload, True)

    def __reduce__(self) -> tuple[object, ...]:
        return make_event, (type(self), self._attributes, self._kind, self._payload, self._verified)

    @property
    def specversion(self) -> str:
        return str(self._attributes["specversion"])

    @property
    def id(self) -> str:
        return str(self._attributes["id"])

    @property
    def source(self) -> str:
        return str(self._attributes["source"])

    @property
    def type(self) -> str:
        return str(self._attributes["type"])

    @property
    def subject(self) -> str | None:
        return self._text("subject")

    @property
    def datacontenttype(self) -> str | None:
        return self._text("datacontenttype")

    @property
    def dataschema(self) -> str | None:
        return self._text("dataschema")

    @property
    def time_text(self) -> str | None:
        """The timestamp as the producer wrote it."""
        return self._text("time")

    @property
    def time(self) -> datetime | None:
        """The timestamp as an aware datetime, cut to microseconds. Raises CloudEventError when no datetime can hold it."""
        text = self._text("time")
        return None if text is None else rules.to_datetime("time", text)

    @property
    def extensions(self) -> dict[str, AttributeValue]:
        """A new dict of the extension attributes. In an event read from headers all are str, because headers carry no
        types.
        """
        return {name: value for name, value in self._attributes.items() if name not in rules.CORE}

    def extension(self, name: str, registry: Registry = documented) -> ExtensionValue | None:
        """The value of one extension, with the type that the registry gives it; None when it is not set. Raises
        CloudEventError for a value that does not fit the type.
        """
        return registry.read(self._attributes, name)

    def with_types(self, registry: Registry = documented) -> Self:
        """A copy of this event in which the registry's extensions have the types that headers lost. Raises
        CloudEventError.
        """
        restored = registry.restored(self._attributes)
        return make_event(type(self), restored, self._kind, self._payload, self._verified)

    @property
    def attributes(self) -> Mapping[str, AttributeValue]:
        """A read-only view of all attributes that are set, in order of arrival; `time` is text."""
        return MappingProxyType(self._attributes)

    @property
    def kind(self) -> DataKind:
        return self._kind

    @property
    def payload(self) -> bytes:
        """The data as encoded bytes, not copied; empty when there is no data. Text is UTF-8."""
        return self._payload

    @property
    def is_verified(self) -> bool:
        """Whether a JSON payload has been validated. One that came in binary mode is not validated until `data` is read."""
        return self._verified

    @property
    def data(self) -> Any:
        """None, bytes, str, or the decoded value of a JSON text, decoded again at each access (`kind` distinguishes null
        from absent). Raises CloudEventError when the payload is not JSON although its content type says so.
        """
        kind = self._kind
        if kind is _ABSENT:
            return None
        if kind is _BINARY:
            return self._payload
        return self._payload.decode() if kind is _TEXT else decode_json(self._payload)

    def body(self) -> bytes:
        """The payload of a message in binary mode, with text encoded in the charset of its content type. Raises
        CloudEventError for text that this charset cannot hold.
        """
        charset = charset_of(self.datacontenttype or "") if self._kind is _TEXT else ""
        if charset in ("", "utf-8", "utf8"):
            return self._payload
        try:
            return self._payload.decode().encode(charset)
        except (LookupError, UnicodeEncodeError) as error:
            refuse("charset", "datacontenttype", self.datacontenttype, "ce-datacontenttype", str(error))

    def _text(self, name: str) -> str | None:
        value = self._attributes.get(name)
        return None if value is None else str(value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CloudEvent):
            return NotImplemented
        if self._attributes != other._attributes and not self._differs_in_what_is_implied(other):
            return False
        if self._payload == other._payload:
            return True
        try:
            if self._kind is other._kind is _JSON:
                return bool(self.data == other.data)
            return {self._kind, other._kind} == {_TEXT, _BINARY} and self.body() == other.body()
        except CloudEventError:
            return False

    def _differs_in_what_is_implied(self, other: "CloudEvent") -> bool:
        """Whether the attributes differ in more than an implied content type: without one, JSON data is JSON in the
        event format, while a binary message must name it.
        """
        if not (self._kind is other._kind is _JSON):
            return False
        implied = {"datacontenttype": JSON_CONTENT_TYPE}
        return implied | self._attributes == implied | other._attributes

    def __hash__(self) -> int:
        return hash((self._attributes["source"], self._attributes["id"]))

    def __repr__(self) -> str:
        shown = [f"{name}={rules.cut(value)}" for name, value in self._attributes.items()]
        if self._kind is not _ABSENT:
            shown.append(f"data=<{len(self._payload)} bytes of {self._kind.value}>")
        return f"CloudEvent({', '.join(shown)})"


def make_event(
    kind_of: type[E], attributes: dict[str, AttributeValue], kind: DataKind, payload: bytes, verified: bool
) -> E:
    """An event for the decoders of this package: attributes are not checked again, and the event takes over the dict."""
    made: Any = CloudEvent.__new__(CloudEvent) if kind_of is CloudEvent else kind_of.__new__(kind_of)
    made._attributes = attributes
    made._kind = kind
    made._payload = payload
    made._verified = verified
    return made  # type: ignore[no-any-return]


def _checked(context: Mapping[str, Any], strict: bool) -> dict[str, AttributeValue]:
    """The attributes that are set, converted to their types in memory. Raises CloudEventError."""
    checked: dict[str, AttributeValue] = {name: value for name, value in context.items() if value is not None}
    if is_common(checked):
        if strict:
            check_grammar(checked)
        return checked
    for name in context:
        check_name(name)
    checked = {str.__str__(name): value for name, value in checked.items()}
    for name, value in checked.items():
        text = canonical_string(name, value)
        if isinstance(value, (str, datetime)):
            checked[name] = text
        elif isinstance(value, (bytes, bytearray, memoryview)):  # copied, so that the caller cannot change them later
            checked[name] = bytes(value)
        else:
            checked[name] = value if isinstance(value, bool) else int(value)
    check_context(checked, strict)
    return checked


def _encoded(data: Any, content_type: str | None) -> tuple[DataKind, bytes]:
    """The kind and payload of the data that a program passes. Raises CloudEventError."""
    if data is None:
        return _ABSENT, b""
    if isinstance(data, (bytes, bytearray, memoryview)):
        return _BINARY, bytes(data)
    json = content_type is None or is_json_type(content_type)
    if isinstance(data, str) and not json:
        try:
            return _TEXT, data.encode()
        except UnicodeEncodeError:
            refuse(rules.SURROGATE, "data", data)
    if not json:
        refuse(NOT_A_STRING, "data", data, why=f"with content type {content_type!r} data is bytes or str")
    return _JSON, encode_json(data)


def encode_json(value: Any) -> bytes:
    """The JSON text of a value; a `msgspec.Raw` is validated and kept. Raises CloudEventError."""
    if isinstance(value, msgspec.Raw):
        text = bytes(value).removeprefix(BYTE_ORDER_MARK)
        decode_json(text)
        return text
    try:
        encoded = _encode_value(value)
        _check_json(encoded)  # a Decimal may print as NaN, and a number may become a member's name
        # msgspec silently writes NaN and the infinities as null.
        if b"null" in encoded and _has_no_number(_builtins(value)):
            refuse(NOT_JSON, "data", value, why="NaN and infinities are no JSON")
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        if isinstance(error, CloudEventError):
            raise
        raise CloudEventError(
            f"attribute 'data': {rules.cut(value)} has no JSON form: {error}",
            attribute="data",
            value=value,
            rule=NOT_JSON,
        ) from error
    return encoded


def _plain_value(value: Any) -> Any:
    """An instance of a subclass as a plain value of its base type; msgspec handles its own types."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, bytes):
        return bytes(value)
    raise TypeError(f"objects of type {type(value).__name__} have none")


_encode_value = msgspec.json.Encoder(decimal_format="number", enc_hook=_plain_value).encode
_decode_value = msgspec.json.Decoder().decode
_check_json = msgspec.json.Decoder(msgspec.Raw).decode


def _builtins(value: Any) -> Any:
    return msgspec.to_builtins(value, builtin_types=(Decimal,), enc_hook=_plain_value)


def _has_no_number(value: Any) -> bool:
    if isinstance(value, float):
        return value - value != 0.0
    if isinstance(value, dict):
        return any(_has_no_number(each) for each in value.values())
    return isinstance(value, list | tuple) and any(_has_no_number(each) for each in value)


def decode_json(text: bytes) -> Any:
    """Decode a JSON text, ignoring a byte order mark. Raises CloudEventError."""
    try:
        return _decode_value(text.removeprefix(BYTE_ORDER_MARK))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CloudEventError(
            f"attribute 'data': the payload is no JSON: {error}", attribute="data", value=rules.cut(text), rule=NOT_JSON
        ) from error
