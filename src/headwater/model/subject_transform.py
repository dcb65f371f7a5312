"""Subject transforms, the `mappings` of a configuration. Pure; nats-server's rules.

    source        a pattern, "orders.*.>"
    destination   tokens, each literal text, or `$1` or one of the functions, alone in its token:
                  {{wildcard(1)}}             what the first `*` stood for
                  {{partition(10,1,2)}}       0 to 9, by a hash (FNV-1a) of what those wildcards stood for; of all of
                                              the subject where none is named
                  {{random(10)}}              0 to 9, by chance
                  {{split(1,-)}}              the wildcard as several tokens, split at the delimiter
                  {{splitFromLeft(1,3)}} {{splitFromRight(1,3)}} {{sliceFromLeft(1,2)}} {{sliceFromRight(1,2)}}
                  {{left(1,3)}} {{right(1,3)}}
    `>` ends both, or neither. `choose(n)` gives a number from 0 to n - 1.

Refused, with nats-server's texts: references to missing wildcards, unknown functions, wildcards in a destination.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from headwater.model.subject import is_valid_subject
from headwater.model.subject_match import matches
from headwater.model.thinning import thin_out

_FUNCTION = re.compile(r"\{\{\s*([A-Za-z]+)\s*\(([^)]*)\)\s*\}\}")
_PLACE = re.compile(r"\$(\d+)")
_NUMBER = re.compile(r"\d{1,9}")
_LARGEST = (1 << 31) - 1
_REMEMBERED = 1024  # results of a transform; a stream's subjects repeat


class Part(NamedTuple):
    """A token of a destination: `function` of the values of wildcards (1-based); a literal if `function` is empty."""

    function: str
    text: str
    wildcards: tuple[int, ...] = ()
    number: int = 0


def _cut(token: str, at: int) -> str:
    return f"{token[:at]}.{token[at:]}" if 0 < at < len(token) else token


def _slices(token: str, size: int, first: int) -> str:
    """`token` in pieces of `size`, the first of them `first` long."""
    if not 0 < size < len(token):
        return token
    pieces = [token[:first], *(token[at : at + size] for at in range(first, len(token), size))]
    return ".".join(filter(None, pieces))


_EDITS: dict[str, Callable[[str, int], str]] = {
    "splitfromleft": _cut,
    "splitfromright": lambda token, size: _cut(token, len(token) - size),
    "slicefromleft": lambda token, size: _slices(token, size, 0),
    "slicefromright": lambda token, size: _slices(token, size, len(token) % size if size > 0 else 0),
    "left": lambda token, size: token[:size] if 0 < size < len(token) else token,
    "right": lambda token, size: token[-size:] if 0 < size < len(token) else token,
}


class SubjectTransform:
    """One transform. Raises ValueError with nats-server's text for an invalid one."""

    def __init__(self, source: str, destination: str) -> None:
        tokens = source.split(".")
        self._source = source.encode("utf-8", "surrogateescape")
        self._stars = [at for at, token in enumerate(tokens) if token == "*"]
        self._tail = len(tokens) - 1 if tokens[-1] == ">" else -1
        if not is_valid_subject(self._source) or not is_valid_subject(_plain(destination)):
            raise ValueError("invalid subject")
        self.parts = [_read_part(token, len(self._stars)) for token in _split_tokens(destination)]
        self._copied = _copied(self.parts, self._stars)
        self._results: dict[bytes, bytes] = {}
        self._by_chance = any(part.function == "random" for part in self.parts)
        literal = [part.text for part in self.parts if not part.function]
        if "*" in literal or (">" in literal) != (self._tail >= 0):
            raise ValueError("invalid subject")

    @property
    def used(self) -> set[int]:
        """The wildcards (1-based) that the destination uses."""
        return {place for part in self.parts for place in part.wildcards}

    def reach(self) -> bytes:
        """A pattern that matches every possible result."""
        made = []
        for part in self.parts:
            several = part.function.startswith(("split", "slice"))
            made.append(">" if several else "*" if part.function else part.text)
            if several:
                break
        return ".".join(made).encode("utf-8", "surrogateescape")

    def apply(self, subject: bytes, choose: Callable[[int], int]) -> bytes | None:
        """The transformed subject; None when `subject` does not match the source."""
        known = self._results.get(subject)
        if known is not None:
            return known
        if not matches(self._source, subject):
            return None
        result = self._copy(subject) if self._copied is not None else self._made(subject, choose)
        if not self._by_chance:
            if len(self._results) >= _REMEMBERED:
                thin_out(self._results)
            self._results[subject] = result
        return result

    def _copy(self, subject: bytes) -> bytes:
        """The result, if its tokens are texts and tokens of the subject."""
        tokens = subject.split(b".")
        made = [tokens[each] if isinstance(each, int) else each for each in self._copied or ()]
        if self._tail >= 0:
            made += tokens[self._tail :]
        return b".".join(made)

    def _made(self, subject: bytes, choose: Callable[[int], int]) -> bytes:
        tokens = subject.decode("utf-8", "surrogateescape").split(".")
        stood_for = [tokens[at] for at in self._stars]
        made = []
        for part in self.parts:
            if not part.function:
                made += tokens[self._tail :] if part.text == ">" else [part.text]
            else:
                made.append(_fill(part, stood_for, subject, choose))
        return ".".join(made).encode("utf-8", "surrogateescape")


