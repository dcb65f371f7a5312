"""The speed of this machine while something else runs on it: the CPU time of one fixed loop, taken again and again.

A virtual machine shares its cores with neighbours that nothing inside it shows: load average and CPU use stay the same while
each instruction takes up to 1.8 times as long. A block of figures that says how fast the machine was can be compared with
another; one that does not can only be believed. The probe takes about 7 ms of CPU every five seconds, 0.07 % of two cores.
"""

import statistics
import threading
import time

ADDITIONS = 70_000
"""Additions of one loop, 2 ms: enough that the clock's resolution does not count."""
LOOPS = 3
"""Loops of one sample, of which the fastest counts: a core that slept begins with cold caches, and 1.3 times as slow."""
SECONDS_BETWEEN = 5.0


def sample() -> float:
    """Nanoseconds of CPU time for one addition in a loop of the interpreter."""
    return min(_loop() for _ in range(LOOPS)) / ADDITIONS * 1e9


def _loop() -> float:
    begun = time.thread_time()
    total = 0
    for number in range(ADDITIONS):
        total += number
    return time.thread_time() - begun


class Probe:
    """Samples from `__enter__` to `__exit__` on a thread of its own; the first is taken before anything else runs."""

    def __init__(self) -> None:
        self.samples: list[float] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample_until_over, daemon=True)

    def __enter__(self) -> "Probe":
        self.samples.append(sample())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.samples.append(sample())

    def _sample_until_over(self) -> None:
        while not self._over.wait(SECONDS_BETWEEN):
            self.samples.append(sample())

    @property
    def middle(self) -> float:
        """Nanoseconds of CPU time for one addition: the median of all samples so far."""
        return statistics.median(self.samples)

    def __str__(self) -> str:
        return (
            f"{self.middle:.0f} ns ({min(self.samples):.0f}-{max(self.samples):.0f}) of CPU for an addition in Python"
        )
