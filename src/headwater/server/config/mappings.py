"""`mappings`, at the top and in an account: a subject, and where messages on it go instead.

"orders.*": "shop.{{wildcard(1)}}"
"split":    [ { destination: "a", weight: 90% }, { destination: "b", weight: 10%, cluster: "east" } ]
"""

import re
from typing import Any

from headwater.model.subject import is_valid_subject
from headwater.options.access import MappingOptions
from headwater.options.mappings import Mapping
from headwater.server.config import fields
from headwater.server.config.document import Setting, kind
from headwater.server.config.fields import Block, Reading, done

_PERCENT = re.compile(r"\d{1,3}%?")


def _weight(reading: Reading, setting: Setting) -> int:
    text = str(setting.value)
    if isinstance(setting.value, bool) or not _PERCENT.fullmatch(text):
        raise ValueError(f"must be a number up to 100, with or without %, not {kind(setting.value)}")
    if int(text.rstrip("%")) > 100:
        raise ValueError(f"of {text} is invalid: it must be up to 100")
    return int(text.rstrip("%"))


DESTINATION = Block(
    "mappings",
    (
        done("destination dest", fields.text, "where messages go; $1, {{wildcard(1)}}, {{partition(10,1)}}, …"),
        done("weight", _weight, "percent of the messages"),
        done("cluster", fields.text, "only for servers of this cluster", to="cluster"),
    ),
)


def _destination(reading: Reading, setting: Setting) -> tuple[str, int, str]:
    if not isinstance(setting.value, dict):
        raise ValueError("Expected an entry for the mapping destination")
    found: dict[str, Any] = reading.settings(setting.value, DESTINATION)
    if "destination" not in found:
        raise ValueError("Missing the mapping destination")
    if "weight" not in found:
        raise ValueError(f'Missing weight for mapping destination "{found["destination"]}"')
    return found["destination"], found["weight"], found.get("cluster", "")


def read_mappings(reading: Reading, setting: Setting) -> tuple[MappingOptions, ...]:
    """The mappings of one account."""
    mappings = []
    for source, inner in fields.mapping(setting).items():
        if inner.used and not is_valid_subject(source.encode()):
            continue  # a variable
        wrong = len(reading.errors)
        if not is_valid_subject(source.encode()):
            reading.error(inner.place, f'Subject "{source}" is not a valid subject')
            continue
        if isinstance(inner.value, str):
            destinations = [(inner.value, 100, "")]
        elif isinstance(inner.value, list):
            destinations = reading.elements(inner, _destination)
        elif isinstance(inner.value, dict):
            destinations = [_destination(reading, inner)]
        else:
            reading.error(inner.place, "Expected an entry for the mapping destination")
            continue
        options = MappingOptions(source=source, destinations=tuple(destinations))
        try:
            Mapping(options, "")
        except ValueError as error:
            shown = f' to "{inner.value}"' if isinstance(inner.value, str) else ""
            if len(reading.errors) == wrong:
                reading.error(inner.place, f'Error adding mapping for "{source}"{shown} : {error}')
        mappings.append(options)
    return tuple(mappings)
