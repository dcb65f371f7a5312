"""`jetstream { limits }` of a configuration, held against the real nats-server: what is refused, what is a default."""

from collections.abc import Iterator

import pytest
from support.jetstream_twins import Publish, Servers, Twins

pytestmark = pytest.mark.interop

SECOND = 1_000_000_000
LIMITS = """
limits { max_ack_pending: 100, max_request_batch: 10, duplicate_window: "5s", max_ha_assets: 3
         batch { max_inflight_per_stream: 2, max_inflight_total: 3, max_msgs: 5, timeout: "60s" } }
"""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with Servers.started(tmp_path_factory.mktemp("limits"), jetstream=LIMITS) as running:
        yield running


@pytest.fixture
def twins(servers: Servers) -> Iterator[Twins]:
    with servers.twins() as made:
        made.stream("S")
        yield made


def test_duplicate_windows_are_bounded_and_the_bound_is_the_default(twins: Twins) -> None:
    assert twins.stream("S")["config"]["duplicate_window"] == 5 * SECOND
    steps: list[dict[str, object]] = [
        {"duplicate_window": SECOND},
        {"duplicate_window": 5 * SECOND},
        {"duplicate_window": 6 * SECOND},
        {"max_age": 2 * SECOND},
        {"max_age": 9 * SECOND},
        {"pedantic": True},
        {"pedantic": True, "duplicate_window": SECOND},
    ]
    for more in steps:
        twins.stream("D", **more)
    for window in (0, 2 * SECOND, 9 * SECOND):
        twins.api("STREAM.UPDATE.S", {"name": "S", "subjects": ["s.>"], "duplicate_window": window})


def test_consumers_get_the_limits_as_defaults_and_not_more(twins: Twins) -> None:
    steps: list[dict[str, object]] = [
        {},
        {"max_ack_pending": 50},
        {"max_ack_pending": 200},
        {"max_ack_pending": -1},
        {"ack_policy": "none"},
        {"ack_policy": "all"},
        {"max_batch": 5},
        {"max_batch": 20},
        {"deliver_subject": "x"},
    ]
    for number, more in enumerate(steps):
        name = f"c{number}"
        config = {"durable_name": name, "ack_policy": "explicit", **more}
        for pedantic in (True, False):
            request = {"stream_name": "S", "config": config, "pedantic": pedantic}
            twins.api(f"CONSUMER.DURABLE.CREATE.S.{name}", request)


def batch(name: str, sequence: int, **more: str) -> Publish:
    return Publish("b.1", {"Nats-Batch-Id": name, "Nats-Batch-Sequence": str(sequence), **more})


def test_batches_are_bounded_in_messages_and_number(twins: Twins) -> None:
    twins.stream("B", allow_atomic=True)
    twins.stream("C", allow_atomic=True)
    twins.publish(*(batch("long", number) for number in range(1, 8)))
    twins.publish(*(batch("whole", number) for number in range(1, 5)), batch("whole", 5, **{"Nats-Batch-Commit": "1"}))
    twins.publish(batch("one", 1), batch("two", 1), batch("three", 1))
    other = {"Nats-Batch-Id": "four", "Nats-Batch-Sequence": "1"}
    twins.publish(Publish("c.1", other), Publish("c.1", {**other, "Nats-Batch-Id": "five"}))
