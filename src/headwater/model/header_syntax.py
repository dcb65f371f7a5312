"""The grammar of a `NATS/1.0` header block: what is accepted, how it is split, how it is written.

    NATS/1.0[ 503[ No Responders]]␍␊     version line: status and description are optional
    Name: value␍␊                        one line per value; OWS (SP, HTAB) around the value is not part of it
    ␍␊                                   the first empty line ends the block

Two ways through. A block without an oddity is split by `header_scan`, which cannot fail. Any other goes through a scan
line by line, which reads the oddity (a folded line, an empty name, bytes after the end) or names the key, the byte and
the rule. The policy and its reasons are in docs/adr/0004-header-block-policy.md.

Strings hold UTF-8 with surrogateescape, so every byte of a value survives the way in and out. Nothing here uses
`strip()` without an argument, `splitlines()` or `$`: they know more kinds of white space than the protocol does.
"""

import re
from collections.abc import Iterable
from typing import Final, NoReturn

from headwater.errors import HeaderError
from headwater.model.header_scan import is_plain, split_plain
from headwater.model.status import Status

Pairs = list[tuple[str, str]]

VERSION: Final = b"NATS/1.0"
_NO_STATUS: Final = b"NATS/1.0\r\n"
OWS: Final = " \t"

# `HeaderError.rule`, one of:
BAD_VERSION: Final = "bad version line"
BAD_STATUS: Final = "bad status"
BAD_NAME: Final = "bad header name"
BAD_VALUE: Final = "bad header value"
NO_COLON: Final = "header line without colon"
BARE_NEWLINE: Final = "bare CR or LF"
NEWLINE_IN_VALUE: Final = "CR or LF in value"
TRUNCATED: Final = "truncated"
FOLD_WITHOUT_HEADER: Final = "folded line without a header before it"
FOLDED: Final = "folded value"  # this one and the ones below: strict reading only
NON_ASCII: Final = "non-ASCII value"
CONTROL: Final = "control character in value"
TRAILING: Final = "bytes after header block"

_NAME: Final = re.compile(r"[!-9;-~]+")  # ADR-4: printable ASCII without the colon
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 7230: what nats.go is willing to send
_STATUS: Final = re.compile(r"([1-9][0-9]{2})(?:[ \t]+(.*))?", re.DOTALL)
_NEWLINE: Final = re.compile(rb"[\r\n]")

_STRICT_BLOCK: Final = re.compile(
    rb"NATS/1\.0(?:[ \t][^\r\n]*+)?\r\n(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]++:[\t -~]*+\r\n)*+\r\n"
)


def _refuse(rule: str, offset: int, key: bytes | str | None = None) -> NoReturn:
    shown = key.decode("utf-8", "surrogateescape") if isinstance(key, bytes) else key
    of_key = "" if shown is None else f" in header {shown[:80]!r}"
    raise HeaderError(f"header block: {rule} at byte {offset}{of_key}", key=shown, offset=offset, rule=rule)


def read_pairs(block: bytes, strict: bool) -> Pairs:
    """The (name, value) pairs of a whole block; its status is not looked at (`read_status`).

    Raises HeaderError, and nothing else, whatever the bytes are.
    """
    if _STRICT_BLOCK.fullmatch(block) if strict else is_plain(block):
        return split_plain(block)
    return Scan(block, strict).pairs()


def read_status(block: bytes) -> Status | None:
    """The status of the version line, without a look at the rest. Raises HeaderError if the line is not well formed."""
    if block.startswith(_NO_STATUS):
        return None
    start, end = len(VERSION), _version_line_end(block)
    text = block[start:end].decode("utf-8", "surrogateescape").strip(OWS)
    if not text:
        return None
    match = _STATUS.fullmatch(text)
    if match is None:
        _refuse(BAD_STATUS, start)
    code, description = match.groups()
    return Status(int(code), description)


def _version_line_end(block: bytes) -> int:
    """Offset of the CR that ends the version line."""
    after = len(VERSION)
    if not block.startswith(VERSION):
        _refuse(BAD_VERSION, 0)
    if block[after : after + 1] not in (b"", b" ", b"\t", b"\r", b"\n"):
        _refuse(BAD_VERSION, after)
    return _line_end(block, after)


def _line_end(block: bytes, start: int) -> int:
    """Offset of the CRLF that ends the line that begins at `start`."""
    match = _NEWLINE.search(block, start)
    if match is None:
        _refuse(TRUNCATED, len(block))
    end = match.start()
    if not block.startswith(b"\r\n", end):
        if end + 1 == len(block) and block.endswith(b"\r"):
            _refuse(TRUNCATED, len(block))
        _refuse(BARE_NEWLINE, end)
    return end


