"""Invalid options are refused before anything starts."""

import pytest

from headwater.errors import ConfigError
from headwater.options.access import AccountOptions
from headwater.options.broker import BrokerOptions
from headwater.options.cluster import ClusterOptions


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


@pytest.mark.parametrize("name", ["my team", "my\tteam", " team"])
def test_an_account_that_no_route_can_name_is_refused_in_a_cluster_alone(name: str) -> None:
    accounts = (AccountOptions(name=name),)
    assert BrokerOptions(accounts=accounts).accounts == accounts
    with pytest.raises(ConfigError, match="has blanks") as caught:
        BrokerOptions(accounts=accounts, cluster=ClusterOptions(name="c"))
    assert caught.value.value == name
