"""Other processes that keep the processors busy while a benchmark runs, as on a machine that is shared.

They only count, share no memory, files or sockets with the servers, and run at the same priority. What they take
shows how often a server must wait for a turn of the processor, which a quiet machine hides.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST = 600  # seconds; a neighbour ends then, also when the benchmark was killed and cannot end it
_COUNT = f"import time\nend = time.monotonic() + {LONGEST}\nwhile time.monotonic() < end: pass"


@contextmanager
def busy_neighbours(count: int) -> Iterator[None]:
    """`count` of them until the context is left."""
    neighbours = [subprocess.Popen([sys.executable, "-c", _COUNT]) for _ in range(count)]
    try:
        yield
    finally:
        for neighbour in neighbours:
            neighbour.terminate()
        for neighbour in neighbours:
            neighbour.wait()
