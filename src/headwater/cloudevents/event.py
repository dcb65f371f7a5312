# cython: annotation_typing=False
"""`CloudEvent`: context attributes and data, checked once, frozen, the data left encoded until it is read.

Data is held as the bytes that a NATS message in binary mode would carry, plus what they are:

    ABSENT   no data at all
    BINARY   opaque bytes; in JSON they travel as `data_base64`, whatever the content type says
    TEXT     characters for a content type that is not JSON; held as UTF-8
    JSON     a JSON text, decoded at each access to `data`, so that the event cannot be changed through it

Attributes and text are taken by value when the event is made: a member of `class Kind(str, Enum)` is its text from then
on, one of an IntEnum its number, so that no way of writing can print its name instead.

An id or a time is never invented: an event without them is an error or has none.
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


def media_type(content_type: str) -> str:
    """`type/subtype` in lower case, parameters dropped."""
    return content_type.partition(";")[0].strip(" \t").lower()


def is_text_type(content_type: str) -> bool:
    """Whether data of this type is characters: `text/*`, `*/xml`, `*/*+xml`, or a type that names its charset."""
    if ";" in content_type and charset_of(content_type):
        return True
    main, _, subtype = media_type(content_type).partition("/")
    return main == "text" or subtype == "xml" or subtype.endswith("+xml")


def charset_of(content_type: str) -> str:
    """The parameter `charset` in lower case, without quotes; empty when there is none."""
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip(" \t").lower() == "charset":
            return value.strip(' \t"').lower()
    return ""


def text_of(payload: bytes, content_type: str) -> bytes | None:
    """The UTF-8 of a body whose type says that it is text; None when it is not text in its charset (UTF-8 if none)."""
    charset = charset_of(content_type)
    try:
        text = payload.decode(charset or "utf-8")
        return payload if charset in ("", "utf-8", "utf8", "us-ascii") else text.encode()
    except (LookupError, UnicodeError):
        return None


def kind_of_body(body: bytes, content_type: str | None) -> tuple[DataKind, bytes]:
    """Kind and payload of the body of a message in binary mode: its type says whether it is JSON, text, or bytes."""
    if not body:
        return DataKind.ABSENT, body
    if content_type is not None:
        if is_json_type(content_type):
            return DataKind.JSON, body
        if is_text_type(content_type) and (text := text_of(body, content_type)) is not None:
            return DataKind.TEXT, text
    return DataKind.BINARY, body


def is_json_type(content_type: str) -> bool:
    """Whether the media type is `*/json` or `*/*+json`."""
    if content_type == JSON_CONTENT_TYPE:
        return True
    subtype = media_type(content_type).partition("/")[2]
    return subtype == "json" or subtype.endswith("+json")


E = TypeVar("E", bound="CloudEvent")


class CloudEvent:
    """One event of CloudEvents 1.0.

    `data`: None for no data; bytes are opaque; a str is text, or a JSON string where the content type is JSON or not
    given; anything else is encoded as JSON at once. `msgspec.Raw` is a JSON text that is encoded already, so that
    `msgspec.Raw(b"null")` is the explicit null payload. `time`: RFC 3339 text, kept as it is, or an aware datetime.
    `extensions`: String, Integer, Boolean, Binary (bytes) and Timestamp (aware datetime) values by name; None stands
    for unset. `strict=False` leaves the grammar of source, dataschema and datacontenttype unchecked, as reading does:
    for events that are forwarded.

    Raises CloudEventError, which names attribute, value and rule. Equal events have equal attributes and data: JSON
    data is compared decoded, text and the bytes of that text are equal, and so are no data and empty data, between which
    a message in binary mode has no difference. Source and id make the hash, as they identify an
    event.
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
        self._verified = True  # that the payload is what `_kind` says

    @classmethod
    def from_attributes(cls, attributes: Mapping[str, Any], data: Any = None, strict: bool = True) -> Self:
        """An event from all its attributes in one mapping, extensions among them; None stands for unset.

        Raises CloudEventError.
        """
        checked = _checked(attributes, strict)
        if len(checked) != len(attributes):  # an unset attribute has a name, too
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
        """The timestamp as an aware datetime, cut to microseconds. Raises CloudEventError if none can hold it."""
        text = self._text("time")
        return None if text is None else rules.to_datetime("time", text)

    @property
    def extensions(self) -> dict[str, AttributeValue]:
        """The extension attributes, a dict of your own. From headers all of them are str: types are lost there."""
        return {name: value for name, value in self._attributes.items() if name not in rules.CORE}

    def extension(self, name: str, registry: Registry = documented) -> ExtensionValue | None:
        """The value of one extension with the type that the registry gives it; None when it is not set.

        Raises CloudEventError when the value does not fit.
        """
        return registry.read(self._attributes, name)

    def with_types(self, registry: Registry = documented) -> Self:
        """This event with the types that headers lost, for the extensions of the registry. Raises CloudEventError."""
        restored = registry.restored(self._attributes)
        return make_event(type(self), restored, self._kind, self._payload, self._verified)

    @property
    def attributes(self) -> Mapping[str, AttributeValue]:
        """All context attributes that are set, in the order they came, read-only; `time` as text."""
        return MappingProxyType(self._attributes)

    @property
    def kind(self) -> DataKind:
        return self._kind

    @property
    def payload(self) -> bytes:
        """The data as encoded bytes, not copied; empty when there is none. Text is UTF-8."""
        return self._payload

    @property
    def is_verified(self) -> bool:
        """Whether a JSON payload is known to be JSON. One that came in binary mode is not looked at before `data` is."""
        return self._verified

    @property
    def data(self) -> Any:
        """None, bytes, str, or the value of a JSON text, made anew at each look (`kind` tells null from absent).

        Raises CloudEventError when the payload is no JSON although its content type says so.
        """
        kind = self._kind
        if kind is DataKind.ABSENT:
            return None
        if kind is DataKind.BINARY:
            return self._payload
        return self._payload.decode() if kind is DataKind.TEXT else decode_json(self._payload)

    def body(self) -> bytes:
        """The bytes of a message in binary mode: the payload, text in the charset that its content type names.

        Raises CloudEventError for text that this charset cannot hold.
        """
        charset = charset_of(self.datacontenttype or "") if self._kind is DataKind.TEXT else ""
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
            if self._kind is other._kind is DataKind.JSON:
                return bool(self.data == other.data)
            return {self._kind, other._kind} == {DataKind.TEXT, DataKind.BINARY} and self.body() == other.body()
        except CloudEventError:
            return False

    def _differs_in_what_is_implied(self, other: "CloudEvent") -> bool:
        """JSON data without a content type is JSON by the format; a binary message has to say so."""
        if not (self._kind is other._kind is DataKind.JSON):
            return False
        implied = {"datacontenttype": JSON_CONTENT_TYPE}
        return implied | self._attributes == implied | other._attributes

    def __hash__(self) -> int:
        return hash((self._attributes["source"], self._attributes["id"]))

    def __repr__(self) -> str:
        shown = [f"{name}={rules.cut(value)}" for name, value in self._attributes.items()]
        if self._kind is not DataKind.ABSENT:
            shown.append(f"data=<{len(self._payload)} bytes of {self._kind.value}>")
        return f"CloudEvent({', '.join(shown)})"


