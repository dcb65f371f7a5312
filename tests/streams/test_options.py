"""Options are checked when they are made."""

import pytest

from headwater.errors import ConfigError
from headwater.streams.options import LogOptions


def test_the_default_is_durable() -> None:
    assert LogOptions().sync == "always"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sync", "sometimes"),
        ("segment_bytes", 1000),
        ("segment_bytes", 1 << 50),
        ("batch_bytes", 0),
        ("batch_bytes", 1 << 30),
        ("sync_interval_ns", -1),
        ("cache_bytes", -1),
    ],
)
def test_a_wrong_option_is_named_with_its_value_and_its_limits(name: str, value: object) -> None:
    with pytest.raises(ConfigError) as caught:
        LogOptions(**{name: value})  # type: ignore[arg-type]
    assert caught.value.value == value
    assert caught.value.limit
    assert str(value) in str(caught.value)
