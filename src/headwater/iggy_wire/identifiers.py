"""The addresses in a command: a stream or topic by number or name, a partition by rule, a consumer, a place to read from.

Identifier      | kind u8: 1 numeric, 2 name | length u8 | u32 or UTF-8 |
Partitioning    | kind u8: 1 balanced, 2 partition id, 3 key | length u8 | nothing, u32, or 1..255 bytes |
Consumer        | kind u8: 1 consumer, 2 group | Identifier |        the seed: u32 in place of the Identifier
PollingStrategy | kind u8: 1 offset, 2 timestamp, 3 first, 4 last, 5 next | value u64 |
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeVar

from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.hashes import xxh32
from headwater.iggy_wire.layout import U8, U32, U64, Reader, decode_text

LONGEST_NAME: Final = 255
E = TypeVar("E", bound=IntEnum)


@dataclass(frozen=True, slots=True)
class Identifier:
    """`value` is a number or a name. Raises IggyError for a name that is empty or too long."""

    value: int | str

    def __post_init__(self) -> None:
        if isinstance(self.value, str) and not 1 <= len(self.value.encode()) <= LONGEST_NAME:
            raise refusal("invalid_identifier", f"a name has 1 to {LONGEST_NAME} bytes", self.value)

    def __str__(self) -> str:
        return str(self.value)

    def encode(self) -> bytes:
        if isinstance(self.value, int):
            return b"\1\4" + U32.write(self.value)
        raw = self.value.encode()
        return bytes((2, len(raw))) + raw

    @classmethod
    def read(cls, reader: Reader) -> "Identifier":
        kind, size = reader.take(2)
        raw = reader.take(size)
        if kind == 1 and size == 4:
            return cls(int.from_bytes(raw, "little"))
        if kind != 2 or not size:
            raise refusal("invalid_identifier", f"an identifier of kind {kind} has no {size} bytes")
        return cls(decode_text(raw))


class PartitioningKind(IntEnum):
    BALANCED = 1
    PARTITION_ID = 2
    MESSAGES_KEY = 3


@dataclass(frozen=True, slots=True)
class Partitioning:
    """How the partition of a send is chosen. `raw`: b"", the id as u32, or the key."""

    kind: PartitioningKind
    raw: bytes = b""

    @classmethod
    def balanced(cls) -> "Partitioning":
        return cls(PartitioningKind.BALANCED)

    @classmethod
    def partition(cls, number: int) -> "Partitioning":
        return cls(PartitioningKind.PARTITION_ID, U32.write(number))

    @classmethod
    def key(cls, key: bytes | str | int) -> "Partitioning":
        """By a key of 1..255 bytes; an int as u64. Raises IggyError for another length."""
        raw = key.encode() if isinstance(key, str) else U64.write(key) if isinstance(key, int) else key
        if not 1 <= len(raw) <= LONGEST_NAME:
            raise refusal("invalid_key_value_length", f"a key has 1 to {LONGEST_NAME} bytes, not {len(raw)}")
        return cls(PartitioningKind.MESSAGES_KEY, raw)

    @property
    def partition_id(self) -> int:
        return int.from_bytes(self.raw, "little")

    def encode(self) -> bytes:
        return bytes((self.kind, len(self.raw))) + self.raw

    @classmethod
    def read(cls, reader: Reader) -> "Partitioning":
        code, size = reader.take(2)
        kind = _of_code(PartitioningKind, code)
        raw = reader.take(size)
        wanted = {PartitioningKind.BALANCED: size == 0, PartitioningKind.PARTITION_ID: size == 4}
        if not wanted.get(kind, size > 0):
            raise refusal("invalid_key_value_length", f"partitioning {kind.name.lower()} with {size} bytes")
        return cls(kind, raw)


def position_of_key(key: bytes, count: int) -> int:
    """The position, of `count` partitions, for a key: upstream's rule since partitions count from 0, XXH32 modulo their
    number. Earlier servers counted from 1 and mapped 0 to the last partition, so with their ids the same key goes to
    the previous partition."""
    return int(xxh32(key) % count)


class ConsumerKind(IntEnum):
    CONSUMER = 1
    GROUP = 2


@dataclass(frozen=True, slots=True)
class Consumer:
    """The reader of a poll: a single consumer, or a group."""

    kind: ConsumerKind
    id: Identifier

    @classmethod
    def single(cls, id: int | str = 1) -> "Consumer":
        return cls(ConsumerKind.CONSUMER, Identifier(id))

    @classmethod
    def group(cls, id: int | str) -> "Consumer":
        return cls(ConsumerKind.GROUP, Identifier(id))


class StrategyKind(IntEnum):
    OFFSET = 1
    TIMESTAMP = 2
    FIRST = 3
    LAST = 4
    NEXT = 5


@dataclass(frozen=True, slots=True)
class PollingStrategy:
    """Where a poll begins. `value`: the offset, or microseconds since 1970; 0 otherwise."""

    kind: StrategyKind
    value: int = 0

    @classmethod
    def offset(cls, offset: int) -> "PollingStrategy":
        return cls(StrategyKind.OFFSET, offset)

    @classmethod
    def timestamp(cls, microseconds: int) -> "PollingStrategy":
        return cls(StrategyKind.TIMESTAMP, microseconds)

    @classmethod
    def first(cls) -> "PollingStrategy":
        return cls(StrategyKind.FIRST)

    @classmethod
    def last(cls) -> "PollingStrategy":
        return cls(StrategyKind.LAST)

    @classmethod
    def next(cls) -> "PollingStrategy":
        return cls(StrategyKind.NEXT)


def _of_code(kinds: type[E], code: int) -> E:
    try:
        return kinds(code)
    except ValueError:
        raise refusal("invalid_command", f"{code} is no {kinds.__name__}", code) from None


class IdentifierField:
    def read(self, reader: Reader) -> Identifier:
        return Identifier.read(reader)

    def write(self, value: Identifier) -> bytes:
        return value.encode()


class PartitioningField:
    def read(self, reader: Reader) -> Partitioning:
        return Partitioning.read(reader)

    def write(self, value: Partitioning) -> bytes:
        return value.encode()


class ConsumerField:
    """`numeric`: the seed's five bytes."""

    def __init__(self, numeric: bool = False) -> None:
        self._numeric = numeric

    def read(self, reader: Reader) -> Consumer:
        kind = _of_code(ConsumerKind, U8.read(reader))
        return Consumer(kind, Identifier(U32.read(reader)) if self._numeric else Identifier.read(reader))

    def write(self, value: Consumer) -> bytes:
        written = U32.write(value.id.value) if self._numeric else value.id.encode()
        return bytes((value.kind,)) + written


class StrategyField:
    def read(self, reader: Reader) -> PollingStrategy:
        return PollingStrategy(_of_code(StrategyKind, U8.read(reader)), U64.read(reader))

    def write(self, value: PollingStrategy) -> bytes:
        return bytes((value.kind,)) + U64.write(value.value)


IDENTIFIER, PARTITIONING, STRATEGY = IdentifierField(), PartitioningField(), StrategyField()
CONSUMER, SEED_CONSUMER = ConsumerField(), ConsumerField(numeric=True)


class NumberAsIdentifier:
    """A bare u32 where later eras have an Identifier."""

    def read(self, reader: Reader) -> Identifier:
        return Identifier(U32.read(reader))

    def write(self, value: Identifier) -> bytes:
        return U32.write(value.value)


NUMBER_AS_IDENTIFIER = NumberAsIdentifier()
