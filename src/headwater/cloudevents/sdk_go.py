"""What sdk-go puts on the wire over NATS, read and written: `compat="sdk-go"`.

Its JetStream bindings (v2, v3) differ from the specification's binding, its core NATS binding (v2) knows one mode:

    binary       values as they print, neither percent-encoded nor decoded; `ce-datacontenttype`, or `content-type`
    structured   the JSON text, without Content-Type; all that core NATS has
    mode         binary when there is a header spelled exactly `ce-specversion`, else structured
    repeated     the first value counts

So `%20` in such a header is three characters, and `Ce-Id` is no attribute. What sdk-go prints for two types is beyond
reading: a Binary extension comes as `[1 2 255]`, a URI one as a Go struct; they are read as the Strings they are. We write
the canonical strings of both instead, which sdk-go takes for Strings as well. Values that would not arrive are refused:
nats.go trims blanks, and Go's time knows no leap second.
"""

import re
from datetime import UTC
from typing import Final

from headwater.cloudevents import attributes as rules
from headwater.cloudevents.attributes import canonical_string, check_context, check_string, refuse
from headwater.cloudevents.event import JSON_CONTENT_TYPE, CloudEvent, DataKind, is_json_type, make_event
from headwater.cloudevents.json_format import from_json
from headwater.model.header_syntax import OWS

PREFIX: Final = "ce-"
MARK: Final = "ce-specversion"
TRIMMED: Final = "blank at the end of a value"
NO_GO_TIME: Final = "not a time for Go"

Pairs = list[tuple[str, str]]


def attribute_lines(event: CloudEvent) -> Pairs:
    """The headers of an event in binary mode. Raises CloudEventError for a value that sdk-go would not get."""
    pairs: Pairs = []
    for name, value in event.attributes.items():
        text = canonical_string(name, value)
        if name == "time":
            text = _go_time(text)
        if text.strip(OWS) != text:
            refuse(TRIMMED, name, value, PREFIX + name, "nats.go trims it")
        pairs.append((PREFIX + name, text))
    if event.kind is DataKind.JSON and event.datacontenttype is None:
        pairs.append((PREFIX + "datacontenttype", JSON_CONTENT_TYPE))
    return pairs


def _go_time(text: str) -> str:
    """RFC3339Nano in UTC, as Go prints a time: no zeros at the end of the fraction, nine digits at most."""
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
    """The event in a message of sdk-go. Raises CloudEventError, and nothing else."""
    if not any(name == MARK for name, _ in pairs):
        return from_json(data, strict)
    attributes: dict[str, rules.AttributeValue] = {}
    content_type = None
    for name, value in pairs:
        if name.startswith(PREFIX):
            attribute = name[3:].lower()
            rules.check_name(attribute, name)
            if attribute not in attributes:
                check_string(attribute, value, name)
                attributes[attribute] = value
        elif content_type is None and name.lower() == "content-type":
            content_type = value
    if content_type is not None and "datacontenttype" not in attributes:
        check_string("datacontenttype", content_type, "content-type")
        attributes["datacontenttype"] = content_type
    check_context(attributes, strict, PREFIX)
    kind = DataKind.ABSENT
    if data:
        declared = attributes.get("datacontenttype")
        kind = DataKind.JSON if declared is not None and is_json_type(str(declared)) else DataKind.BINARY
    return make_event(CloudEvent, attributes, kind, data, False)
