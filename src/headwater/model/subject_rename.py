"""Renames the subjects of a subject space, as an import between accounts does, in both directions. Pure.

    remote   "orders.*.*"     as the exporting account has it
    local    "eu.$2.$1"       as the importing account sees it; without `$`, its `*` stand for those of `remote` in order
    prefix   "eu"             instead of local: "eu.orders.*.*"

Every wildcard must be used exactly once, so that a renaming can be reversed: interest in one account becomes interest
in the other.
"""

import re

from headwater.model.subject import is_valid_subject

_PLACE = re.compile(r"\$(\d{1,9})")

Token = bytes | int
"""A literal, or the number (from 0) of a `*` of the remote pattern."""


class SubjectRename:
    """One renaming. Raises ValueError, with nats-server's text, for a `local` that cannot be reversed."""

    def __init__(self, remote: str, local: str = "", *, prefix: str = "") -> None:
        self.remote = remote.encode("utf-8", "surrogateescape")
        tokens = remote.split(".")
        self._stars = [at for at, token in enumerate(tokens) if token == "*"]
        self._tail = tokens[-1] == ">"
        self._remote = tokens[:-1] if self._tail else tokens
        shown = f"{prefix}.{remote}" if prefix else local or remote
        self._local = _read_local(shown, len(self._stars), self._tail)
        self.local = b".".join(
            [*(b"*" if isinstance(token, int) else token for token in self._local), *([b">"] if self._tail else [])]
        )
        self.is_identity = self.local == self.remote and self._places == sorted(self._places)

    @property
    def _places(self) -> list[int]:
        return [token for token in self._local if isinstance(token, int)]

    def to_local(self, subject: bytes) -> bytes:
        """The local name of a literal subject that matches `remote`."""
        if self.is_identity:
            return subject
        tokens = subject.split(b".")
        made = [tokens[self._stars[token]] if isinstance(token, int) else token for token in self._local]
        return b".".join([*made, *tokens[len(self._remote) :]])

    def to_remote(self, pattern: bytes) -> bytes:
        """The remote name of a subject, or of a pattern all of whose subjects match `local`."""
        if self.is_identity:
            return pattern
        tokens = pattern.split(b".")
        made = [token.encode("utf-8", "surrogateescape") for token in self._remote]
        for at, token in enumerate(self._local):
            if isinstance(token, int):
                made[self._stars[token]] = tokens[at]
        return b".".join([*made, *tokens[len(self._local) :]])


def _read_local(local: str, stars: int, tail: bool) -> list[Token]:
    tokens = local.split(".")
    if not is_valid_subject(local.encode("utf-8", "surrogateescape")) or (tokens[-1] == ">") != tail:
        raise ValueError("invalid subject")
    made: list[Token] = []
    in_order = 0
    for token in tokens[:-1] if tail else tokens:
        place = _PLACE.fullmatch(token)
        if token == "*":
            made.append(in_order)
            in_order += 1
        elif place is None:
            made.append(token.encode("utf-8", "surrogateescape"))
        elif not 0 < int(place[1]) <= stars:
            raise ValueError(f"invalid mapping destination: wildcard index out of range in {token}: [{place[1]}]")
        else:
            made.append(int(place[1]) - 1)
    places = sorted(token for token in made if isinstance(token, int))
    if places != list(range(stars)):
        raise ValueError(f"invalid mapping destination: not using all of the token wildcard(s) in {local}")
    return made


def common_pattern(left: bytes, right: bytes) -> bytes | None:
    """The pattern of the subjects that match both; None when there are none."""
    ours, theirs = left.split(b"."), right.split(b".")
    made: list[bytes] = []
    for position in range(max(len(ours), len(theirs))):
        if position >= len(ours) or position >= len(theirs):
            return None
        a, b = ours[position], theirs[position]
        if a == b">":
            return b".".join([*made, *theirs[position:]])
        if b == b">":
            return b".".join([*made, *ours[position:]])
        if a != b and b"*" not in (a, b):
            return None
        made.append(b if a == b"*" else a)
    return b".".join(made)
