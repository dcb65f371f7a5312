"""Attribute strings as header values: written with percent-encoding; read with quoted strings and percent-encoding.

Written: space, `"`, `%` and everything outside U+0021-U+007E become the `%XX` of their UTF-8 bytes (binding 3.1.3.2).
Read: first, double-quoted parts lose their quotes and backslashes (older senders), then one round of percent-decoding
follows, which must yield UTF-8. A `%` that begins no triplet stays a `%`, because sdk-go sends it so, unless reading is
strict.
"""

import re
from typing import Final

from headwater.cloudevents.attributes import refuse

INVALID_UTF8: Final = "invalid UTF-8"
QUOTED_STRING: Final = "quoted-string"
MALFORMED_PERCENT: Final = "malformed percent"

_ENCODED: Final = re.compile(r"[^!#$&-~]")
_TRIPLET: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*+)("?)', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


def encode_header_value(text: str) -> str:
    """The header value for an attribute's canonical string. Raises CloudEventError for a lone surrogate."""
    return _ENCODED.sub(_percent, text) if _ENCODED.search(text) else text


def _percent(match: re.Match[str]) -> str:
    try:
        return "".join([f"%{byte:02X}" for byte in match[0].encode()])
    except UnicodeEncodeError:
        refuse("unpaired surrogate", None, match[0], why="it has no UTF-8 form")


def decode_header_value(
    value: str, strict: bool = False, attribute: str | None = None, header: str | None = None
) -> str:
    """The string that a header value encodes. `attribute` and `header` are named in the error. Raises CloudEventError."""
    text = value
    if '"' in text:
        parts, end = [], 0
        for match in _QUOTED.finditer(text):
            if not match[2]:
                refuse(QUOTED_STRING, attribute, value, header, "a double quote is opened and not closed")
            parts += [text[end : match.start()], _ESCAPE.sub(r"\1", match[1])]
            end = match.end()
        text = "".join(parts) + text[end:]
    if "%" not in text and text.isascii():
        return text
    try:
        wire = text.encode("utf-8", "surrogateescape")
        decoded = _TRIPLET.sub(lambda match: bytes((int(match[1], 16),)), wire).decode()
    except UnicodeError:
        refuse(INVALID_UTF8, attribute, value, header, "the bytes after percent-decoding")
    if strict and len(_TRIPLET.findall(wire)) != wire.count(b"%"):
        refuse(MALFORMED_PERCENT, attribute, value, header, "% is followed by two hexadecimal digits")
    return decoded
