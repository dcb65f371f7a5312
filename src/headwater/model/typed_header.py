# cython: annotation_typing=False
"""One typed header: its kind, its key, its value. Iggy's headers, as the seed document has them and as they are today.

    kind     a code from 1 to 15, a name in JSON, and a width in bytes (none for raw and string)
    key      1..255 bytes with a kind of its own; before apache-iggy 0.7 there were only string keys
    value    1..255 bytes, little-endian where they are a number

A value is kept as the bytes on the wire; the kind gives their type. Values created here are checked for length, width
and UTF-8. Values from the wire are checked for their length only, as in Iggy's own decoders (`of_wire`): a header of
kind int128 with one byte is kept, and refused when its number is read.

Every error is a HeaderError whose `rule` is one of the names below.
"""

import struct
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final, NoReturn

from headwater.errors import HeaderError

LONGEST: Final = 255  # bytes of a key, and of a value: the seed's "maximum value of the u8 type"

# `HeaderError.rule`
KEY_LENGTH: Final = "key length"
VALUE_LENGTH: Final = "value length"
VALUE_WIDTH: Final = "value width"
NOT_UTF8: Final = "not UTF-8"
UNKNOWN_KIND: Final = "unknown kind"
WRONG_KIND: Final = "wrong kind"
OUT_OF_RANGE: Final = "out of range"
NOT_A_VALUE: Final = "not a header value"

PythonValue = str | bytes | bool | int | float


def refuse(rule: str, message: str, key: str | None = None, offset: int | None = None) -> NoReturn:
    """Raise the HeaderError."""
    where = "typed header" if key is None else f"typed header {key[:80]!r}"
    at = "" if offset is None else f" at byte {offset}"
    raise HeaderError(f"{where}: {message}{at}", key=key, offset=offset, rule=rule)


class HeaderKind(IntEnum):
    """The type of a value or key. The number is the code on the wire."""

    RAW = 1
    STRING = 2
    BOOL = 3
    INT8 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    INT128 = 8
    UINT8 = 9
    UINT16 = 10
    UINT32 = 11
    UINT64 = 12
    UINT128 = 13
    FLOAT32 = 14
    FLOAT64 = 15

    @property
    def json_name(self) -> str:
        """The name in JSON: raw, string, bool, int8 ... float64."""
        return self.name.lower()

    @property
    def width(self) -> int | None:
        """Bytes of a value of this kind; None for raw and string, which may have 1 to 255."""
        return _WIDTHS[self]

    @classmethod
    def of_code(cls, code: int, key: str | None = None, offset: int | None = None) -> "HeaderKind":
        """Raises HeaderError for a code that is none."""
        try:
            return cls(code)
        except ValueError:
            refuse(UNKNOWN_KIND, f"kind {code} is not from 1 to 15", key, offset)

    @classmethod
    def of_json_name(cls, name: object, key: str | None = None) -> "HeaderKind":
        """Raises HeaderError for a name that is none."""
        kind = _BY_JSON_NAME.get(name) if isinstance(name, str) else None
        if kind is None:
            refuse(UNKNOWN_KIND, f"kind {name!r} is none of {', '.join(_BY_JSON_NAME)}", key)
        return kind


# By the code of a kind; a look-up by the kind itself would call the enumeration's own `__hash__`, which is Python.
KINDS: Final = (HeaderKind.RAW, *HeaderKind)  # no kind has the code 0
_WIDTHS: Final = (None, None, None, 1, 1, 2, 4, 8, 16, 1, 2, 4, 8, 16, 4, 8)
_SIGNED: Final = (False, False, False, False, True, True, True, True, True) + (False,) * 7
_AS_FLOAT32: Final = struct.Struct("<f")
_AS_FLOAT64: Final = struct.Struct("<d")
_SMALLEST_FLOAT: Final = 14
# Under names of their own: an enumeration looks its members up in Python's slow way.
(_RAW, _STRING, _BOOL, _INT8, _INT16, _INT32, _INT64, _INT128) = KINDS[1:9]
(_UINT8, _UINT16, _UINT32, _UINT64, _UINT128, _FLOAT32, _FLOAT64) = KINDS[9:]
_INT64_LOW: Final = -(1 << 63)
_INT64_HIGH: Final = (1 << 63) - 1
_BY_JSON_NAME: Final = {kind.json_name: kind for kind in HeaderKind}


