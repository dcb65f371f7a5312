"""Memory shared by the workers: the bytes that each has in streams, so that limits hold for all of them together.

    a worker's row   two numbers for all its streams (memory, file), then SLOTS of three: account, memory, file

Only the worker itself writes its row, and all read it. An account is known by 63 bits of a hash of its name. Above SLOTS
accounts, one with a limit is refused, and those without need no slot. A number is eight bytes, written at once.

The numbers of an account are written with each message that is checked against the limit, and every second. So two
workers may exceed it together by the messages that they check at the same moment.
"""

import hashlib
import mmap

SLOTS = 16_384  # 390 KiB a worker, of which only what is used takes memory
_SLOT = 3
_ROW = 2 + SLOTS * _SLOT
_PLACES = {"memory": 0, "file": 1}


class AccountUsage:
    """One account's slot at one worker."""

    def __init__(self, usage: "Usage", number: int, key: int) -> None:
        self._usage = usage
        self._number = number
        self._key = key
        self._at = usage.slot(number, key, make=True)

    def write(self, storage: str, size: int) -> None:
        """The worker has so many bytes of this storage."""
        self._usage.numbers[self._at + 1 + _PLACES[storage]] = size

    def elsewhere(self, storage: str) -> int:
        """The bytes of all other workers."""
        usage, place, found = self._usage, 1 + _PLACES[storage], 0
        for number in range(1, usage.count + 1):
            at = usage.slot(number, self._key) if number != self._number else -1
            if at >= 0:
                found += usage.numbers[at + place]
        return found


class Usage:
    """Rows for `count` workers, which are numbered from 1."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._memory = mmap.mmap(-1, count * _ROW * 8)
        self.numbers = memoryview(self._memory).cast("q")

    def account(self, number: int, name: str) -> AccountUsage:
        """The slot of an account at worker `number`. Raises OverflowError when SLOTS accounts have one."""
        key = int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()[:8], "big") >> 1 or 1
        return AccountUsage(self, number, key)

    def write(self, number: int, storage: str, size: int) -> None:
        """The worker has so many bytes of this storage, of all accounts."""
        self.numbers[(number - 1) * _ROW + _PLACES[storage]] = size

    def elsewhere(self, number: int, storage: str) -> int:
        """The bytes of all workers but this one, of all accounts."""
        place = _PLACES[storage]
        return sum(self.numbers[at * _ROW + place] for at in range(self.count) if at != number - 1)

    def slot(self, number: int, key: int, *, make: bool = False) -> int:
        """Where the slot of an account begins in a worker's row; -1 when it has none."""
        row = (number - 1) * _ROW + 2
        for probe in range(SLOTS):
            at = row + (key + probe) % SLOTS * _SLOT
            if self.numbers[at] == key:
                return at
            if not self.numbers[at]:
                if make:
                    self.numbers[at] = key
                return at if make else -1
        if make:
            raise OverflowError(f"there are more than {SLOTS}")
        return -1

    def close(self) -> None:
        """Release the memory."""
        self.numbers.release()
        self._memory.close()
