"""Counters (ADR-49), held against the real nats-server: the same publishes, the same answers, sums and stored messages."""

import itertools
from collections.abc import Iterator

import pytest
from support.jetstream_twins import Publish, Servers, Twins

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with Servers.started(tmp_path_factory.mktemp("counters")) as running:
        yield running


@pytest.fixture
def twins(servers: Servers) -> Iterator[Twins]:
    with servers.twins() as made:
        yield made


def test_every_addition_gets_the_sum_and_every_wrong_one_the_servers_error(twins: Twins) -> None:
    twins.stream("N", allow_msg_counter=True, allow_direct=True)
    big = "9" * 60
    values = ("1", "+2", "-5", "0", "0005", "+-1", "1.5", "abc", "", " 7", "7 ", big, "-" + big, "+", "-", "1_0", "0x1")
    steps = [Publish("n.a", {"Nats-Incr": value}) for value in values]
    steps += [
        Publish("n.a"),
        Publish("n.a", {}, b"5"),
        Publish("n.a", {"Nats-Incr": "1"}, b"x"),
        Publish("n.a", {"Nats-Incr": "abc"}, b"x"),
        Publish("n.a", {"X-Mine": "1"}),
        Publish("n.a", {"Nats-Msg-Id": "alone"}),
        Publish("n.b", {"Nats-Incr": "1", "Nats-Msg-Id": "q"}),
        Publish("n.b", {"Nats-Incr": "1", "Nats-Msg-Id": "q"}),
        Publish("n.b", {"Nats-Incr": "2", "Nats-Counter-Sources": '{"x":{"y":"3"}}'}),
        Publish("n.b", {"Nats-Incr": "3", "X-Mine": "kept"}),
        Publish("n.b", {"Nats-Incr": "4", "Nats-Counter-Sources": "nonsense", "X-Mine": "behind"}),
        Publish("n.b", {"Nats-Incr": "5"}),
    ]
    twins.publish(*steps)
    twins.stored("N")


def test_what_an_addition_must_not_demand_is_refused_in_the_same_order(twins: Twins) -> None:
    twins.stream("ORDER", allow_msg_counter=True)
    twins.stream("PLAIN")
    demands = {
        "Nats-Incr": ("1", "x", ""),
        "Nats-Rollup": ("sub", "bad"),
        "Nats-Expected-Stream": ("ORDER", "OTHER"),
        "Nats-Expected-Last-Sequence": ("0", "77"),
        "Nats-Expected-Last-Subject-Sequence": ("0", "78"),
        "Nats-Expected-Last-Msg-Id": ("m",),
        "Nats-TTL": ("1h", "x"),
        "Nats-Batch-Id": ("b",),
        "Nats-Schedule": ("@hourly",),
    }
    for left, right in itertools.combinations(demands, 2):
        for one, other in itertools.product(demands[left], demands[right]):
            headers = {left: one, right: other}
            for payload in (b"", b"x"):
                twins.publish(*[Publish(f"{name}.a", headers, payload) for name in ("order", "plain")])


def test_a_counter_goes_on_from_what_is_last_after_a_deletion_and_a_purge(twins: Twins) -> None:
    twins.stream("GONE", allow_msg_counter=True, max_msgs_per_subject=3)
    twins.publish(*[Publish(f"gone.{n % 2}", {"Nats-Incr": str(n)}) for n in range(1, 11)])
    twins.api("STREAM.MSG.DELETE.GONE", {"seq": 10})
    twins.publish(*[Publish("gone.0", {"Nats-Incr": "1"})])
    twins.api("STREAM.PURGE.GONE", {"filter": "gone.0"})
    twins.publish(*[Publish("gone.0", {"Nats-Incr": "1"}), Publish("gone.1", {"Nats-Incr": "1"})])
    twins.stored("GONE")


@pytest.mark.parametrize(
    "config",
    [
        {"discard": "new", "max_msgs": 5},
        {"retention": "interest"},
        {"retention": "workqueue"},
        {"allow_msg_ttl": True},
        {"allow_rollup_hdrs": True},
        {"deny_delete": True},
        {"max_msgs_per_subject": 1},
        {"storage": "memory"},
        {"discard": "new", "retention": "interest", "allow_msg_ttl": True},
        {"mirror": {"name": "N"}, "subjects": []},
        {"subject_delete_marker_ttl": 10**9},
    ],
)
def test_a_counter_may_be_configured_as_the_servers(twins: Twins, config: dict[str, object]) -> None:
    twins.stream("CFG", allow_msg_counter=True, **config)


def test_a_stream_does_not_become_a_counter_nor_cease_to_be_one(twins: Twins) -> None:
    twins.stream("IS", allow_msg_counter=True)
    twins.stream("ISNT")
    for name, flag in (("IS", False), ("ISNT", True)):
        stream = {"name": name, "subjects": [f"{name.lower()}.>"], "allow_msg_counter": flag}
        twins.api(f"STREAM.UPDATE.{name}", stream)
