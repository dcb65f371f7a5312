"""Clients that request much and read little, over sockets: they get everything as they read, and others do not wait."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.embedded_broker import EmbeddedBroker
from support.raw_wire import RawLink, dial

from headwater.options.access import AccountOptions, JetStreamLimits, UserOptions
from headwater.options.broker import BrokerOptions

SIZE = 200_000
GETS = 150  # 30 MB, four times what may wait
PATIENCE = 20.0  # seconds of silence; a healthy server needs some milliseconds

Ask = tuple[bytes, bytes]  # subject, payload


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    options = BrokerOptions(jetstream=True, store_dir=tmp_path, max_pending=8 << 20, write_deadline=600)
    with EmbeddedBroker(options) as embedded:
        yield embedded


@pytest.fixture
def other(broker: EmbeddedBroker) -> Iterator[RawLink]:
    """A client that reads, with a stream S of one large message under S.big."""
    with dial(broker.port) as link:
        link.patience(PATIENCE)
        link.send(b"SUB answers.* 1\r\n")
        stream = {"name": "S", "subjects": ["S.>"], "allow_direct": True}
        assert answer_to(link, b"$JS.API.STREAM.CREATE.S", json.dumps(stream).encode())["config"]["name"] == "S"
        assert answer_to(link, b"S.big", bytes(SIZE))["seq"] == 1
        yield link


def answer_to(link: RawLink, subject: bytes, payload: bytes = b"") -> dict[str, Any]:
    link.send(request(subject, b"answers.1", payload))
    while not (line := link.receive_line()).startswith(b"MSG answers.1 "):
        assert line in (b"PING\r\n", b"\r\n"), line
    return dict(json.loads(link.receive_line()))


def request(subject: bytes, reply: bytes, payload: bytes = b"") -> bytes:
    return b"PUB %b %b %d\r\n%b\r\n" % (subject, reply, len(payload), payload)


def received(link: RawLink) -> tuple[bytes, bytes]:
    """The control line of the next message, and all that follows it."""
    line = link.receive_line()
    while line == b"PING\r\n":
        line = link.receive_line()
    assert line.startswith((b"MSG ", b"HMSG ")), line
    return line, link.receive(int(line.split()[-1]) + 2)


@pytest.mark.parametrize(
    "ask",
    [
        (b"$JS.API.DIRECT.GET.S", b'{"seq":1}'),
        (b"$JS.API.DIRECT.GET.S.S.big", b""),
        (b"$JS.API.STREAM.MSG.GET.S", b'{"seq":1}'),
    ],
    ids=["direct", "direct-by-subject", "message"],
)
def test_gets_far_ahead_of_their_reader_are_all_answered(broker: EmbeddedBroker, other: RawLink, ask: Ask) -> None:
    with dial(broker.port) as link:
        link.patience(PATIENCE)
        link.send(b"SUB mine.* 7\r\n")
        link.send(b"".join(request(ask[0], b"mine.%d" % number, ask[1]) for number in range(GETS)))
        assert answer_to(other, b"S.small", b"not in the way")["seq"] == 2
        for number in range(GETS):
            line, body = received(link)
            assert line.split()[1] == b"mine.%d" % number
            assert len(body) > SIZE


def test_a_batch_is_sent_as_its_client_reads(broker: EmbeddedBroker, other: RawLink) -> None:
    for _ in range(GETS - 1):
        answer_to(other, b"S.big", bytes(SIZE))
    with dial(broker.port) as link:
        link.patience(PATIENCE)
        link.send(b"SUB mine 7\r\n")
        link.send(request(b"$JS.API.DIRECT.GET.S", b"mine", b'{"seq":1,"batch":%d}' % GETS))
        for _ in range(100):  # rounds of the loop, in each of which more could be sent
            answer_to(other, b"$JS.API.INFO")
        assert [len(received(link)[1]) > SIZE for _ in range(GETS)] == [True] * GETS
        assert b"204 EOB" in received(link)[1]


def test_what_changes_something_is_done_though_its_client_has_left(broker: EmbeddedBroker, other: RawLink) -> None:
    with dial(broker.port) as link:
        link.send(b"SUB mine.* 7\r\n")
        gets = [request(b"$JS.API.DIRECT.GET.S", b"mine.%d" % number, b'{"seq":1}') for number in range(GETS)]
        link.send(b"".join([*gets, request(b"$JS.API.STREAM.DELETE.S", b"mine.last")]))
        answer_to(other, b"$JS.API.INFO")
    for _ in range(1000):  # a round of the loop each
        if "error" in answer_to(other, b"$JS.API.STREAM.INFO.S"):
            return
    raise AssertionError("the stream is still there")


def test_requests_that_wait_when_a_reload_takes_jetstream_are_refused(tmp_path: Path) -> None:
    def allowed(limits: JetStreamLimits | None) -> BrokerOptions:
        account = AccountOptions(name="A", users=(UserOptions(username="a", password="p"),), jetstream=limits)
        return BrokerOptions(
            jetstream=True, store_dir=tmp_path, max_pending=8 << 20, write_deadline=600, accounts=(account,)
        )

    asks = [
        (b"$JS.API.DIRECT.GET.S", b'{"seq":1}'),
        (b"$JS.API.STREAM.MSG.GET.S", b'{"seq":1}'),
        (b"$JS.API.DIRECT.GET.S", b'{"next_by_subj":"S.>","seq":1,"batch":100}'),
    ]
    login = {"user": "a", "pass": "p"}
    with (
        EmbeddedBroker(allowed(JetStreamLimits())) as broker,
        dial(broker.port, **login) as other,
        dial(broker.port, **login) as link,
    ):
        for each in (other, link):
            each.patience(PATIENCE)
        other.send(b"SUB answers.* 1\r\n")
        answer_to(other, b"$JS.API.STREAM.CREATE.S", b'{"name":"S","subjects":["S.>"],"allow_direct":true}')
        for _ in range(100):
            answer_to(other, b"S.big", bytes(SIZE))
        link.send(b"SUB mine.* 7\r\n" + request(asks[2][0], b"mine.batch", asks[2][1]))
        gets = [request(ask, b"mine.%d" % number, body) for number, (ask, body) in enumerate(asks[:2] * GETS)]
        link.send(b"".join([*gets, request(b"S.taken", b"", b"")]))
        while answer_to(other, b"$JS.API.STREAM.INFO.S")["state"]["messages"] == 100:
            pass  # until what was sent behind the gets was read

        async def reload() -> None:
            broker.broker.reload(allowed(None))

        broker.run(reload)
        unanswered = {b"mine.%d" % number for number in range(2 * GETS)} | {b"mine.batch"}
        refused = set()
        while unanswered:
            line, body = received(link)
            subject = line.split()[1]
            if subject == b"mine.batch" and b"Nats-Sequence: " in body:
                continue
            unanswered.remove(subject)
            if body.startswith(b"NATS/1.0 503\r\n") or b'"err_code":10039' in body:
                refused.add(subject)
        assert len(refused) > GETS
        assert b"mine.batch" in refused


def test_a_consumer_serves_the_clients_that_read(broker: EmbeddedBroker, other: RawLink) -> None:
    for _ in range(GETS):
        answer_to(other, b"S.big", bytes(SIZE))
    consumer = {"stream_name": "S", "config": {"durable_name": "C", "ack_policy": "none"}}
    answer_to(other, b"$JS.API.CONSUMER.CREATE.S.C", json.dumps(consumer).encode())
    with dial(broker.port) as slow, dial(broker.port) as quick:
        # The slow client's own flood of large messages waits for it, before it asks for more.
        slow.send(b"SUB slow 7\r\nSUB flood 8\r\n")
        slow.settle()
        for _ in range(35):  # 7 MB, of which the kernel takes some
            other.send(b"PUB flood %d\r\n%b\r\n" % (SIZE, bytes(SIZE)))
        other.settle()
        slow.send(request(b"$JS.API.CONSUMER.MSG.NEXT.S.C", b"slow", b'{"batch":100}'))
        quick.patience(PATIENCE)
        quick.send(b"SUB quick 7\r\n" + request(b"$JS.API.CONSUMER.MSG.NEXT.S.C", b"quick", b'{"batch":10}'))
        assert [len(received(quick)[1]) >= SIZE for _ in range(10)] == [True] * 10
