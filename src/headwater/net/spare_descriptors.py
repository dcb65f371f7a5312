"""Descriptors that are kept for imports.

Much is imported by the function that needs it, so that a start does without: what a rare request or an error needs. But a
process that is out of descriptors can read no module, and it is then that such a function runs: a request to the system
account had no answer, a client that left was never forgotten. To import all of it beforehand takes 7 MB, a third of a
server.

So a few descriptors are held, and given up as soon as Python looks for a module: it asks the finders in `sys.meta_path`,
and this is the first of them; a module that is known and not yet executed says so itself (net/deferred_modules.py). It finds
nothing itself. Once the loop goes on, they are taken again.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress

from headwater.net.deferred_modules import before_reading

SPARE = 4  # an import needs one for a folder and one for a file
LATER = 1.0  # seconds until they are taken again, where there were none


class SpareDescriptors:
    """Used as a context manager. `call_soon` and `call_later` are the event loop's; `call_soon` from any thread."""

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], object],
        call_later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self._call_soon = call_soon
        self._call_later = call_later
        self._held: list[int] = []
        self._is_used = False

    def __enter__(self) -> "SpareDescriptors":
        self._is_used = True
        sys.meta_path.insert(0, self)
        before_reading.append(self.make_room)
        self.hold()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_used = False
        before_reading.remove(self.make_room)
        with suppress(ValueError):
            sys.meta_path.remove(self)
        self._give_up()

    @property
    def held(self) -> int:
        """How many there are now."""
        return len(self._held)

    def hold(self) -> None:
        """Take what is missing."""
        while self._is_used and len(self._held) < SPARE:
            try:
                self._held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            except OSError:
                self._call_later(LATER, self.hold)
                return

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """For Python's import: there is room to read this module now."""
        self.make_room()

    def make_room(self) -> None:
        """Give them up until the loop goes on."""
        if self._held:
            self._give_up()
            with suppress(RuntimeError):  # the loop is closed
                self._call_soon(self.hold)

    def _give_up(self) -> None:
        while self._held:
            os.close(self._held.pop())
