"""What a configuration file contains, before it is interpreted: values with the place where each was written.

    port: 4222            a map holds settings by name
    users = [ {…} {…} ]   a list holds settings in order

A Setting remembers whether it was read through a `$variable`: its name need not be a known field then, because it is the
definition of a variable.
"""

from datetime import datetime
from typing import NamedTuple, TypeAlias

from headwater.errors import ConfigError


class Place(NamedTuple):
    """A position in a file; line and column count from 1. Printed as `file:line:column`, as editors expect."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Setting:
    """A value of the file. `place` is the position of its name or, for a list element, of the value."""

    def __init__(self, value: "Value", place: Place, used: bool = False) -> None:
        self.value = value
        self.place = place
        self.used = used  # as a variable


Map: TypeAlias = dict[str, Setting]
Value: TypeAlias = str | bool | int | float | datetime | list[Setting] | Map


class Remark(NamedTuple):
    """An error or a warning about a place of the file."""

    place: Place
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


def config_error(remarks: list[Remark]) -> ConfigError:
    """The error for all remarks, one per line in the order of the file."""
    ordered = sorted(remarks, key=lambda remark: (remark.place.file, remark.place.line, remark.place.column))
    return ConfigError("\n".join(map(str, ordered)), value=str(ordered[0].place))


def plain(value: Value) -> object:
    """The value without places: dicts, lists, scalars. For comparison and for a digest."""
    if isinstance(value, dict):
        return {name: plain(setting.value) for name, setting in value.items()}
    if isinstance(value, list):
        return [plain(setting.value) for setting in value]
    return value


def kind(value: Value) -> str:
    """The name of this type of value in messages."""
    match value:
        case bool():
            return "a boolean"
        case int():
            return "a number"
        case float():
            return "a number with a fraction"
        case str():
            return "a string"
        case datetime():
            return "a date"
        case list():
            return "a list"
        case dict():
            return "a block"
