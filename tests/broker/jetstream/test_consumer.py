"""What a consumer delivers, redelivers and counts: by rule, and as a model under random acks, naks and waiting."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.broker.jetstream.api_types import ConsumerConfig
from headwater.broker.jetstream.consumer import Consumer


def consumer(start: int = 1, **config: object) -> Consumer:
    given = {"ack_policy": "explicit", "ack_wait": 100, "max_ack_pending": -1, "max_deliver": -1} | config
    made = Consumer(ConsumerConfig(**given), start)  # type: ignore[arg-type]
    made.num_pending = 1000
    return made


def deliver(made: Consumer, *sequences: int, now: int = 0) -> None:
    for sequence in sequences:
        made.deliver_new(sequence, now)


def test_with_ack_policy_none_a_delivery_settles_itself() -> None:
    made = consumer(ack_policy="none")
    deliver(made, 1, 2, 5)
    assert (made.delivered_consumer, made.delivered_stream) == (3, 5)
    assert (made.floor_consumer, made.floor_stream) == (3, 5)
    assert (made.position, made.num_pending, made.unacked) == (6, 997, {})


def test_what_is_not_acknowledged_in_time_is_due_again_before_anything_new() -> None:
    made = consumer()
    deliver(made, 1, 2, now=0)
    assert made.next_redelivery() == 0
    assert made.expire(50) == 100
    assert made.expire(100) == 0
    assert made.next_redelivery() == 1
    assert made.deliver_again(1, 100) == (3, 2)
    assert made.next_redelivery() == 2
    made.ack(2, 2)
    assert made.next_redelivery() == 0


def test_a_nak_is_due_at_once_or_after_its_delay() -> None:
    made = consumer()
    deliver(made, 1, 2)
    made.nak(2, 0, 10)
    assert made.next_redelivery() == 2
    made.deliver_again(2, 10)
    made.nak(1, 30, 10)
    assert made.next_redelivery() == 0
    made.expire(40)
    assert made.next_redelivery() == 1


def test_progress_starts_the_ack_wait_again() -> None:
    made = consumer()
    deliver(made, 1)
    made.progress(1, 90)
    assert made.expire(100) == 190


def test_max_deliver_gives_a_message_up() -> None:
    made = consumer(max_deliver=2)
    deliver(made, 1)
    made.nak(1, 0, 0)
    made.deliver_again(1, 0)
    made.nak(1, 0, 0)
    assert made.next_redelivery() == 0
    assert made.unacked == {}


def test_max_ack_pending_holds_new_messages_back_and_lets_redeliveries_pass() -> None:
    made = consumer(max_ack_pending=2)
    deliver(made, 1, 2)
    assert not made.may_deliver_new
    made.nak(1, 0, 0)
    assert made.next_redelivery() == 1
    made.ack(2, 2)
    assert made.may_deliver_new


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.booleans(), st.sampled_from(["none", "explicit"]))
def test_a_run_leaves_what_deliveries_one_by_one_would(steps: list[int], backoff: bool, policy: str) -> None:
    sequences = [sum(steps[: n + 1]) for n in range(len(steps))]
    together, single = (consumer(ack_policy=policy, backoff=[7, 9] if backoff else []) for _ in range(2))
    together.deliver_run(sequences, 50)
    deliver(single, *sequences, now=50)
    assert together.snapshot() == single.snapshot()
    assert (together.unacked, together.num_pending) == (single.unacked, single.num_pending)
    assert together.expire(1000) == single.expire(1000)
    assert together.next_redelivery() == single.next_redelivery()
    for sequence, number in zip(sequences, range(1, 9), strict=False):
        together.ack(sequence, number)
        single.ack(sequence, number)
        assert together.snapshot() == single.snapshot()


def test_as_many_are_deliverable_as_may_wait_for_their_acks() -> None:
    made = consumer(max_ack_pending=3)
    made.deliver_run([1, 2], 0)
    assert made.deliverable == 1
    assert consumer().deliverable > 1 << 60
    assert consumer(ack_policy="none", max_ack_pending=1).deliverable > 1 << 60


def test_the_floor_follows_the_oldest_that_is_not_settled() -> None:
    made = consumer()
    deliver(made, 1, 2, 3)
    made.ack(2, 2)
    assert (made.floor_consumer, made.floor_stream) == (0, 0)
    made.ack(1, 1)
    assert (made.floor_consumer, made.floor_stream) == (2, 2)
    made.ack(3, 3)
    assert (made.floor_consumer, made.floor_stream) == (3, 3)


def test_with_ack_policy_all_one_ack_settles_all_before_it() -> None:
    made = consumer(ack_policy="all")
    deliver(made, 1, 2, 3)
    made.ack(2, 2)
    assert list(made.unacked) == [3]
    assert (made.floor_consumer, made.floor_stream) == (2, 2)


def test_backoff_takes_the_place_of_the_ack_wait() -> None:
    made = consumer(backoff=[10, 20], max_deliver=5)
    deliver(made, 1, now=0)
    assert made.expire(0) == 10
    made.expire(10)
    made.next_redelivery()
    made.deliver_again(1, 10)
    assert made.expire(10) == 30


def test_a_restart_keeps_positions_and_starts_every_ack_wait_again() -> None:
    made = consumer()
    deliver(made, 1, 2, 3)
    made.ack(2, 2)
    again = consumer()
    again.restore(made.snapshot(), end=4, now=1000)
    assert (again.position, list(again.unacked), again.delivered_consumer) == (4, [1, 3], 3)
    assert again.expire(1000) == 1100


steps = st.lists(
    st.tuples(st.sampled_from(["new", "again", "ack", "nak", "term", "wait"]), st.integers(0, 20)), max_size=60
)


@given(steps)
def test_every_message_is_acknowledged_or_will_come_again(walk: list[tuple[str, int]]) -> None:
    made, now, acked, sent = consumer(), 0, set[int](), 0
    for verb, number in walk:
        if verb == "new":
            sent += 1
            assert made.deliver_new(sent, now) == made.delivered_consumer
        elif verb == "again" and (due := made.next_redelivery()):
            assert due not in acked
            made.deliver_again(due, now)
        elif verb in ("ack", "term") and 0 < number <= sent:
            made.ack(number, made.unacked.get(number, (number, 0))[0])
            acked.add(number)
        elif verb == "nak" and 0 < number <= sent:
            made.nak(number, 0, now)
        elif verb == "wait":
            now += number * 10
            made.expire(now)
        assert set(made.unacked) == set(range(1, sent + 1)) - acked
        assert made.floor_stream < min(made.unacked, default=sent + 1)
    now += 10_000
    made.expire(now)
    came = set()
    while due := made.next_redelivery():
        made.deliver_again(due, now)
        came.add(due)
    assert came == set(range(1, sent + 1)) - acked
