"""Times as nats-server shows them."""

import pytest

from headwater.monitoring.view import uptime

SECOND = 10**9


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (59, "59s"),
        (60, "1m0s"),
        (3601, "1h0m1s"),
        (90_061, "1d1h1m1s"),
        (366 * 86_400, "1y1d0h0m0s"),
        (-5, "0s"),
    ],
)
def test_uptime(seconds: int, text: str) -> None:
    assert uptime(seconds * SECOND) == text
