"""Offsets as the checkpoint keeps them, and the state of a stream."""

import json

import pytest

from headwater.errors import ConfigError, RemoteProtocolError
from headwater.spark.offsets import Offset, StreamState, from_json, to_json

CREATED = "2026-11-21T03:49:36.123456789Z"


def info(first: int, last: int, **config: str) -> dict[str, object]:
    return {
        "config": {"name": "ORDERS", **config},
        "created": CREATED,
        "state": {"messages": 0, "first_seq": first, "last_seq": last},
    }


def test_an_offset_survives_the_checkpoint() -> None:
    orders, payments = Offset("ORDERS", 123, CREATED), Offset("PAYMENTS", 1, CREATED)
    document = json.loads(json.dumps(to_json([orders])))
    assert document == {"v": 1, "streams": {"ORDERS": {"next": 123, "created": CREATED}}}
    assert from_json(document, ["ORDERS"]) == [orders]
    both = json.loads(json.dumps(to_json([orders, payments])))
    assert from_json(both, ["PAYMENTS", "ORDERS"]) == [payments, orders]
    with pytest.raises(ConfigError, match="another stream"):
        from_json(both, ["ORDERS"])


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"v": 2, "streams": {}}, "format 2"),
        ({"0": 17}, "format None"),
        ({"v": 1, "streams": {"OTHER": {"next": 1, "created": ""}}}, "another stream"),
        ({"v": 1, "streams": [1]}, "another stream"),
    ],
)
def test_the_checkpoint_of_something_else_is_refused(document: dict[str, object], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        from_json(document, ["ORDERS"])


@pytest.mark.parametrize(
    ("first", "last", "bounds"),
    [(0, 0, (1, 1)), (1, 5, (1, 6)), (4, 5, (4, 6)), (6, 5, (6, 6)), (0, 5, (6, 6))],
)
def test_the_bounds_of_a_stream_are_half_open_also_when_it_is_empty(
    first: int, last: int, bounds: tuple[int, int]
) -> None:
    state = StreamState.from_info(info(first, last))
    assert (state.first, state.end) == bounds
    assert state.retention == "limits"


def test_an_answer_that_lacks_a_field_is_the_servers_fault() -> None:
    with pytest.raises(RemoteProtocolError, match="created"):
        StreamState.from_info({"config": {"name": "S"}, "state": {"first_seq": 1, "last_seq": 1}})
