"""The characters of a configuration file: space, comments, names, strings and bare words.

    name = "quoted" ; other: 'raw' # comment
    block { size 64MB, text (
       several lines
    ) }                                  // comment

Inside a bare word no character is reserved except those that end it, so the meaning of a character depends on where it
stands; the parser asks for what it expects. A bare word ends at white space, `,` `;` `]` `}` and at a `'`. It does not
end at `#` or `//`: addresses contain those. Escapes (`\\n`, `\\t`, `\\r`, `\\"`, `\\\\`, `\\xFF`) count in double quotes
and in bare words.

Source: nats-server, conf/lex.go. Ours is stricter in three ways: a NUL is no end of file, digits are ASCII, and a
number's size suffix is one of a list.
"""

import re
from typing import NamedTuple, NoReturn

from headwater.server.config.document import Place, Remark, config_error

NEW_LINE = "\r\n"
SEPARATORS = "=:"
TERMINATORS = ",;"
END = ""  # what `Lexer.peek` returns at the end of the text

_BLANK = re.compile(r"[ \t\r\n\v\f\x85\xa0]+")
_INLINE = re.compile(r"[ \t]+")
_COMMENT = re.compile(r"(?:#|//)[^\r\n]*")
_NAME = re.compile(r"[^\s=:]+")
_BARE = re.compile(r"[^\r\n \t,;\]}'\\]*")
_IN_QUOTES = re.compile(r'[^"\\]*')
_BLOCK_END = re.compile(r"\n\)(?=\n|\Z)")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", '"': '"', "\\": "\\"}


class Word(NamedTuple):
    """A bare word. One with escapes is a string, whatever it looks like."""

    text: str
    escaped: bool


class Lexer:
    """A position in the text of one file. Every method either moves over what it names, or raises ConfigError."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.position = 0
        self._counted = 0  # the position up to which lines were counted: places are looked up in order
        self._line = 1
        self._line_start = 0

    # ── position ──

    def peek(self) -> str:
        """The next character; END behind the last one."""
        return self.text[self.position] if self.position < len(self.text) else END

    def place(self) -> Place:
        """The current position, for people."""
        start = self._counted
        if self.position > start:
            breaks = self.text.count("\n", start, self.position)
            if breaks:
                self._line += breaks
                self._line_start = self.text.rfind("\n", start, self.position) + 1
            self._counted = self.position
        return Place(self.file, self._line, self.position - self._line_start + 1)

    def fail(self, text: str, place: Place | None = None) -> NoReturn:
        """What stands here, or at `place`, cannot be read: raise ConfigError. Scripts look for its first words."""
        place = place or self.place()
        self.refuse(f"Parse error on line {place.line}: {text}", place)

    def refuse(self, text: str, place: Place) -> NoReturn:
        """Raise ConfigError for what can be read and is wrong all the same."""
        raise config_error([Remark(place, text)])

    def found(self) -> str:
        """The next character as a message shows it."""
        character = self.peek()
        if character == END:
            return "the end of the file"
        return "a new line" if character in NEW_LINE else repr(character)

    # ── white space and comments ──

    def skip_inline(self) -> None:
        """Over spaces and tabs."""
        self._match(_INLINE)

    def skip_blank(self) -> None:
        """Over white space of any kind, new lines included."""
        self._match(_BLANK)

    def skip_comments(self) -> None:
        """Over white space and comments."""
        self.skip_blank()
        while self.skip_comment():
            self.skip_blank()

    def skip_comment(self) -> bool:
        """Over one comment, up to its new line; False when there is none."""
        return bool(self._match(_COMMENT))

    def accept(self, characters: str) -> str:
        """Over one of these characters, which is returned; "" when something else comes."""
        character = self.peek()
        if character != END and character in characters:
            self.position += 1
            return character
        return ""

    # ── tokens ──

    def name(self) -> tuple[str, bool]:
        """A name, and whether it was quoted. Quotes know no escapes here."""
        if quote := self.accept("'\""):
            start = self.place()
            end = self.text.find(quote, self.position)
            if end < 0:
                self.fail("a name in quotes does not end", start)
            name = self.text[self.position : end]
            self.position = end + 1
            return name, True
        name = self._match(_NAME)
        if not name:
            self.fail(f"expected a name, found {self.found()}")
        return name, False

    def bare_word(self) -> Word:
        """A bare word; it may be empty."""
        text, escaped = self._escaped_text(_BARE)
        self.accept("'")  # ends a bare word and is dropped
        return Word(text, escaped)

    def double_quoted(self) -> str:
        """The rest of a string in double quotes, the first of which is consumed. It may span lines."""
        start = self.place()
        text, _ = self._escaped_text(_IN_QUOTES)
        if not self.accept('"'):
            self.fail("a string in double quotes does not end", start)
        return text

    def single_quoted(self) -> str:
        """The rest of a string in single quotes, taken as it is."""
        start = self.place()
        end = self.text.find("'", self.position)
        if end < 0:
            self.fail("a string in single quotes does not end", start)
        text = self.text[self.position : end]
        self.position = end + 1
        return text

    def block_string(self) -> str:
        """The rest of a `( … )` string, up to a `)` on a line of its own; the line break before that one belongs to it."""
        start = self.place()
        end = _BLOCK_END.search(self.text, self.position)
        if end is None:
            self.fail("a ( … ) string does not end: its ) must stand on a line of its own", start)
        text = self.text[self.position : end.start() + 1]
        self.position = end.end()
        return text

    def include_path(self) -> str:
        """The path behind `include`."""
        if self.accept('"'):
            end = self.text.find('"', self.position)
        elif self.accept("'"):
            end = self.text.find("'", self.position)
        else:
            if self.peek() in ("[", "{", "(", "\\", "-", END, *NEW_LINE) or self.peek().isdigit():
                self.fail(f"expected a file name behind include, found {self.found()}")
            word = self.bare_word()
            if word.escaped:
                self.fail("a file name with a backslash needs quotes")
            return word.text
        if end < 0:
            self.fail("a file name in quotes does not end")
        path = self.text[self.position : end]
        self.position = end + 1
        return path

    # ── internals ──

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.position)
        if found is None:
            return ""
        self.position = found.end()
        return found[0]

    def _escaped_text(self, pattern: re.Pattern[str]) -> tuple[str, bool]:
        """Runs of `pattern` with escapes between them; whether there were any."""
        text = self._match(pattern)
        if self.peek() != "\\":
            return text, False
        parts = [text]
        while self.accept("\\"):
            parts.append(self._escape())
            parts.append(self._match(pattern))
        return "".join(parts), True

    def _escape(self) -> str:
        letter = self.peek()
        if letter == "x":
            digits = self.text[self.position + 1 : self.position + 3]
            if not re.fullmatch("[0-9a-fA-F]{2}", digits):
                self.fail(r"\x needs two hexadecimal digits behind it")
            self.position += 3
            return chr(int(digits, 16))
        if letter not in _ESCAPES:
            self.fail(rf"there is no escape \{letter}: use \xFF, \t, \n, \r, \" or \\")
        self.position += 1
        return _ESCAPES[letter]
