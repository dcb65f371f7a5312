"""`TypedHeaders`: a message's typed headers as a dictionary, and their forms on the wire and in JSON.

Two binary forms, all integers little-endian, headers back to back without a count:

    SEED     | key length u32 | key UTF-8 | kind u8 | value length u32 | value |                 up to apache-iggy 0.6
    TYPED    | key kind u8 | key length u32 | key | kind u8 | value length u32 | value |         apache-iggy 0.7 and later

Two JSON forms, binary parts in base64 (standard alphabet, padded):

    SEED     {"key": {"kind": "string", "value": "dmFsdWU="}}
    TYPED    [{"key": {"kind": "string", "value": "a2V5"}, "value": {"kind": "string", "value": "dmFsdWU="}}]

The map keeps the order in which headers came; Iggy's own maps do not, so order means nothing to a peer and is not
compared here either. No headers are zero bytes. Of a key that comes twice the last one counts, as upstream; `strict`
refuses it, and values whose width is not that of their kind.

Nothing is read past its stated length: any bytes decode, or raise HeaderError with key, byte and rule.

A block in the TYPED form is checked when it is decoded and taken apart when a header is read; `to_python` makes a
dictionary of it without the keys and values in between, which took two thirds of its time.
"""

import base64
import binascii
import struct
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from enum import Enum
from typing import Any, Final, Self, TypeVar, overload

import cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.cpython.unicode import PyUnicode_DecodeUTF8
    from cython.cimports.headwater.model.typed_header import HeaderKey, HeaderValue, value_of_wire
    from cython.cimports.libc.string import memcpy
else:
    from headwater.model.typed_header import HeaderKey, HeaderValue, value_of_wire

from headwater.errors import HeaderError
from headwater.model.typed_header import (
    KINDS,
    LONGEST,
    NOT_A_VALUE,
    WRONG_KIND,
    HeaderKind,
    PythonValue,
    refuse,
    string_key,
    wire_key,
)
from headwater.model.typed_header import HeaderKey as Key  # for public signatures: type checkers but mypy know
from headwater.model.typed_header import HeaderValue as Value  # nothing of the names that are imported above

TRUNCATED: Final = "truncated"
DUPLICATE: Final = "duplicate"
NOT_BASE64: Final = "not base64"
TOTAL: Final = "total size"

# Bytes of values in one SendMessages: "100 KB" in the seed document, 102400 in its source.
TOTAL_LIMIT: Final = 100 * 1024
TOTAL_LIMIT_LATER: Final = 100_000  # from crate 0.1.0 on

HeaderSource = Mapping[Any, Value | PythonValue] | Iterable[tuple[str | Key, Value | PythonValue]]

T = TypeVar("T")
_LENGTH = struct.Struct("<I")
_HEAD = struct.Struct("<BI")
_LONGEST: cython.Py_ssize_t = LONGEST
_STRING_CODE: cython.uint = HeaderKind.STRING  # plain numbers: an enumeration compares slowly
_BOOL_CODE: cython.uint = HeaderKind.BOOL
_INT64_CODE: cython.uint = HeaderKind.INT64


class HeaderForm(Enum):
    """The two forms; the first is the seed document's."""

    SEED = "seed"
    TYPED = "typed"


_TYPED: Final = HeaderForm.TYPED