class Scan:
    """Line by line through one block; `pairs()` is called once."""

    def __init__(self, block: bytes, strict: bool) -> None:
        self.block = block
        self.strict = strict

    def pairs(self) -> Pairs:
        """All lines up to the first empty one. A line that starts with SP or HTAB continues the value before it."""
        block = self.block
        read: Pairs = []
        skipped = True  # nothing that a folded line could continue
        start = _version_line_end(block) + 2
        first = start
        while (end := _line_end(block, start)) != start:
            if block[start] in b" \t":
                if start == first:
                    _refuse(FOLD_WITHOUT_HEADER, start)
                part = self._value(start, end, None if skipped else read[-1][0], folded=True)
                if not skipped and part:
                    name, value = read[-1]
                    read[-1] = (name, f"{value} {part}" if value else part)
            else:
                colon = block.find(b":", start, end)
                if colon < 0:
                    _refuse(NO_COLON, start, block[start:end])
                skipped = colon == start and not self.strict
                if not skipped:
                    name = self._name(start, colon)
                    read.append((name, self._value(colon + 1, end, name)))
            start = end + 2
        if self.strict and end + 2 != len(block):
            _refuse(TRAILING, end + 2)
        return read

    def _name(self, start: int, colon: int) -> str:
        raw = self.block[start:colon]
        name = raw.decode("latin-1")
        allowed = _TOKEN if self.strict else _NAME
        match = allowed.match(name)
        good = match.end() if match else 0
        if good != len(name) or not name:
            _refuse(BAD_NAME, start + good, raw)
        return name

    def _value(self, start: int, end: int, key: str | None, folded: bool = False) -> str:
        raw = self.block[start:end]
        if self.strict:
            if folded:
                _refuse(FOLDED, start, key)
            for offset, byte in enumerate(raw, start):
                if byte >= 0x80:
                    _refuse(NON_ASCII, offset, key)
                if (byte < 0x20 and byte != 0x09) or byte == 0x7F:
                    _refuse(CONTROL, offset, key)
        return raw.decode("utf-8", "surrogateescape").strip(OWS)


def checked_name(name: str) -> str:
    """A name that may be written, as a plain str. Raises HeaderError."""
    if not isinstance(name, str):
        raise HeaderError(f"a header name is a str, not {type(name).__name__}", key=repr(name)[:80], rule=BAD_NAME)
    if _NAME.fullmatch(name):
        return str.__str__(name)
    bad = next((c for c in name if not _NAME.fullmatch(c)), None)
    reason = "it is empty" if bad is None else f"{bad!r} is not allowed"
    raise HeaderError(f"bad header name {name[:80]!r}: {reason}", key=name, rule=BAD_NAME)


def checked_value(name: str, value: str | bytes, newlines: bool = False) -> str:
    """A value that can be written, without outer SP and HTAB, as reading it back will give it. Raises HeaderError.

    `newlines`: CR and LF become spaces (what nats.go and nats-py do) instead of an error.
    """
    if isinstance(value, bytes):
        value = value.decode("utf-8", "surrogateescape")
    elif not isinstance(value, str):
        message = f"header {name!r}: a value is str or bytes, not {type(value).__name__}; convert it on purpose"
        raise HeaderError(message, key=name, rule=BAD_VALUE)
    if not value.isascii():
        try:  # escaped bytes that together are UTF-8 come back as characters: hold the form that comes back
            value = value.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            message = f"header {name!r}: {value[error.start]!r} at {error.start} has no UTF-8 form"
            raise HeaderError(message, key=name, rule=BAD_VALUE) from None
    if "\r" in value or "\n" in value:
        if not newlines:
            at = next(i for i, c in enumerate(value) if c in "\r\n")
            message = f"header {name!r}: CR or LF in value, at {at}: it would begin another header"
            raise HeaderError(message, key=name, rule=NEWLINE_IN_VALUE)
        value = value.replace("\r", " ").replace("\n", " ")
    return str.__str__(value).strip(OWS)


def check_strict(pairs: Iterable[tuple[str, str]]) -> None:
    """Raises HeaderError for the first pair that strict reading would refuse."""
    for name, value in pairs:
        if not _TOKEN.fullmatch(name):
            raise HeaderError(f"header name {name[:80]!r} has a character outside RFC 7230", key=name, rule=BAD_NAME)
        for at, character in enumerate(value):
            if not character.isascii():
                raise HeaderError(f"header {name!r}: {NON_ASCII}: {character!r} at {at}", key=name, rule=NON_ASCII)
            if (character < " " and character != "\t") or character == "\x7f":
                raise HeaderError(f"header {name!r}: {CONTROL}: {character!r} at {at}", key=name, rule=CONTROL)


def version_line(status: Status | None) -> bytes:
    """The first line, CRLF included. Raises HeaderError for a status that a reader would refuse or read otherwise."""
    if status is None:
        return _NO_STATUS
    code, description = status
    if not 100 <= code <= 999:
        raise HeaderError(f"status code {code} is not 100-999", rule=BAD_STATUS)
    text = checked_value("(status)", description or "")
    return f"NATS/1.0 {code} {text}".rstrip(OWS).encode("utf-8", "surrogateescape") + b"\r\n"


def write(first_line: bytes, pairs: Iterable[tuple[str, str]]) -> bytes:
    """A block of checked pairs, one line per value, nothing folded, nothing joined."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in pairs])
    return first_line + lines.encode("utf-8", "surrogateescape") + b"\r\n"
