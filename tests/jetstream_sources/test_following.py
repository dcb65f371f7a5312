"""Following a consumer of the origin."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.jetstream_documents.pull_requests import idle_heartbeat
from headwater.jetstream_sources.following import Delivery, Following, Intake, read_delivery
from headwater.jetstream_sources.progress import Progress
from headwater.jetstream_sources.stamp import read_stamp


def delivery(sequence: int, consumer_sequence: int, consumer: bytes = b"c", times: int = 1) -> Delivery:
    return Delivery(consumer, times, sequence, consumer_sequence, 0, 0, b"")


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        (b"$JS.ACK.O.c.1.7.3.99.2", Delivery(b"c", 1, 7, 3, 99, 2, b"")),
        (b"$JS.ACK.hub.h4sh.O.c.1.7.3.99.2", Delivery(b"c", 1, 7, 3, 99, 2, b"")),
        (b"$JS.ACK.O.c.1.7.3.99.2@o.eu.x@y", Delivery(b"c", 1, 7, 3, 99, 2, b"o.eu.x@y")),
        (b"$JS.ACK.O.c.1.7.3.99", None),
        (b"$JS.FC.O.c.1.7.3.99.2", None),
        (b"$JS.ACK.O.c.1.x.3.99.2", None),
        (b"", None),
    ],
)
def test_a_reply_subject_tells_the_numbers_of_a_delivery(reply: bytes, found: Delivery | None) -> None:
    assert read_delivery(reply) == found


def test_what_the_origin_has_no_more_is_no_loss_and_a_gap_in_the_consumers_count_is() -> None:
    following = Following("c", 4)
    assert following.judge(delivery(5, 1)) == "take"
    assert following.judge(delivery(9, 2)) == "take"
    assert following.judge(delivery(11, 4)) == "lost"
    assert (following.taken, following.delivered) == (9, 2)


def test_what_is_here_already_is_passed_over_and_counted() -> None:
    following = Following("c", 4)
    assert following.judge(delivery(3, 1)) == "pass"
    assert following.judge(delivery(5, 2)) == "take"


def test_another_consumer_and_a_second_delivery_are_passed_over() -> None:
    following = Following("c", 0)
    assert following.judge(delivery(1, 1, consumer=b"old")) == "pass"
    assert following.judge(delivery(1, 1, times=2)) == "pass"
    assert following.judge(delivery(1, 1)) == "take"


def test_a_heartbeat_tells_of_a_lost_end() -> None:
    following = Following("c", 0)
    following.judge(delivery(1, 1))
    assert following.is_in_step(idle_heartbeat(1, 1))
    assert not following.is_in_step(idle_heartbeat(2, 2))


@given(st.lists(st.sampled_from(["deliver", "again", "drop", "new consumer"]), max_size=60))
def test_whatever_is_lost_or_repeated_each_message_is_taken_once_and_in_order(events: list[str]) -> None:
    """A model of an origin of 20 messages, every third of them deleted."""
    there = [number for number in range(1, 21) if number % 3]
    taken: list[int] = []
    name, at, count = 0, 0, 0
    following = Following("0", 0)

    def ask_again() -> None:
        nonlocal name, at, count, following
        name, count = name + 1, 0
        at = sum(1 for number in there if number <= (taken[-1] if taken else 0))
        following = Following(str(name), taken[-1] if taken else 0)

    for event in [*events, *["deliver"] * 40]:
        if event == "new consumer":
            ask_again()
        elif at < len(there):
            count, at = count + (event != "again"), at + (event != "again")
            if event != "drop" and count:
                message = delivery(there[at - 1], count, str(name).encode())
                verdict = following.judge(message)
                if verdict == "take":
                    taken.append(message.sequence)
                elif verdict == "lost":
                    ask_again()
        elif following.delivered != count:  # what a heartbeat tells
            ask_again()
    assert taken == there


NUMBERS = st.one_of(st.integers(0, 6).map(str), st.sampled_from(["", "x", "-1", "9" * 18, "9" * 19, "9" * 25]))


@given(
    head=st.sampled_from(["$JS.ACK.O.c", "$JS.ACK.hub.h4sh.O.c", "$JS.ACK.O.d", "$JS.FC.O.c"]),
    numbers=st.lists(NUMBERS, min_size=4, max_size=6),
    rest=st.sampled_from(["", "@o.eu", "@", ".more@o.eu", ".more", ".", "@a@b"]),
    known=st.sampled_from(["$JS.ACK.O.c.1.1.1.9.9", "$JS.ACK.hub.h4sh.O.c.1.1.1.9.9@x"]),
)
def test_what_goes_on_is_what_would_have_been_taken_with_the_same_numbers(
    head: str, numbers: list[str], rest: str, known: str
) -> None:
    reply = (".".join([head, *numbers]) + rest).encode()
    fast, slow = Following("c", 1), Following("c", 1)
    fast.learn(known.encode())
    if not fast.goes_on(reply):
        assert (fast.taken, fast.delivered) == (1, 0)
        return
    delivery = read_delivery(reply)
    assert delivery is not None
    assert (fast.sequence, fast.timestamp_ns) == (delivery.sequence, delivery.timestamp_ns)
    assert (fast.pending, fast.shown) == (delivery.pending, delivery.shown)
    assert slow.judge(delivery) == "take"
    fast.took()
    assert (fast.taken, fast.delivered) == (slow.taken, slow.delivered)


def test_the_next_delivery_is_recognised_in_either_form() -> None:
    for reply in (b"$JS.ACK.O.c.1.%d.%d.99.2@o.eu", b"$JS.ACK.hub.h4sh.O.c.1.%d.%d.99.2.more@o.eu"):
        following = Following("c", 4)
        assert not following.goes_on(reply % (5, 1))
        following.learn(reply % (5, 1))
        assert following.goes_on(reply % (5, 1))
        assert (following.sequence, following.pending, following.shown) == (5, 2, b"o.eu")
        following.took()
        assert not following.goes_on(reply % (6, 3))
        assert following.goes_on(reply % (8, 2))


def not_expected(*message: bytes) -> None:
    raise AssertionError(message)


@pytest.mark.parametrize("block", [b"", b"NATS/1.0\r\nA: 1\r\n\r\n"])
def test_the_intake_of_a_source_stamps_what_it_stores(block: bytes) -> None:
    stored: list[tuple[bytes, bytes, bytes, int, int]] = []

    def copy(*message: bytes | int) -> int:
        stored.append(message)  # type: ignore[arg-type]
        return len(stored)

    following, progress = Following("c", 0), Progress(None)
    marks = b"Nats-Stream-Source: O ", b" > > ", b" id"
    intake = Intake(following, progress, copy, marks, lambda subject: b"moved." + subject, lambda: 7.5, not_expected)
    following.learn(b"$JS.ACK.O.c.1.1.1.99.0")
    assert intake.take(b"inbox", b"$JS.ACK.O.c.1.3.1.99.0@o.eu", block, b"x")
    [(subject, kept, payload, timestamp, sequence)] = stored
    assert (subject, payload, timestamp, sequence) == (b"moved.o.eu", b"x", 0, 0)
    stamp = read_stamp(kept)
    assert stamp is not None
    assert (stamp[1].sequence, stamp[1].identity, b" o.eu " in kept) == (3, "id", True)
    assert (b"A: 1\r\n" in kept) == bool(block)
    assert (intake.taken, intake.received_at, progress.taken, following.taken) == (1, 7.5, 3, 3)


def test_the_intake_leaves_alone_what_a_stream_has_to_look_at() -> None:
    following, progress = Following("c", 0), Progress(None)
    following.learn(b"$JS.ACK.O.c.1.1.1.99.0")
    left: list[tuple[bytes, ...]] = []
    full = Intake(
        following, progress, lambda *message: 0, None, None, lambda: 1.0, lambda *message: left.append(message)
    )
    plain = b"o", b"$JS.ACK.O.c.1.1.1.99.0", b"", b"x"
    full.receive(*plain)
    some = Intake(
        following, progress, lambda *message: 1, None, None, lambda: 1.0, lambda *message: left.append(message)
    )
    with_id = b"o", b"$JS.ACK.O.c.1.1.1.99.0", b"NATS/1.0\r\nNats-Msg-Id: 1\r\n\r\n", b"x"
    some.receive(*with_id)
    assert left == [plain, with_id]
    assert (following.taken, progress.taken, some.taken, some.received_at) == (0, 0, 0, 0.0)


def test_of_many_messages_the_intake_notes_the_time_of_the_first_of_some_and_of_the_last() -> None:
    following, times = Following("c", 0), iter(range(1, 100))
    following.learn(b"$JS.ACK.O.c.1.1.1.99.0")
    intake = Intake(following, Progress(None), lambda *message: 1, None, None, lambda: float(next(times)), not_expected)
    received_at = []
    for number in range(1, 101):
        intake.receive(b"o", b"$JS.ACK.O.c.1.%d.%d.99.%d" % (number, number, 100 - number), b"", b"x")
        received_at.append(intake.received_at)
    assert received_at == [1.0] * 64 + [2.0] * 35 + [3.0]
    assert intake.taken == 100
