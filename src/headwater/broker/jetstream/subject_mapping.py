"""Subject mappings of nats-server, as far as republishing needs them.

`{{wildcard(1)}}` or `$1` in a destination stands for what the first `*` of the source matched, and a trailing `>` for what
the source's `>` did. The other functions (partition, split, slice, …) are not built, and a mapping with one is refused.
"""

import re

from headwater.model.subject import matches

_PLACE = re.compile(r"\{\{\s*wildcard\((\d+)\)\s*\}\}|\$(\d+)")


def destination(source: str, pattern: str, subject: bytes) -> bytes | None:
    """Where a message of `subject` goes, when messages that match `source` go to `pattern`; None: nowhere."""
    source = source or ">"
    if not matches(source.encode(), subject):
        return None
    tokens = subject.decode("utf-8", "surrogateescape").split(".")
    source_tokens = source.split(".")
    stars = [tokens[at] for at, token in enumerate(source_tokens) if token == "*"]
    rest = tokens[len(source_tokens) - 1 :] if source_tokens[-1] == ">" else []

    def fill(place: re.Match[str]) -> str:
        number = int(place[1] or place[2])
        return stars[number - 1] if 0 < number <= len(stars) else ""

    made = [_PLACE.sub(fill, token) for token in pattern.split(".")]
    if made[-1] == ">":
        made[-1:] = rest
    return ".".join(made).encode("utf-8", "surrogateescape")


def is_valid_mapping(source: str, pattern: str) -> bool:
    """Whether every place in the pattern can be filled, and no other function is asked for."""
    stars = (source or ">").split(".").count("*")
    places = [int(found[1] or found[2]) for found in _PLACE.finditer(pattern)]
    plain = _PLACE.sub("x", pattern)
    tail = pattern.endswith(">") and not (source or ">").endswith(">")
    return bool(pattern) and all(0 < place <= stars for place in places) and not tail and not set("{}*") & set(plain)
