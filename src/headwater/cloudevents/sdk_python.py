"""Interoperation with the `cloudevents` 2.x SDK: conversion of events, our JSON format for its bindings, and a NATS
binding.

    to_sdk, from_sdk         convert one event into the other
    JSONFormat               a `Format` for its HTTP, Kafka and AMQP bindings: faster, and correct where its own is not
    to_binary, from_binary, to_structured, from_structured, from_nats, and each with the suffix `_event`
                             the NATS binding in the shape of `cloudevents.core.bindings.*`, for the SDK's events

An SDK event cannot hold the text of a timestamp (it has a datetime, cut to microseconds) or an explicit `null` as data.
What the SDK invents is removed here: an event without a time stays without one, and one without an id is an error.
Attributes are checked by our rules before an SDK event is made, and the event gets a dict of its own.

The SDK is an extra (`headwater[cloudevents]`), imported when the first SDK event is made.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from headwater.cloudevents import nats_binding
from headwater.cloudevents.attributes import refuse
from headwater.cloudevents.event import (
    JSON_CONTENT_TYPE,
    NOT_A_STRING,
    CloudEvent,
    decode_json,
    encode_json,
    is_json_type,
    media_type,
)
from headwater.cloudevents.json_format import from_json, to_json
from headwater.cloudevents.nats_binding import CONTENT_TYPE, STRUCTURED_JSON, HasHeadersAndData, NATSMessage
from headwater.model.headers import Headers

if TYPE_CHECKING:
    from cloudevents.core.base import BaseCloudEvent
    from cloudevents.core.formats.base import Format

EventFactory = Callable[[dict[str, Any], Any], Any]


def to_sdk(event: CloudEvent, event_factory: EventFactory | None = None) -> "BaseCloudEvent":
    """The event as an SDK event, made by the SDK's v1 `CloudEvent` unless a factory is given. Raises CloudEventError for
    data that is not the JSON it claims to be, and for a time that no datetime can hold.
    """
    return _made(_sdk_attributes(event), event.data, event_factory)  # type: ignore[no-any-return]


def from_sdk(event: "BaseCloudEvent", strict: bool = False) -> CloudEvent:
    """The SDK event as a `CloudEvent`; an attribute that is None is unset. Raises CloudEventError for what the SDK
    accepts and the specification does not: empty names, floats, integers beyond 32 bits, version 0.3.
    """
    return CloudEvent.from_attributes(event.get_attributes(), event.get_data(), strict)


def _sdk_attributes(event: CloudEvent) -> dict[str, Any]:
    attributes: dict[str, Any] = dict(event.attributes)
    if "time" in attributes:
        attributes["time"] = event.time
    return attributes


def _made(attributes: dict[str, Any], data: Any, event_factory: EventFactory | None) -> Any:
    """An SDK event, without the time that the SDK adds when there is none."""
    if event_factory is None:
        from cloudevents.core.v1.event import CloudEvent as SdkEvent

        event_factory = SdkEvent
    timeless = "time" not in attributes
    made = event_factory(attributes, data)
    if timeless and hasattr(made, "get_attributes"):
        made.get_attributes().pop("time", None)
    return made


def _is_json(content_type: object) -> bool:
    return content_type is None or (isinstance(content_type, str) and is_json_type(content_type))


class JSONFormat:
    """The JSON event format as an SDK `Format`: `http.to_structured(event, JSONFormat())`.

    Errors are CloudEventError, a subclass of the ValueError that the SDK's protocol requires. `read` also accepts our
    `CloudEvent.from_attributes` as a factory, which is strict; `functools.partial(..., strict=False)` is not.
    """

    __slots__ = ()

    CONTENT_TYPE: Final = STRUCTURED_JSON

    def read(self, event_factory: EventFactory | None, data: str | bytes) -> Any:
        """The event in a JSON text, made by the factory. Raises CloudEventError before an invalid event reaches the
        factory.
        """
        event = from_json(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)
        return to_sdk(event, event_factory)

    def write(self, event: "BaseCloudEvent | CloudEvent") -> bytes:
        """An SDK event or one of ours as JSON text. Raises CloudEventError."""
        return to_json(event if isinstance(event, CloudEvent) else from_sdk(event))

    def write_data(self, data: Any, datacontenttype: str | None) -> bytes:
        """Data as the body of a binary message. For a JSON content type a str is a JSON string. Raises CloudEventError."""
        if data is None:
            return b""
        if isinstance(data, (bytes, bytearray, memoryview)):
            return bytes(data)
        if _is_json(datacontenttype):
            return encode_json(data)
        if not isinstance(data, str):
            refuse(NOT_A_STRING, "data", data, why=f"with content type {datacontenttype!r} data is bytes or str")
        return data.encode("utf-8", "surrogatepass")

    def read_data(self, body: bytes, datacontenttype: str | None) -> Any:
        """The body of a binary message as data: a decoded value for JSON, str for text in UTF-8, else bytes. Without a
        content type JSON is tried first, as the SDK does. Raises CloudEventError for a body that is not the JSON its
        type claims.
        """
        if not body:
            return None
        if datacontenttype is None:
            try:
                return decode_json(body)
            except ValueError:
                return _text_or_bytes(body)
        if is_json_type(datacontenttype):
            return decode_json(body)
        return _text_or_bytes(body) if media_type(datacontenttype).startswith("text/") else body

    def get_content_type(self) -> str:
        return self.CONTENT_TYPE


def _text_or_bytes(body: bytes) -> str | bytes:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body


def to_binary(event: "BaseCloudEvent", event_format: "Format") -> NATSMessage:
    """The event in binary mode; `event_format` encodes the data. Raises CloudEventError."""
    attributes = dict(event.get_attributes())
    data = event.get_data()
    if attributes.get("datacontenttype") is None and isinstance(data, (dict, list)):
        attributes["datacontenttype"] = JSON_CONTENT_TYPE
    headers = nats_binding.to_binary(CloudEvent.from_attributes(attributes)).headers
    return NATSMessage(headers, event_format.write_data(data, attributes.get("datacontenttype")))


def from_binary(
    message: HasHeadersAndData, event_format: "Format", event_factory: EventFactory | None = None
) -> "BaseCloudEvent":
    """The event in a message in binary mode. Raises CloudEventError for any other message."""
    if nats_binding.content_mode(message) != "binary":
        refuse("mode", None, header=CONTENT_TYPE, why="the message is in structured mode: use from_structured")
    event = nats_binding.from_nats(message)
    data = event_format.read_data(event.payload, event.datacontenttype)
    return _made(_sdk_attributes(event), data, event_factory)  # type: ignore[no-any-return]


def to_structured(event: "BaseCloudEvent", event_format: "Format") -> NATSMessage:
    """The event in structured mode. Raises CloudEventError for a format other than JSON, the only one of this binding."""
    content_type = event_format.get_content_type()
    if media_type(content_type) != STRUCTURED_JSON:
        refuse(nats_binding.UNSUPPORTED_FORMAT, None, content_type, CONTENT_TYPE, "over NATS the event format is JSON")
    return NATSMessage(Headers.of_checked([(CONTENT_TYPE, content_type)]), event_format.write(event))


def from_structured(
    message: HasHeadersAndData, event_format: "Format", event_factory: EventFactory | None = None
) -> "BaseCloudEvent":
    """The event in a message in structured mode; its headers are ignored."""
    return event_format.read(event_factory, message.data)


def from_nats(
    message: HasHeadersAndData, event_format: "Format", event_factory: EventFactory | None = None
) -> "BaseCloudEvent":
    """The event in a message of either mode. Raises CloudEventError for a batch, or a message that is not a CloudEvent."""
    read = from_binary if nats_binding.content_mode(message) == "binary" else from_structured
    return read(message, event_format, event_factory)


_FORMAT: Final = JSONFormat()


def to_binary_event(event: "BaseCloudEvent", event_format: "Format | None" = None) -> NATSMessage:
    return to_binary(event, event_format or _FORMAT)


def from_binary_event(message: HasHeadersAndData, event_format: "Format | None" = None) -> "BaseCloudEvent":
    return from_binary(message, event_format or _FORMAT)


def to_structured_event(event: "BaseCloudEvent", event_format: "Format | None" = None) -> NATSMessage:
    return to_structured(event, event_format or _FORMAT)


def from_structured_event(message: HasHeadersAndData, event_format: "Format | None" = None) -> "BaseCloudEvent":
    return from_structured(message, event_format or _FORMAT)


def from_nats_event(message: HasHeadersAndData, event_format: "Format | None" = None) -> "BaseCloudEvent":
    return from_nats(message, event_format or _FORMAT)
