"""Routes and leaf nodes as gauges, and times as the exporter reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.monitoring.gauges import Gauges
from headwater.monitoring.peer_metrics import leaf_gauges, route_gauges, seconds
from headwater.monitoring.view import uptime

SERVER = {"server_id": "S"}


def values(gauges: Gauges) -> dict[str, tuple[dict[str, str], float]]:
    return {family.name: (family.samples[-1].labels, family.samples[-1].value) for family in gauges.collect()}


def test_a_route_is_known_by_its_number_and_described_once() -> None:
    gauges = Gauges()
    route = {
        "rid": 7, "remote_id": "N", "remote_name": "b", "ip": "127.0.0.1", "rtt": "1.5ms", "uptime": "1m1s",
        "subscriptions": 3, "in_msgs": 1, "out_msgs": 2, "in_bytes": 10, "out_bytes": 20,
    }  # fmt: skip
    route_gauges(gauges, {"server_id": "S", "server_name": "a", "num_routes": 1, "routes": [route]}, "x_routez", SERVER)
    found = values(gauges)
    assert found["x_routez_num_routes"] == (SERVER, 1)
    labels = {"server_id": "S", "rid": "7"}
    about = {"remote_id": "N", "remote_name": "b", "account": "", "ip": "127.0.0.1", "compression": ""}
    assert found["x_routez_route_info"] == ({**labels, **about}, 1)
    assert found["x_routez_route_rtt_seconds"] == (labels, 0.0015)
    assert found["x_routez_route_uptime_seconds"] == (labels, 61)
    assert found["x_routez_route_out_bytes"] == (labels, 20)


def test_a_leaf_node_is_known_by_its_account_and_address() -> None:
    gauges = Gauges()
    leaf = {
        "account": "A", "ip": "127.0.0.1", "port": 5, "name": "edge", "rtt": "250µs", "subscriptions": 3,
        "in_msgs": 1, "out_msgs": 2, "in_bytes": 10, "out_bytes": 20,
    }  # fmt: skip
    leaf_gauges(gauges, {"leafnodes": 1, "leafs": [leaf]}, "x_leafz", SERVER)
    labels, value = values(gauges)["x_leafz_conn_rtt"]
    assert value == pytest.approx(0.00025)
    assert labels == {
        "server_id": "S", "account": "A", "account_id": "A", "ip": "127.0.0.1", "port": "5", "name": "edge",
    }  # fmt: skip
    assert values(gauges)["x_leafz_conn_nodes_total"] == (SERVER, 1)


@given(st.integers(0, 10**10))
def test_a_span_is_read_as_it_is_written(span: int) -> None:
    assert seconds(uptime(span * 10**9)) == span


@pytest.mark.parametrize(
    ("text", "value"), [("", 0.0), ("1.5s", 1.5), ("2m3s", 123.0), ("12µs", 1.2e-5), ("1h0m0s", 3600.0)]
)
def test_spans_of_go(text: str, value: float) -> None:
    assert seconds(text) == pytest.approx(value)
