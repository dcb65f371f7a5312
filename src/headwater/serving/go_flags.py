"""Parse command lines as Go programs do: one or two dashes, `-p 4222` or `-p=4222`, switches alone or as `-js=false`.

The first word without a dash ends the flags, and so does `--`. A flag may be repeated; its last value counts.
"""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from headwater.errors import ConfigError

_TRUE = {"1", "t", "T", "TRUE", "true", "True"}
_FALSE = {"0", "f", "F", "FALSE", "false", "False"}


class Kind(Enum):
    """The type of a flag's value."""

    SWITCH = "switch"
    NUMBER = "number"
    TEXT = "text"


class Flag(NamedTuple):
    """One flag: its names, the setting `to` that it changes, its help text, and `value`, its value's name there."""

    names: tuple[str, ...]
    to: str
    kind: Kind
    meaning: str
    value: str = ""


Value = bool | int | str


def parse(arguments: list[str], flags: tuple[Flag, ...]) -> tuple[dict[str, Value], list[str]]:
    """The values by setting, and the words after the flags. Raises ConfigError."""
    known = {name: flag for flag in flags for name in flag.names}
    values: dict[str, Value] = {}
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        name, equals, text = word.removeprefix("-").removeprefix("-").partition("=")
        flag = _find(name, word, known)
        if flag.kind is Kind.SWITCH:
            values[flag.to] = _switch(name, text) if equals else True
            continue
        if not equals:
            if not rest:
                raise ConfigError(f"flag needs an argument: -{name}", value=name)
            text = rest.pop(0)
        values[flag.to] = _number(name, text) if flag.kind is Kind.NUMBER else text
    return values, rest


def _find(name: str, word: str, known: Mapping[str, Flag]) -> Flag:
    if not name or name[0] in "-=":
        raise ConfigError(f"bad flag syntax: {word}", value=word)
    if name not in known:
        raise ConfigError(f"flag provided but not defined: -{name}", value=name)
    return known[name]


def _switch(name: str, text: str) -> bool:
    if text not in _TRUE | _FALSE:
        raise ConfigError(f'invalid boolean value "{text}" for -{name}', value=name)
    return text in _TRUE


def _number(name: str, text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        raise ConfigError(f'invalid value "{text}" for flag -{name}: parse error', value=name)
    return int(text)
