"""Memory shared by the workers: numbers of each of them for each account.

    a worker's row   `head` numbers for the worker as a whole, then SLOTS of 1 + `width`: the account, its numbers

Only the worker itself writes its row, and all read it. An account is known by 63 bits of a hash of its name. A number is
eight bytes, written at once.
"""

import hashlib
import mmap

SLOTS = 16_384  # for each worker, of which only what is used takes memory


def key_of(name: str) -> int:
    """What stands for an account in the memory."""
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()[:8], "big") >> 1 or 1


class SharedSlots:
    """Rows for `count` workers, which are numbered from 1."""

    def __init__(self, count: int, head: int, width: int, slots: int = SLOTS) -> None:
        self.count = count
        self._head = head
        self._slot = 1 + width
        self._slots = slots
        self._row = head + slots * self._slot
        self._memory = mmap.mmap(-1, count * self._row * 8)
        self.numbers = memoryview(self._memory).cast("q")

    def row(self, number: int) -> int:
        """Where the row of a worker begins."""
        return (number - 1) * self._row

    def slot(self, number: int, key: int, *, make: bool = False) -> int:
        """Where the slot of an account begins in a worker's row; -1 when it has none. Raises OverflowError where one is to
        be made and there is no more."""
        row = self.row(number) + self._head
        for probe in range(self._slots):
            at = row + (key + probe) % self._slots * self._slot
            if self.numbers[at] == key:
                return at
            if not self.numbers[at]:
                if make:
                    self.numbers[at] = key
                return at if make else -1
        if make:
            raise OverflowError(f"there are more than {self._slots}")
        return -1

    def elsewhere(self, number: int, key: int, place: int) -> int:
        """The sum of one number of an account, from 1, at all workers but this one."""
        found = 0
        for other in range(1, self.count + 1):
            at = self.slot(other, key) if other != number else -1
            if at >= 0:
                found += self.numbers[at + place]
        return found

    def clear(self, number: int) -> None:
        """All numbers of a worker are 0."""
        size = self._row * 8
        self._memory[(number - 1) * size : number * size] = bytes(size)

    def close(self) -> None:
        """Release the memory."""
        self.numbers.release()
        self._memory.close()
