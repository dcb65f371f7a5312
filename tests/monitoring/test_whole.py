"""One page of those of all workers."""

from typing import Any

from headwater.monitoring.whole import joined, joined_connz, joined_health, joined_jsz


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
    assert joined("/jsz", [a_jsz("a"), (400, "bad parameter")], {}) == (400, "bad parameter")


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
    assert joined("/healthz", [well, bad], {}) == bad


def a_varz(number: int, *, streams: bool) -> tuple[int, dict[str, Any]]:
    """Each figure is `number`."""
    counted = (
        "connections",
        "total_connections",
        "in_msgs",
        "in_bytes",
        "in_client_msgs",
        "in_client_bytes",
        "out_msgs",
    )
    more = (
        "out_bytes",
        "out_client_msgs",
        "out_client_bytes",
        "slow_consumers",
        "stale_connections",
        "stalled_clients",
    )
    figures = dict.fromkeys((*counted, *more, "subscriptions", "mem", "cpu", "read_pauses"), number)
    by_kind = {name: {"clients": number} for name in ("slow_consumer_stats", "stale_connection_stats", "events")}
    waits = dict.fromkeys(("waiters", "waits", "wait_time", "max_wait_time"), number)
    times = dict.fromkeys(("sync_p50", "sync_p99", "ack_p50", "ack_p99"), number)
    writes = dict.fromkeys(("batches", "refused", "waiting_messages", "waiting_bytes"), number)
    stats = {"memory": number, "storage": number, "api": {"total": number, "errors": number}, "writes": times | writes}
    jetstream = {"stats": stats, "config": {"max_memory": 7}} if streams else {}
    identity = {"server_name": f"s-{number}", "max_connections": 9, "routes": 1}
    return 200, {**identity, **figures, **by_kind, "disk_io_wait_stats": waits, "jetstream": jetstream}


def test_what_is_counted_is_the_sum_and_the_slowest_write_that_of_all() -> None:
    status, whole = joined("/varz", [a_varz(1, streams=True), a_varz(4, streams=True)], {})
    assert (status, whole["server_name"], whole["max_connections"], whole["routes"]) == (200, "s-1", 9, 1)
    assert {
        whole[name] for name in ("connections", "in_msgs", "out_bytes", "slow_consumers", "subscriptions", "cpu")
    } == {5}
    assert whole["slow_consumer_stats"] == whole["stale_connection_stats"] == whole["events"] == {"clients": 5}
    assert whole["disk_io_wait_stats"] == {"waiters": 5, "waits": 5, "wait_time": 5, "max_wait_time": 4}
    stats = whole["jetstream"]["stats"]
    assert (stats["storage"], stats["api"]["total"], stats["writes"]["batches"], stats["writes"]["ack_p99"]) == (
        5,
        5,
        5,
        4,
    )
    assert whole["jetstream"]["config"] == {"max_memory": 7}
    _, in_the_first = joined("/varz", [a_varz(1, streams=True), a_varz(4, streams=False)], {})
    assert (in_the_first["connections"], in_the_first["jetstream"]["stats"]["storage"]) == (5, 1)


def test_subscriptions_of_all_workers_are_listed_with_the_number_of_theirs() -> None:
    def a_subsz(*subjects: str) -> tuple[int, dict[str, Any]]:
        listed = [{"subject": subject, "cid": 1} for subject in subjects]
        return 200, {"num_subscriptions": 9, "total": len(subjects), "subscriptions_list": listed}

    _, whole = joined("/subsz", [a_subsz("a", "b"), a_subsz("c")], {"subs": "1", "offset": "1"})
    assert [(one["subject"], one["worker"]) for one in whole["subscriptions_list"]] == [("b", 1), ("c", 2)]
    assert (whole["num_subscriptions"], whole["total"], whole["offset"], whole["limit"]) == (18, 3, 1, 1024)
    count = (200, {"num_subscriptions": 2, "total": 0})
    assert joined("/subscriptionsz", [count, count], {})[1] == {
        "num_subscriptions": 4, "total": 0, "offset": 0, "limit": 1024,
    }  # fmt: skip


def test_an_account_has_the_clients_of_all_workers() -> None:
    def an_accstatz(*names: str) -> tuple[int, dict[str, Any]]:
        counts = dict.fromkeys(("conns", "leafnodes", "total_conns", "num_subscriptions", "slow_consumers"), 1)
        each = [
            {"acc": name, **counts, "sent": {"msgs": 2, "bytes": 3}, "received": {"msgs": 4, "bytes": 5}}
            for name in names
        ]
        return 200, {"account_statz": each}

    _, whole = joined("/accstatz", [an_accstatz("a"), an_accstatz("a", "b")], {})
    of_a, of_b = whole["account_statz"]
    assert (of_a["acc"], of_a["conns"], of_a["sent"]["msgs"], of_a["received"]["bytes"]) == ("a", 2, 4, 10)
    assert (of_b["acc"], of_b["conns"]) == ("b", 1)
    detail = {"account_name": "a", "client_connections": 1, "leafnode_connections": 0, "subscriptions": 3}
    _, one = joined("/accountz", [(200, {"account_detail": dict(detail)}), (200, {"account_detail": detail})], {})
    assert one["account_detail"] == {**detail, "client_connections": 2, "subscriptions": 6}
    names = (200, {"accounts": ["a", "b"]})
    assert joined("/accountz", [names, names], {}) == names


def test_events_of_all_workers_are_listed_newest_first() -> None:
    def an_eventz(*seconds: int) -> tuple[int, dict[str, Any]]:
        events = [{"kind": "slow_consumer", "time": f"2026-01-01T00:00:{second:02}Z"} for second in seconds]
        return 200, {"counts": {"slow_consumer": len(seconds)}, "total": len(seconds), "events": events}

    _, whole = joined("/eventz", [an_eventz(3, 1), an_eventz(4, 2)], {"limit": "3"})
    assert [(one["time"][-3:-1], one["worker"]) for one in whole["events"]] == [("04", 2), ("03", 1), ("02", 2)]
    assert (whole["counts"], whole["total"], whole["limit"]) == ({"slow_consumer": 4}, 4, 3)
