"""Pseudo-random numbers for the choice among members of a queue group: a few instructions, no library call.

Marsaglia's xorshift of 32 bits. Good enough to spread load; never use it for anything that must be unpredictable.
"""

import cython


class Xorshift:
    """`seed`: any integer; the same one gives the same numbers."""

    def __init__(self, seed: int) -> None:
        self._state = (seed & 0xFFFFFFFF) | 1  # 0 would stay 0

    def below(self, limit: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """A number from 0 to `limit` - 1; `limit` is at least 1."""
        x: cython.uint = self._state
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0xFFFFFFFF
        self._state = x
        return x % limit