class HeaderValue:
    """A `kind` and the `raw` bytes of a value. Made by a `from_…`, by `of` from a Python value, or from both. It never
    changes.

    Raises HeaderError when the bytes do not fit the kind. Each `as_…` refuses every kind but its own.
    """

    __slots__ = ("kind", "raw")
    kind: HeaderKind
    raw: bytes

    def __init__(self, kind: HeaderKind, raw: bytes) -> None:
        _check_length(raw, VALUE_LENGTH)
        width = _WIDTHS[kind]
        if width is not None and width != len(raw):
            refuse(VALUE_WIDTH, f"{kind.json_name} has {width} bytes, not {len(raw)}")
        if kind is _STRING:
            _text(raw)
        elif kind is _BOOL and raw not in (b"\0", b"\1"):
            refuse(OUT_OF_RANGE, f"a bool is 0 or 1, not {raw[0]}")
        self.kind = kind
        self.raw = raw

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HeaderValue):
            return NotImplemented
        return self.kind is other.kind and self.raw == other.raw

    def __hash__(self) -> int:
        return hash((int(self.kind), self.raw))

    def __repr__(self) -> str:
        return f"HeaderValue(kind={self.kind!r}, raw={self.raw!r})"

    def __reduce__(self) -> Any:
        return HeaderValue.of_wire, (self.kind, self.raw)

    @classmethod
    def of_wire(cls, kind: HeaderKind, raw: bytes) -> "HeaderValue":
        """Keep a peer's bytes, whatever their width; only the length is checked. Raises HeaderError."""
        return value_of_wire(kind, raw)

    @classmethod
    def of(cls, value: "HeaderValue | PythonValue") -> "HeaderValue":
        """str, bytes, bool and float as they are; an int as the first of int64, uint64, int128, uint128 that holds it.

        Raises HeaderError for anything else.
        """
        if isinstance(value, HeaderValue):
            return value
        if isinstance(value, str):
            return cls.from_str(value)
        if isinstance(value, bool):
            return cls.from_bool(value)
        if isinstance(value, int):
            if _INT64_LOW <= value <= _INT64_HIGH:
                return value_of_wire(_INT64, value.to_bytes(8, "little", signed=True))
            wide = (_INT64, _UINT64, _INT128, _UINT128)
            return cls._integer(next((kind for kind in wide if _fits(kind, value)), _UINT128), value)
        if isinstance(value, bytes):
            return cls.from_raw(value)
        if isinstance(value, float):
            return cls.from_float64(value)
        refuse(NOT_A_VALUE, f"{type(value).__name__} is none of str, bytes, bool, int, float")

    @classmethod
    def from_raw(cls, value: bytes) -> "HeaderValue":
        return cls(_RAW, bytes(value))

    @classmethod
    def from_str(cls, value: str) -> "HeaderValue":
        return value_of_wire(_STRING, _encoded(value))

    @classmethod
    def from_bool(cls, value: bool) -> "HeaderValue":
        return value_of_wire(_BOOL, b"\1" if value else b"\0")

    @classmethod
    def from_int8(cls, value: int) -> "HeaderValue":
        return cls._integer(_INT8, value)

    @classmethod
    def from_int16(cls, value: int) -> "HeaderValue":
        return cls._integer(_INT16, value)

    @classmethod
    def from_int32(cls, value: int) -> "HeaderValue":
        return cls._integer(_INT32, value)

    @classmethod
    def from_int64(cls, value: int) -> "HeaderValue":
        return cls._integer(_INT64, value)

    @classmethod
    def from_int128(cls, value: int) -> "HeaderValue":
        return cls._integer(_INT128, value)

    @classmethod
    def from_uint8(cls, value: int) -> "HeaderValue":
        return cls._integer(_UINT8, value)

    @classmethod
    def from_uint16(cls, value: int) -> "HeaderValue":
        return cls._integer(_UINT16, value)

    @classmethod
    def from_uint32(cls, value: int) -> "HeaderValue":
        return cls._integer(_UINT32, value)

    @classmethod
    def from_uint64(cls, value: int) -> "HeaderValue":
        return cls._integer(_UINT64, value)

    @classmethod
    def from_uint128(cls, value: int) -> "HeaderValue":
        return cls._integer(_UINT128, value)

    @classmethod
    def from_float32(cls, value: float) -> "HeaderValue":
        """The nearest float of 32 bits. Raises HeaderError when the value is finite and none is."""
        try:
            return cls(_FLOAT32, _AS_FLOAT32.pack(value))
        except OverflowError:
            refuse(OUT_OF_RANGE, f"{value!r} does not fit float32")

    @classmethod
    def from_float64(cls, value: float) -> "HeaderValue":
        return cls(_FLOAT64, _AS_FLOAT64.pack(value))

    def as_raw(self) -> bytes:
        self._want(_RAW)
        return self.raw

    def as_str(self) -> str:
        self._want(_STRING)
        return _text(self.raw)

    def as_bool(self) -> bool:
        self._want(_BOOL)
        if self.raw not in (b"\0", b"\1"):
            refuse(OUT_OF_RANGE, f"a bool is 0 or 1, not {self.raw.hex()}")
        return self.raw == b"\1"

    def as_int8(self) -> int:
        return self._as_integer(_INT8)

    def as_int16(self) -> int:
        return self._as_integer(_INT16)

    def as_int32(self) -> int:
        return self._as_integer(_INT32)

    def as_int64(self) -> int:
        return self._as_integer(_INT64)

    def as_int128(self) -> int:
        return self._as_integer(_INT128)

    def as_uint8(self) -> int:
        return self._as_integer(_UINT8)

    def as_uint16(self) -> int:
        return self._as_integer(_UINT16)

    def as_uint32(self) -> int:
        return self._as_integer(_UINT32)

    def as_uint64(self) -> int:
        return self._as_integer(_UINT64)

    def as_uint128(self) -> int:
        return self._as_integer(_UINT128)

    def as_float32(self) -> float:
        return self._as_float(_FLOAT32)

    def as_float64(self) -> float:
        return self._as_float(_FLOAT64)

    @property
    def python(self) -> PythonValue:
        """The value as a Python object, by its kind. Raises HeaderError for bytes that do not fit the kind."""
        if self.kind is _STRING:
            return _text(self.raw)
        if self.kind is _BOOL:
            return self.as_bool()
        if self.kind is _RAW:
            return self.raw
        return self._as_float(self.kind) if self.kind >= _SMALLEST_FLOAT else self._as_integer(self.kind)

    @classmethod
    def _integer(cls, kind: HeaderKind, value: int) -> "HeaderValue":
        if not isinstance(value, int) or isinstance(value, bool):
            refuse(NOT_A_VALUE, f"{kind.json_name} is made of an int, not {type(value).__name__}")
        if not _fits(kind, value):
            refuse(OUT_OF_RANGE, f"{value} does not fit {kind.json_name}")
        return cls(kind, value.to_bytes(_WIDTHS[kind] or 0, "little", signed=_SIGNED[kind]))

    def _as_integer(self, kind: HeaderKind) -> int:
        self._want(kind)
        return int.from_bytes(self.raw, "little", signed=_SIGNED[kind])

    def _as_float(self, kind: HeaderKind) -> float:
        self._want(kind)
        value: float = (_AS_FLOAT32 if kind is _FLOAT32 else _AS_FLOAT64).unpack(self.raw)[0]
        return value

    def _want(self, kind: HeaderKind) -> None:
        if self.kind is not kind:
            refuse(WRONG_KIND, f"the value is {self.kind.json_name}, not {kind.json_name}")
        width = _WIDTHS[kind]
        if width is not None and width != len(self.raw):
            refuse(VALUE_WIDTH, f"{kind.json_name} has {width} bytes, not {len(self.raw)}")