def make_event(
    kind_of: type[E], attributes: dict[str, AttributeValue], kind: DataKind, payload: bytes, verified: bool
) -> E:
    """For the decoders of this package: the attributes have been checked, and the dict is given away."""
    made: Any = CloudEvent.__new__(CloudEvent) if kind_of is CloudEvent else kind_of.__new__(kind_of)
    made._attributes = attributes
    made._kind = kind
    made._payload = payload
    made._verified = verified
    return made  # type: ignore[no-any-return]


def _checked(context: Mapping[str, Any], strict: bool) -> dict[str, AttributeValue]:
    """The attributes that are set, each of one of the types in memory. Raises CloudEventError."""
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
        elif isinstance(value, (bytes, bytearray, memoryview)):  # which cannot be altered from outside
            checked[name] = bytes(value)
        else:
            checked[name] = value if isinstance(value, bool) else int(value)
    check_context(checked, strict)
    return checked


def _encoded(data: Any, content_type: str | None) -> tuple[DataKind, bytes]:
    """Kind and payload of what a program passes as data. Raises CloudEventError."""
    if data is None:
        return DataKind.ABSENT, b""
    if isinstance(data, (bytes, bytearray, memoryview)):
        return DataKind.BINARY, bytes(data)
    json = content_type is None or is_json_type(content_type)
    if isinstance(data, str) and not json:
        try:
            return DataKind.TEXT, data.encode()
        except UnicodeEncodeError:
            refuse(rules.SURROGATE, "data", data)
    if not json:
        refuse(NOT_A_STRING, "data", data, why=f"with content type {content_type!r} data is bytes or str")
    return DataKind.JSON, encode_json(data)


def encode_json(value: Any) -> bytes:
    """The JSON text of a value; a `msgspec.Raw` is checked and kept. Raises CloudEventError."""
    if isinstance(value, msgspec.Raw):
        text = bytes(value).removeprefix(BYTE_ORDER_MARK)
        decode_json(text)
        return text
    try:
        encoded = _encode_value(value)
        _check_json(encoded)  # a Decimal is written as it prints: NaN, or a number as the name of a member
        # msgspec writes NaN and the infinities as null: a value that silently changes
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
    """A value of a subclass as what it is a kind of; msgspec knows those of its own."""
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
    """The value of a JSON text. A byte order mark is ignored. Raises CloudEventError."""
    try:
        return msgspec.json.decode(text.removeprefix(BYTE_ORDER_MARK))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CloudEventError(
            f"attribute 'data': the payload is no JSON: {error}", attribute="data", value=rules.cut(text), rule=NOT_JSON
        ) from error
