"""Fast path for binary mode: reads or writes the form of nearly every message in one pass over the header block.

    NATS/1.0␍␊
    ce-<name>: <value>␍␊       value: printable ASCII, nothing percent-encoded or quoted, no blank at the ends
    <Other>: …␍␊               anything but Content-Type, which determines the mode
    ␍␊

For any other form, and for every broken rule, these functions return None, and `nats_binding` takes its general path,
which handles the exceptions and raises the errors. So the rules of an event are defined in one place only.
"""

from typing import Any

import cython

from headwater.cloudevents.event import DataKind, kind_of_body

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
    from cython.cimports.cpython.unicode import PyUnicode_1BYTE_DATA, PyUnicode_KIND
    from cython.cimports.headwater.cloudevents.event import CloudEvent, make_event
    from cython.cimports.headwater.cloudevents.plain_text import REQUIRED, ascii_text, core_index, set_core
else:
    from headwater.cloudevents.event import CloudEvent, make_event
    from headwater.cloudevents.plain_text import REQUIRED, ascii_text, core_index, set_core

COMPILED: bool = cython.compiled  # interpreted, the general path is faster

_ABSENT = DataKind.ABSENT
_JSON = DataKind.JSON
_TEXT = DataKind.TEXT
Attributes = dict[str, Any]  # an alias, because Cython and the .pxd disagree about the subscripted type
Characters = bytes  # compiled, a pointer: bytes end with a NUL, so one read past the end stays in bounds
Writable = bytearray  # compiled, a pointer into new bytes that nothing else references yet

_IMPLIED_LINE = b"ce-datacontenttype: application/json\r\n"
_FIRST_LINE = b"NATS/1.0\r\n"


def read_plain(block: bytes, payload: bytes) -> CloudEvent | None:
    """The event in binary mode, or None when the block is not plain or not an event. The payload is not validated."""
    end: cython.Py_ssize_t = len(block) - 2  # where the empty line must begin
    at: cython.Py_ssize_t = 10
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    index: cython.int
    seen: cython.int = 0
    if end < 10 or not block.startswith(_FIRST_LINE):
        return None
    attributes: dict[str, Any] = {}
    text = block
    while at < end:
        if text[at] == 0x63 and text[at + 1] == 0x65 and text[at + 2] == 0x2D:  # ce-
            at += 3
            stop = _name_end(text, at, end)
            if stop == at or text[stop] != 0x3A:
                return None
            index = core_index(text, at, stop)
            name = "" if index >= 0 else ascii_text(text, at, stop)
            start = stop + 1
            if text[start] == 0x20:
                start += 1
            stop = _value_end(text, start, end)
            if stop <= start or text[start] == 0x20 or text[stop - 1] == 0x20:
                return None
            if index >= 0:
                if seen & (1 << index) or not set_core(attributes, text, index, start, stop):
                    return None
                seen |= 1 << index
            elif name in attributes or name == "data":
                return None
            else:
                attributes[name] = ascii_text(text, start, stop)
        else:
            start = _name_of_another(text, at, end)
            if start == at or text[start] != 0x3A or _concerns_events(block[at:start]):
                return None
            stop = start
            while stop < end and text[stop] != 0x0D and text[stop] != 0x0A:
                stop += 1
        if stop >= end or text[stop] != 0x0D or text[stop + 1] != 0x0A:
            return None
        at = stop + 2
    if at != end or text[end] != 0x0D or text[end + 1] != 0x0A or seen & REQUIRED != REQUIRED:
        return None
    if not payload:
        return make_event(CloudEvent, attributes, _ABSENT, payload, False)
    declared = attributes.get("datacontenttype")
    if declared == "application/json":
        return make_event(CloudEvent, attributes, _JSON, payload, False)
    kind, payload = kind_of_body(payload, declared)
    return make_event(CloudEvent, attributes, kind, payload, False)


