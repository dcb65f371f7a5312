"""Advisories, held against the real nats-server: subjects and documents."""

from collections.abc import Iterator

import pytest
from support.jetstream_twins import ADVISORY, Publish, Servers, Twins

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with Servers.started(tmp_path_factory.mktemp("advisories")) as running:
        yield running


@pytest.fixture
def twins(servers: Servers) -> Iterator[Twins]:
    with servers.twins() as made:
        made.stream("S")
        made.listen(ADVISORY + "STREAM.>")
        made.listen(ADVISORY + "CONSUMER.>")
        yield made


def said(twins: Twins, subject: str) -> None:
    """Both have published the same to this subject."""
    twins.next(ADVISORY + subject)


def test_streams_are_made_changed_and_deleted_with_their_consumers(twins: Twins) -> None:
    twins.api("STREAM.CREATE.T", {"name": "T", "subjects": ["t.>"]})
    said(twins, "STREAM.CREATED.T")
    twins.api("STREAM.CREATE.T", {"name": "T", "subjects": ["t.>"]})
    twins.api("STREAM.UPDATE.T", {"name": "T", "subjects": ["t.>"], "max_msgs": 9})
    said(twins, "STREAM.UPDATED.T")
    twins.api("STREAM.UPDATE.T", {"name": "T", "subjects": ["t.>"], "storage": "memory"})
    twins.api("CONSUMER.CREATE.T.c", {"stream_name": "T", "config": {"name": "c", "ack_policy": "explicit"}})
    said(twins, "CONSUMER.CREATED.T.c")
    twins.api("CONSUMER.DURABLE.CREATE.T.d", {"stream_name": "T", "config": {"durable_name": "d"}})
    said(twins, "CONSUMER.CREATED.T.d")
    twins.api("CONSUMER.DURABLE.CREATE.T.d", {"stream_name": "T", "config": {"durable_name": "d", "description": "x"}})
    twins.api("CONSUMER.DELETE.T.c")
    said(twins, "CONSUMER.DELETED.T.c")
    twins.api("STREAM.PURGE.T")
    twins.api("STREAM.DELETE.T")
    said(twins, "CONSUMER.DELETED.T.d")
    said(twins, "STREAM.DELETED.T")
    assert twins.taken(ADVISORY) == []


def test_a_message_is_given_back_and_ended(twins: Twins) -> None:
    config = {"durable_name": "w", "ack_policy": "explicit", "max_deliver": 10}
    twins.api("CONSUMER.DURABLE.CREATE.S.w", {"stream_name": "S", "config": config})
    said(twins, "CONSUMER.CREATED.S.w")
    twins.publish(Publish("s.1", {}, b"1"), Publish("s.2", {}, b"2"))
    steps = [
        (1, 1, 1, b"-NAK", "MSG_NAKED"),
        (1, 1, 1, b"-NAK", "MSG_NAKED"),
        (2, 1, 2, b"+TERM because of x", "MSG_TERMINATED"),
        (2, 1, 2, b"+TERM", "MSG_TERMINATED"),
        (1, 2, 3, b'-NAK {"delay": 3600000000000}', "MSG_NAKED"),
        (1, 2, 3, b"+TERM", "MSG_TERMINATED"),
        (1, 9, 9, b"-NAK", ""),
    ]
    for number, (deliveries, sequence, place, payload, about) in enumerate(steps):
        if number in (0, 2, 4):
            twins.pull("S.w", f"a{number}", batch=1, expires=10**10)
            twins.pulled(f"a{number}")
        ack = Publish(f"$JS.ACK.S.w.{deliveries}.{sequence}.{place}.1.0", {}, payload, silent=True)
        for twin in twins.both:
            twin.ask(ack)
        if about:
            said(twins, f"CONSUMER.{about}.S.w")
    assert twins.taken(ADVISORY) == []
