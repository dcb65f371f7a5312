"""What is set becomes options, defaults and all."""

from pathlib import Path

import pytest

from headwater.errors import ConfigError
from headwater.net.listener_options import MonitoringOptions, TlsOptions
from headwater.server.config.draft import UNLIMITED, Draft

TLS = TlsOptions(cert_file=Path("c"), key_file=Path("k"))


def test_nothing_told_is_nats_servers_default() -> None:
    config = Draft().finish()
    assert (config.broker.host, config.broker.port) == ("0.0.0.0", 4222)
    assert config.monitoring is None
    assert config.broker.cluster is None


@pytest.mark.parametrize(("reported", "port"), [(-1, 0), (0, 4222), (5, 5)])
def test_ports(reported: int, port: int) -> None:
    assert Draft(broker={"port": reported}).finish().broker.port == port


@pytest.mark.parametrize("name", ["max_payload", "max_control_line", "max_pending", "ping_max", "ping_interval"])
def test_zero_says_the_default(name: str) -> None:
    assert getattr(Draft(broker={name: 0}).finish().broker, name) == getattr(Draft().finish().broker, name)


@pytest.mark.parametrize("reported", [0, -1])
def test_connections_without_limit(reported: int) -> None:
    assert Draft(broker={"max_connections": reported}).finish().broker.max_connections == UNLIMITED


@pytest.mark.parametrize(("reported", "path"), [("", "/"), ("/", "/"), ("nats", "/nats"), ("/a/b/", "/a/b")])
def test_the_base_path_has_one_slash_in_front(reported: str, path: str) -> None:
    monitoring = Draft(monitoring={"port": 1, "base_path": reported}).finish().monitoring
    assert monitoring is not None
    assert monitoring.base_path == path


def test_https_uses_the_clients_certificate() -> None:
    draft = Draft(broker={"tls": TLS, "host": "h"}, monitoring={"tls_port": -1})
    assert draft.finish().monitoring == MonitoringOptions(host="h", port=0, tls=True)
    with pytest.raises(ConfigError, match="TLS is needed for HTTPS monitoring"):
        Draft(monitoring={"tls_port": -1}).finish()


def test_secrets_are_in_no_repr() -> None:
    draft = Draft()
    draft.cluster = {"port": 5, "username": "u", "password": "hunter2", "routes": ("nats://u:hunter2@h:1",)}
    assert "hunter2" not in repr(draft.finish())


def test_the_names_of_metrics_begin_as_configured_and_as_prometheus_allows() -> None:
    draft = Draft()
    draft.monitoring = {"port": 8222, "metrics_prefix": "nats"}
    monitoring = draft.finish().monitoring
    assert monitoring is not None
    assert monitoring.metrics_prefix == "nats"
    draft.monitoring["metrics_prefix"] = "1-x"
    with pytest.raises(ConfigError, match="no beginning for a metric's name"):
        draft.finish()
