"""Declarative binary layouts for requests and replies: a field reads and writes one value, a record is named fields in
order.

Every integer is little-endian. `Reader` never reads past its end: missing or extra bytes raise IggyError
(invalid_command), so garbage is refused. Reading what was written gives the same value; the captured conversations of
real clients hold both directions to it.
"""

import struct
from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, TypeVar

from headwater.errors import IggyError
from headwater.iggy_wire.error_numbers import refusal

T = TypeVar("T")
MAX_COUNT: Final = 1 << 20  # entries of a counted list: none that is real comes near


class Reader:
    """A cursor over bytes."""

    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes, at: int = 0, end: int | None = None) -> None:
        self.data = data
        self.at = at
        self.end = len(data) if end is None else end

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        start = self.at
        if size > self.end - start:
            raise refusal(
                "invalid_command", f"{size} bytes are announced at byte {start}, {self.end - start} are there"
            )
        self.at = start + size
        return self.data[start : self.at]

    def rest(self) -> bytes:
        return self.take(self.end - self.at)

    @property
    def left(self) -> int:
        return self.end - self.at

    def finish(self) -> None:
        """Everything must have been read."""
        if self.at != self.end:
            raise refusal("invalid_command", f"{self.end - self.at} bytes too many")


class Field(Protocol[T]):
    """The binary form of one value."""

    def read(self, reader: Reader) -> T: ...
    def write(self, value: T) -> bytes: ...


class Number:
    """A struct format of one item."""

    def __init__(self, layout: str) -> None:
        self._struct = struct.Struct("<" + layout)

    def read(self, reader: Reader) -> Any:
        return self._struct.unpack(reader.take(self._struct.size))[0]

    def write(self, value: Any) -> bytes:
        try:
            return self._struct.pack(value)
        except struct.error as error:
            raise refusal("invalid_number_encoding", f"{value!r} does not fit: {error}", value) from None


U8, U16, U32, U64, F32 = Number("B"), Number("H"), Number("I"), Number("Q"), Number("f")


class BoolField:
    def read(self, reader: Reader) -> bool:
        return reader.take(1) != b"\0"

    def write(self, value: bool) -> bytes:
        return b"\1" if value else b"\0"


class Sized:
    """Bytes, or text, behind their length."""

    def __init__(self, length: Number, text: bool = True, lowest: int = 0) -> None:
        self._length = length
        self._text = text
        self._lowest = lowest

    def read(self, reader: Reader) -> Any:
        raw = reader.take(self._length.read(reader))
        if len(raw) < self._lowest:
            raise refusal("invalid_command", "a name is empty")
        return decode_text(raw) if self._text else raw

    def write(self, value: Any) -> bytes:
        raw: bytes = value.encode() if self._text else value
        return self._length.write(len(raw)) + raw


class Rest:
    """The remaining bytes, as text or bytes."""

    def __init__(self, text: bool = False) -> None:
        self._text = text

    def read(self, reader: Reader) -> Any:
        raw = reader.rest()
        return decode_text(raw) if self._text else raw

    def write(self, value: Any) -> bytes:
        return value.encode() if self._text else bytes(value)


class Optional:
    """One byte that says whether the value follows; None when not. With `padded` a zero value follows all the same."""

    def __init__(self, inner: Field[Any], padded: bool = False) -> None:
        self._inner = inner
        self._padded = padded

    def read(self, reader: Reader) -> Any:
        there = reader.take(1) != b"\0"
        if there or self._padded:
            value = self._inner.read(reader)
            return value if there else None
        return None

    def write(self, value: Any) -> bytes:
        if value is None:
            return b"\0" + (self._inner.write(0) if self._padded else b"")
        return b"\1" + self._inner.write(value)


class Inside:
    """A value in a block of stated length, which it must fill."""

    def __init__(self, inner: Field[Any]) -> None:
        self._inner = inner

    def read(self, reader: Reader) -> Any:
        block = Reader(reader.take(U32.read(reader)))
        value = self._inner.read(block)
        block.finish()
        return value

    def write(self, value: Any) -> bytes:
        raw = self._inner.write(value)
        return U32.write(len(raw)) + raw


class Many:
    """A list: behind a count, or to the end of the bytes (None)."""

    def __init__(self, inner: Field[Any], count: Number | None = U32) -> None:
        self._inner = inner
        self._count = count

    def read(self, reader: Reader) -> list[Any]:
        if self._count is not None:
            count = self._count.read(reader)
            if count > min(MAX_COUNT, reader.left):
                raise refusal("invalid_command", f"{count} entries cannot follow in {reader.left} bytes")
            return [self._inner.read(reader) for _ in range(count)]
        found = []
        while reader.left:
            found.append(self._inner.read(reader))
        return found

    def write(self, value: Any) -> bytes:
        head = self._count.write(len(value)) if self._count is not None else b""
        return head + b"".join([self._inner.write(item) for item in value])


class Fixed:
    """A fixed number of bytes."""

    def __init__(self, size: int) -> None:
        self._size = size

    def read(self, reader: Reader) -> bytes:
        return reader.take(self._size)

    def write(self, value: bytes) -> bytes:
        if len(value) != self._size:
            raise refusal("invalid_format", f"{len(value)} bytes where {self._size} belong")
        return value


class Padding:
    """Bytes without a meaning, written as given."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def read(self, reader: Reader) -> None:
        reader.take(len(self._raw))

    def write(self, value: Any) -> bytes:
        return self._raw


class Record(Generic[T]):
    """Fields in order, read into `make(**values)` and written from attributes. A name that begins with `_` is padding."""

    def __init__(self, make: Callable[..., T], **fields: Any) -> None:
        self.make = make
        self.fields = tuple(fields.items())

    def read(self, reader: Reader) -> T:
        values = {name: field.read(reader) for name, field in self.fields}
        return self.make(**{name: value for name, value in values.items() if name[0] != "_"})

    def write(self, value: T) -> bytes:
        return b"".join([field.write(getattr(value, name, None)) for name, field in self.fields])

    def decode(self, data: bytes) -> T:
        """Decode `data`, which must be used completely."""
        reader = Reader(data)
        value = self.read(reader)
        reader.finish()
        return value


BOOL = BoolField()
NAME8 = Sized(U8, lowest=1)
TEXT8 = Sized(U8)
TEXT32 = Sized(U32)
BYTES32 = Sized(U32, text=False)
NAME_REST = Rest(text=True)
REST = Rest()


def decode_text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise IggyError("invalid_utf8", 81, "a name is not UTF-8", value=raw[:80]) from None
