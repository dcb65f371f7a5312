"""The limits before a login: the table of the documentation agrees with the code."""

import pytest

from headwater.errors import ConfigError
from headwater.net.limits import CLIENTS, CONFIGURABLE, DEFAULTS, ELSEWHERE, Limits
from headwater.options.broker import BrokerOptions


def test_every_listener_has_limits_and_each_is_set_in_one_place() -> None:
    assert set(CONFIGURABLE) == set(DEFAULTS)
    for listener, names in CONFIGURABLE.items():
        assert set(names) <= set(dict(Limits().items()))
        assert not {name for where, name in ELSEWHERE if where == listener} & set(names)


def test_limits_that_other_options_set_have_their_defaults_in_the_table() -> None:
    options, clients = BrokerOptions(), DEFAULTS[CLIENTS]
    assert clients.login_seconds == options.seconds_to_authenticate
    assert clients.login_bytes == options.max_control_line
    assert clients.connections == options.max_connections
    assert clients.waiting_bytes == options.max_pending


def test_a_limit_below_zero_is_refused() -> None:
    with pytest.raises(ConfigError, match="per_address"):
        Limits(per_address=-1)
