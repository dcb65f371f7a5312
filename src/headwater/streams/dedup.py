# cython: boundscheck=True, wraparound=True
"""The duplicate window of `Nats-Msg-Id`: recently stored message ids with their offsets.

An id is remembered for `window_ns` from the time it was stored, in the order of storing, and forgotten in that order.
Pure: each call passes the time, from a monotonic clock (a window is a duration, so a step of the time of day must not
change how long an id is remembered). If that clock steps back all the same, the window uses the latest time it has seen
until the clock has caught up, so no id is forgotten early. `dump` and `load` take the difference to the time of day,
because a restart keeps times of day.

Size: only the ids stored within the window, about 230 bytes an id (measured with 1 M ids of 36 bytes). Ids longer than
64 bytes are kept as a 16-byte BLAKE2b digest: among n ids, the probability that two have the same digest is n²/2¹²⁹.
The ids are the publishers' own; an id of exactly that many bytes cannot be mistaken for a digest, because digests are
stored with a prefix that makes them 17 bytes and short ids that are 17 bytes long are digested too.

The window is not durable: after a restart it is rebuilt from the newest records of the log (`remember`), or from the
documents of the stream (`dump` and `load`).
"""

from collections import deque
from collections.abc import Iterable
from itertools import islice

import cython

# Bytes; holds a UUID, a ULID, a hash in hex: to digest those would cost more time than it saves memory.
LONGEST_PLAIN = 64
NEVER = -(1 << 61)  # earlier than any time a clock returns
_DIGEST = 16
_PREFIX = b"#"


class DuplicateWindow:
    """See the head of this module. Times in ns; `len` is how many ids are remembered."""

    def __init__(self, window_ns: cython.longlong) -> None:
        """`window_ns` 0 remembers nothing."""
        self._window = window_ns
        self._now = NEVER
        self._offsets: dict[bytes, int] = {}
        self._order: deque[bytes] = deque()
        self._stored: deque[int] = deque()
        self._times: deque[int] = deque()
        self._oldest: cython.longlong = NEVER  # no later than what `_times` begins with: a look at it costs no object

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def window_ns(self) -> int:
        return self._window

    def seen(self, message_id: bytes, now_ns: cython.longlong) -> int | None:
        """The offset that was remembered for this id within the window, else None. O(1) but for what expires."""
        self._expire(now_ns)
        return self._offsets.get(_key(message_id))

    def remember(self, message_id: bytes, offset: cython.longlong, now_ns: cython.longlong) -> None:
        """The record at `offset` carries this id; it replaces an older one of the same id."""
        self._expire(now_ns)
        if self._window <= 0:
            return
        key = _key(message_id)
        self._offsets[key] = offset
        if not self._times:
            self._oldest = self._now
        self._order.append(key)
        self._stored.append(offset)
        self._times.append(self._now)

    def withdraw(self, message_id: bytes) -> None:
        """The record was not stored after all: the same id may be published again. Unknown ids are no error."""
        self._offsets.pop(_key(message_id), None)

    def resize(self, window_ns: int, now_ns: int) -> None:
        """Change the window; ids that are older than the new one are forgotten."""
        self._window = window_ns
        self._expire(now_ns)

    def dump(self, shift_ns: int = 0, newest: int | None = None) -> list[tuple[bytes, int, int]]:
        """(key, offset, time + `shift_ns`) of what is remembered, in the order of storing; a key is an id or its digest.
        `newest`: at most so many, the last ones."""
        columns = (reversed(self._order), reversed(self._stored), reversed(self._times))
        remembered = islice(zip(*columns, strict=True), newest)
        found = [(key, offset, time + shift_ns) for key, offset, time in remembered if self._offsets.get(key) == offset]
        found.reverse()
        return found

    def load(self, dumped: Iterable[tuple[bytes, int, int]], now_ns: int, shift_ns: int = 0) -> None:
        """Restore what `dump` returned, with `shift_ns` added to its times. It is newer than what is remembered already."""
        for key, offset, kept in dumped:
            time = min(kept + shift_ns, now_ns)
            self._offsets[key] = offset
            self._order.append(key)
            self._stored.append(offset)
            self._times.append(time)
            self._now = max(self._now, time)
        self._oldest = NEVER
        self._expire(now_ns)

    def _expire(self, now_ns: cython.longlong) -> cython.int:
        if now_ns > self._now:
            self._now = now_ns
        horizon: cython.longlong = self._now - self._window
        if self._oldest > horizon:
            return 0
        while self._times and self._times[0] <= horizon:
            self._times.popleft()
            key = self._order.popleft()
            offset = self._stored.popleft()
            if self._offsets.get(key) == offset:  # else withdrawn, or remembered again later
                del self._offsets[key]
        self._oldest = self._times[0] if self._times else NEVER
        return 0


def _key(message_id: bytes) -> bytes:
    if len(message_id) <= LONGEST_PLAIN and len(message_id) != _DIGEST + len(_PREFIX):
        return message_id
    from hashlib import blake2b  # here: see model/short_hash.py

    return _PREFIX + blake2b(message_id, digest_size=_DIGEST).digest()
