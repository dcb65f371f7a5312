"""Fast path for a JSON event: one pass over its bytes in the form that nearly every producer writes, `data` left
encoded.

Attributes are strings of printable ASCII without escapes, integers of up to nine digits, true or false, none of them
repeated; white space may appear wherever JSON allows it. For anything else, including `data_base64`, `read_plain`
returns None, and `json_format` reads the text or raises the error. The end of `data` is found by counting brackets,
which is correct if the value is JSON; msgspec then checks that it is.
"""

from typing import Any

import cython
import msgspec

from headwater.cloudevents.event import DataKind, is_json_type

if cython.compiled:
    from cython.cimports.headwater.cloudevents.event import CloudEvent, make_event
    from cython.cimports.headwater.cloudevents.plain_text import REQUIRED, core_index, set_core
else:
    from headwater.cloudevents.event import CloudEvent, make_event
    from headwater.cloudevents.plain_text import REQUIRED, core_index, set_core

COMPILED: bool = cython.compiled  # interpreted, the general path is faster
Attributes = dict[str, Any]
Characters = bytes  # compiled, a pointer: bytes end with a NUL, so one read past the end stays in bounds

_check_json = msgspec.json.Decoder(msgspec.Raw).decode
_ABSENT = DataKind.ABSENT
_JSON = DataKind.JSON


def read_plain(source: bytes) -> CloudEvent | None:
    """The event in a JSON text; None when the text is not plain or not an event."""
    end: cython.Py_ssize_t = len(source)
    at: cython.Py_ssize_t
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    after: cython.Py_ssize_t
    seen: cython.int = 0
    text = source
    at = _blanks_end(text, 0, end)
    if at == end or text[at] != 0x7B:
        return None
    attributes: dict[str, Any] = {}
    data: bytes | None = None
    while True:
        at = _blanks_end(text, at + 1, end)
        if at >= end or text[at] != 0x22:
            return None
        start = at + 1
        stop = _name_end(text, start, end)
        if stop >= end or text[stop] != 0x22 or stop == start:
            return None
        after = _blanks_end(text, stop + 1, end)
        if after >= end or text[after] != 0x3A:
            return None
        at = _blanks_end(text, after + 1, end)
        if at >= end:
            return None
        if stop - start == 4 and text[start] == 0x64 and source[start:stop] == b"data":
            if data is not None:
                return None
            stop = _value_end(text, at, end)
            if stop < 0:
                return None
            data = source[at:stop]
        elif text[at] == 0x22:
            after = _string_end(text, at + 1, end)
            if after >= end or text[after] != 0x22:
                return None
            seen = _set_text(attributes, source, start, stop, at + 1, after, seen)
            stop = after + 1
        else:
            after = _word_end(text, at, end)
            seen = _set_word(attributes, source, start, stop, source[at:after], seen)
            stop = after
        if seen < 0:
            return None
        at = _blanks_end(text, stop, end)
        if at >= end or text[at] != 0x2C:
            break
    if at >= end or text[at] != 0x7D or _blanks_end(text, at + 1, end) != end or seen & REQUIRED != REQUIRED:
        return None
    if data is None:
        return make_event(CloudEvent, attributes, _ABSENT, b"", True)
    return make_event(CloudEvent, attributes, _JSON, data, True) if _is_json(attributes, data) else None


def _set_text(
    attributes: Attributes,
    source: bytes,
    name: cython.Py_ssize_t,
    name_end: cython.Py_ssize_t,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    seen: cython.int,
) -> cython.int:
    """Set an attribute to `source[start:end]`. Returns the updated `seen` bits of core attributes, or -1 when it cannot
    be set.
    """
    text = source
    index: cython.int = core_index(text, name, name_end)
    if start == end:
        return -1
    if index >= 0:
        if seen & (1 << index) or not set_core(attributes, source, index, start, end):
            return -1
        return seen | 1 << index
    key = source[name:name_end].decode("ascii")
    if key in attributes:
        return -1
    attributes[key] = source[start:end].decode("ascii")
    return seen


def _set_word(
    attributes: Attributes,
    source: bytes,
    name: cython.Py_ssize_t,
    name_end: cython.Py_ssize_t,
    word: bytes,
    seen: cython.int,
) -> cython.int:
    """`_set_text` for a number or a boolean, which no core attribute may be."""
    text = source
    key = source[name:name_end].decode("ascii")
    value = _literal(word)
    if value is None or key in attributes or core_index(text, name, name_end) >= 0:
        return -1
    attributes[key] = value
    return seen


def _is_json(attributes: Attributes, data: bytes) -> bool:
    """Whether `data` is JSON, and the content type says so."""
    content_type = attributes.get("datacontenttype")
    if content_type is not None and not is_json_type(content_type):
        return False
    try:
        _check_json(data)
        if not data.isascii():
            data.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _blanks_end(text: Characters, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    while at < end and (text[at] == 0x20 or text[at] == 0x0A or text[at] == 0x0D or text[at] == 0x09):
        at += 1
    return at


def _name_end(text: Characters, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    while at < end and (0x61 <= text[at] <= 0x7A or 0x30 <= text[at] <= 0x39):
        at += 1
    return at


def _string_end(text: Characters, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Offset of the first byte from `at` on that is a quote, a backslash, or not printable ASCII."""
    while at < end and 0x20 <= text[at] <= 0x7E and text[at] != 0x22 and text[at] != 0x5C:
        at += 1
    return at


def _word_end(text: Characters, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Offset after a number, true, false or null, at most 11 bytes away."""
    if end > at + 11:
        end = at + 11
    while at < end and (0x61 <= text[at] <= 0x7A or 0x30 <= text[at] <= 0x39 or text[at] == 0x2D):
        at += 1
    return at


def _literal(word: bytes) -> object:
    """A boolean, or an integer of one to nine digits without a leading zero; None for anything else."""
    if word == b"true":
        return True
    if word == b"false":
        return False
    digits = word[1:] if word.startswith(b"-") else word
    if not digits.isdigit() or len(digits) > 9 or digits.startswith(b"0"):
        return 0 if word == b"0" else None
    return int(word)


def _value_end(text: Characters, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Offset after the value that starts at `at`, assuming that it is JSON; -1 when it does not end."""
    depth: cython.Py_ssize_t = 0
    byte: cython.int
    while at < end:
        byte = text[at]
        if byte == 0x22:
            at += 1
            while at < end and text[at] != 0x22:
                at += 2 if text[at] == 0x5C else 1
            if depth == 0:
                return at + 1 if at < end else -1
        elif byte == 0x7B or byte == 0x5B:
            depth += 1
        elif byte == 0x7D or byte == 0x5D:
            if depth == 0:
                return at
            depth -= 1
            if depth == 0:
                return at + 1
        elif depth == 0 and (byte == 0x2C or byte <= 0x20):
            return at
        at += 1
    return -1