def _name_end(text: Characters, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Offset of the first byte from `at` on that cannot be part of an attribute name."""
    while at < end and (0x61 <= text[at] <= 0x7A or 0x30 <= text[at] <= 0x39):
        at += 1
    return at


def _value_end(text: Characters, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Offset of the first byte from `at` on that a header value cannot contain literally."""
    while at < end and 0x20 <= text[at] <= 0x7E and text[at] != 0x25 and text[at] != 0x22:
        at += 1
    return at


def _name_of_another(text: Characters, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Offset of the first byte from `at` on that cannot be part of a header name."""
    while at < end and 0x20 < text[at] < 0x7F and text[at] != 0x3A:
        at += 1
    return at


def _concerns_events(name: bytes) -> bool:
    """Whether a header other than a lower-case `ce-…` affects the event."""
    lower = name.lower()
    return lower == b"content-type" or lower.startswith(b"ce-")


def write_plain(event: CloudEvent, more: bytes) -> bytes | None:
    """The header block of an event whose attributes are all Strings that need no encoding, else None. Also None for text
    data, which may have to be converted to another charset. The content type that JSON data implies is written
    explicitly. `more`: further lines, each with its CRLF, appended at the end.
    """
    attributes = event._attributes
    if event._kind is _TEXT:
        return None
    if event._kind is _JSON and "datacontenttype" not in attributes:
        more = _IMPLIED_LINE + more
    if not cython.compiled:
        return _write_interpreted(attributes, more)
    size: cython.Py_ssize_t = 12 + len(more)
    at: cython.Py_ssize_t = 10
    for name, value in attributes.items():
        if type(value) is not str:
            return None
        size += len(name) + len(value) + 7
    block = _new_bytes(size)
    text: Any = block
    _put(text, 0, _FIRST_LINE)
    for name, value in attributes.items():
        text[at] = 0x63
        text[at + 1] = 0x65
        text[at + 2] = 0x2D
        at = _put_visible(text, at + 3, name)
        if at < 0:
            return None
        text[at] = 0x3A
        text[at + 1] = 0x20
        at = _put_visible(text, at + 2, value)
        if at < 0:
            return None
        text[at] = 0x0D
        text[at + 1] = 0x0A
        at += 2
    _put(text, at, more)
    _put(text, size - 2, b"\r\n")
    return block


def _new_bytes(size: cython.Py_ssize_t) -> bytes:
    """New bytes, to be filled before they are handed out."""
    if cython.compiled:
        return PyBytes_FromStringAndSize(cython.NULL, size)
    return bytes(size)


def _put(text: Writable, at: cython.Py_ssize_t, piece: bytes) -> cython.Py_ssize_t:
    """Write `piece` at `at`."""
    read = piece
    for offset in range(len(piece)):
        text[at + offset] = read[offset]
    return at


def _put_visible(text: Writable, at: cython.Py_ssize_t, value: str) -> cython.Py_ssize_t:
    """Write a value at `at`; returns the offset after it, or -1 for a value that needs encoding."""
    if cython.compiled:
        if PyUnicode_KIND(value) != 1:  # it has characters above U+00FF
            return -1
        read = PyUnicode_1BYTE_DATA(value)
        for offset in range(len(value)):
            if read[offset] <= 0x20 or read[offset] > 0x7E or read[offset] == 0x25 or read[offset] == 0x22:
                return -1
            text[at + offset] = read[offset]
    return at + len(value)


def _write_interpreted(attributes: Attributes, more: bytes) -> bytes | None:
    try:
        block = "".join([f"ce-{name}: {value}\r\n" for name, value in attributes.items()]).encode("ascii")
    except UnicodeEncodeError:
        return None
    odd = block.translate(None, _PLAIN)
    lines = len(attributes)
    if odd.count(b" ") != lines or odd.count(b"\r\n") != lines or len(odd) != 3 * lines:
        return None
    if any(type(value) is not str for value in attributes.values()):
        return None
    return _FIRST_LINE + block + more + b"\r\n"


_PLAIN = bytes(byte for byte in range(0x21, 0x7F) if byte not in b'%"')
