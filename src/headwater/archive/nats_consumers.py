"""The state of a consumer as nats-server keeps it in `obs/<name>/o.dat`. Pure.

    22 │ version (1 or 2) │ uvarints: ack floor (consumer, stream), delivered (consumer, stream) │
    how many wait for their ack │ varint base time (s) │ each: stream sequence, [consumer sequence], varint time │
    how many were delivered again │ each: stream sequence, how often

Sequences of pending messages count from the ack floor.
"""

from typing import NamedTuple

from headwater.errors import RemoteProtocolError

_MAGIC = 22
_MOST = 1 << 24  # entries; nats-server's own limit of what waits is far below
_SECOND = 1_000_000_000


class ConsumerState(NamedTuple):
    """`pending`: stream sequence to consumer sequence and time (ns); `redelivered`: to how often."""

    floor: tuple[int, int]  # consumer, stream
    delivered: tuple[int, int]
    pending: dict[int, tuple[int, int]]
    redelivered: dict[int, int]


class _Numbers:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 2

    def count(self) -> int:
        number = shift = 0
        while True:
            if self._at >= len(self._data) or shift > 63:
                raise RemoteProtocolError("the state of a consumer is cut")
            byte = self._data[self._at]
            self._at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    def signed(self) -> int:
        number = self.count()
        return number >> 1 if not number & 1 else -(number >> 1) - 1


def decode_state(data: bytes) -> ConsumerState:
    """Decode a state. Raises RemoteProtocolError for invalid data."""
    if len(data) < 2 or data[0] != _MAGIC or data[1] not in (1, 2):
        raise RemoteProtocolError("the state of a consumer has an unknown version")
    version, numbers = data[1], _Numbers(data)
    floor = (numbers.count(), numbers.count())
    delivered = (numbers.count(), numbers.count())
    if version == 1:  # it had the next delivery, counted from the floor
        delivered = (
            delivered[0] + max(floor[0] - 1, 0),
            delivered[1] + max(floor[1] - 1, 0),
        )
    pending: dict[int, tuple[int, int]] = {}
    redelivered: dict[int, int] = {}
    waiting = _bounded(numbers.count())
    base = numbers.signed() if waiting else 0
    for _ in range(waiting):
        sequence = numbers.count() + floor[1]
        place = numbers.count() + floor[0] if version == 2 else 0
        moment = numbers.signed()
        pending[sequence] = (place, (base - moment if version == 2 else base + moment) * _SECOND)
    for _ in range(_bounded(numbers.count())):
        sequence, times = numbers.count() + floor[1], numbers.count()
        redelivered[sequence] = times
    return ConsumerState(floor, delivered, pending, redelivered)


def _bounded(count: int) -> int:
    if count > _MOST:
        raise RemoteProtocolError("the state of a consumer has an impossible size")
    return count
