# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The duplicate window of `Nats-Msg-Id`: recently stored message ids with their offsets.

An id is remembered for `window_ns` from the time it was stored, in the order of storing, and forgotten in that order.
Pure: each call passes the time, from a monotonic clock (a window is a duration, so a step of the time of day must not
change how long an id is remembered). If that clock steps back all the same, the window uses the latest time it has seen
until the clock has caught up, so no id is forgotten early. `dump` and `load` take the difference to the time of day,
because a restart keeps times of day.

Size: only the ids stored within the window, about 180 bytes an id (measured with 1 M ids of 36 bytes). Ids longer than
64 bytes are kept as a 16-byte BLAKE2b digest: among n ids, the probability that two have the same digest is n²/2¹²⁹.
The ids are the publishers' own; an id of exactly that many bytes cannot be mistaken for a digest, because digests are
stored with a prefix that makes them 17 bytes and short ids that are 17 bytes long are digested too.

The window is not durable: after a restart it is rebuilt from the newest records of the log (`remember`), or from the
documents of the stream (`dump` and `load`).
"""

from collections.abc import Iterable
from itertools import islice

import cython

# Bytes; holds a UUID, a ULID, a hash in hex: to digest those would cost more time than it saves memory.
LONGEST_PLAIN = 64
NEVER = -(1 << 61)  # earlier than any time a clock returns
_FORGOTTEN: cython.Py_ssize_t = 1024  # entries; as many may stay at the beginning of the list
_DIGEST = 16
_PREFIX = b"#"
_LONGEST_PLAIN: cython.Py_ssize_t = LONGEST_PLAIN
_DIGEST_KEY: cython.Py_ssize_t = _DIGEST + len(_PREFIX)


class Remembered:
    """An id (or its digest), the offset of its record, and when it was stored."""

    key: bytes
    offset: int
    time: int

    def __init__(self, key: bytes, offset: cython.longlong, time: cython.longlong) -> None:
        self.key = key
        self.offset = offset
        self.time = time


class DuplicateWindow:
    """See the head of this module. Times in ns; `len` is how many ids are remembered."""

    def __init__(self, window_ns: cython.longlong) -> None:
        """`window_ns` 0 remembers nothing."""
        self._window = window_ns
        self._now = NEVER
        self._known: dict[bytes, Remembered] = {}
        self._entries: list[Remembered] = []  # in the order of storing; those before `_first` are forgotten
        self._first = 0

    def __len__(self) -> int:
        return len(self._known)

    @property
    def window_ns(self) -> int:
        return self._window

    def seen(self, message_id: bytes, now_ns: cython.longlong) -> int | None:
        """The offset that was remembered for this id within the window, else None. O(1) but for what expires."""
        self._expire(now_ns)
        found: Remembered | None = self._known.get(_key(message_id))
        return found.offset if found is not None else None

    def claim(self, message_id: bytes, offset: cython.longlong, now_ns: cython.longlong) -> cython.bint:
        """`remember` it unless it was `seen`, with one look-up; whether it was new. A table of 200,000 ids is too large for
        the processor's caches: each look-up waits for memory."""
        self._expire(now_ns)
        if self._window <= 0:
            return True
        key: bytes = _key(message_id)
        entry: Remembered = _entry(key, offset, self._now)
        if self._known.setdefault(key, entry) is not entry:
            return False
        self._entries.append(entry)
        return True

    def remember(self, message_id: bytes, offset: cython.longlong, now_ns: cython.longlong) -> None:
        """The record at `offset` carries this id; it replaces an older one of the same id."""
        self._expire(now_ns)
        if self._window > 0:
            self._add(_key(message_id), offset, self._now)

    def withdraw(self, message_id: bytes) -> None:
        """The record was not stored after all: the same id may be published again. Unknown ids are no error."""
        self._known.pop(_key(message_id), None)

    def resize(self, window_ns: int, now_ns: int) -> None:
        """Change the window; ids that are older than the new one are forgotten."""
        self._window = window_ns
        self._expire(now_ns)

    def dump(self, shift_ns: int = 0, newest: int | None = None) -> list[tuple[bytes, int, int]]:
        """(key, offset, time + `shift_ns`) of what is remembered, in the order of storing; a key is an id or its digest.
        `newest`: at most so many, the last ones."""
        count = len(self._entries) - self._first
        count = count if newest is None else min(newest, count)
        remembered = islice(reversed(self._entries), count)
        found = [(one.key, one.offset, one.time + shift_ns) for one in remembered if self._known.get(one.key) is one]
        found.reverse()
        return found

    def load(self, dumped: Iterable[tuple[bytes, int, int]], now_ns: int, shift_ns: int = 0) -> None:
        """Restore what `dump` returned, with `shift_ns` added to its times. It is newer than what is remembered already."""
        for key, offset, kept in dumped:
            time = min(kept + shift_ns, now_ns)
            self._add(key, offset, time)
            self._now = max(self._now, time)
        self._expire(now_ns)

    def _add(self, key: bytes, offset: cython.longlong, time: cython.longlong) -> cython.int:
        entry: Remembered = _entry(key, offset, time)
        self._known[key] = entry
        self._entries.append(entry)
        return 0

    def _expire(self, now_ns: cython.longlong) -> cython.int:
        if now_ns > self._now:
            self._now = now_ns
        horizon: cython.longlong = self._now - self._window
        entry: Remembered
        while self._first < len(self._entries):
            entry = self._entries[self._first]
            if entry.time > horizon:
                break
            self._first += 1
            if self._known.get(entry.key) is entry:  # else withdrawn, or remembered again later
                del self._known[entry.key]
        if self._first > _FORGOTTEN and 2 * self._first > len(self._entries):
            del self._entries[: self._first]
            self._first = 0
        return 0


def _entry(key: bytes, offset: cython.longlong, time: cython.longlong) -> Remembered:
    """`Remembered(key, offset, time)`, in a third of the time."""
    if not cython.compiled:
        return Remembered(key, offset, time)
    entry: Remembered = Remembered.__new__(Remembered)
    entry.key = key
    entry.offset = offset
    entry.time = time
    return entry


def _key(message_id: bytes) -> bytes:
    if len(message_id) <= _LONGEST_PLAIN and len(message_id) != _DIGEST_KEY:
        return message_id
    from hashlib import blake2b  # here: see model/short_hash.py

    return _PREFIX + blake2b(message_id, digest_size=_DIGEST).digest()
