"""The NATS protocol binding for CloudEvents: an event as a message, in binary or structured content mode.

    binary       ce-<attribute>: <percent-encoded canonical string>, one header each; the data is the payload
    structured   Content-Type: application/cloudevents+json; the payload is the JSON event format

Unlike in HTTP and Kafka, the content type of the data is `ce-datacontenttype`; a plain Content-Type only determines the
mode. Names are written in lower case and matched case-insensitively, as the binding says; a repeated attribute is
refused.

According to the binding every message without that Content-Type is binary. But its own structured example, sdk-go and
sdk-rust send none, so by default a message without it is binary if it has a `ce-` header, and structured if it has none
and its payload begins like a JSON object. `strict=True` follows the binding exactly, in this and in the values.

This binding has no batch mode: a batch is refused rather than read as its first event.
"""

from collections.abc import Iterable
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

from headwater.cloudevents import attributes as rules
from headwater.cloudevents import sdk_go
from headwater.cloudevents.attributes import (
    AttributeValue,
    canonical_string,
    check_context,
    check_grammar,
    check_string,
    refuse,
)
from headwater.cloudevents.event import (
    BYTE_ORDER_MARK,
    JSON_CONTENT_TYPE,
    CloudEvent,
    DataKind,
    kind_of_body,
    make_event,
    media_type,
)
from headwater.cloudevents.header_value import decode_header_value, encode_header_value
from headwater.cloudevents.json_format import from_json, to_json
from headwater.cloudevents.plain_headers import COMPILED, read_plain, write_plain
from headwater.errors import CloudEventError, ConfigError, HeaderError
from headwater.model.header_names import NatsHeader
from headwater.model.headers import Headers, HeaderSource

PREFIX: Final = "ce-"
CONTENT_TYPE: Final = "Content-Type"
STRUCTURED: Final = "application/cloudevents"
STRUCTURED_JSON: Final = "application/cloudevents+json"
BATCH: Final = "application/cloudevents-batch"

NOT_A_CLOUDEVENT: Final = "not a CloudEvent"
NO_BATCH: Final = "batch not supported by NATS binding"
UNSUPPORTED_FORMAT: Final = "unsupported event format"
NOT_ENCODED: Final = "not percent-encoded"

Compat = Literal["sdk-go"] | None
ContentMode = Literal["binary", "structured"]
Pairs = Iterable[tuple[str, str]]

_ATTRIBUTE_OF: Final = {PREFIX + name: name for name in rules.CORE}


class NATSMessage(NamedTuple):
    """The parts of a message that the binding needs. `headers` may be a Headers, a mapping, pairs, or None for no
    headers.
    """

    headers: Headers | HeaderSource | None
    data: bytes


class WrittenMessage(NATSMessage):
    """A `NATSMessage` made here: its headers are a `Headers`."""

    __slots__ = ()
    if TYPE_CHECKING:

        @property
        def headers(self) -> Headers: ...


class HasHeadersAndData(Protocol):
    """A `NATSMessage`, or any other message with these attributes, such as a received one."""

    @property
    def headers(self) -> Any: ...
    @property
    def data(self) -> bytes: ...


_message = partial(tuple.__new__, WrittenMessage)  # WrittenMessage(...) without a Python call


def to_binary(event: CloudEvent, *, msg_id: bool = False, compat: Compat = None) -> WrittenMessage:
    """The event in binary mode. `msg_id` adds `Nats-Msg-Id`, from `message_id`. `compat="sdk-go"` writes what the
    JetStream binding of sdk-go reads (`sdk_go`), which differs from the standard.

    The content type that JSON data implies is written explicitly. Raises CloudEventError for text that its declared
    charset cannot hold, ConfigError for an unknown `compat`.
    """
    more = f"{NatsHeader.MSG_ID.value}: {message_id(event)}\r\n".encode("ascii") if msg_id else b""
    if compat is None:
        block = write_plain(event, more)
        if block is not None:
            return _message((Headers.of_plain(block), event.payload))
        pairs = _attribute_lines(event)
    else:
        pairs = _compatible(compat).attribute_lines(event)
    if msg_id:
        pairs.append((NatsHeader.MSG_ID.value, message_id(event)))
    return _message((Headers.of_checked(pairs), event.body()))