class TypedHeaders(MutableMapping[Key, Value]):
    """Headers by key; `source` is a mapping or pairs. A str stands for a string key, a Python value for `HeaderValue.of` it.

    headers = TypedHeaders({"key 1": "value1", "key-2": True})
    headers["key_3"] = HeaderValue.from_uint64(123456)
    headers["key_3"].as_uint64()
    """

    __slots__ = ("_block", "_found")

    @overload  # of a union mypy takes no hint: a dictionary of several types of values would be a `dict[str, object]`
    def __init__(self, source: Mapping[Any, Value | PythonValue], /) -> None: ...
    @overload
    def __init__(self, source: Iterable[tuple[str | Key, Value | PythonValue]] = (), /) -> None: ...
    def __init__(self, source: HeaderSource = (), /) -> None:
        self._found: dict[HeaderKey, HeaderValue] = {}
        self._block = b""  # headers that were checked and not taken apart yet; `_found` is empty then
        if source:
            for key, value in source.items() if isinstance(source, dict | Mapping) else source:
                self[key] = value

    def __getitem__(self, key: str | Key) -> Value:
        return _values_of(self)[key]  # type: ignore[index]  # a str finds the string key that equals it

    def __setitem__(self, key: str | Key, value: Value | PythonValue) -> None:
        _values_of(self)[string_key(key) if type(key) is str else HeaderKey(key)] = HeaderValue.of(value)

    def __delitem__(self, key: str | Key) -> None:
        del _values_of(self)[key]  # type: ignore[arg-type]

    def __contains__(self, key: object) -> bool:
        return key in _values_of(self)

    def __iter__(self) -> Iterator[Key]:
        return iter(_values_of(self))

    def __len__(self) -> int:
        return len(_values_of(self))

    @overload
    def get(self, key: str | Key) -> Value | None: ...
    @overload
    def get(self, key: str | Key, default: T) -> Value | T: ...
    def get(self, key: str | Key, default: object = None) -> object:
        """The value, or `default`."""
        return _values_of(self).get(key, default)  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        return _values_of(self) == _values_of(other) if isinstance(other, TypedHeaders) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{str(key)!r}: {value.kind.json_name} {value.raw!r}" for key, value in self.items())
        return f"TypedHeaders({{{shown}}})"

    def to_python(self) -> dict[str, PythonValue]:
        """A plain dictionary of Python values. Raises HeaderError for a value that does not fit its kind."""
        if self._block and (made := _python_values(self._block)) is not None:
            return made
        return {str(key): value.python for key, value in _values_of(self).items()}

    @property
    def value_bytes(self) -> int:
        """The bytes that count towards the seed's total limit: all values, without keys and lengths."""
        return sum(len(value.raw) for value in _values_of(self).values())

    # ── binary ──

    def encode(self, form: HeaderForm = HeaderForm.SEED) -> bytes:
        """The headers in their wire form; b"" when there are none. Raises HeaderError for a key that has no place in it."""
        if form is _TYPED:
            return _typed(_values_of(self))
        pieces: list[bytes] = []
        for key, value in _values_of(self).items():
            if key.kind is not HeaderKind.STRING:
                refuse(WRONG_KIND, f"a key in this form is a string, not {key.kind.json_name}", str(key))
            pieces += (
                _LENGTH.pack(len(key.raw)),
                key.raw,
                bytes((value.kind,)),
                _LENGTH.pack(len(value.raw)),
                value.raw,
            )
        return b"".join(pieces)

    @classmethod
    def decode(
        cls, data: bytes | bytearray | memoryview, form: HeaderForm = HeaderForm.SEED, strict: bool = False
    ) -> Self:
        """The headers in `data`, all of it. Raises HeaderError."""
        data = bytes(data)
        made = cls()
        if form is _TYPED and not strict and _is_valid(data):
            made._block = data
            return made
        found, at = made._found, 0
        while at < len(data):
            start = at
            key_kind = HeaderKind.STRING
            if form is HeaderForm.TYPED:
                key_kind = HeaderKind.of_code(data[at], offset=at)
                at += 1
            raw_key, at = _sized(data, at, None)
            key = HeaderKey.of_wire(key_kind, raw_key)
            if at >= len(data):
                refuse(TRUNCATED, "the kind is missing", str(key), at)
            kind = HeaderKind.of_code(data[at], str(key), at)
            raw, at = _sized(data, at + 1, str(key))
            if strict and key in found:
                refuse(DUPLICATE, "the key is there already", str(key), start)
            found[key] = (HeaderValue if strict else HeaderValue.of_wire)(kind, raw)
        return made

    # ── JSON ──

    def to_json(self, form: HeaderForm = HeaderForm.SEED) -> Any:
        """A value for a JSON encoder: an object in the seed's form, a list in the TYPED form. Raises HeaderError as
        `encode`."""
        if form is HeaderForm.TYPED:
            return [{"key": _json(k.kind, k.raw), "value": _json(v.kind, v.raw)} for k, v in _values_of(self).items()]
        for key in _values_of(self):
            if key.kind is not HeaderKind.STRING:
                refuse(WRONG_KIND, f"a key in this form is a string, not {key.kind.json_name}", str(key))
        return {str(key): _json(value.kind, value.raw) for key, value in _values_of(self).items()}

    @classmethod
    def from_json(cls, document: Any, strict: bool = False) -> Self:
        """From decoded JSON of either form, which differ in their shape; None and absent mean no headers.

        The lengths are checked, unlike in the seed's own JSON decoder. Raises HeaderError.
        """
        made = cls()
        if isinstance(document, dict):
            pairs = [(HeaderKey(key), value) for key, value in document.items()]
        elif isinstance(document, list):
            if not all(isinstance(entry, dict) and {"key", "value"} <= entry.keys() for entry in document):
                refuse(NOT_A_VALUE, "each header is an object with key and value")
            pairs = [(HeaderKey.of_wire(*_of_json(entry["key"], None)), entry["value"]) for entry in document]
        elif document is None:
            pairs = []
        else:
            refuse(NOT_A_VALUE, f"headers are an object or a list, not {type(document).__name__}")
        for key, value in pairs:
            if strict and key in made._found:
                refuse(DUPLICATE, "the key is there already", str(key))
            kind, raw = _of_json(value, str(key))
            made._found[key] = (HeaderValue if strict else HeaderValue.of_wire)(kind, raw)
        return made


