"""An event as an Iggy message: binary mode, with the attributes as typed headers.

    String and its subtypes   kind string, percent-encoded as in the NATS binding
    Boolean, Integer          kind bool, int32
    Binary                    kind raw
    data                      the payload

So NATS and Iggy clients read the same event from one message, and over Iggy attributes keep types that NATS headers
lose. The whole table is in docs/header-mapping.md.
"""

from headwater.cloudevents.attributes import AttributeValue
from headwater.cloudevents.event import CloudEvent, make_event
from headwater.cloudevents.nats_binding import PREFIX, NATSMessage, from_nats, to_binary
from headwater.errors import HeaderError
from headwater.model.header_mapping import EMPTY, Loss, nats_to_typed, typed_to_nats
from headwater.model.headers import Headers
from headwater.model.typed_header import LONGEST, HeaderValue
from headwater.model.typed_headers import TypedHeaders


def event_to_typed(event: CloudEvent) -> tuple[TypedHeaders, bytes, list[Loss]]:
    """Returns headers, payload, and the attributes that had to be left out. Raises CloudEventError as `to_binary` does."""
    message = to_binary(event)
    assert isinstance(message.headers, Headers)
    typed, losses = nats_to_typed(message.headers)
    for attribute, value in event.attributes.items():
        name = PREFIX + attribute
        if value == EMPTY.raw:  # the empty text in Iggy: sent as base64, without its type
            losses.append(Loss(name, "one zero byte is the empty text in Iggy: sent as base64"))
        elif isinstance(value, bytes) and 0 < len(value) <= LONGEST:
            typed[name] = HeaderValue.from_raw(value)  # even if its base64 was too long for a header
            losses = [loss for loss in losses if loss.name != name]
        elif isinstance(value, bool):
            typed[name] = HeaderValue.from_bool(value)
        elif isinstance(value, int):
            typed[name] = HeaderValue.from_int32(value)
    return typed, message.data, losses


def event_from_typed(typed: TypedHeaders, data: bytes, strict: bool = False) -> CloudEvent:
    """The event in an Iggy message, in either content mode. Values of kinds without a CloudEvents type become Strings.
    Raises CloudEventError.
    """
    event = from_nats(NATSMessage(typed_to_nats(typed), data), strict)
    attributes = dict(event.attributes)
    for key, value in typed.items():
        attribute = str(key)[len(PREFIX) :].lower()
        if str(key)[: len(PREFIX)].lower() == PREFIX and attribute in attributes:
            of_kind = _attribute(value)
            if of_kind is not None:
                attributes[attribute] = of_kind
    return make_event(CloudEvent, attributes, event.kind, event.payload, event.is_verified)


def _attribute(value: HeaderValue) -> AttributeValue | None:
    """The value with its CloudEvents type; None for a String, which `from_nats` has already read."""
    try:
        python = value.python
    except HeaderError:
        return value.raw
    if isinstance(python, bool) or (isinstance(python, bytes) and value != EMPTY):
        return python
    return python if isinstance(python, int) and -(2**31) <= python < 2**31 else None
