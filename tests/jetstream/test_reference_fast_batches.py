"""Fast-ingest batches (ADR-50), held against the real nats-server: answers, errors, flow, gaps, stored messages."""

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.configured_servers import KINDS, serve
from support.jetstream_twins import Publish, Servers, Twins
from support.raw_wire import dial
from support.traces import receive

pytestmark = pytest.mark.interop

START, APPEND, COMMIT, END, PING = range(5)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with Servers.started(tmp_path_factory.mktemp("fast")) as running:
        yield running


@pytest.fixture
def twins(servers: Servers) -> Iterator[Twins]:
    with servers.twins() as made:
        made.listen("fast.>")
        yield made


def send(
    twins: Twins, reply: str, subject: str = "f.1", payload: bytes = b"x", headers: dict[str, str] | None = None
) -> list[Any]:
    """One message with this end of its reply subject; what both sent, in any order of the two replies. Returns ours."""
    named = {f"Nats-{name.replace('_', '-')}": value for name, value in (headers or {}).items()}
    for twin in twins.both:
        twin.send(Publish(subject, named, payload), f"fast.{reply}.$FI")
        twin.ask(Publish("$JS.API.STREAM.INFO.F"))  # behind what the message was answered
        twin.ask(Publish("$JS.API.DIRECT.GET.F", {}, b'{"seq":999999999}'))  # and when it is durable
    return twins.taken("fast.")


def run(twins: Twins, batch: str, steps: list[tuple[int, int]], flow: int = 10, gap: str = "fail") -> list[Any]:
    """Steps of a batch: sequence and operation."""
    return [
        answer for number, operation in steps for answer in send(twins, f"{batch}.{flow}.{gap}.{number}.{operation}")
    ]


@pytest.fixture(autouse=True)
def streams(twins: Twins) -> None:
    twins.stream("F", allow_batched=True, allow_direct=True)


def test_a_batch_is_answered_at_its_start_now_and_then_and_at_its_end(twins: Twins) -> None:
    steps = [(1, START), *((n, APPEND) for n in range(2, 8)), (7, PING), (8, COMMIT)]
    assert len(run(twins, "a", steps, flow=2)) == 6
    run(twins, "b", [(1, START), (2, APPEND), (3, END)], flow=100)
    run(twins, "c", [(1, COMMIT)])
    run(twins, "d", [(1, START), (2, COMMIT), (3, APPEND), (1, COMMIT)])
    twins.stored("F")


def test_gaps_and_steps_back_are_answered_alike(twins: Twins) -> None:
    for gap, second in itertools.product(("fail", "ok"), (1, 2, 3, 7)):
        steps = [(1, START), (second, APPEND if second > 1 else COMMIT), (second + 1, APPEND), (second + 2, COMMIT)]
        run(twins, f"g{gap}{second}", steps, gap=gap)
    for gap, ahead in itertools.product(("fail", "ok"), (0, 1, 5)):
        run(
            twins,
            f"p{gap}{ahead}",
            [(1, START), (1 + ahead, PING), (2 + ahead, APPEND), (4 + ahead, END)],
            gap=gap,
            flow=2,
        )
    twins.stored("F")


def test_wrong_reply_subjects_are_refused_alike(twins: Twins) -> None:
    numbers, operations = ("1", "0", "2", "x", "-1", "01", ""), ("0", "1", "2", "3", "4", "5", "x", "", "-1")
    for position, (number, operation) in enumerate(itertools.product(numbers, operations)):
        send(twins, f"w{position}.10.fail.{number}.{operation}")
    for position, (flow, gap) in enumerate(
        itertools.product(("0", "-1", "x", "70000", "5"), ("fail", "ok", "FAIL", ""))
    ):
        send(twins, f"f{position}.{flow}.{gap}.1.2")
    for reply in (
        "10.fail.1.0",
        "fail.1.0",
        "1.0",
        "0",
        "x" * 64 + ".10.fail.1.2",
        "x" * 65 + ".10.fail.1.2",
        "é.1.ok.1.2",
    ):
        send(twins, reply)
    twins.stored("F")


DEMANDS = {
    "Msg_Id": ("known", "new"),
    "Expected_Stream": ("OTHER", "F"),
    "Expected_Last_Sequence": ("77",),
    "Expected_Last_Subject_Sequence": ("99",),
    "TTL": ("1h",),
    "Rollup": ("sub",),
    "Incr": ("1",),
    "Schedule": ("@hourly",),
    "Required_Api_Level": ("9", "4"),
    "Batch_Id": ("z",),
}


