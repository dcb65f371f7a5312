"""`Headers`: the headers of a message, with the operations of ADR-4.

The ADR has five operations on a map of lists; here they are

    GET     h.first(k)      "" when missing; `h.get(k)` gives None, `h[k]` raises KeyError
    VALUES  h.get_all(k)    a fresh list of every value; empty when missing
    SET     h[k] = v        DELETE, then APPEND
    APPEND  h.append(k, v)
    DELETE  h.discard(k)    no complaint when missing; `del h[k]` raises KeyError

`Headers` keeps the lines in wire order with names as written, and is a MutableMapping over its *distinct* names with
the first value of each. A mapping can show no more: `dict(h)` drops further values, `multi_items()` keeps them.

Names match exactly. `h.ignore_case` and `h.canonical` are the ADR's two options as live views: `Headers` over the same
lines that match otherwise. The case-insensitive view finds every spelling, appends to the first one, and sets the
spelling that it is given; the canonical one puts the name it is *given* into MIME form and then matches exactly.

Invariant: every header in it can be written. Names and values are checked when they are added, so a CR or LF never
reaches the wire; values have no SP or HTAB at either end. Headers that came from a block keep it and are written back
byte for byte until the first change. A message status is never in here. A block is checked when it is parsed and split
when a line is first read, so errors are raised at once.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from enum import Enum
from typing import TYPE_CHECKING, Final, Self, TypeVar, overload

from headwater.errors import HeaderError
from headwater.model.header_lines import HeaderLines, Pairs
from headwater.model.header_names import NatsHeader
from headwater.model.header_scan import is_plain
from headwater.model.header_syntax import BAD_NAME, checked_name, checked_value, read_pairs, version_line, write

HeaderValue = str | bytes
HeaderSource = (
    Mapping[str, HeaderValue | Iterable[HeaderValue]]
    | Mapping[NatsHeader, HeaderValue | Iterable[HeaderValue]]  # a Mapping does not take subclasses of its key type
    | Iterable[tuple[str, HeaderValue]]
)

_ADVICE: Final = {
    **dict.fromkeys(("add", "add_header"), "headers.append(name, value)"),
    **dict.fromkeys(("getall", "getlist", "get_list"), "headers.get_all(name)"),
    "set": "headers[name] = value",
    "remove": "headers.discard(name)",
}

T = TypeVar("T")

_SHOWN_PAIRS: Final = 16
_SHOWN_CHARACTERS: Final = 64
_CREDENTIAL: Final = re.compile(
    r"auth|cookie|credential|jwt|key$|nkey|passw|secret|session|signature|token", re.IGNORECASE
)


class _Rule(Enum):
    """How a name is compared with those in the block. Only ASCII is folded: U+212A is not a k."""

    EXACT = "exact"
    IGNORE_CASE = "ignore_case"
    CANONICAL = "canonical"

    def wanted(self, name: str) -> str:
        """The form in which `name` is compared. Raises HeaderError in a view that is given no text."""
        if self is not _Rule.EXACT and not isinstance(name, str):
            raise HeaderError(f"a header name is a str, not {type(name).__name__}", key=repr(name)[:80], rule=BAD_NAME)
        if self is _Rule.IGNORE_CASE and name.isascii():
            return name.lower()
        return canonical_name(name) if self is _Rule.CANONICAL else name


_NO_STATUS: Final = version_line(None)
_EXACT: Final = _Rule.EXACT  # an enum's member costs two look-ups, as much as the search itself

_MIME_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


def canonical_name(name: str) -> str:
    """MIME form: `x-my-key` is `X-My-Key`. A name outside RFC 7230's token characters stays as it is, as in Go."""
    if not _MIME_TOKEN.fullmatch(name):
        return name
    return "-".join([part.capitalize() for part in name.split("-")])


