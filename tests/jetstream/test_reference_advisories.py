"""Advisories, held against the real nats-server: subjects and documents."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.jetstream_twins import ADVISORY, Publish, Servers, Twin, Twins
from support.raw_wire import dial

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


def compare_advisories(twins: Twins, subject: str) -> None:
    """Both have published the same to this subject."""
    twins.next(ADVISORY + subject)


def test_streams_are_made_changed_and_deleted_with_their_consumers(twins: Twins) -> None:
    twins.api("STREAM.CREATE.T", {"name": "T", "subjects": ["t.>"]})
    compare_advisories(twins, "STREAM.CREATED.T")
    twins.api("STREAM.CREATE.T", {"name": "T", "subjects": ["t.>"]})
    twins.api("STREAM.UPDATE.T", {"name": "T", "subjects": ["t.>"], "max_msgs": 9})
    compare_advisories(twins, "STREAM.UPDATED.T")
    twins.api("STREAM.UPDATE.T", {"name": "T", "subjects": ["t.>"], "storage": "memory"})
    twins.api("CONSUMER.CREATE.T.c", {"stream_name": "T", "config": {"name": "c", "ack_policy": "explicit"}})
    compare_advisories(twins, "CONSUMER.CREATED.T.c")
    twins.api("CONSUMER.DURABLE.CREATE.T.d", {"stream_name": "T", "config": {"durable_name": "d"}})
    compare_advisories(twins, "CONSUMER.CREATED.T.d")
    twins.api("CONSUMER.DURABLE.CREATE.T.d", {"stream_name": "T", "config": {"durable_name": "d", "description": "x"}})
    twins.api("CONSUMER.DELETE.T.c")
    compare_advisories(twins, "CONSUMER.DELETED.T.c")
    twins.api("STREAM.PURGE.T")
    twins.api("STREAM.DELETE.T")
    compare_advisories(twins, "CONSUMER.DELETED.T.d")
    compare_advisories(twins, "STREAM.DELETED.T")
    assert twins.taken(ADVISORY) == []


def test_a_message_is_given_back_and_ended(twins: Twins) -> None:
    config = {"durable_name": "w", "ack_policy": "explicit", "max_deliver": 10}
    twins.api("CONSUMER.DURABLE.CREATE.S.w", {"stream_name": "S", "config": config})
    compare_advisories(twins, "CONSUMER.CREATED.S.w")
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
            compare_advisories(twins, f"CONSUMER.{about}.S.w")
    assert twins.taken(ADVISORY) == []


def consumer(twins: Twins, name: str, **config: object) -> None:
    made = {"durable_name": name, "ack_policy": "explicit", **config}
    twins.api(f"CONSUMER.DURABLE.CREATE.S.{name}", {"stream_name": "S", "config": made})
    compare_advisories(twins, f"CONSUMER.CREATED.S.{name}")


def pulled(twins: Twins, name: str, inbox: str) -> list[str]:
    """One message each; the subjects for its ack."""
    twins.pull(f"S.{name}", inbox, batch=1, expires=10**10)
    received = [twin.next_of(twin.inboxes[inbox]) for twin in twins.both]
    assert received[0].data == received[1].data
    return [one.reply for one in received]


def answer(twins: Twins, subjects: list[str], payload: bytes) -> None:
    for twin, subject in zip(twins.both, subjects, strict=True):
        twin.send(Publish(subject, {}, payload, silent=True))
        twin.settle()


def test_a_message_that_was_delivered_often_enough_is_given_up_at_the_next_request(twins: Twins) -> None:
    consumer(twins, "m", max_deliver=2, ack_wait=10**11)
    twins.publish(Publish("s.1", {}, b"1"), Publish("s.2", {}, b"2"), Publish("s.3", {}, b"3"))
    for number in range(2):
        answer(twins, pulled(twins, "m", f"m{number}"), b"-NAK")
        compare_advisories(twins, "CONSUMER.MSG_NAKED.S.m")
    assert twins.taken(ADVISORY) == []
    pulled(twins, "m", "m2")
    compare_advisories(twins, "CONSUMER.MAX_DELIVERIES.S.m")
    assert twins.taken(ADVISORY) == []


def test_a_consumer_is_paused_and_goes_on(twins: Twins) -> None:
    consumer(twins, "p")
    for until, reported in (
        ("2090-01-01T00:00:00Z", True),
        ("2090-01-01T00:00:00Z", False),
        ("2091-01-01T00:00:00Z", True),
        ("", True),
        ("", False),
        ("2020-01-01T00:00:00Z", True),
    ):
        twins.both[0].settle()
        for twin in twins.both:  # what remains of a pause is not compared
            twin.ask(
                Publish("$JS.API.CONSUMER.PAUSE.S.p", {}, json.dumps({"pause_until": until} if until else {}).encode())
            )
        if reported:
            compare_advisories(twins, "CONSUMER.PAUSE.S.p")
        assert twins.taken(ADVISORY) == []
    for twin in twins.both:
        config = {"durable_name": "q", "ack_policy": "explicit", "pause_until": "2090-01-01T00:00:00Z"}
        twin.ask(
            Publish("$JS.API.CONSUMER.CREATE.S.q", {}, json.dumps({"stream_name": "S", "config": config}).encode())
        )
    compare_advisories(twins, "CONSUMER.CREATED.S.q")
    compare_advisories(twins, "CONSUMER.PAUSE.S.q")


def test_a_pause_that_ends_by_itself_is_told(twins: Twins) -> None:
    consumer(twins, "e")
    for twin in twins.both:
        made = twin.ask(Publish("$JS.API.CONSUMER.INFO.S.e"))
        until = json.loads(made.data)["ts"][:19]  # of this second: over, or nearly so
        later = until[:17] + f"{int(until[17:]) + 1:02}" if until[17:] != "59" else until
        twin.ask(Publish("$JS.API.CONSUMER.PAUSE.S.e", {}, json.dumps({"pause_until": later + "Z"}).encode()))
        received: list[dict[str, Any]] = []
        while not received or received[-1]["paused"]:
            received.append(json.loads(twin.next_on(ADVISORY + "CONSUMER.PAUSE.S.e").data))
        assert received[-1]["pause_until"] == later + "Z"


def test_acknowledgements_are_sampled(twins: Twins) -> None:
    twins.listen("$JS.EVENT.METRIC.>")
    consumer(twins, "s", sample_freq="100%", ack_wait=10**11)
    consumer(twins, "n", sample_freq="0%")
    consumer(twins, "a", sample_freq="100", ack_policy="all")
    twins.publish(*(Publish("s.1", {}, b"%d" % number) for number in range(5)))
    answer(twins, pulled(twins, "s", "s0"), b"-NAK")
    compare_advisories(twins, "CONSUMER.MSG_NAKED.S.s")
    for number, ack in enumerate((b"", b"+ACK", b"+NXT", b"+TERM")):
        answer(twins, pulled(twins, "s", f"s{number + 1}"), ack)
        if ack == b"+TERM":
            compare_advisories(twins, "CONSUMER.MSG_TERMINATED.S.s")
        else:
            twins.next("$JS.EVENT.METRIC.CONSUMER.ACK.S.s")
    for name in ("n", "a"):
        answer(twins, pulled(twins, name, name), b"+ACK")
    assert twins.taken("$JS.EVENT.") == []


REQUESTS: list[tuple[str, object, str]] = [
    ("STREAM.NAMES", None, ""),
    ("STREAM.LIST", {}, ""),
    ("STREAM.INFO.S", {"deleted_details": True}, ""),
    ("STREAM.INFO.NOPE", None, ""),
    ("STREAM.CREATE.S", b"zzz", ""),
    ("STREAM.UPDATE.S", {"name": "S", "subjects": ["s.>"], "max_msgs": 500}, "STREAM.UPDATED.S"),
    ("STREAM.MSG.GET.S", {"seq": 99}, ""),
    ("STREAM.MSG.DELETE.S", {"seq": 1}, ""),
    ("STREAM.PURGE.S", {"keep": 2}, ""),
    ("CONSUMER.DURABLE.CREATE.S.c", {"stream_name": "S", "config": {"durable_name": "c"}}, "CONSUMER.CREATED.S.c"),
    ("CONSUMER.NAMES.S", None, ""),
    ("CONSUMER.LIST.S", None, ""),
    ("CONSUMER.INFO.S.c", None, ""),
    ("CONSUMER.INFO.S.nope", None, ""),
    ("CONSUMER.DELETE.S.c", None, "CONSUMER.DELETED.S.c"),
    ("STREAM.LEADER.STEPDOWN.S", None, ""),
    ("STREAM.PEER.EVACUATE.S", {"peer": "p"}, ""),
    ("CONSUMER.PEER.REMOVE.S.c", {"peer": "p"}, ""),
    ("CONSUMER.PEER.EVACUATE.S.c", {"peer": "p"}, ""),
]


def test_requests_are_audited(twins: Twins) -> None:
    twins.publish(*(Publish("s.1", {}, b"%d" % number) for number in range(5)))
    twins.listen(ADVISORY + "API")
    for verb, body, about in REQUESTS:
        twins.api(verb, body)
        assert twins.next(ADVISORY + "API")["subject"] == f"$JS.API.{verb}"
        if about:
            compare_advisories(twins, about)
    twins.api("STREAM.MSG.GET.S", {"seq": 5})  # these two are not audited: the next advisory is of what follows
    consumer(twins, "r")
    twins.next(ADVISORY + "API")
    twins.api("CONSUMER.RESET.S.r")
    twins.api("STREAM.NAMES")
    assert twins.next(ADVISORY + "API")["subject"] == "$JS.API.STREAM.NAMES"
    assert twins.taken(ADVISORY) == []


def test_backups_are_told_from_beginning_to_end(twins: Twins) -> None:
    twins.publish(*(Publish("s.1", {}, b"%d" % number) for number in range(5)))
    archives = [snapshot_of(twin) for twin in twins.both]
    compare_advisories(twins, "STREAM.SNAPSHOT_CREATE.S")
    compare_advisories(twins, "STREAM.SNAPSHOT_COMPLETE.S")
    twins.api("STREAM.DELETE.S")
    compare_advisories(twins, "STREAM.DELETED.S")
    for twin in twins.both:
        restore(twin, archives[0])
    compare_advisories(twins, "STREAM.RESTORE_CREATE.S")
    compare_advisories(twins, "STREAM.CREATED.S")
    compare_advisories(twins, "STREAM.RESTORE_COMPLETE.S")
    assert twins.taken(ADVISORY) == []


def snapshot_of(twin: Twin) -> bytes:
    sid = twin.listen("_SNAP.here")
    request = {"deliver_subject": "_SNAP.here", "chunk_size": 1 << 16}
    assert "error" not in json.loads(
        twin.ask(Publish("$JS.API.STREAM.SNAPSHOT.S", {}, json.dumps(request).encode())).data
    )
    archive = b""
    while (chunk := twin.next_of(sid)).data:
        archive += chunk.data
        if chunk.reply:
            twin.send(Publish(chunk.reply, {}, b"", silent=True))
    return archive


def restore(twin: Twin, archive: bytes) -> None:
    body = json.dumps({"config": {"name": "S", "subjects": ["s.>"]}, "state": {}}).encode()
    begun = json.loads(twin.ask(Publish("$JS.API.STREAM.RESTORE.S", {}, body)).data)
    for chunk in (archive, b""):
        twin.ask(Publish(begun["deliver_subject"], {}, chunk))


ACCOUNTS = """
accounts { SYS { users: [{ user: s, password: s }] }, A { jetstream: enabled, users: [{ user: a, password: a }] } }
system_account: SYS
"""


def login(user: str) -> dict[str, object]:
    return {"user": user, "pass": user, "no_responders": True}


def test_the_system_account_hears_of_a_batch_that_was_given_up(tmp_path: Path) -> None:
    shown = []
    with Servers.started(tmp_path, ACCOUNTS) as servers:
        for port in servers:
            with dial(port, **login("a")) as link, dial(port, **login("s")) as system:
                mine, other = Twin(link, "user"), Twin(system, "system")
                mine.listen("$JS.EVENT.>")
                other.listen("$JS.EVENT.>")
                config = {"name": "S", "subjects": ["s.>"], "allow_atomic": True}
                mine.ask(Publish("$JS.API.STREAM.CREATE.S", {}, json.dumps(config).encode()))
                mine.ask(Publish("s.1", {"Nats-Batch-Id": "b", "Nats-Batch-Sequence": "1"}, b""))
                mine.ask(Publish("s.1", {"Nats-Batch-Id": "b", "Nats-Batch-Sequence": "9"}, b""))
                about = ADVISORY + "STREAM.BATCH_ABANDONED.S"
                shown.append([mine.next_on(about).shown, other.next_on(about).shown])
                assert other.taken("$JS.EVENT.") == []
    assert shown[1] == shown[0]
