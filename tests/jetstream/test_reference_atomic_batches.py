"""Atomic batches (ADR-50), held against the real nats-server: answers, errors, stored messages and advisories."""

import itertools
from collections.abc import Iterator

import pytest
from support.jetstream_twins import ADVISORY, Publish, Servers, Twin, Twins

pytestmark = pytest.mark.interop

ABANDONED = ADVISORY + "STREAM.BATCH_ABANDONED."


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with Servers.started(tmp_path_factory.mktemp("batches")) as running:
        yield running


@pytest.fixture
def twins(servers: Servers) -> Iterator[Twins]:
    with servers.twins() as made:
        made.listen(ABANDONED + ">")
        yield made


def part(subject: str, batch: str, sequence: object, commit: str = "", /, **more: str) -> Publish:
    headers = {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(sequence)}
    if commit:
        headers["Nats-Batch-Commit"] = commit
    payload = more.pop("payload", "x").encode()
    headers |= {f"Nats-{name.replace('_', '-')}": value for name, value in more.items()}
    return Publish(subject, headers, payload)


def test_a_batch_is_stored_at_its_commit_and_answered_once(twins: Twins) -> None:
    twins.stream("A", allow_atomic=True)
    twins.publish(*(part(f"a.{n}", "b1", n) for n in range(1, 4)))
    twins.api("STREAM.INFO.A")
    twins.publish(part("a.4", "b1", 4, "1"), part("a.1", "single", 1, "1"))
    twins.publish(part("a.1", "b2", 1), part("a.1", "b2", 2, "eob"))
    silent = [part("a.1", "nr", 1)._replace(silent=True), part("a.1", "nr", 2, "1")._replace(silent=True)]
    twins.publish(*silent, part("a.1", "é", 1, "1"), part("a.1", 'q"', 1, "1"))
    twins.stored("A")
    twins.taken(ABANDONED)


def test_what_breaks_a_batch_is_refused_and_told_alike(twins: Twins) -> None:
    twins.stream("W", allow_atomic=True)
    twins.publish(part("w.1", "e1", 1, "eob"), part("w.1", "e2", 1), part("w.1", "e2", 2, "yes"))
    twins.publish(part("w.1", "e2", 2), part("w.1", "e2", 2, "1"), part("w.1", "e3", 1, "0"))
    for sequence in ("", "0", "abc", "-1", "2", "01", "1.0", "+1", " 1", "99999999999999999999"):
        twins.publish(part("w.1", "e5", sequence), part("w.1", "e5", 2, "1"))
    twins.publish(Publish("w.1", {"Nats-Batch-Id": "e4"}, b"x"))
    twins.publish(part("w.1", "e7", 1), part("w.1", "e7", 3), part("w.1", "e7", 4, "1"))
    twins.publish(part("w.1", "e8", 1), part("w.1", "e8", 1), part("w.1", "e8", 2, "1"))
    twins.publish(part("w.1", "x" * 64, 1, "1"), part("w.1", "x" * 65, 1, "1"), part("w.1", "", 1, "1"))
    twins.publish(Publish("w.1", {"Nats-Batch-Sequence": "1"}), Publish("w.1", {"Nats-Batch-Commit": "1"}))
    for level in ("99", "2", "x", "-1"):
        twins.publish(part("w.1", f"l{level}", 1, Required_Api_Level=level), part("w.2", f"l{level}", 2, "1"))
        twins.publish(part("w.1", f"m{level}", 1), part("w.2", f"m{level}", 2, "1", Required_Api_Level=level))
    twins.stored("W")
    assert len(twins.taken(ABANDONED)) > 4


def stored(twin: Twin) -> int:
    """How many messages the stream without acks has, so far."""
    return int(twin.ask(Publish("$JS.API.STREAM.INFO.QUIET")).shown["state"]["messages"])


DEMANDS = {
    "Msg_Id": ("new", "old"),
    "Expected_Stream": ("D", "OTHER"),
    "Expected_Last_Sequence": ("3", "4", "1"),
    "Expected_Last_Subject_Sequence": ("0", "3", "9"),
    "Expected_Last_Msg_Id": ("old",),
    "Rollup": ("sub", "all", "bad"),
    "TTL": ("1h", "x"),
    "Incr": ("1", "x"),
    "Schedule": ("@hourly",),
}


@pytest.mark.parametrize("rollups", [False, True])
def test_demands_of_messages_are_judged_at_the_commit_alike(twins: Twins, rollups: bool) -> None:
    number = 0
    for name, values in DEMANDS.items():
        for value, place, same in itertools.product(values, (1, 2, 3), (False, True)):
            number += 1
            twins.stream("D", allow_atomic=True, allow_rollup_hdrs=rollups, storage="memory")
            twins.publish(*(Publish("d.1", {"Nats-Msg-Id": f"old{n}"[: 3 + (n < 3)]}) for n in (1, 2, 3)))
            for sequence in (1, 2, 3):
                demand = {name: value} if sequence == place else {}
                subject = "d.1" if same else f"d.{sequence}"
                twins.publish(part(subject, f"b{number}", sequence, "1" if sequence == 3 else "", **demand))
            twins.stored("D")


