"""Following a consumer of the origin."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.jetstream_documents.pull_requests import idle_heartbeat
from headwater.jetstream_sources.following import Delivery, Following, read_delivery


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
