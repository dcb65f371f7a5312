"""Invalid options are refused before anything starts."""

import pytest

from headwater.errors import ConfigError
from headwater.options.broker import BrokerOptions


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_payload": 0},
        {"max_control_line": 0},
        {"port": -1},
        {"port": 65_536},
        {"sync": "sometimes"},
        {"max_payload": 1 << 27},
    ],
)
def test_a_value_that_cannot_work_is_named_with_its_limit(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerOptions(**wrong)  # type: ignore[arg-type]
    assert caught.value.value == next(iter(wrong.values()))
    assert caught.value.limit is not None


def test_the_defaults_are_nats_servers() -> None:
    options = BrokerOptions()
    assert (options.max_payload, options.max_control_line, options.max_pending) == (1 << 20, 4096, 64 << 20)
    assert (options.ping_interval, options.ping_max, options.write_deadline) == (120.0, 2, 10.0)