def _values_of(headers: TypedHeaders) -> dict[HeaderKey, HeaderValue]:
    """The keys and values, which are made of the block at the first call."""
    block: bytes = headers._block
    if block:
        headers._found = _taken_apart(block)
        headers._block = b""
    return headers._found


def _typed(values: dict[HeaderKey, HeaderValue]) -> bytes:
    key: HeaderKey
    value: HeaderValue
    if cython.compiled:
        size: cython.Py_ssize_t = 0
        for key, value in values.items():
            size += 10 + len(key.raw) + len(value.raw)
        block: bytes = PyBytes_FromStringAndSize(cython.NULL, size)
        to: cython.p_char = cython.cast(cython.p_char, block)
        for key, value in values.items():
            to = put_part(put_part(to, key.kind, key.raw), value.kind, value.raw)
        return block
    parts: list[bytes] = []
    for key, value in values.items():
        parts += (_HEAD.pack(key.kind, len(key.raw)), key.raw, _HEAD.pack(value.kind, len(value.raw)), value.raw)
    return b"".join(parts)


if cython.compiled:

    @cython.cfunc
    def put_part(to: cython.p_char, kind: cython.uchar, raw: bytes) -> cython.p_char:
        """Write a key or a value in wire form, at most 255 bytes; returns the position after it."""
        size: cython.Py_ssize_t = len(raw)
        to[0] = kind
        to[1] = cython.cast(cython.uchar, size)
        to[2] = to[3] = to[4] = 0
        memcpy(to + 5, cython.cast(cython.p_char, raw), size)
        return to + 5 + size


def _is_valid(data: bytes) -> cython.bint:
    """Whether the block decodes; of one that does not, the slow path finds what is wrong."""
    at: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t = len(data)
    start: cython.Py_ssize_t
    while at < end:
        if end - at < 10 or not 1 <= data[at] <= 15:
            return False
        start = at + 5
        if not 1 <= _u32(data, at + 1) <= _LONGEST or end - start - data[at + 1] < 5:
            return False
        if data[at] == _STRING_CODE and not _is_text(data, start, start + data[at + 1]):
            return False
        at = start + data[at + 1]
        if not 1 <= data[at] <= 15 or not 1 <= _u32(data, at + 1) <= _LONGEST:
            return False
        at += 5 + data[at + 1]
        if at > end:
            return False
    return True


