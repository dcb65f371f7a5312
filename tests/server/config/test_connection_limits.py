"""The block `connection_limits`."""

import pytest

from headwater.errors import ConfigError
from headwater.net.limits import DEFAULTS
from headwater.options.broker import BrokerOptions
from headwater.server.config.schema import load


def options(text: str) -> BrokerOptions:
    return load("server.conf", lambda path: text, {}).finish().broker


def test_what_is_not_said_keeps_its_default() -> None:
    found = options(
        'connection_limits { iggy { per_address: 5, login_time: "3s", login_bytes: 1MB } }'
    ).connection_limits
    assert found["iggy"] == DEFAULTS["iggy"].replace(per_address=5, login_seconds=3.0, login_bytes=1 << 20)
    assert {name: one for name, one in found.items() if name != "iggy"} == {
        name: one for name, one in DEFAULTS.items() if name != "iggy"
    }
    assert options("port: -1").connection_limits == DEFAULTS


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("connection_limits { leaf { per_address: 5 } }", 'unknown field "leaf"'),
        ("connection_limits { clients { connections: 5 } }", 'unknown field "connections"'),
        ("connection_limits { routes { per_address: -1 } }", "per_address"),
        ("connection_limits: 5", "connection_limits"),
    ],
)
def test_what_no_listener_has_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        options(text)
