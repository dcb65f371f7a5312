"""Priority groups (ADR-42), held against the real nats-server: configurations, refusals, who is served, advisories."""

from collections.abc import Iterator

import pytest
from support.jetstream_twins import ADVISORY, Publish, Servers, Twins

pytestmark = pytest.mark.interop

SECOND = 1_000_000_000
LONG = 60 * SECOND


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with Servers.started(tmp_path_factory.mktemp("priorities")) as running:
        yield running


@pytest.fixture
def twins(servers: Servers) -> Iterator[Twins]:
    with servers.twins() as made:
        made.stream("S")
        made.publish(*(Publish("s.a", {"X": "y"} if n == 2 else {}, b"m%d" % n) for n in range(1, 21)))
        yield made


def consumer(twins: Twins, name: str, **config: object) -> None:
    body = {"stream_name": "S", "config": {"durable_name": name, "ack_policy": "explicit", **config}}
    twins.api(f"CONSUMER.CREATE.S.{name}", body)


def test_configurations_are_taken_and_refused_alike(twins: Twins) -> None:
    configs: list[dict[str, object]] = [
        {"priority_policy": "overflow"},
        {"priority_groups": ["A"]},
        {"priority_groups": ["A"], "priority_policy": "none"},
        {"priority_groups": ["A", "B"], "priority_policy": "overflow"},
        {"priority_groups": [""], "priority_policy": "overflow"},
        {"priority_groups": ["a" * 17], "priority_policy": "overflow"},
        {"priority_groups": ["a" * 16], "priority_policy": "overflow"},
        {"priority_groups": ["a b"], "priority_policy": "overflow"},
        {"priority_groups": ["a)"], "priority_policy": "overflow"},
        {"priority_groups": ["a+"], "priority_policy": "overflow"},
        {"priority_groups": ["A", "A"], "priority_policy": "pinned_client"},
        {"priority_groups": ["a-/_=B9"], "priority_policy": "prioritized"},
        {"priority_groups": ["A"], "priority_policy": "zzz"},
        {"priority_policy": "zzz"},
        {"priority_groups": ["A"], "priority_policy": "overflow", "deliver_subject": "d"},
        {"priority_groups": [""], "priority_policy": "overflow", "deliver_subject": "d"},
        {"priority_groups": ["A"], "priority_policy": "overflow", "priority_timeout": SECOND},
        {"priority_timeout": SECOND},
        {"priority_groups": ["A"], "priority_policy": "pinned_client", "priority_timeout": -1},
        {"priority_groups": ["A"], "priority_policy": "pinned_client", "ack_policy": "none"},
        {"priority_groups": ["A"], "priority_policy": "pinned_client", "ack_policy": "all"},
    ]
    for number, config in enumerate(configs):
        consumer(twins, f"c{number}", **config)
        twins.api(f"CONSUMER.INFO.S.c{number}")


def test_wrong_requests_are_refused_alike(twins: Twins) -> None:
    consumer(twins, "plain")
    for policy in ("overflow", "pinned_client", "prioritized"):
        consumer(twins, policy, priority_groups=["A"], priority_policy=policy)
    wishes: list[dict[str, object]] = [
        {},
        {"group": "B"},
        {"group": "A"},
        {"group": "A", "min_pending": 3},
        {"group": "A", "min_pending": -1},
        {"group": "A", "min_ack_pending": 1},
        {"group": "A", "id": "x"},
        {"group": "A", "priority": 3},
        {"group": "A", "priority": 10},
        {"group": "A", "priority": -1},
        {"group": "A", "min_pending": 3, "id": "x", "priority": 10},
        {"min_pending": 3, "priority": 10},
    ]
    for name in ("plain", "overflow", "pinned_client", "prioritized"):
        for number, wish in enumerate(wishes):
            twins.pull(f"S.{name}", f"{name}{number}", batch=1, no_wait=True, **wish)
            twins.pulled(f"{name}{number}")


