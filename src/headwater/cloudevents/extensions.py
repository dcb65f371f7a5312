"""Extension attributes by name: the type, the Python value and the constraints of each.

NATS headers carry strings only, so an extension that was an Integer comes back as a String. The registry restores the
type: `event.extension("sampledrate")` is an int, whatever mode the event came in. It knows the documented extensions of
CloudEvents (`DOCUMENTED` below); a program registers its own there, or in a separate registry.

Reading an event does not check extensions: an event with an invalid extension is still an event. The error is raised
when that extension is read, or written with `typed`.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from headwater.cloudevents import attributes as rules
from headwater.cloudevents.attributes import AttributeType, AttributeValue, canonical_string, check_name, refuse

BAD_EXTENSION: Final = "bad extension value"

# Python types of values: a Timestamp is a datetime, the three string types are str.
ExtensionValue = str | int | bool | bytes | datetime


class Extension(NamedTuple):
    """One extension attribute. `check` returns the fault of a value of the right type, or ""."""

    name: str
    type: AttributeType = AttributeType.STRING
    check: Callable[[Any], str] | None = None
    about: str = ""


class Registry:
    """Extensions by name. An extension that is not registered keeps the type it arrived with."""

    __slots__ = ("_known",)

    def __init__(self, known: Iterable[Extension] = ()) -> None:
        self._known: dict[str, Extension] = {}
        for extension in known:
            self.register(extension)

    def register(self, extension: Extension) -> None:
        """Add an extension, or replace the one of that name. Raises CloudEventError for a name that no extension may
        have.
        """
        check_name(extension.name)
        if extension.name in rules.CORE:
            refuse(rules.DUPLICATE, extension.name, why="it is a core attribute, not an extension")
        self._known[extension.name] = extension

    def __getitem__(self, name: str) -> Extension:
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def names(self) -> list[str]:
        return sorted(self._known)

    def read(self, attributes: Mapping[str, AttributeValue], name: str) -> ExtensionValue | None:
        """The value with its registered type, or None when it is not set. Raises CloudEventError for a value that does
        not fit.
        """
        if name in rules.CORE:
            refuse(rules.DUPLICATE, name, why="it is a core attribute, not an extension")
        value = attributes.get(name)
        known = self._known.get(name)
        if value is None or known is None:
            return value
        return self._checked(known, _typed(known, value))

    def restored(self, attributes: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
        """The attributes with the types that headers lost: registered Integers, Booleans and Binaries are restored.
        Timestamps and URIs are held as text and stay text. Raises CloudEventError for an extension that does not fit its
        type.
        """
        made = dict(attributes)
        for name in attributes:
            if name in self._known:
                value = self.read(attributes, name)
                if isinstance(value, (bool, int, bytes)):
                    made[name] = value
        return made

    def typed(self, values: Mapping[str, ExtensionValue | None]) -> dict[str, AttributeValue | datetime]:
        """Values checked against their types, for `CloudEvent(extensions=...)`; None is left out. The value of a
        registered type may be given as text, in the form that headers carry. Raises CloudEventError.
        """
        made: dict[str, AttributeValue | datetime] = {}
        for name, value in values.items():
            check_name(name)
            if value is None:
                continue
            known = self._known.get(name)
            if known is None:
                made[name] = value
                continue
            seen = self._checked(known, _typed(known, value))
            # A timestamp given as text is kept as written.
            made[name] = value if isinstance(value, str) and known.type is AttributeType.TIMESTAMP else seen
        return made

    @staticmethod
    def _checked(known: Extension, value: ExtensionValue) -> ExtensionValue:
        if known.check is not None and (wrong := known.check(value)):
            refuse(BAD_EXTENSION, known.name, value, why=wrong)
        return value


_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,9}")


def _typed(known: Extension, value: ExtensionValue) -> ExtensionValue:
    """The value as the Python value of the extension's type. A str is taken as its canonical string."""
    name, kind = known.name, known.type
    if isinstance(value, str):
        match kind:
            case AttributeType.INTEGER:
                if not _INTEGER.fullmatch(value):
                    refuse(rules.WRONG_TYPE, name, value, why="it is the text of no Integer")
                number = int(value)
                canonical_string(name, number, kind)
                return number
            case AttributeType.BOOLEAN:
                if value not in ("true", "false"):
                    refuse(rules.WRONG_TYPE, name, value, why="a Boolean is true or false")
                return value == "true"
            case AttributeType.BINARY:
                try:
                    return base64.b64decode(value.encode(), validate=True)
                except (binascii.Error, UnicodeEncodeError) as error:
                    refuse(rules.NOT_BASE64, name, value, why=str(error))
            case AttributeType.STRING | AttributeType.URI | AttributeType.URI_REFERENCE | AttributeType.TIMESTAMP:
                pass
    text = canonical_string(name, value, None if kind is AttributeType.STRING and isinstance(value, str) else kind)
    if kind is AttributeType.TIMESTAMP:
        return rules.to_datetime(name, text)
    return text if isinstance(value, str) else value


_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")


def _not_empty(value: str) -> str:
    return "" if value else "it must not be empty"


def _is_traceparent(value: str) -> str:
    good = _TRACEPARENT.fullmatch(value) and (len(value) == 55 or not value.startswith("00"))
    return "" if good else "W3C Trace Context: version-traceid-parentid-flags in lower-case hexadecimal"


def _is_positive(value: int) -> str:
    return "" if value > 0 else "it must be above 0"


def _is_severity(value: int) -> str:
    return "" if value >= 0 else "it must not be negative"


DOCUMENTED: Final = (
    Extension("traceparent", check=_is_traceparent, about="distributed tracing: the span the event belongs to"),
    Extension("tracestate", about="distributed tracing: what vendors add"),
    Extension("partitionkey", check=_not_empty, about="events of one key stay in order; see `subject_token`"),
    Extension("sequence", check=_not_empty, about="order of the events of one source, as text that sorts"),
    Extension("sequencetype", check=_not_empty, about="what `sequence` is, such as Integer"),
    Extension("dataref", AttributeType.URI_REFERENCE, _not_empty, "where data too large for a message lies"),
    Extension("expirytime", AttributeType.TIMESTAMP, about="after this the event means nothing any more"),
    Extension("recordedtime", AttributeType.TIMESTAMP, about="when the event was recorded, not when it occurred"),
    Extension("sampledrate", AttributeType.INTEGER, _is_positive, "how many events this one stands for"),
    Extension("severitytext", check=_not_empty, about="severity as its source names it"),
    Extension(
        "severitynumber",
        AttributeType.INTEGER,
        _is_severity,
        "severity; OpenTelemetry counts from 1, trace, to 24, fatal",
    ),
    Extension("authtype", check=_not_empty, about="what kind of principal caused the event"),
    Extension("authid", about="which principal"),
    Extension("authclaims", about="its claims, a JSON text"),
    Extension("deprecated", AttributeType.BOOLEAN, about="the type of this event is deprecated"),
    Extension("deprecationfrom", AttributeType.TIMESTAMP, about="since when"),
    Extension("deprecationsunset", AttributeType.TIMESTAMP, about="until when it is still sent"),
    Extension("deprecationmigration", AttributeType.URI, about="what to do about it"),
)

documented: Final = Registry(DOCUMENTED)
"""The extensions documented by the CloudEvents project."""
