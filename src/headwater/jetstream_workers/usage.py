"""Memory shared by the workers: the bytes that each has in streams, so that limits hold for all of them together.

For all streams of a worker and for those of each account two numbers: memory, file. Above SLOTS accounts, one with a limit
is refused, and those without need no slot.

The numbers of an account are written with each message that is checked against the limit, and every second. So two
workers may exceed it together by the messages that they check at the same moment.
"""

from headwater.jetstream_workers.shared_slots import SLOTS, SharedSlots, key_of

_PLACES = {"memory": 0, "file": 1}


class AccountUsage:
    """One account's slot at one worker."""

    def __init__(self, slots: SharedSlots, number: int, key: int) -> None:
        self._slots = slots
        self._number = number
        self._key = key
        self._at = slots.slot(number, key, make=True)

    def write(self, storage: str, size: int) -> None:
        """The worker has so many bytes of this storage."""
        self._slots.numbers[self._at + 1 + _PLACES[storage]] = size

    def elsewhere(self, storage: str) -> int:
        """The bytes of all other workers."""
        return self._slots.elsewhere(self._number, self._key, 1 + _PLACES[storage])


class Usage:
    """For `count` workers, which are numbered from 1."""

    def __init__(self, count: int, slots: int = SLOTS) -> None:
        self.count = count
        self._slots = SharedSlots(count, len(_PLACES), len(_PLACES), slots)

    def account(self, number: int, name: str) -> AccountUsage:
        """The slot of an account at worker `number`. Raises OverflowError when all slots are taken."""
        return AccountUsage(self._slots, number, key_of(name))

    def write(self, number: int, storage: str, size: int) -> None:
        """The worker has so many bytes of this storage, of all accounts."""
        self._slots.numbers[self._slots.row(number) + _PLACES[storage]] = size

    def elsewhere(self, number: int, storage: str) -> int:
        """The bytes of all workers but this one, of all accounts."""
        place, slots = _PLACES[storage], self._slots
        return sum(slots.numbers[slots.row(at) + place] for at in range(1, self.count + 1) if at != number)

    def close(self) -> None:
        """Release the memory."""
        self._slots.close()
