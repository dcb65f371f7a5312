"""The short way of acknowledgements, and which of them may not take it."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from headwater.jetstream.ack_intake import AckIntake
from headwater.jetstream.stream import Stream
from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_state.consumer import Consumer


class Bench:
    """An intake before a consumer that has delivered the messages 11 to 13."""

    def __init__(self, retention: str = "limits") -> None:
        self.state = Consumer(ConsumerConfig(ack_policy="explicit", ack_wait=10), 11)
        self.state.num_pending = 3
        self.state.deliver_run([11, 12, 13], 0)
        self.reported: list[bool] = []
        self.has_listener = False
        self.rest: list[tuple[bytes, ...]] = []
        self.soon: list[Callable[[], None]] = []
        stream = cast(Stream, SimpleNamespace(config=SimpleNamespace(retention=retention)))
        loop = cast(asyncio.AbstractEventLoop, SimpleNamespace(call_soon=self.soon.append))
        self.intake = AckIntake(
            stream,
            self.state,
            b"$JS.ACK.S.C.",
            self.reported.append,
            lambda: self.has_listener,
            lambda *call: self.rest.append(call),
            loop,
        )

    def ack(self, stream_sequence: object, consumer_sequence: object, reply: bytes = b"", payload: bytes = b"") -> None:
        subject = f"$JS.ACK.S.C.1.{stream_sequence}.{consumer_sequence}.1700000000000000000.5"
        self.intake.take(subject.encode(), reply, b"", payload)


def test_plain_acks_settle_and_are_told_once() -> None:
    bench = Bench()
    bench.ack(11, 1)
    bench.ack(13, 3, payload=b"+ACK")
    assert list(bench.state.unacked) == [12]
    assert (bench.state.floor_consumer, bench.state.floor_stream) == (1, 11)
    assert (len(bench.soon), bench.reported, bench.rest) == (1, [], [])
    bench.soon.pop()()
    assert bench.reported == [True]
    bench.ack(12, 2)
    bench.intake.report()
    bench.soon.pop()()
    assert (bench.reported, bench.state.unacked) == ([True, True], {})


def test_what_is_refused_until_later_is_due_again_and_told_as_that() -> None:
    bench = Bench()
    bench.ack(12, 2, payload=b"-NAK")
    bench.ack(12, 2, payload=b"-NAK")
    bench.ack(11, 1, payload=b"-NAK")
    assert (list(bench.state.unacked), bench.state.redeliveries, bench.rest) == ([11, 12, 13], 2, [])
    bench.soon.pop()()
    bench.ack(13, 3, payload=b"-NAK")
    bench.ack(11, 1)
    bench.soon.pop()()
    assert (bench.reported, bench.soon) == ([False, True], [])
    bench.ack(12, 2, payload=b"-NAK")
    bench.soon.pop()()
    assert (bench.reported, bench.state.next_redelivery()) == ([False, True, False], 12)


def test_one_whose_advisory_has_a_listener_goes_the_long_way() -> None:
    bench = Bench()
    bench.has_listener = True
    bench.ack(11, 1, payload=b"-NAK")
    assert (len(bench.rest), bench.state.redeliveries, bench.soon) == (1, 0, [])


@pytest.mark.parametrize(
    "ack",
    [
        lambda bench: bench.ack(11, 1, reply=b"inbox"),
        lambda bench: bench.ack(11, 1, payload=b"-NAK 1s"),
        lambda bench: bench.ack(11, 1, reply=b"inbox", payload=b"-NAK"),
        lambda bench: bench.ack("x", 1),
        lambda bench: bench.ack(11, ""),
        lambda bench: bench.ack(11, 1 << 63),
        lambda bench: bench.ack("9" * 30, 1),
    ],
)
def test_anything_else_goes_the_long_way(ack: Callable[[Bench], None]) -> None:
    bench = Bench()
    ack(bench)
    assert len(bench.rest) == 1
    assert (list(bench.state.unacked), bench.soon) == ([11, 12, 13], [])


@pytest.mark.parametrize("subject", [b"1.2.3", b"1", b"1.1.1.1.1.1", b"1.2.3.4.5.6.7.8"])
def test_a_subject_with_another_number_of_tokens_is_none(subject: bytes) -> None:
    bench = Bench()
    assert bench.intake.take(b"$JS.ACK.S.C." + subject, b"", b"", b"") is False
    assert bench.intake.take(b"$JS.ACK.S.C." + subject, b"reply", b"", b"+NAK") is False
    assert (list(bench.state.unacked), bench.soon, bench.rest) == ([11, 12, 13], [], [])


def test_so_does_every_ack_where_it_removes_the_message_and_after_the_end() -> None:
    bench = Bench("workqueue")
    bench.ack(11, 1)
    assert len(bench.rest) == 1
    bench = Bench()
    bench.intake.closed = True
    bench.ack(11, 1)
    assert len(bench.rest) == 1
