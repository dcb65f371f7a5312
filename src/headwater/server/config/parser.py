"""The parser of nats-server's configuration language: text in, a map of settings with their places out.

    file    = items | "{" items "}"
    items   = { name [ "=" | ":" ] value  |  "include" path }        ended by a new line, "," or ";"
    value   = "{" items "}" | "[" values "]" | "(" lines ")" | 'raw' | "with escapes" | word | $variable

A `$variable` is looked up in the maps around it, innermost first, as far as they have been read; then in the environment,
whose text is read as a value. An included file is read on its own (it sees no variables of ours) and its settings are
then as if they stood here. A name that is set twice counts the second time, with a warning.

Pure: files and environment are arguments. Whatever the text, the outcome is a Document or a ConfigError; nesting is
bounded (MAX_DEPTH), circular includes are refused.

Source: nats-server, conf/parse.go. Three things that it takes as they come are refused or read better here: circles of
includes, a path from the root (there joined to the directory), and `]` straight behind a number.
"""

import hashlib
import json
import posixpath
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import NamedTuple

from headwater.errors import ConfigError
from headwater.server.config.document import Map, Place, Remark, Setting, Value, plain
from headwater.server.config.lexer import END, NEW_LINE, SEPARATORS, TERMINATORS, Lexer
from headwater.server.config.scalars import scalar

MAX_DEPTH = 64  # maps and lists within each other, includes, and variables that name variables
_BCRYPT = "$2a$"  # a password hash, not a variable

ReadFile = Callable[[str], str]


class Document(NamedTuple):
    """The settings of a file. `warnings` are about the text only, such as a name that is set twice."""

    settings: Map
    warnings: list[Remark]

    def digest(self) -> str:
        """`sha256:…` of the values, without their places: the same for files that say the same."""
        text = json.dumps(plain(self.settings), sort_keys=True, default=_date_text)
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def parse(text: str, file: str, read: ReadFile, environment: Mapping[str, str]) -> Document:
    """Parse `text`, which `file` names in messages; includes are relative to its directory.

    `read(path)` returns the text of an included file and may raise OSError or UnicodeDecodeError. Raises ConfigError,
    whose message starts with `file:line:column:`.
    """
    return _Parser(text, file, read, environment, (posixpath.normpath(file),), frozenset(), 0).document()


