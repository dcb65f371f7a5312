"""The archive of a stream, as nats-server 2.15 writes it: one header, then entries, each with its name.

    NATSARC1
    uvarint length of the name · zigzag varint time (ns) · uvarint sequence · uvarint size of the header block ·
    uvarint size of the payload · name · header block · payload

    state.json          what the stream holds (JSON); sequence 0
    consumers/<name>    one for each consumer that the state counts: configuration and state (JSON); sequence 0
    <subject>           one for each message: its time, its sequence (ascending), its header block and its payload
    (an entry of zeros) the end

`Reader` takes bytes in pieces and returns complete entries; `Order` checks their order. Errors have the words that
nats-server puts behind "restore failed: ".
"""

from collections.abc import Iterator
from typing import NamedTuple

from headwater.errors import RemoteProtocolError

MAGIC = b"NATSARC1"
STATE = b"state.json"
CONSUMERS = b"consumers/"
LARGEST_PART = 1 << 30  # bytes of a name, header block or payload; more than any server stores
CUT = "EOF"
OLDER = "the archive of an older server, a tar: `headwater stream restore` converts and restores it"


class Entry(NamedTuple):
    """`time_ns` since 1970; `sequence` 0 for what is not a message."""

    name: bytes
    time_ns: int
    sequence: int
    header_block: bytes
    payload: bytes


END = Entry(b"", 0, 0, b"", b"")


def uvarint(number: int) -> bytes:
    """A number that is not negative, seven bits a byte, the low ones first."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def encode(entry: Entry) -> bytes:
    """One entry."""
    zigzag = entry.time_ns << 1 if entry.time_ns >= 0 else (-entry.time_ns << 1) - 1
    numbers = (len(entry.name), zigzag, entry.sequence, len(entry.header_block), len(entry.payload))
    return b"".join([*map(uvarint, numbers), entry.name, entry.header_block, entry.payload])


class Reader:
    """Bytes of an archive in, entries out; the end entry is not given, but remembered in `ended`."""

    def __init__(self) -> None:
        self.ended = False
        self._begun = False
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[Entry]:
        """The complete entries so far. Raises RemoteProtocolError for bytes that are no archive."""
        held = self._held
        held += data
        at = 0
        if not self._begun:
            if not MAGIC.startswith(bytes(held[: len(MAGIC)])):
                raise RemoteProtocolError(
                    OLDER if held.startswith((b"meta.", b"PaxHeaders.")) else "unknown archive format"
                )
            if len(held) < len(MAGIC):
                return
            self._begun, at = True, len(MAGIC)
        try:
            while not self.ended and (found := _parse(held, at)) is not None:
                entry, at = found
                if entry == END:
                    self.ended = True
                else:
                    yield entry
        finally:
            del held[:at]

    def finish(self) -> None:
        """The bytes have ended. Raises RemoteProtocolError before the end entry."""
        if not self.ended:
            raise RemoteProtocolError(CUT)


def _parse(held: bytearray, at: int) -> tuple[Entry, int] | None:
    """The entry at `at` and where it ends; None while it is not whole."""
    numbers = []
    for _ in range(5):
        number = shift = 0
        while True:
            if at >= len(held):
                return None
            byte = held[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift > 63:
                raise RemoteProtocolError("archive entry is malformed")
        numbers.append(number)
    name, zigzag, sequence, header, payload = numbers
    if max(name, header, payload) > LARGEST_PART:
        raise RemoteProtocolError("archive entry is malformed")
    end = at + name + header + payload
    if end > len(held):
        return None
    time_ns = zigzag >> 1 if not zigzag & 1 else -(zigzag >> 1) - 1
    inner = at + name
    parts = bytes(held[at:inner]), bytes(held[inner : inner + header]), bytes(held[inner + header : end])
    return Entry(parts[0], time_ns, sequence, parts[1], parts[2]), end


class Order:
    """Checks the order of entries. `consumers`: how many are still expected."""

    def __init__(self) -> None:
        self.consumers = 0
        self.last = 0
        self._begun = False

    def begin(self, consumers: int) -> None:
        """The state was read: `consumers` consumers follow it."""
        self.consumers, self._begun = consumers, True

    def kind(self, entry: Entry) -> str:
        """`state`, `consumer` or `message`. Raises RemoteProtocolError for an entry out of its place."""
        if not self._begun:
            if entry.name != STATE:
                raise RemoteProtocolError("expected state.json first")
            return "state"
        if self.consumers:
            if not entry.name.startswith(CONSUMERS) or entry.sequence:
                raise RemoteProtocolError(f'expected consumer, found "{entry.name.decode("utf-8", "replace")}"')
            self.consumers -= 1
            return "consumer"
        if entry.sequence <= self.last:
            raise RemoteProtocolError(f"message sequence {entry.sequence} out of order")
        self.last = entry.sequence
        return "message"