def test_an_overflow_request_waits_for_so_much(twins: Twins) -> None:
    consumer(twins, "ov", priority_groups=["A"], priority_policy="overflow")
    wishes: list[dict[str, object]] = [
        {"min_pending": 1000, "no_wait": True},
        {"min_pending": 1000, "expires": SECOND // 2},
        {"min_pending": 10, "expires": LONG},
        {"min_ack_pending": 100, "expires": SECOND // 2},
        {"min_ack_pending": 1, "expires": LONG},
        {"min_ack_pending": 99, "min_pending": 5, "expires": LONG},
        {"expires": LONG},
    ]
    for number, wish in enumerate(wishes):
        twins.pull("S.ov", f"o{number}", batch=1, group="A", **wish)
        twins.pulled(f"o{number}")
    twins.pull("S.ov", "waits", batch=2, group="A", min_ack_pending=6, expires=LONG)
    twins.pull("S.ov", "takes", batch=2, group="A", expires=LONG)
    for inbox in ("takes", "takes", "waits", "waits"):
        twins.pulled(inbox)
    twins.api("CONSUMER.INFO.S.ov")
    twins.api("CONSUMER.UNPIN.S.ov", {"group": "A"})


def test_one_client_is_pinned_until_it_is_unpinned_or_silent(twins: Twins) -> None:
    twins.listen(ADVISORY + "CONSUMER.PINNED.>")
    twins.listen(ADVISORY + "CONSUMER.UNPINNED.>")
    consumer(twins, "pin", priority_groups=["A"], priority_policy="pinned_client", priority_timeout=2 * SECOND)
    twins.api("CONSUMER.INFO.S.pin")
    pinned, unpinned = ADVISORY + "CONSUMER.PINNED.S.pin", ADVISORY + "CONSUMER.UNPINNED.S.pin"
    twins.pull("S.pin", "first", batch=2, expires=LONG, group="A")
    for _ in range(2):
        twins.pulled("first")
    twins.next(pinned)
    twins.api("CONSUMER.INFO.S.pin")
    twins.pull("S.pin", "second", batch=1, expires=LONG, group="A")
    twins.pull("S.pin", "wrong", batch=1, expires=LONG, group="A", id="wrong")
    twins.pulled("wrong")
    twins.pull("S.pin", "hurry", batch=1, no_wait=True, group="A")
    twins.pulled("hurry")
    twins.api("CONSUMER.UNPIN.S.pin", {"group": "A"})
    twins.pulled("second")
    twins.next(unpinned)
    twins.next(pinned)
    twins.pull("S.pin", "third", batch=1, expires=LONG, group="A")
    twins.pulled("third")  # when the time of the second is over
    twins.next(unpinned)
    twins.next(pinned)
    for body in ({"group": "B"}, {}, b"", {"group": "a b"}, {"group": "A"}):
        twins.api("CONSUMER.UNPIN.S.pin", body)
    twins.api("CONSUMER.UNPIN.S.nobody", {"group": "A"})
    twins.api("CONSUMER.UNPIN.NONE.pin", {"group": "A"})


def test_the_lowest_number_is_served_first_and_to_its_end(twins: Twins) -> None:
    consumer(twins, "pri", priority_groups=["A"], priority_policy="prioritized", deliver_policy="new")
    for priority, batch in ((5, 2), (1, 2), (0, 1), (1, 1)):
        twins.pull("S.pri", f"p{priority}{batch}", batch=batch, group="A", priority=priority, expires=LONG)
    for twin in twins.both:
        twin.settle()
    twins.publish(*(Publish("s.b", {}, b"p%d" % n) for n in range(6)))
    for inbox in ("p01", "p12", "p12", "p11", "p52", "p52"):
        twins.pulled(inbox)
    twins.api("CONSUMER.INFO.S.pri")


def test_policies_change_by_update_alike(twins: Twins) -> None:
    consumer(twins, "ch", priority_groups=["A"], priority_policy="overflow")
    for config in (
        {"priority_groups": ["B"], "priority_policy": "pinned_client"},
        {},
        {"priority_groups": ["B"], "priority_policy": "prioritized"},
    ):
        consumer(twins, "ch", **config)
        twins.api("CONSUMER.INFO.S.ch")