class _Parser:
    """One file, or one environment variable, being read."""

    def __init__(
        self,
        text: str,
        file: str,
        read: ReadFile,
        environment: Mapping[str, str],
        files: tuple[str, ...],
        variables: frozenset[str],
        depth: int,
    ) -> None:
        self._lexer = Lexer(text, file)
        self._read = read
        self._environment = environment
        self._files = files  # this file and those that include it
        self._variables = variables  # of the environment, that are being looked up
        self._maps: list[Map] = []  # the open ones, innermost last
        self._depth = depth
        self._warnings: list[Remark] = []

    def document(self) -> Document:
        lexer = self._lexer
        nul = lexer.text.find("\0")
        if nul >= 0:
            lexer.position = nul
            lexer.fail("a NUL byte: this is no text")
        settings: Map = {}
        self._maps.append(settings)
        lexer.skip_comments()
        braced = bool(lexer.accept("{"))
        self._items(settings, closing="}" if braced else "")
        if not braced:
            lexer.accept("}")  # JSON pasted without its first brace; nats-server accepts it
        lexer.skip_comments()
        if lexer.peek() != END:
            lexer.fail(f"expected the end of the file, found {lexer.found()}")
        return Document(settings, self._warnings)

    # ── maps ──

    def _items(self, into: Map, closing: str) -> None:
        """The settings of a map, up to and with its `closing` brace; at top level up to the end or a last brace."""
        lexer = self._lexer
        while True:
            lexer.skip_comments()
            character = lexer.peek()
            if character == "}" or (character == END and not closing):
                if closing:
                    lexer.position += 1
                return
            if character == END:
                lexer.fail("a { does not end")
            if character in SEPARATORS + TERMINATORS:
                lexer.fail(f"expected a name before {character!r}")
            self._item(into, top=not closing)
            self._end_of_item("}")

    def _item(self, into: Map, top: bool) -> None:
        lexer = self._lexer
        place = lexer.place()
        name, quoted = lexer.name()
        if not quoted and name.lower() == "include" and lexer.peek() not in (END, *SEPARATORS):
            lexer.skip_inline()
            self._include(into, place)
            return
        lexer.skip_blank()
        if lexer.accept(SEPARATORS):
            if not top:
                lexer.skip_blank()
        elif lexer.peek() == END:
            lexer.fail(f'"{name}" has no value', place)
        self._set(into, name, self._value(place))

    def _set(self, into: Map, name: str, setting: Setting) -> None:
        before = into.get(name)
        if before is not None:
            text = f'"{name}" is set again here; the value at {before.place} is not used'
            self._warnings.append(Remark(setting.place, text))
        into[name] = setting

    def _end_of_item(self, closing: str) -> None:
        """A setting ends with its line, with a terminator, or with what it stands in."""
        lexer = self._lexer
        lexer.skip_inline()
        lexer.skip_comment()
        character = lexer.peek()
        if character == END or character in NEW_LINE or character == closing or lexer.accept(TERMINATORS):
            return
        lexer.fail(f"expected the end of the line, found {lexer.found()}; a string with spaces needs quotes")

    # ── values ──

    def _value(self, name_place: Place | None = None) -> Setting:
        lexer = self._lexer
        lexer.skip_inline()
        place = lexer.place()
        if lexer.peek() in NEW_LINE and lexer.peek() != END:
            lexer.fail("expected a value, found a new line")
        opening = lexer.accept("{[('\"")
        value: Value
        match opening:
            case "{":
                value = self._map(place)
            case "[":
                value = self._list(place)
            case "(":
                value = lexer.block_string()
            case "'":
                value = lexer.single_quoted()
            case '"':
                value = lexer.double_quoted()
            case _:
                value = self._word(place)
        return Setting(value, name_place or place)

    def _map(self, place: Place) -> Map:
        self._enter(place)
        inner: Map = {}
        self._maps.append(inner)
        self._items(inner, closing="}")
        self._maps.pop()
        self._depth -= 1
        return inner

    def _list(self, place: Place) -> list[Setting]:
        self._enter(place)
        lexer = self._lexer
        elements: list[Setting] = []
        while True:
            lexer.skip_comments()
            if lexer.accept("]"):
                self._depth -= 1
                return elements
            if lexer.peek() == END:
                lexer.fail("a [ does not end", place)
            if lexer.peek() == ",":
                lexer.fail("expected a value before ','")
            elements.append(self._value())
            lexer.skip_inline()
            lexer.skip_comment()
            if not lexer.accept("," + NEW_LINE) and lexer.peek() not in ("]", END):
                lexer.fail(f"expected ',' or ']', found {lexer.found()}")

    def _enter(self, place: Place) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._lexer.refuse(f"more than {MAX_DEPTH} blocks, lists and includes within each other", place)

    def _word(self, place: Place) -> Value:
        word = self._lexer.bare_word()
        if word.escaped:
            return word.text
        if word.text.startswith("$"):
            return word.text if word.text.startswith(_BCRYPT) else self._variable(word.text[1:], place)
        try:
            return scalar(word.text)
        except ValueError as error:
            self._lexer.refuse(str(error), place)

    # ── variables and includes ──

    def _variable(self, name: str, place: Place) -> Value:
        for scope in reversed(self._maps):
            found = scope.get(name)
            if found is not None:
                found.used = True
                return found.value
        if name in self._variables:
            self._lexer.refuse(f"the variable ${name} is defined by itself", place)
        if name not in self._environment:
            self._lexer.refuse(
                f"variable reference for '{name}' on line {place.line} can not be found above or in the environment",
                place,
            )
        self._enter(place)
        origin = f"environment variable {name}"
        text, variables = self._environment[name], self._variables | {name}
        value = _Parser(text, origin, self._read, self._environment, self._files, variables, self._depth).lone_value()
        self._depth -= 1
        return value

    def lone_value(self) -> Value:
        """The text as one value, as behind `name =`."""
        self._maps.append({})
        value = self._value().value
        self._lexer.skip_comments()
        if self._lexer.peek() != END:
            self._lexer.fail(f"expected one value, found {self._lexer.found()}")
        return value

    def _include(self, into: Map, place: Place) -> None:
        lexer = self._lexer
        written = lexer.include_path()
        path = posixpath.normpath(posixpath.join(posixpath.dirname(lexer.file), written))
        if path in self._files:
            lexer.refuse(f"{path} includes itself, by way of {' and '.join(self._files)}", place)
        self._enter(place)
        try:
            text = self._read(path)
        except (OSError, UnicodeDecodeError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            lexer.refuse(f"error parsing include file '{written}', open {path}: {reason}", place)
        files = (*self._files, path)
        inner = _Parser(text, path, self._read, self._environment, files, self._variables, self._depth).document()
        self._depth -= 1
        self._warnings += inner.warnings
        for name, setting in inner.settings.items():
            self._set(into, name, setting)


def _date_text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise ConfigError(f"{value!r} is no value of a configuration")