class Headers(MutableMapping[str, str]):
    """Ordered, multi-valued headers (ADR-4); the head of this module has the operations.

    The `source` is a mapping (values may be lists) or pairs; keywords work too, and `Headers.parse(block)`. Values are str,
    or bytes holding UTF-8; numbers are refused, for `str()` of a float or a bool is rarely what the reader expects.
    With `ignore_case=True` the object itself behaves as its case-insensitive view.
    Equal means the same values in the same order under every name; the order of the names does not count.
    """

    __slots__ = ("_lines", "_rule")

    def __init__(self, source: HeaderSource = (), /, *, ignore_case: bool = False, **names: HeaderValue) -> None:
        self._lines = HeaderLines(None, [])
        self._rule = _Rule.IGNORE_CASE if ignore_case else _Rule.EXACT
        for given in (source, names):
            if given:
                for name, value in flat(given):
                    self.append(name, value)

    @classmethod
    def parse(cls, block: bytes, strict: bool = False) -> Self:
        """The headers of a `NATS/1.0` block, which is kept for writing it back.

        A status in its version line is passed over; `header_block.decode_header_block` gives both.
        Raises HeaderError with key, byte offset and rule.
        """
        made = cls.__new__(cls)
        made._lines = HeaderLines(block, None if not strict and is_plain(block) else read_pairs(block, strict))
        made._rule = _Rule.EXACT
        return made

    @classmethod
    def of_checked(cls, pairs: Pairs) -> Self:
        """Headers over pairs that are known to be writable; the caller must not use the list afterwards. For encoders
        of this package."""
        return cls._over(HeaderLines(None, pairs), _Rule.EXACT)

    @classmethod
    def of_plain(cls, block: bytes) -> Self:
        """Headers over a block without status that is known to be plain (`header_scan`). For encoders of this package."""
        made = cls.__new__(cls)
        made._lines = HeaderLines(block, None)
        made._rule = _EXACT
        return made

    @classmethod
    def _over(cls, lines: HeaderLines, rule: _Rule) -> Self:
        made = cls.__new__(cls)
        made._lines = lines
        made._rule = rule
        return made

    @property
    def ignore_case(self) -> Self:
        """A live view that matches names without regard to case."""
        return self._over(self._lines, _Rule.IGNORE_CASE)

    @property
    def canonical(self) -> Self:
        """A live view that puts the names it is given into MIME form. It shows only names that are in that form."""
        return self._over(self._lines, _Rule.CANONICAL)

    @property
    def raw(self) -> bytes | None:
        """The block these headers came in, status and all, as long as nothing has been changed; else None."""
        return self._lines.block

    # reading

    def first(self, name: str) -> str:
        """ADR-4 GET: the first value, or "" when there is none."""
        return self.get(name, "")

    @overload
    def get(self, name: str, default: None = None) -> str | None: ...
    @overload
    def get(self, name: str, default: str) -> str: ...
    @overload
    def get(self, name: str, default: T) -> str | T: ...
    def get(self, name: str, default: object = None) -> object:
        """The first value, or `default`."""
        rule = self._rule
        if rule is _Rule.IGNORE_CASE:
            found = self._lines.folded(rule.wanted(name))
            return found[0][1] if found else default
        value = self._lines.first(name if rule is _EXACT else rule.wanted(name))
        return default if value is None else value

    def get_all(self, name: str) -> list[str]:
        """ADR-4 VALUES: every value, a list of your own. The case-insensitive view groups them by spelling."""
        rule = self._rule
        if rule is not _Rule.IGNORE_CASE:
            return self._lines.values(rule.wanted(name))
        spellings: dict[str, list[str]] = {}
        for stored, value in self._lines.folded(rule.wanted(name)):
            spellings.setdefault(stored, []).append(value)
        return [value for values in spellings.values() for value in values]

    def multi_items(self) -> Pairs:
        """Every (name, value) in wire order; a list of your own."""
        return list(self._lines.pairs())

    def __getitem__(self, name: str) -> str:
        value = self._lines.first(name) if self._rule is _EXACT else self.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __iter__(self) -> Iterator[str]:
        """Distinct names as written, in order of first appearance, each of which this object can look up."""
        names = dict.fromkeys([name for name, _ in self._lines.pairs()])
        if self._rule is _Rule.CANONICAL:
            return iter([name for name in names if canonical_name(name) == name])
        return iter(names)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        """Whether there is any line: a message without one is sent as PUB, not HPUB."""
        return not self._lines.is_empty()

    # changing

    def append(self, name: str, value: HeaderValue) -> None:
        """ADR-4 APPEND: another value, on a line of its own at the end. Raises HeaderError."""
        name = checked_name(name)
        value = checked_value(name, value)
        rule, lines = self._rule, self._lines
        if rule is _Rule.IGNORE_CASE:
            found = lines.folded(name.lower())
            name = found[0][0] if found else name
        elif rule is _Rule.CANONICAL:
            name = canonical_name(name)
        lines.append(name, value)

    def extend(self, name: str, values: Iterable[HeaderValue]) -> None:
        """APPEND for each value. A str is one value, not a row of characters."""
        for value in _each(values):
            self.append(name, value)

    def __setitem__(self, name: str, value: HeaderValue | Iterable[HeaderValue]) -> None:
        """ADR-4 SET; several values leave several lines, none leaves none. Nothing is changed when one is refused."""
        name = checked_name(name)
        values = [checked_value(name, each) for each in _each(value)]
        self.discard(name)
        for each in values:
            self.append(name, each)

    def discard(self, name: str) -> None:
        """ADR-4 DELETE: every value under the name, if there is one."""
        rule = self._rule
        self._lines.discard(rule.wanted(name), rule is _Rule.IGNORE_CASE)

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        self.discard(name)

    def clear(self) -> None:
        """Remove every name."""
        self._lines.clear()

    def update(self, source: HeaderSource = (), /, **names: HeaderValue) -> None:  # type: ignore[override]
        """SET every name of `source` to all the values it has there."""
        given = Headers(source)
        for name, value in names.items():
            given.append(name, value)
        for name in given:
            self.discard(name)
        for name, value in given._lines.pairs():
            self.append(name, value)

    # as a value

    def copy(self) -> Self:
        """An independent copy with the same way of matching; it too is written byte for byte until changed."""
        lines = self._lines
        return self._over(HeaderLines(lines.block, list(lines.pairs())), self._rule)

    __copy__ = copy

    def __or__(self, other: HeaderSource) -> Self:
        if not isinstance(other, Mapping):
            return NotImplemented
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: HeaderSource) -> "Headers":
        return Headers(other) | self if isinstance(other, Mapping) else NotImplemented

    def __ior__(self, other: HeaderSource) -> Self:
        self.update(other)
        return self

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Headers):
            return self._grouped() == other._grouped()
        if isinstance(other, Mapping):
            return self._grouped() == {k: [v] if isinstance(v, str) else v for k, v in other.items()}
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def _grouped(self) -> dict[str, list[str]]:
        groups: dict[str, list[str]] = {}
        for name, value in self._lines.pairs():
            groups.setdefault(name, []).append(value)
        return groups

    def __bytes__(self) -> bytes:
        """A block without a status: the one these headers came in if untouched, else one line per value."""
        block = self._lines.block
        if block is None:
            return write(version_line(None), self._lines.pairs())
        return block if block.startswith(_NO_STATUS) else _NO_STATUS + block[block.index(b"\n") + 1 :]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Methods of other libraries' headers, mapped to those here."""
            ours = _ADVICE.get(name)
            raise AttributeError(
                f"'Headers' object has no attribute {name!r}{f'; it is `{ours}` here' if ours else ''}"
            )

    def __repr__(self) -> str:
        pairs = self._lines.pairs()
        shown = [f"({_cut(name)}, {_shown(name, value)})" for name, value in pairs[:_SHOWN_PAIRS]]
        if len(pairs) > _SHOWN_PAIRS:
            shown.append(f"… {len(pairs) - _SHOWN_PAIRS} more")
        option = ", ignore_case=True" if self._rule is _Rule.IGNORE_CASE else ""
        return f"Headers([{', '.join(shown)}]{option})"


def flat(source: HeaderSource) -> Iterable[tuple[str, HeaderValue]]:
    """Every (name, value) of what a `Headers` can be made from."""
    if isinstance(source, Headers):
        return source.multi_items()
    if isinstance(source, Mapping):
        return [(name, each) for name, value in source.items() for each in _each(value)]
    return source


def _each(value: HeaderValue | Iterable[HeaderValue]) -> Iterable[HeaderValue]:
    """A str or bytes is one value, any other iterable a row of them, the rest one value for the check to refuse."""
    return value if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) else (value,)


def _cut(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]!r}… ({len(text)} characters)"


def _shown(name: str, value: str) -> str:
    return "'***'" if _CREDENTIAL.search(name) else _cut(value)