@pytest.mark.parametrize("gap", ["fail", "ok"])
def test_demands_are_judged_alike_at_every_place(twins: Twins, gap: str) -> None:
    twins.publish(Publish("f.1", {"Nats-Msg-Id": "known"}))
    for number, (name, values) in enumerate(DEMANDS.items()):
        for value, place in itertools.product(values, (1, 2, 3)):
            batch = f"{gap}{number}{value}{place}".replace("@", "")
            for sequence, operation in ((1, START), (2, APPEND), (3, COMMIT)):
                own = value + batch if value == "new" else value
                headers = {name: own} if sequence == place else {}
                send(twins, f"{batch}.1.{gap}.{sequence}.{operation}", headers=headers)
    twins.stored("F")


def test_limits_of_the_stream_are_told_alike(twins: Twins) -> None:
    limits: list[dict[str, Any]] = [{"max_msg_size": 4}, {"discard": "new", "max_msgs": 2}, {"no_ack": True}]
    for number, settings in enumerate(limits):
        for gap in ("fail", "ok"):
            twins.stream("F", allow_batched=True, allow_direct=True, **settings)
            for sequence, operation in ((1, START), (2, APPEND), (3, APPEND), (4, COMMIT)):
                payload = b"too large" if sequence == 2 else b"x"
                send(twins, f"l{number}{gap}.1.{gap}.{sequence}.{operation}", payload=payload)
            twins.api("STREAM.INFO.F")
    twins.stream("F")
    send(twins, "off.10.fail.1.0")
    send(twins, "off.10.nonsense.1.0")
    twins.api("STREAM.CREATE.M", {"name": "M", "mirror": {"name": "F"}, "allow_batched": True})


def test_several_batches_share_what_may_be_unanswered(twins: Twins) -> None:
    chance = random.Random(50)
    sent = {"a": 0, "b": 0, "c": 0}
    for _ in range(90):
        batch = chance.choice(tuple(sent))
        sent[batch] += 1
        run(twins, batch, [(sent[batch], START if sent[batch] == 1 else APPEND)], flow=7)
    for batch, number in sent.items():
        run(twins, batch, [(number + 1, COMMIT)], flow=7)
    twins.stored("F")


ACCOUNTS = """accounts {
  A: { users: [ { user: a, password: p } ], jetstream: enabled
       exports: [ { service: "f.>", response: stream, allow_trace: true } ] }
  B: { users: [ { user: b, password: p } ], imports: [ { service: { account: A, subject: "f.>" } } ] }
}
"""


@pytest.mark.parametrize("traced", [b"", b"NATS/1.0\r\nNats-Trace-Dest: traces\r\n\r\n"], ids=["", "traced"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_publisher_of_another_account_has_a_batch_too(kind: str, traced: bytes, tmp_path: Path) -> None:
    settings = f'{ACCOUNTS}\njetstream {{ store_dir: "{tmp_path / "js"}" }}\n'
    stream = b'{"name":"F","subjects":["f.>"],"allow_batched":true}'
    with serve(kind, tmp_path, settings) as server, dial(server.port, user="a", **{"pass": "p"}) as owner:
        owner.send(b"SUB made 1\r\nPUB $JS.API.STREAM.CREATE.F made %d\r\n%b\r\n" % (len(stream), stream))
        assert b"error" not in receive(owner, 1)[0].payload
        with dial(server.port, user="b", **{"pass": "p"}) as publisher:
            publisher.send(b"SUB x.> 1\r\n")
            for sequence, operation, count in ((1, START, 1), (2, APPEND, 1), (3, APPEND, 0), (4, COMMIT, 1)):
                steering = b"x.id.2.fail.%d.%d.$FI" % (sequence, operation)
                if traced:
                    sizes = len(traced), len(traced) + 1
                    publisher.send(b"HPUB f.1 %b %d %d\r\n%bx\r\n" % (steering, *sizes, traced))
                else:
                    publisher.send(b"PUB f.1 %b 1\r\nx\r\n" % steering)
                answer = [message.payload for message in receive(publisher, count)]
                if sequence == 1:
                    assert answer == [b'{"type":"ack","seq":0,"msgs":2}']
            assert answer == [b'{"stream":"F","seq":4,"batch":"id","count":4}']
