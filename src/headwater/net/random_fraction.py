"""A random number in 0..1, for waits that should differ from broker to broker."""

import os


def random_fraction() -> float:
    """The `random` module would be faster, but takes a quarter of a mebibyte."""
    return int.from_bytes(os.urandom(4)) / (1 << 32)
