"""Timeouts: seconds, or a `timedelta`. Times in configurations are in `client.units`."""

from datetime import timedelta
from typing import TypeAlias

Timeout: TypeAlias = float | timedelta


def seconds_of(timeout: Timeout) -> float:
    """The timeout in seconds."""
    return timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