class HeaderKey:
    """A key: 1..255 bytes and a kind, which is string for all but a few clients of today.

    A string key equals, and hashes as, its str, so `"key 1" in headers` is what it looks like. Case counts.
    """

    __slots__ = ("_hash", "kind", "raw")
    kind: HeaderKind
    raw: bytes

    def __init__(self, key: "str | bytes | HeaderKey", kind: HeaderKind = _STRING) -> None:
        """A str is a string key. Raises HeaderError for a key that is empty, too long, or does not fit `kind`."""
        self._hash = 0
        if isinstance(key, HeaderKey):
            self.kind = key.kind
            self.raw = key.raw
            return
        raw = _encoded(key) if isinstance(key, str) else bytes(key)
        _check_length(raw, KEY_LENGTH)
        if kind is not _STRING:
            HeaderValue(kind, raw)
        elif not isinstance(key, str):
            _text(raw)
        self.kind = kind
        self.raw = raw

    @classmethod
    def seed(cls, key: str) -> "HeaderKey":
        """As the SDKs up to apache-iggy 0.6 make a key: in lower case, by Unicode's rules."""
        return cls(key.lower())

    @classmethod
    def of_wire(cls, kind: HeaderKind, raw: bytes) -> "HeaderKey":
        """A key from a peer: length and UTF-8 are checked, the width of a number is not. Raises HeaderError."""
        _check_length(raw, KEY_LENGTH)
        if kind is _STRING:
            _text(raw)
        return key_of_wire(kind, raw)

    def __str__(self) -> str:
        """The text of a string key; of another one its Python value, or what its bytes are if they are not that."""
        if self.kind is _STRING:
            return self.raw.decode()
        try:
            return str(HeaderValue.of_wire(self.kind, self.raw).python)
        except HeaderError:
            return self.raw.hex()

    def __repr__(self) -> str:
        kind = "" if self.kind is _STRING else f", {self.kind.json_name}"
        return f"HeaderKey({str(self)!r}{kind})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, HeaderKey):
            return self.kind is other.kind and self.raw == other.raw
        return isinstance(other, str) and self.kind is _STRING and self.raw == other.encode("utf-8", "surrogatepass")

    def __hash__(self) -> int:
        if not self._hash:
            self._hash = hash(self.raw.decode()) if self.kind is _STRING else hash((int(self.kind), self.raw))
        return self._hash

    def __reduce__(self) -> Any:
        return HeaderKey.of_wire, (self.kind, self.raw)


