"""A partition key as one token of a NATS subject, so that a stream can be split by key: `orders.<token>`.

Letters, digits, `-`, `_` and `~` are kept; every other character becomes the `%XX` of its UTF-8 bytes: the dot that
separates tokens, the wildcards, blanks, `$` (whose subjects belong to the server) and the `%` itself. The empty key is a
single `%`. So any key gives a legal token, different keys give different tokens, and a token can be decoded again.
"""

import re
from typing import Final

from headwater.cloudevents import attributes as rules
from headwater.cloudevents.attributes import refuse

NOT_A_TOKEN: Final = "not a subject token of a key"
EMPTY_KEY: Final = "%"

_ESCAPED: Final = re.compile(r"[^A-Za-z0-9_~-]")
_TOKEN: Final = re.compile(r"(?:[A-Za-z0-9_~-]|%[0-9A-F]{2})+")
_TRIPLET: Final = re.compile(rb"%([0-9A-F]{2})")


def subject_token(key: str) -> str:
    """The token for a key, such as `event.extension("partitionkey")`. Raises CloudEventError for a lone surrogate."""
    return _ESCAPED.sub(_percent, key) if key else EMPTY_KEY


def key_of_token(token: str) -> str:
    """The key encoded in a token of `subject_token`. Raises CloudEventError for any other token."""
    if token == EMPTY_KEY:
        return ""
    try:
        if not _TOKEN.fullmatch(token):
            raise ValueError("it has other characters, or none")
        key = _TRIPLET.sub(lambda match: bytes((int(match[1], 16),)), token.encode("ascii")).decode()
        if subject_token(key) != token:
            raise ValueError("a character is escaped that stands for itself")
    except ValueError as error:
        refuse(NOT_A_TOKEN, "partitionkey", token, why=str(error))
    return key


def _percent(match: re.Match[str]) -> str:
    try:
        return "".join([f"%{byte:02X}" for byte in match[0].encode()])
    except UnicodeEncodeError:
        refuse(rules.SURROGATE, "partitionkey", match[0], why="it has no UTF-8 form")
