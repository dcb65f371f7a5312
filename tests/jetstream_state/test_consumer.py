"""What a consumer delivers, redelivers and counts: by rule, and as a model under random acks, naks and waiting."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_state.ack_deadlines import STALE_ENTRIES
from headwater.jetstream_state.consumer import (
    ACKED,
    ACKED_ALL,
    DELIVERED,
    GIVEN_UP,
    MOST_DELIVERIES,
    NEVER,
    REDELIVERED,
    Consumer,
    ConsumerSnapshot,
)


def consumer(start: int = 1, **config: object) -> Consumer:
    given = {"ack_policy": "explicit", "ack_wait": 100, "max_ack_pending": -1, "max_deliver": -1} | config
    made = Consumer(ConsumerConfig(**given), start)  # type: ignore[arg-type]
    made.num_pending = 1000
    return made


def waits(made: Consumer) -> dict[int, tuple[int, int]]:
    return {sequence: (entry.first, entry.deadline) for sequence, entry in made.unacked.items()}


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


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=8) | st.lists(st.just(1), min_size=1, max_size=8),
    st.booleans(),
    st.sampled_from(["none", "explicit"]),
)
def test_a_run_leaves_what_deliveries_one_by_one_would(steps: list[int], backoff: bool, policy: str) -> None:
    sequences = [sum(steps[: n + 1]) for n in range(len(steps))]
    together, single = (consumer(ack_policy=policy, backoff=[7, 9] if backoff else []) for _ in range(2))
    together.deliver_run(sequences, 50)
    deliver(single, *sequences, now=50)
    assert together.snapshot() == single.snapshot()
    if sequences == list(range(sequences[0], sequences[-1] + 1)):
        whole, kept = consumer(ack_policy=policy, backoff=[7, 9] if backoff else []), consumer(ack_policy=policy)
        whole.events, kept.events = [], []
        whole.deliver_span(sequences[0], sequences[-1], 50)
        kept.deliver_run(sequences, 50)
        assert (whole.snapshot(), whole.events) == (single.snapshot(), kept.events)
        assert (waits(whole), whole.num_pending) == (waits(single), single.num_pending)
    assert (waits(together), together.num_pending) == (waits(single), single.num_pending)
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


def test_a_redelivered_message_holds_the_floor_until_its_ack_whatever_number_its_redelivery_had() -> None:
    made = consumer()
    deliver(made, 1, 2, 3, 4)
    for sequence in (1, 2):
        made.nak(sequence, 0, 0)
        assert made.next_redelivery() == sequence
        made.deliver_again(sequence, 0)  # consumer sequences 5 and 6
    made.ack(3, 3)
    assert (made.floor_consumer, made.floor_stream) == (0, 0)
    made.ack(2, 6)
    assert (made.floor_consumer, made.floor_stream) == (0, 0)
    made.ack(1, 5)
    assert (made.floor_consumer, made.floor_stream) == (3, 3), "up to what is delivered and not settled"
    made.ack(4, 4)
    assert (made.floor_consumer, made.floor_stream) == (6, 4), "all deliveries count once nothing waits"


def test_the_floor_ends_before_the_first_that_waits_and_not_before_the_next_in_the_stream() -> None:
    made = consumer()
    deliver(made, 2, 5, 9)  # the others do not match
    made.ack(2, 1)
    assert (made.floor_consumer, made.floor_stream) == (1, 4)
    made.nak(5, 0, 0)
    made.next_redelivery()
    made.deliver_again(5, 0)
    deliver(made, 12)  # consumer sequence 5
    made.ack(5, 4)
    assert (made.floor_consumer, made.floor_stream) == (2, 8)
    made.ack(9, 3)
    assert (made.floor_consumer, made.floor_stream) == (4, 11), "one below the first delivery of 12"


FLOOR_STEPS = st.lists(st.tuples(st.sampled_from(["new", "again", "ack"]), st.integers(0, 9)), max_size=40)


@given(FLOOR_STEPS, st.integers(1, 3))
def test_the_floor_is_always_what_lies_below_the_first_delivery_that_is_not_settled(
    steps: list[tuple[str, int]], gap: int
) -> None:
    made, order, floor = consumer(), list[tuple[int, int]](), (0, 0)
    for step, number in steps:
        waiting = [entry for entry in order if entry[0] in made.unacked]
        if step == "new":
            sequence = made.position + number % gap
            order.append((sequence, made.deliver_new(sequence, 0)))
        elif waiting and step == "again":
            made.nak(waiting[number % len(waiting)][0], 0, 0)
            made.deliver_again(made.next_redelivery(), 0)
        elif waiting:
            chosen = waiting.pop(number % len(waiting))
            made.ack(*chosen)
            if not waiting:
                floor = (made.delivered_consumer, made.delivered_stream)
            elif chosen[1] < waiting[0][1]:
                floor = (waiting[0][1] - 1, waiting[0][0] - 1)
        assert (made.floor_consumer, made.floor_stream) == floor


def test_with_ack_policy_all_one_ack_settles_all_before_it() -> None:
    made = consumer(ack_policy="all")
    deliver(made, 1, 2, 3)
    made.ack(2, 2)
    assert list(made.unacked) == [3]
    assert (made.floor_consumer, made.floor_stream) == (2, 2)


def test_an_ack_of_all_settles_the_last_delivery_and_ignores_what_was_never_delivered() -> None:
    made = consumer(ack_policy="all")
    deliver(made, 1, 2, 3)
    made.ack(4, 4)
    assert list(made.unacked) == [1, 2, 3]
    made.ack(3, 3)
    assert (made.unacked, made.floor_consumer, made.floor_stream) == ({}, 3, 3)


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
            made.ack(number, made.unacked[number].first if number in made.unacked else number)
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


STEPS = st.lists(
    st.tuples(st.sampled_from(["new", "run", "ack", "ack", "nak", "again", "expire", "snapshot"]), st.integers(0, 9)),
    max_size=40,
)


@given(STEPS, st.sampled_from(["explicit", "all", "none"]), st.sampled_from([-1, 2]), st.booleans())
def test_a_snapshot_and_the_events_after_it_make_the_present_state(
    steps: list[tuple[str, int]], ack_policy: str, max_deliver: int, last_per_subject: bool
) -> None:
    config = ConsumerConfig(ack_policy=ack_policy, ack_wait=100, max_ack_pending=-1, max_deliver=max_deliver)  # type: ignore[arg-type]
    made = Consumer(config, 20 if last_per_subject else 1, [3, 7, 9] if last_per_subject else [])
    made.events = []
    saved, now = made.snapshot(), 0
    for step, number in steps:
        now += 7
        following = made.selected[0] if made.selected else made.position + number % 3
        if step == "new":
            made.deliver_new(following, now)
        elif step == "run" and made.selected:
            made.deliver_run(list(made.selected)[: max(1, number)], now)
        elif step == "run":
            made.deliver_run([following, *range(following + 1 + number % 2, following + number)], now)
        elif step == "ack" and made.unacked:
            sequence = sorted(made.unacked)[number % len(made.unacked)]
            made.ack(sequence, made.unacked[sequence].first)
        elif step == "nak" and made.unacked:
            made.nak(sorted(made.unacked)[number % len(made.unacked)], 0, now)
        elif step == "again" and (sequence := made.next_redelivery()):
            made.deliver_again(sequence, now)
        elif step == "expire":
            made.expire(now + 200)
        elif step == "snapshot":
            saved, made.events = made.snapshot(), []
    again = Consumer(config, 1)
    again.restore(saved, 10**6, now)
    again.replay(made.events, 10**6, now)
    assert again.snapshot() == made.snapshot()


def redeliver(made: Consumer, sequence: int, now: int = 0) -> tuple[int, int]:
    made.nak(sequence, 0, now)
    assert made.next_redelivery() == sequence
    return made.deliver_again(sequence, now)


def test_a_new_consumer_counts_from_below_what_it_begins_with() -> None:
    config = ConsumerConfig(ack_policy="explicit")
    assert (Consumer(config, 5).delivered_stream, Consumer(config, 5).floor_stream) == (4, 4)
    made = Consumer(config, 20, [3, 7])
    assert (made.delivered_stream, made.floor_stream, made.position) == (2, 2, 20)


def test_events_are_runs_of_one_kind_that_follow_each_other() -> None:
    made = consumer(max_deliver=2)
    made.events = []
    deliver(made, 1, 2, 3)
    made.deliver_run([4, 5], 0)
    made.deliver_run([7, 9], 0)
    made.ack(1, 1)
    redeliver(made, 2)
    made.ack(3, 3)
    made.ack(4, 4)
    made.nak(2, 0, 0)
    assert made.next_redelivery() == 0
    assert made.events == [
        [DELIVERED, 1, 3],
        [DELIVERED, 4, 5],
        [DELIVERED, 7, 7],
        [DELIVERED, 9, 9],
        [ACKED, 1, 1],
        [REDELIVERED, 2, 2],
        [ACKED, 3, 4],
        [GIVEN_UP, 2, 2],
    ]


def test_an_ack_of_all_is_an_event_with_its_consumer_sequence_each_time() -> None:
    made = consumer(ack_policy="all")
    made.events = []
    deliver(made, 4, 5, 6)
    made.ack(4, 1)
    made.ack(5, 2)
    made.ack(5, 2)  # is settled already
    assert made.events == [[DELIVERED, 4, 6], [ACKED_ALL, 4, 1], [ACKED_ALL, 5, 2]]


def test_the_last_step_of_a_backoff_holds_for_all_later_deliveries() -> None:
    made = consumer(backoff=[10, 20], max_deliver=9)
    deliver(made, 1, now=0)
    for now, deadline in ((100, 120), (200, 220), (300, 320)):
        redeliver(made, 1, now)
        assert made.expire(now) == deadline
    made.progress(1, 310)
    assert made.expire(310) == 330, "progress waits as long as the delivery before it"
    made = consumer(backoff=[10, 20], max_deliver=9)
    deliver(made, 1, now=0)
    made.progress(1, 5)
    assert made.expire(5) == 15


def test_progress_and_naks_of_what_is_settled_or_due_change_nothing() -> None:
    made = consumer()
    deliver(made, 1, 2)
    made.ack(1, 1)
    made.progress(1, 50)
    made.nak(1, 5, 50)
    assert list(made.unacked) == [2]
    made.nak(2, 0, 50)
    made.nak(2, 0, 50)
    made.nak(2, 7, 50)
    assert made.redeliveries == 1
    assert redeliver_all(made, 60) == [2]
    assert made.expire(60) == 160


def redeliver_all(made: Consumer, now: int) -> list[int]:
    came = []
    while sequence := made.next_redelivery():
        made.deliver_again(sequence, now)
        came.append(sequence)
    return came


def test_a_delayed_nak_and_progress_keep_the_number_of_the_first_delivery() -> None:
    made = consumer()
    deliver(made, 7, 8)
    made.nak(7, 30, 10)
    assert made.expire(10) == 40
    made.progress(8, 60)
    assert waits(made) == {7: (1, 40), 8: (2, 160)}
    made.ack(7, 1)
    assert (made.floor_consumer, made.floor_stream) == (1, 7)


def test_what_was_acknowledged_while_it_was_due_does_not_come_again() -> None:
    made = consumer()
    deliver(made, 1, 2, 3)
    for sequence in (1, 2, 3):
        made.nak(sequence, 0, 0)
    made.ack(1, 1)
    made.ack(2, 2)
    assert redeliver_all(made, 5) == [3]
    assert made.expire(5) == 105


def test_a_message_that_leaves_the_stream_is_settled_and_moves_the_floor() -> None:
    made = consumer()
    deliver(made, 1, 2, 3)
    assert made.removed(1)
    assert not made.removed(1)
    assert not made.removed(9)
    assert (made.floor_consumer, made.floor_stream, list(made.unacked)) == (1, 1, [2, 3])
    made.nak(2, 0, 0)
    made.forget(2)
    assert (made.next_redelivery(), list(made.unacked)) == (0, [3])
    made.drop_absent(lambda sequence: sequence == 3)
    assert (made.floor_consumer, made.floor_stream, made.unacked) == (3, 3, {})


def test_a_purge_moves_position_and_floor_to_below_what_is_left() -> None:
    made = consumer()
    made.selected.extend([1, 5, 6])
    made.purged(5)
    assert (made.position, list(made.selected), made.delivered_stream, made.floor_stream) == (5, [5, 6], 4, 4)
    made = consumer()
    deliver(made, 1, 2, 3, 4)
    made.purged(3)
    assert (made.delivered_stream, made.floor_stream, made.floor_consumer) == (4, 2, 2)
    assert list(made.unacked) == [3, 4]
    made.purged(3)
    made.purged(2)
    assert (made.position, made.floor_stream, made.floor_consumer) == (5, 2, 2)
    made.purged(9)
    assert (made.position, made.delivered_stream, made.floor_stream, made.floor_consumer) == (9, 8, 8, 4)
    assert made.unacked == {}


def test_a_reset_leaves_nothing_of_before() -> None:
    made = consumer()
    deliver(made, 1, 2)
    redeliver(made, 1)
    made.nak(2, 0, 0)
    made.selected.append(3)
    made.reset(7)
    assert made.snapshot() == consumer(7).snapshot()
    assert (made.redeliveries, made.expire(10**6)) == (0, 0)
    deliver(made, 7)
    made.ack(7, 1)
    assert (made.floor_consumer, made.floor_stream) == (1, 7)


def test_many_acks_leave_deadlines_and_floor_right_when_the_stale_entries_are_dropped() -> None:
    made = consumer()
    count = 4 * STALE_ENTRIES
    for sequence in range(1, count + 1):
        made.deliver_new(sequence, sequence)
        if sequence % 2 == 0:
            made.progress(sequence, 10**6)
        if sequence > 3:
            made.ack(sequence, sequence)
    assert (made.floor_consumer, list(made.unacked)) == (0, [1, 2, 3])
    assert made.expire(100) == 101
    made.ack(1, 1)
    assert (made.floor_consumer, made.floor_stream) == (1, 1)
    assert made.expire(103) == 10**6 + 100
    assert made.next_redelivery() == 3


def test_messages_of_one_run_are_due_together_but_for_those_that_were_given_more_time() -> None:
    made = consumer()
    run = [1, 2, 3, 4]
    made.deliver_run(run, now=0)
    made.deliver_new(5, 0)
    made.deliver_run([6, 7], now=1)
    made.progress(2, 50)
    made.ack(1, 1)
    made.nak(4, 0, 50)
    assert (run, made.expire(99)) == ([1, 2, 3, 4], 100)
    assert made.expire(100) == 101
    made.ack(7, 7)
    assert made.expire(101) == 150
    assert made.expire(150) == 0
    came = []
    while due := made.next_redelivery():
        came.append(due)
        made.deliver_again(due, 150)
    assert came == [4, 3, 5, 6, 2]
    assert made.expire(150) == 250


def test_a_snapshot_with_impossible_numbers_is_cut_to_what_can_be_counted() -> None:
    made = consumer()
    deliver(made, 1)
    saved = structs.replace(made.snapshot(), delivered_consumer=1 << 64, floor_consumer=1 << 65, unacked={1: 1 << 66})
    again = consumer()
    again.restore(saved, end=2, now=0)
    assert again.deliver_new(2, 0) == MOST_DELIVERIES + 1
    assert waits(again) == {1: (MOST_DELIVERIES, 100), 2: (MOST_DELIVERIES + 1, 100)}


def test_a_wait_of_any_length_is_a_wait() -> None:
    made = consumer(ack_wait=(1 << 63) - 1, backoff=None)
    deliver(made, 1, now=1000)
    assert made.expire(1 << 60) == 1000 + NEVER
    made.nak(1, 1 << 70, 2000)
    assert waits(made) == {1: (1, 2000 + NEVER)}


def test_a_snapshot_has_every_number() -> None:
    made = consumer()
    deliver(made, 1, 2, 3, 4)
    made.ack(1, 1)
    redeliver(made, 3)
    made.selected.append(2)
    assert made.snapshot() == ConsumerSnapshot(
        position=5,
        selected=[2],
        delivered_consumer=5,
        delivered_stream=4,
        floor_consumer=1,
        floor_stream=1,
        unacked={2: 2, 3: 3, 4: 4},
        attempts={3: 1},
    )


def test_a_snapshot_that_knows_more_than_the_log_is_cut_to_what_the_log_holds() -> None:
    made = consumer(backoff=[10, 20])
    deliver(made, 1, 2, 3, 4)
    for sequence in (1, 2, 3):
        redeliver(made, sequence)
    made.selected.extend([2, 3])
    saved = made.snapshot()
    again = consumer(backoff=[10, 20])
    again.restore(saved, end=3, now=1000)
    assert (again.position, list(again.selected), again.delivered_stream, again.delivered_consumer) == (3, [2], 2, 7)
    assert (again.attempts, waits(again)) == ({1: 1, 2: 1}, {1: (1, 1020), 2: (2, 1020)})
    made.floor_stream = 4
    again = consumer()
    again.restore(made.snapshot(), end=3, now=1000)
    assert again.floor_stream == 2
    waiting = consumer(deliver_policy="by_start_sequence", opt_start_seq=50)
    waiting.restore(consumer(50).snapshot(), end=3, now=0)
    assert waiting.position == 50, "it was told to begin with what is not there yet"
    first = consumer(backoff=[10, 20])
    deliver(first, 1)
    waiting = consumer(backoff=[10, 20])
    waiting.restore(first.snapshot(), end=9, now=0)
    assert waits(waiting) == {1: (1, 10)}


def test_replayed_events_settle_and_count_as_the_events_themselves_did() -> None:
    made = consumer(max_deliver=3, backoff=[10, 20, 30])
    made.selected.extend([3, 7])
    saved = made.snapshot()
    made.events = []
    deliver(made, 3, 7)
    made.ack(3, 1)
    deliver(made, 11, 12, 13)
    made.ack(12, 4)
    redeliver(made, 7)
    redeliver(made, 7)
    redeliver(made, 11)
    made.nak(7, 0, 0)
    assert made.next_redelivery() == 0
    again = consumer(max_deliver=3, backoff=[10, 20, 30])
    again.restore(saved, 100, 0)
    assert again.replay(made.events, 100, 500) == [3, 12]
    assert again.snapshot() == made.snapshot()
    assert waits(again) == {11: (3, 520), 13: (5, 510)}
    before = again.snapshot()
    assert again.replay([[DELIVERED, 11, 13]], 100, 500) == []
    assert again.snapshot() == before, "what the snapshot knows already is not counted twice"
    cut = consumer(max_deliver=3)
    cut.restore(saved, 100, 0)
    cut.selected.clear()
    cut.replay([[DELIVERED, 11, 13]], 13, 0)
    assert (list(cut.unacked), cut.position) == ([11, 12], 13), "the log ends there"


def test_replaying_names_what_needs_no_ack_and_what_one_ack_settled_with_others() -> None:
    made = consumer(ack_policy="none")
    assert made.replay([[DELIVERED, 1, 2], [DELIVERED, 5, 5]], 100, 0) == [1, 2, 5]
    assert made.floor_stream == 5
    made = consumer(ack_policy="all")
    events = [[DELIVERED, 1, 4], [ACKED_ALL, 2, 2], [ACKED_ALL, 3, 3]]
    assert made.replay(events, 100, 0) == [1, 2, 3]
    assert (made.floor_consumer, made.floor_stream, list(made.unacked)) == (3, 3, [4])


def test_what_was_delivered_is_below_the_position_and_not_selected_for_later() -> None:
    made = consumer(4)
    made.selected.extend([1, 3])
    assert [made.was_delivered(sequence) for sequence in (1, 2, 3, 4)] == [False, True, False, False]
    deliver(made, 1, 3, 4)
    assert [made.was_delivered(sequence) for sequence in (1, 3, 4, 5)] == [True, True, True, False]