def test_two_faults_get_the_same_answer(twins: Twins) -> None:
    twins.stream("F", allow_atomic=True)
    twins.publish(Publish("f.1", {"Nats-Msg-Id": "old"}))
    number = 0
    for left, right in itertools.combinations([name for name in DEMANDS if name != "Schedule"], 2):
        number += 1
        demands = {left: DEMANDS[left][-1], right: DEMANDS[right][-1]}
        twins.publish(part("f.1", f"b{number}", 1), part("f.2", f"b{number}", 2, "1", **demands))
    twins.stored("F")


def test_counters_ids_and_limits_hold_within_a_batch(twins: Twins) -> None:
    twins.stream("C", allow_atomic=True, allow_msg_counter=True)
    twins.publish(part("c.a", "b", 1, payload="", Incr="1"), part("c.a", "b", 2, "1", payload="", Incr="2"))
    twins.publish(part("c.a", "n", 1, payload="", Incr="1"), part("c.a", "n", 2, "1", payload=""))
    twins.stored("C")
    twins.stream("I", allow_atomic=True)
    twins.publish(part("i.1", "d1", 1, Msg_Id="m1"), part("i.1", "d1", 2, "1", Msg_Id="m2"))
    twins.publish(part("i.1", "d2", 1, Msg_Id="m1"), part("i.1", "d2", 2, "1", Msg_Id="m3"))
    twins.publish(part("i.1", "d3", 1, Msg_Id="m8"), part("i.1", "d3", 2, "1", Msg_Id="m8"))
    twins.publish(Publish("i.1", {"Nats-Msg-Id": "m3"}), Publish("i.1", {"Nats-Msg-Id": "m2"}))
    twins.stored("I")
    twins.stream("N", allow_atomic=True, discard="new", max_msgs=3)
    twins.publish(*(part("n.1", "q", n, "1" if n == 5 else "") for n in range(1, 6)))
    twins.publish(*(part("n.1", "r", n, "1" if n == 3 else "") for n in range(1, 4)))
    twins.stored("N")
    twins.stream("P", allow_atomic=True, discard="new", discard_new_per_subject=True, max_msgs_per_subject=2)
    twins.publish(*(part("p.1", "q", n, "1" if n == 3 else "") for n in range(1, 4)))
    twins.publish(*(part("p.1", "r", n, "1" if n == 2 else "") for n in range(1, 3)))
    twins.stored("P")
    twins.stream("Z", allow_atomic=True, max_msg_size=60)
    twins.publish(part("z.1", "q", 1), part("z.1", "q", 2, payload="x" * 50), part("z.1", "q", 2, "1"))
    twins.stored("Z")
    twins.taken(ABANDONED)


def test_a_batch_has_a_thousand_messages_at_most(twins: Twins) -> None:
    twins.stream("L", allow_atomic=True)
    for name, last, commit in (("big", 1002, "1"), ("big2", 1000, "1"), ("big3", 1001, "eob"), ("big4", 1001, "1")):
        for sequence in range(1, min(last, 1001)):
            for twin in twins.both:
                twin.send(part("l.8", name, sequence))
        for twin in twins.both:
            twin.settle()
        twins.publish(*(part("l.8", name, n, commit if n == last else "") for n in range(min(last, 1001), last + 1)))
    twins.publish(part("l.8", "unknown", 5000), part("l.8", "unknown", 5000, "eob"))
    twins.api("STREAM.INFO.L")
    assert len(twins.taken(ABANDONED)) > 1


def test_fifty_batches_are_open_at_most(twins: Twins) -> None:
    twins.stream("O", allow_atomic=True)
    twins.publish(*(part("o.1", f"in{n}", 1) for n in range(53)))
    twins.publish(*(part("o.1", f"in{n}", 2, "1") for n in range(53)))
    twins.api("STREAM.INFO.O")
    twins.taken(ABANDONED)


def test_batches_are_refused_where_they_are_off_and_silent_without_acks(twins: Twins) -> None:
    twins.stream("OFF")
    twins.publish(part("off.1", "b", 1), part("off.1", "x" * 70, "y"))
    twins.stream("QUIET", allow_atomic=True, no_ack=True)
    for twin in twins.both:
        for step in (part("quiet.1", "q", 1), part("quiet.1", "q", 2, "1")):
            twin.send(step, twin.new_inbox())
        assert any(stored(twin) == 2 for _ in range(5000))
    twins.stored("QUIET")
    twins.api("STREAM.UPDATE.QUIET", {"name": "QUIET", "subjects": ["quiet.>"], "no_ack": True})
    twins.stream("M", allow_atomic=True, mirror={"name": "OFF"}, subjects=[])