def _fits(kind: HeaderKind, value: int) -> bool:
    width = _WIDTHS[kind] or 0
    low = -(1 << (8 * width - 1)) if _SIGNED[kind] else 0
    return low <= value < low + (1 << (8 * width))


def _check_length(raw: bytes, rule: str) -> int:
    if not 1 <= len(raw) <= LONGEST:
        refuse(rule, f"a {rule.partition(' ')[0]} has 1 to {LONGEST} bytes, not {len(raw)}")
    return 0


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        refuse(NOT_UTF8, f"byte {error.start} of {raw[:40]!r} is not UTF-8")


def _encoded(text: str) -> bytes:
    if not isinstance(text, str):
        refuse(NOT_A_VALUE, f"a string is made of a str, not {type(text).__name__}")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        refuse(NOT_UTF8, f"{text[error.start]!r} at {error.start} has no UTF-8 form")


def value_of_wire(kind: HeaderKind, raw: bytes) -> HeaderValue:
    """A value of bytes that fit the kind, or that a peer sent; only the length is checked. Raises HeaderError."""
    _check_length(raw, VALUE_LENGTH)
    made = HeaderValue.__new__(HeaderValue)
    made.kind = kind
    made.raw = raw
    return made


def key_of_wire(kind: HeaderKind, raw: bytes) -> HeaderKey:
    made = HeaderKey.__new__(HeaderKey)
    made._hash = 0
    made.kind = kind
    made.raw = raw
    return made


@lru_cache(maxsize=1024)
def string_key(text: str) -> HeaderKey:
    """One object for a key that is set in every message. Raises HeaderError as `HeaderKey` does."""
    return HeaderKey(text)


@lru_cache(maxsize=1024)
def wire_key(code: int, raw: bytes) -> HeaderKey:
    """One object for a key that comes with every message; `code` is 1 to 15. Raises HeaderError as `HeaderKey.of_wire`."""
    return HeaderKey.of_wire(KINDS[code], raw)