def _is_text(data: bytes, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Whether the bytes are UTF-8; nearly all are ASCII, which is seen without making an object."""
    start: cython.Py_ssize_t = at
    while at < end and data[at] < 0x80:
        at += 1
    if at == end:
        return True
    try:
        data[start:end].decode()
    except UnicodeDecodeError:
        return False
    return True


def _taken_apart(data: bytes) -> dict[HeaderKey, HeaderValue]:
    """The headers of a valid block."""
    found: dict[HeaderKey, HeaderValue] = {}
    at: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t = len(data)
    start: cython.Py_ssize_t
    code: cython.uint
    while at < end:
        code = data[at]
        start = at + 5
        at = start + data[at + 1]
        key = wire_key(code, data[start:at])
        code = data[at]
        start = at + 5
        at = start + data[at + 1]
        found[key] = value_of_wire(KINDS[code], data[start:at])
    return found


def _python_values(data: bytes) -> dict[str, PythonValue] | None:
    """As `to_python`, of a valid block. None where a key is no string, or a value does not fit its kind."""
    made: dict[str, PythonValue] = {}
    at: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t = len(data)
    start: cython.Py_ssize_t
    code: cython.uint
    try:
        while at < end:
            if data[at] != _STRING_CODE:
                return None
            start = at + 5
            at = start + data[at + 1]
            key = text_of(data, start, at)
            code = data[at]
            start = at + 5
            at = start + data[at + 1]
            made[key] = text_of(data, start, at) if code == _STRING_CODE else _value_of(code, data, start, at)
    except (UnicodeDecodeError, HeaderError):
        return None
    return made


def _value_of(code: cython.uint, data: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> PythonValue:
    """The Python value of a header that is no string. Raises HeaderError when it does not fit its kind."""
    if code == _BOOL_CODE and end - start == 1 and data[start] <= 1:
        return data[start] == 1
    if code == _INT64_CODE and end - start == 8:
        return signed_of(data, start)
    return value_of_wire(KINDS[code], data[start:end]).python


# What most headers cost: without a Python object in between.
if cython.compiled:

    @cython.cfunc
    @cython.inline
    def text_of(data: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> str:
        text: str = PyUnicode_DecodeUTF8(PyBytes_AS_STRING(data) + start, end - start, cython.NULL)
        return text

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def signed_of(data: bytes, at: cython.Py_ssize_t) -> cython.longlong:
        value: cython.ulonglong = 0
        place: cython.Py_ssize_t
        byte: cython.uchar
        for place in range(8):
            byte = data[at + place]
            value |= cython.cast(cython.ulonglong, byte) << (8 * place)
        return cython.cast(cython.longlong, value)

else:

    def text_of(data: bytes, start: int, end: int) -> str:
        """The text of some bytes. Raises UnicodeDecodeError."""
        return data[start:end].decode()

    def signed_of(data: bytes, at: int) -> int:
        """Little-endian i64 at `at`."""
        return int.from_bytes(data[at : at + 8], "little", signed=True)


def _u32(data: bytes, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Little-endian u32 at `at`; bounds are the caller's duty."""
    value: cython.Py_ssize_t = data[at]
    return value | data[at + 1] << 8 | data[at + 2] << 16 | data[at + 3] << 24


def check_total(value_bytes: int, limit: int = TOTAL_LIMIT) -> None:
    """`value_bytes` summed over what the limit covers: all messages of a request at first, one message later.

    Raises HeaderError above `limit`.
    """
    if value_bytes > limit:
        refuse(TOTAL, f"{value_bytes} bytes of header values are more than {limit}")


def _sized(data: bytes, at: int, key: str | None) -> tuple[bytes, int]:
    """(bytes, end) of what stands behind a u32 length."""
    if at + _LENGTH.size > len(data):
        refuse(TRUNCATED, "a length is missing", key, at)
    (length,) = _LENGTH.unpack_from(data, at)
    start = at + _LENGTH.size
    if start + length > len(data):
        refuse(TRUNCATED, f"{length} bytes are announced, {len(data) - start} are there", key, at)
    return data[start : start + length], start + length


def _json(kind: HeaderKind, raw: bytes) -> dict[str, str]:
    return {"kind": kind.json_name, "value": base64.b64encode(raw).decode()}


def _of_json(entry: Any, key: str | None) -> tuple[HeaderKind, bytes]:
    if not isinstance(entry, dict) or not isinstance(entry.get("value"), str):
        refuse(NOT_A_VALUE, "it is an object with a kind and a base64 value", key)
    kind = HeaderKind.of_json_name(entry.get("kind"), key)
    try:
        return kind, base64.b64decode(entry["value"], validate=True)
    except (binascii.Error, ValueError) as error:
        refuse(NOT_BASE64, f"the value is no base64: {error}", key)