def _attribute_lines(event: CloudEvent) -> list[tuple[str, str]]:
    attributes = event.attributes
    pairs = [(PREFIX + name, encode_header_value(canonical_string(name, value))) for name, value in attributes.items()]
    if event.kind is DataKind.JSON and event.datacontenttype is None:
        pairs.append((PREFIX + "datacontenttype", JSON_CONTENT_TYPE))
    return pairs


def to_structured(event: CloudEvent, *, msg_id: bool = False, compat: Compat = None) -> WrittenMessage:
    """The event in structured mode. `msg_id` adds `Nats-Msg-Id`. `compat="sdk-go"` omits the Content-Type, as sdk-go
    does, and writes the time as Go reads it. Raises CloudEventError when JSON data is not JSON, ConfigError for an
    unknown `compat`.
    """
    if compat is None:
        pairs, text = [(CONTENT_TYPE, STRUCTURED_JSON)], to_json(event)
    else:
        pairs, text = [], _compatible(compat).structured(event)
    if msg_id:
        pairs.append((NatsHeader.MSG_ID.value, message_id(event)))
    return _message((Headers.of_checked(pairs), text))


def _compatible(compat: str) -> ModuleType:
    """The module that implements another SDK's dialect. Raises ConfigError for an unknown one."""
    if compat != "sdk-go":
        raise ConfigError(f"compat is 'sdk-go' or None, not {compat!r}", value=compat, limit="sdk-go")
    return sdk_go


def message_id(event: CloudEvent) -> str:
    """`source`, a space, and `id`, both percent-encoded: different events have different ids, because no encoded part
    contains a space. As `Nats-Msg-Id` it makes a stream drop an event that is published twice.
    """
    return f"{encode_header_value(event.source)} {encode_header_value(event.id)}"


def from_nats(message: HasHeadersAndData, strict: bool = False, *, compat: Compat = None) -> CloudEvent:
    """The event in a message, in either mode. Attributes from headers are Strings: headers carry no types.

    The `header_block` of a message is read if it has one and its `headers` have not been changed since. JSON data is not
    decoded here; data of a text type is decoded in the charset that the type names. `compat="sdk-go"` reads what sdk-go
    writes (`sdk_go`). Raises CloudEventError, also for malformed headers, and ConfigError for an unknown `compat`.
    """
    block = _block(message)
    if compat is not None:
        event: CloudEvent = _compatible(compat).read(_pairs(message, block), bytes(message.data), strict)
        return event
    if COMPILED and block and (plain := read_plain(block, bytes(message.data))) is not None:
        if strict:
            check_grammar(plain.attributes, PREFIX)
        return plain
    return read_any(_pairs(message, block), message.data, strict)


def read_any(pairs: list[tuple[str, str]], data: bytes, strict: bool) -> CloudEvent:
    """The general path of `from_nats`, for the headers and payload of a message."""
    attributes: dict[str, str] = {}
    content_type = None
    others = 0  # headers that are not attributes
    well_named = True
    for name, value in pairs:
        attribute = _ATTRIBUTE_OF.get(name)
        if attribute is None:
            if name[:3].lower() == PREFIX:
                attribute = name[3:].lower()
                well_named = well_named and rules.is_attribute_name(attribute)
            else:
                others += 1
                if content_type is None and name.lower() == "content-type":
                    content_type = value
                continue
        attributes[attribute] = value
    mode = _mode(content_type, bool(attributes), data, strict)
    if mode == "structured":
        return from_json(data, strict)
    if not well_named or len(attributes) + others != len(pairs):
        _refuse_names(pairs)
    return _from_binary(attributes, content_type, bytes(data), strict)