def _copied(parts: list[Part], stars: list[int]) -> list[bytes | int] | None:
    """Of each token of a result but those for a `>` the text, or the number of the subject's token that it is; None where
    other functions make some."""
    found: list[bytes | int] = []
    for part in parts:
        if part.function == "wildcard":
            found.append(stars[part.wildcards[0] - 1])
        elif part.function:
            return None
        elif part.text != ">":
            found.append(part.text.encode("utf-8", "surrogateescape"))
    return found


def partition(key: bytes, buckets: int) -> int:
    """The bucket of a key, 0 to `buckets` - 1: FNV-1a, 32 bits, as nats-server counts it."""
    digest = 0x811C9DC5
    for byte in key:
        digest = ((digest ^ byte) * 0x01000193) & 0xFFFFFFFF
    return digest % buckets if buckets > 0 else 0


def _fill(part: Part, stood_for: list[str], subject: bytes, choose: Callable[[int], int]) -> str:
    if part.function == "partition":
        key = "".join(stood_for[place - 1] for place in part.wildcards)
        return str(partition(key.encode("utf-8", "surrogateescape") if part.wildcards else subject, part.number))
    if part.function == "random":
        return str(choose(part.number))
    token = stood_for[part.wildcards[0] - 1]
    if part.function == "wildcard":
        return token
    if part.function == "split":
        return ".".join(filter(None, token.split(part.text)))  # empty for a token of delimiters: no subscriber has it
    return _EDITS[part.function](token, part.number)


def _split_tokens(destination: str) -> list[str]:
    """The tokens; a dot inside `{{…}}` separates nothing."""
    return re.findall(r"(?:\{\{.*?\}\}|[^.])+", destination)


def _plain(destination: str) -> bytes:
    """The destination with its functions replaced by literals, to be checked as a subject."""
    return re.sub(r"\{\{.*?\}\}", "x", destination).encode("utf-8", "surrogateescape")


def _read_part(token: str, stars: int) -> Part:
    place = _PLACE.fullmatch(token)
    if place is not None:
        number = int(place[1][:10])
        if not 0 < number <= stars:
            raise ValueError(f"invalid mapping destination: wildcard index out of range in {token}: [{number}]")
        return Part("wildcard", "", (number,))
    if not (token.startswith("{{") and token.endswith("}}")):
        return Part("", token)
    found = _FUNCTION.fullmatch(token)
    if found is None:
        raise ValueError(f"invalid mapping destination: unknown function in {token}")
    return _read_function(token, found[1].lower(), [word.strip() for word in found[2].split(",")], stars)


def _read_function(token: str, name: str, words: list[str], stars: int) -> Part:
    if name == "wildcard":
        fewest, most = 1, 1
    elif name in ("partition", "random"):
        fewest, most = 1, 1 if name == "random" else 256
    elif name == "split" or name in _EDITS:
        fewest, most = 2, 2
    else:
        raise ValueError(f"invalid mapping destination: unknown function in {token}")
    if len(words) < fewest or (name == "wildcard" and not words[0]):
        raise ValueError(f"invalid mapping destination: not enough arguments passed to the function in {token}")
    if len(words) > most:
        raise ValueError(f"invalid mapping destination: too many arguments passed to the function in {token}")
    if name == "split":
        place, text = _number(token, words[0]), words[1]
        if not text or " " in text or "." in text:
            raise ValueError(
                f"invalid mapping destination: function argument is invalid or in the wrong format in {token}"
            )
        return Part(name, text, _places(token, [place], stars))
    numbers = [_number(token, word) for word in words]
    if name in ("partition", "random"):
        if numbers[0] < 1 or numbers[0] > _LARGEST:
            raise ValueError(
                f"invalid mapping destination: function argument is invalid or in the wrong format in {token}"
            )
        return Part(name, "", _places(token, numbers[1:], stars), numbers[0])
    return Part(name, "", _places(token, numbers[:1], stars), numbers[1] if len(numbers) > 1 else 0)


def _number(token: str, word: str) -> int:
    if not _NUMBER.fullmatch(word):
        raise ValueError(f"invalid mapping destination: function argument is invalid or in the wrong format in {token}")
    return int(word)


def _places(token: str, places: list[int], stars: int) -> tuple[int, ...]:
    for place in places:
        if not 0 < place <= stars:
            raise ValueError(f"invalid mapping destination: wildcard index out of range in {token}: [{place}]")
    return tuple(places)
