"""One page of those of all workers."""

from typing import Any

from headwater.monitoring.whole import WHOLE, joined_connz, joined_health, joined_jsz


def a_jsz(*streams: str, **more: Any) -> tuple[int, dict[str, Any]]:
    details = [{"name": "$G", "memory": 0, "storage": 5, "api": {"level": 4, "total": 1, "errors": 1},
                "stream_detail": [{"name": name} for name in streams]}]  # fmt: skip
    whole = {
        "memory": 1,
        "storage": 5,
        "streams": len(streams),
        "api": {"level": 4, "total": 2, "errors": 1},
        "total": 1,
    }
    return 200, {**whole, "account_details": details, **more}


def a_connz(*cids: int, **more: Any) -> tuple[int, dict[str, Any]]:
    connections = [{"cid": cid, "in_msgs": 10 * cid} for cid in cids]
    return 200, {"server_id": "one", "total": 7, "connections": connections, **more}


def test_streams_and_figures_of_all_workers_are_one_page() -> None:
    loss = [{"stream": "b"}]
    status, whole = joined_jsz([a_jsz("a"), a_jsz("b", "c", findings=loss)], {})
    assert (status, whole["streams"], whole["storage"], whole["memory"]) == (200, 3, 10, 2)
    assert whole["api"] == {"level": 4, "total": 4, "errors": 2}
    assert (whole["total"], whole["findings"]) == (1, loss)  # the accounts are the same at all workers
    (account,) = whole["account_details"]
    assert [stream["name"] for stream in account["stream_detail"]] == ["a", "b", "c"]
    assert (account["storage"], account["api"]["total"]) == (10, 2)
    assert joined_jsz([a_jsz("a"), (400, "bad parameter")], {}) == (400, "bad parameter")


def test_clients_of_all_workers_are_in_one_order_and_pages_are_parts_of_it() -> None:
    pages = [a_connz(1, 4), a_connz(2, 3)]
    status, whole = joined_connz(pages, {"offset": "1", "limit": "2"})
    assert status == 200
    assert [(one["cid"], one["worker"]) for one in whole["connections"]] == [(2, 2), (3, 2)]
    assert {name: whole[name] for name in ("num_connections", "total", "offset", "limit", "server_id")} == {
        "num_connections": 2, "total": 14, "offset": 1, "limit": 2, "server_id": "one",
    }  # fmt: skip
    _, busiest = joined_connz(pages, {"sort": "msgs_from", "limit": "1"})
    assert [one["cid"] for one in busiest["connections"]] == [4]
    _, alike = joined_connz([a_connz(1), a_connz(1)], {"cid": "1"})  # a number is one of its worker
    assert [one["worker"] for one in alike["connections"]] == [1, 2]


def test_all_are_well_or_the_first_that_is_not_says_why() -> None:
    well, lossy = (200, {"status": "ok"}), (200, {"status": "ok", "warnings": ["a loss"]})
    bad, unknown = (503, {"status": "unavailable", "error": "disk"}), (404, {"status": "unavailable", "error": "none"})
    assert joined_health([well, well], {}) == (200, {"status": "ok"})
    assert joined_health([well, lossy], {}) == lossy
    assert joined_health([well, bad], {}) == bad
    stream = {"account": "$G", "stream": "s"}
    assert joined_health([unknown, well], stream) == well
    assert joined_health([unknown, bad], stream) == bad
    assert joined_health([unknown, unknown], stream) == unknown
    assert set(WHOLE) == {"/jsz", "/connz", "/healthz"}
