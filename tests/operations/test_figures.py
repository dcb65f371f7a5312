"""What two looks at a broker say together."""

from typing import Any

from headwater.operations.figures import Look, figures


def look_at(at: float, *, server: str = "N", messages: int = 0, last: int = 0) -> Look:
    varz: dict[str, Any] = {"server_id": server, "in_msgs": messages, "out_msgs": 0, "in_bytes": 0, "out_bytes": 0}
    state = {"last_seq": last, "messages": last, "bytes": last}
    streams = [{"name": "S", "state": state, "consumer_detail": [{"name": "C", "num_pending": 3}]}]
    return Look(at, varz, {"connections": []}, {"account_details": [{"name": "A", "stream_detail": streams}]})


def test_rates_are_differences_a_second() -> None:
    found = figures(look_at(12.0, messages=300, last=50), look_at(10.0, messages=100, last=40))
    assert found["rates"]["in_msgs"] == 100
    assert found["streams"][0]["writes"] == 5
    assert found["streams"][0]["consumers"] == [
        {"name": "C", "num_pending": 3, "num_ack_pending": None, "num_redelivered": None, "num_waiting": None}
    ]


def test_one_look_or_another_server_has_no_rates() -> None:
    assert figures(look_at(1.0), None)["rates"] == {}
    other = figures(look_at(2.0, server="M", last=9), look_at(1.0))
    assert other["rates"] == {}
    assert other["streams"][0]["writes"] is None
