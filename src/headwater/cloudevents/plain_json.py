"""Fast path for a JSON event: one pass over its bytes in the form that nearly every producer writes, `data` left
encoded.

Attributes are strings of printable ASCII without escapes, integers of up to nine digits, true or false, none of them
repeated; white space may appear wherever JSON allows it. For anything else, including `data_base64`, `read_plain`
returns None, and `json_format` reads the text or raises the error. `data` is judged in the same pass if it is ASCII
without `\\u`; otherwise its end is found by counting brackets, which is correct if the value is JSON, and msgspec then
checks that it is.
"""

from typing import Any

import cython
import msgspec

from headwater.cloudevents.event import DataKind

if cython.compiled:
    from cython.cimports.headwater.cloudevents.event import CloudEvent, is_json_type, make_event
    from cython.cimports.headwater.cloudevents.json_span import (
        NAME,
        VISIBLE,
        blanks_end,
        checked_end,
        run_end,
        trusted_end,
    )
    from cython.cimports.headwater.cloudevents.plain_text import REQUIRED, ascii_text, core_index, set_core
else:
    from headwater.cloudevents.event import CloudEvent, is_json_type, make_event
    from headwater.cloudevents.json_span import NAME, VISIBLE, blanks_end, checked_end, run_end, trusted_end
    from headwater.cloudevents.plain_text import REQUIRED, ascii_text, core_index, set_core

COMPILED: bool = cython.compiled  # interpreted, the general path is faster
Attributes = dict[str, Any]
Characters = bytes  # compiled, a pointer

_check_json = msgspec.json.Decoder(msgspec.Raw).decode
_ABSENT = DataKind.ABSENT
_JSON = DataKind.JSON
_CONTENT_TYPE = 128  # the bit of datacontenttype in `seen`


def read_plain(source: bytes) -> CloudEvent | None:
    """The event in a JSON text; None when the text is not plain or not an event."""
    end: cython.Py_ssize_t = len(source)
    at: cython.Py_ssize_t
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    after: cython.Py_ssize_t
    seen: cython.int = 0
    judged: cython.bint = True
    text = source if cython.compiled else source + b"\0"  # the NUL ends every run of bytes of one kind
    at = blanks_end(text, 0)
    if text[at] != 0x7B:
        return None
    attributes: dict[str, Any] = {}
    data: bytes | None = None
    while True:
        start = blanks_end(text, at + 1) + 1
        stop = _name_end(text, start)
        if stop < 0:
            return None
        at = blanks_end(text, stop + 1)
        if text[at] != 0x3A:
            return None
        at = blanks_end(text, at + 1)
        if _is_data(text, start, stop):
            after = checked_end(text, at)
            judged = after >= 0
            if not judged:
                after = trusted_end(text, at, end)
            if after < 0 or data is not None:
                return None
            data = source[at:after]
        elif text[at] == 0x22:
            after = run_end(text, at + 1, VISIBLE)
            if text[after] != 0x22 or after == at + 1:
                return None
            seen = _set_text(attributes, text, start, stop, at + 1, after, seen)
            after += 1
        else:
            after = _word_end(text, at)
            seen = _set_word(attributes, text, start, stop, source[at:after], seen)
        if seen < 0:
            return None
        at = blanks_end(text, after)
        if text[at] != 0x2C:
            break
    if text[at] != 0x7D or blanks_end(text, at + 1) != end or seen & REQUIRED != REQUIRED:
        return None
    if data is None:
        return make_event(CloudEvent, attributes, _ABSENT, b"", True)
    if seen & _CONTENT_TYPE and not is_json_type(attributes["datacontenttype"]):
        return None
    return make_event(CloudEvent, attributes, _JSON, data, True) if judged or _is_json(data) else None


def _name_end(text: Characters, start: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Offset of the quote behind the name that begins at `start`; -1 for what is no attribute's name between quotes."""
    if text[start - 1] != 0x22:
        return -1
    stop: cython.Py_ssize_t = run_end(text, start, NAME)
    return stop if stop > start and text[stop] == 0x22 else -1


def _is_data(text: Characters, start: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> cython.bint:
    """Whether `text[start:stop]` is `data`."""
    if stop - start != 4 or text[start] != 0x64:
        return False
    return text[start + 1] == 0x61 and text[start + 2] == 0x74 and text[start + 3] == 0x61


def _set_text(
    attributes: Attributes,
    text: Characters,
    name: cython.Py_ssize_t,
    name_end: cython.Py_ssize_t,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    seen: cython.int,
) -> cython.int:
    """Set an attribute to `text[start:end]`. Returns the updated `seen` bits of core attributes, or -1 when it cannot be
    set.
    """
    index: cython.int = core_index(text, name, name_end)
    if index >= 0:
        if seen & (1 << index) or not set_core(attributes, text, index, start, end):
            return -1
        return seen | 1 << index
    return _set_extension(attributes, ascii_text(text, name, name_end), ascii_text(text, start, end), seen)


def _set_word(
    attributes: Attributes,
    text: Characters,
    name: cython.Py_ssize_t,
    name_end: cython.Py_ssize_t,
    word: bytes,
    seen: cython.int,
) -> cython.int:
    """`_set_text` for a number or a boolean, which no core attribute may be."""
    value = _literal(word)
    if value is None or core_index(text, name, name_end) >= 0:
        return -1
    return _set_extension(attributes, ascii_text(text, name, name_end), value, seen)


def _set_extension(attributes: Attributes, name: str, value: object, seen: cython.int) -> cython.int:
    """Returns `seen`, or -1 for a name that had a value before."""
    before: cython.Py_ssize_t = len(attributes)
    attributes[name] = value
    return seen if len(attributes) > before else -1


def _is_json(data: bytes) -> bool:
    try:
        _check_json(data)
        if not data.isascii():
            data.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _word_end(text: Characters, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Offset after an integer, true or false."""
    return run_end(text, at + 1 if text[at] == 0x2D else at, NAME)


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
