"""The dialect of sdk-go over NATS, read and written: `compat="sdk-go"`.

The JetStream bindings of sdk-go (v2, v3) differ from the specification's binding; its core NATS binding (v2) has only
one mode:

    binary       values as they print, neither percent-encoded nor decoded; `ce-datacontenttype`, or `content-type`
    structured   the JSON text, without Content-Type; the only mode of core NATS
    mode         binary when there is a header spelled exactly `ce-specversion`, else structured
    repeated     the first value counts
    blanks       trimmed, Unicode's too, in id, type, subject, datacontenttype and dataschema, in binary mode
    time         what Go's time package reads: upper-case T and Z, no leap second

So `%20` in such a header is three characters, and `Ce-Id` is not an attribute. sdk-go prints two types in a form that
cannot be parsed: a Binary extension as `[1 2 255]`, a URI one as a Go struct; they are read as Strings. This module
writes the canonical strings of both instead, which sdk-go also reads as Strings. Writing refuses values that sdk-go
would not receive unchanged; reading interprets values as sdk-go would.
"""

import re
from datetime import UTC
from typing import Final

from headwater.cloudevents import attributes as rules
from headwater.cloudevents.attributes import canonical_string, check_context, check_string, refuse
from headwater.cloudevents.event import JSON_CONTENT_TYPE, CloudEvent, DataKind, kind_of_body, make_event
from headwater.cloudevents.json_format import from_json, to_json
from headwater.model.header_syntax import OWS

PREFIX: Final = "ce-"
MARK: Final = "ce-specversion"
TRIMMED: Final = "blank at the end of a value"
NO_GO_TIME: Final = "not a time for Go"

_TRIMMED: Final = frozenset(("id", "type", "subject", "datacontenttype", "dataschema"))
_MAY_BE_UNSET: Final = frozenset(("subject", "datacontenttype", "dataschema"))

Pairs = list[tuple[str, str]]


def attribute_lines(event: CloudEvent) -> Pairs:
    """The headers of an event in binary mode. Raises CloudEventError for a value that sdk-go would change."""
    pairs: Pairs = []
    for name, value in event.attributes.items():
        text = canonical_string(name, value)
        if name == "time":
            text = _go_time(text)
        if text.strip(OWS) != text:
            refuse(TRIMMED, name, value, PREFIX + name, "nats.go trims it")
        if name in _TRIMMED and text.strip() != text:
            refuse(TRIMMED, name, value, PREFIX + name, "sdk-go trims it")
        pairs.append((PREFIX + name, text))
    if event.kind is DataKind.JSON and event.datacontenttype is None:
        pairs.append((PREFIX + "datacontenttype", JSON_CONTENT_TYPE))
    return pairs


def structured(event: CloudEvent) -> bytes:
    """The JSON text of an event, with the time as Go prints it. Raises CloudEventError for a time that Go cannot
    represent.
    """
    text = event.time_text
    if text is None or (printed := _go_time(text)) == text:
        return to_json(event)
    attributes = {**event.attributes, "time": printed}
    return to_json(make_event(CloudEvent, attributes, event.kind, event.payload, event.is_verified))


def _go_time(text: str) -> str:
    """RFC3339Nano in UTC, as Go prints a time: no trailing zeros in the fraction, at most nine digits."""
    upper = text.upper()
    if upper[17:19] == "60" or upper.startswith("0000"):
        refuse(NO_GO_TIME, "time", text, PREFIX + "time", "sdk-go would refuse the event")
    if not upper.endswith(("Z", "+00:00", "-00:00")):
        try:
            moment = rules.to_datetime("time", upper[:19] + upper[-6:]).astimezone(UTC)
        except OverflowError:
            refuse(NO_GO_TIME, "time", text, PREFIX + "time", "in UTC it has no year of four digits")
        whole = rules.from_datetime("time", moment)[:19]
    else:
        whole = upper[:19]
    fraction = ""
    if upper[19:20] == ".":
        digits = re.match(r"[0-9]+", upper[20:])
        fraction = digits[0][:9].rstrip("0") if digits else ""
    return f"{whole}.{fraction}Z" if fraction else f"{whole}Z"


def read(pairs: Pairs, data: bytes, strict: bool) -> CloudEvent:
    """The event in a message of sdk-go. Raises only CloudEventError."""
    if not any(name == MARK for name, _ in pairs):
        event = from_json(data, strict)
        _check_time(event.time_text, None)
        return event
    attributes: dict[str, rules.AttributeValue] = {}
    content_type = None
    for name, value in pairs:
        if name.startswith(PREFIX):
            attribute = name[3:].lower()
            rules.check_name(attribute, name)
            if attribute not in attributes:
                check_string(attribute, value, name)
                attributes[attribute] = value.strip() if attribute in _TRIMMED else value
        elif content_type is None and name.lower() == "content-type":
            content_type = value
    if content_type is not None and "datacontenttype" not in attributes:
        check_string("datacontenttype", content_type, "content-type")
        attributes["datacontenttype"] = content_type
    for attribute in _MAY_BE_UNSET:
        if attributes.get(attribute) == "":
            del attributes[attribute]
    check_context(attributes, strict, PREFIX)
    _check_time(attributes.get("time"), PREFIX + "time")
    declared = attributes.get("datacontenttype")
    kind, payload = kind_of_body(data, None if declared is None else str(declared))
    return make_event(CloudEvent, attributes, kind, payload, False)


def _check_time(time: object, header: str | None) -> None:
    """Raises CloudEventError for an RFC 3339 timestamp that Go cannot parse."""
    text = str(time or "")
    if "t" in text or "z" in text or text[17:19] == "60":
        refuse(NO_GO_TIME, "time", text, header, "sdk-go refuses the event")