def content_mode(message: HasHeadersAndData, strict: bool = False) -> ContentMode:
    """The mode of a message. Raises CloudEventError for a batch, another event format, or a message that is not a
    CloudEvent.
    """
    pairs = _pairs(message, _block(message))
    content_type = next((value for name, value in pairs if name.lower() == "content-type"), None)
    return _mode(content_type, any(name[:3].lower() == PREFIX for name, _ in pairs), message.data, strict)


def _block(message: HasHeadersAndData) -> bytes | None:
    """The header block as received, if it is known and unchanged; b"" for no headers."""
    block: bytes | None = getattr(message, "header_block", None)
    if block is not None and getattr(message, "has_changed_headers", False):
        return None
    if block is None:
        try:
            headers = message.headers
        except HeaderError as error:
            raise _malformed(error) from error
        return headers.raw if isinstance(headers, Headers) else None
    return block


def _pairs(message: HasHeadersAndData, block: bytes | None) -> list[tuple[str, str]]:
    try:
        if block is None:
            headers = message.headers
            return (headers if isinstance(headers, Headers) else Headers(headers or ())).multi_items()
        return Headers.parse(block).multi_items() if block else []
    except HeaderError as error:
        raise _malformed(error) from error


def _malformed(error: HeaderError) -> CloudEventError:
    return CloudEventError(f"the headers are malformed: {error}", header=error.key, rule=error.rule)


def _mode(content_type: str | None, has_attributes: bool, data: bytes, strict: bool) -> ContentMode:
    if content_type is not None:
        media = media_type(content_type)
        if media in (STRUCTURED, STRUCTURED_JSON):
            return "structured"
        if media == BATCH or media.startswith(BATCH + "+"):
            refuse(NO_BATCH, None, content_type, CONTENT_TYPE, "publish each event as a message")
        if media.startswith(STRUCTURED + "+"):
            refuse(UNSUPPORTED_FORMAT, None, content_type, CONTENT_TYPE, "over NATS the event format is JSON")
    if has_attributes or strict:
        return "binary"
    if bytes(data[:64]).removeprefix(BYTE_ORDER_MARK).lstrip(b" \t\r\n").startswith(b"{"):
        return "structured"
    refuse(NOT_A_CLOUDEVENT, None, why="there is no ce- header, and the payload is no JSON object")


def _refuse_names(pairs: Pairs) -> None:
    """Raise for the first `ce-` header with an invalid or repeated attribute name."""
    seen = set()
    for name, value in pairs:
        if name[:3].lower() == PREFIX:
            attribute = name[3:].lower()
            rules.check_name(attribute, header=name)
            if attribute in seen:
                refuse(rules.DUPLICATE, attribute, value, name, "an attribute appears at most once")
            seen.add(attribute)


def _from_binary(texts: dict[str, str], content_type: str | None, data: bytes, strict: bool) -> CloudEvent:
    if strict:
        for name, value in texts.items():
            if not rules.is_plain(value):
                refuse(NOT_ENCODED, name, value, PREFIX + name, "other than printable ASCII is percent-encoded")
    together = "".join(texts.values())
    if "%" in together or '"' in together or not rules.is_plain(together):
        for name, value in texts.items():
            texts[name] = decode_header_value(value, strict, name, PREFIX + name)
            check_string(name, texts[name], PREFIX + name)
    if content_type is not None and not strict and "datacontenttype" not in texts:
        texts["datacontenttype"] = content_type
        check_string("datacontenttype", content_type, CONTENT_TYPE)
    attributes: dict[str, AttributeValue] = texts  # type: ignore[assignment]
    check_context(attributes, strict, PREFIX)
    kind, payload = kind_of_body(data, texts.get("datacontenttype"))
    return make_event(CloudEvent, attributes, kind, payload, False)
