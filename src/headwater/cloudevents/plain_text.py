"""Fast checks for the common case: an event whose attributes are all printable ASCII.

The functions here are *sound* but not complete: whatever they accept, `attributes` would accept as well; the rest is
left to `attributes`. So the rules are defined in one place, and most events skip the slow checks. Compiled, each
function is a loop over characters that creates no object.
"""

import re
from typing import Any, Final

import cython

if cython.compiled:
    from cython.cimports.cpython.unicode import PyUnicode_1BYTE_DATA, PyUnicode_New
    from cython.cimports.libc.string import memcmp, memcpy

Attributes = dict[str, Any]  # an alias, because Cython and the .pxd disagree about the subscripted type
Characters = bytes  # compiled, a pointer: bytes end with a NUL, so one read past the end stays in bounds

_NAME: Final = re.compile(r"[a-z0-9]+")
_TIME: Final = re.compile(
    r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?Z"
)


def is_visible(value: object) -> bool:
    """Whether `value` is a non-empty str (no subclass) of printable ASCII."""
    if type(value) is not str or not value:
        return False
    if not cython.compiled:
        return value.isascii() and value.isprintable()
    text = value
    for character in text:
        if not 0x20 <= character < 0x7F:
            return False
    return True


def is_plain_name(value: object) -> bool:
    """Whether `value` is a str (no subclass) that is a valid attribute name."""
    if type(value) is not str or not value or value == "data":
        return False
    if not cython.compiled:
        return _NAME.fullmatch(value) is not None
    text = value
    for character in text:
        if not (0x61 <= character <= 0x7A or 0x30 <= character <= 0x39):
            return False
    return True


def is_common_time(value: object) -> bool:
    """Whether `value` is `YYYY-MM-DDThh:mm:ss[.f…]Z`, with a day up to 28 and no leap second: then it is a valid
    timestamp.
    """
    if type(value) is not str or not value.isascii():
        return False
    if not cython.compiled:
        return len(value) <= 40 and _TIME.fullmatch(value) is not None
    text = value.encode("ascii")
    return is_common_time_at(text, 0, len(text))


def is_common_time_at(text: Characters, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """`is_common_time` for a slice of ASCII, without a copy."""
    last: cython.Py_ssize_t = end - 1
    if not cython.compiled:
        return is_common_time(text[start:end].decode("ascii"))
    if end - start < 20 or end - start > 40 or text[last] != 0x5A or text[start + 10] != 0x54:
        return False
    if text[start + 4] != 0x2D or text[start + 7] != 0x2D or text[start + 13] != 0x3A or text[start + 16] != 0x3A:
        return False
    if not _are_digits(text, start, start + 4) or not _are_digits(text, start + 5, start + 7):
        return False
    if not 1 <= _two_digits(text, start + 5) <= 12 or not 1 <= _two_digits(text, start + 8) <= 28:
        return False
    if not 0 <= _two_digits(text, start + 11) <= 23 or not 0 <= _two_digits(text, start + 14) <= 59:
        return False
    if not 0 <= _two_digits(text, start + 17) <= 59:
        return False
    start += 19
    return start == last or (text[start] == 0x2E and start + 1 < last and _are_digits(text, start + 1, last))


def _two_digits(text: Characters, at: cython.Py_ssize_t) -> cython.int:
    """The value of two digits, or -1."""
    return (text[at] - 0x30) * 10 + text[at + 1] - 0x30 if _are_digits(text, at, at + 2) else -1


def _are_digits(text: Characters, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    while at < end and 0x30 <= text[at] <= 0x39:
        at += 1
    return at == end


# Core attributes, identified in place: an index into _CORE, and a bit for each that has been seen.

_CORE = ["id", "type", "time", "source", "subject", "dataschema", "specversion", "datacontenttype"]
_SPELLED = b"id type time source subject dataschema specversion datacontenttype"
REQUIRED = 1 | 2 | 8 | 64  # id, type, source, specversion
_TIME_INDEX = 2
_SPECVERSION_INDEX = 6
_CONTENT_TYPE_INDEX = 7
_JSON_TYPE = b"application/json"


def core_index(text: Characters, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
    """The index of the core attribute named by `text[start:end]`, or -1. Its length distinguishes nearly all of them."""
    length: cython.Py_ssize_t = end - start
    if length == 2:
        return _index_if(text, start, length, 0, 0)
    if length == 4:
        return _index_if(text, start, length, 1, 3) if text[start + 1] == 0x79 else _index_if(text, start, length, 2, 8)
    if length == 6:
        return _index_if(text, start, length, 3, 13)
    if length == 7:
        return _index_if(text, start, length, 4, 20)
    if length == 10:
        return _index_if(text, start, length, 5, 28)
    if length == 11:
        return _index_if(text, start, length, 6, 39)
    return _index_if(text, start, length, 7, 51) if length == 15 else -1


def _index_if(
    text: Characters, start: cython.Py_ssize_t, length: cython.Py_ssize_t, index: cython.int, at: cython.Py_ssize_t
) -> cython.int:
    """`index` if `text` at `start` equals `_SPELLED` at `at`, else -1."""
    spelled = _SPELLED
    if cython.compiled:
        return index if memcmp(text + start, spelled + at, length) == 0 else -1
    return index if text[start : start + length] == spelled[at : at + length] else -1


def set_core(
    attributes: Attributes, text: Characters, index: cython.int, start: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.bint:
    """Set the core attribute to the visible text `text[start:end]`; False when that is not a common value for it."""
    json = _JSON_TYPE
    if index == _SPECVERSION_INDEX:
        if end - start != 3 or text[start] != 0x31 or text[start + 1] != 0x2E or text[start + 2] != 0x30:
            return False
        attributes["specversion"] = "1.0"
    elif index == _TIME_INDEX and not is_common_time_at(text, start, end):
        return False
    elif cython.compiled and index == _CONTENT_TYPE_INDEX and end - start == 16 and memcmp(text + start, json, 16) == 0:
        attributes["datacontenttype"] = "application/json"
    else:
        attributes[_CORE[index]] = ascii_text(text, start, end)
    return True


def ascii_text(text: Characters, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> str:
    """`text[start:end]` as a str. Needs ASCII there, and start < end."""
    if cython.compiled:
        made: str = PyUnicode_New(end - start, 127)
        memcpy(PyUnicode_1BYTE_DATA(made), text + start, end - start)
        return made
    return text[start:end].decode("ascii")


def has_common_context(attributes: Attributes) -> bool:
    """Whether attributes with plain names and visible strings form an event of version 1.0 with a common time, if any."""
    if attributes.get("specversion") != "1.0":
        return False
    if type(attributes.get("id")) is not str or type(attributes.get("source")) is not str:
        return False
    if type(attributes.get("type")) is not str:
        return False
    value = attributes.get("time")
    if value is not None and not is_common_time(value):
        return False
    for name in ("datacontenttype", "subject", "dataschema"):
        value = attributes.get(name)
        if value is not None and type(value) is not str:
            return False
    return True


def is_common(attributes: Attributes) -> bool:
    """Whether these are the attributes of an event, with only plain names and visible strings."""
    for name, value in attributes.items():
        if not is_plain_name(name) or not is_visible(value):
            return False
    return has_common_context(attributes)
