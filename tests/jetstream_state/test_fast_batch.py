"""Fast-ingest batches: what a reply subject says, how many messages go without an answer, what is over when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import JetStreamError
from headwater.jetstream_state.fast_batch import (
    APPEND,
    COMMIT,
    MOST_OPEN,
    MOST_UNANSWERED,
    PING,
    START,
    TIMEOUT,
    FastBatch,
    FastBatches,
    FastReply,
    error_answer,
    gap_answer,
    read_reply,
)


def first(batch_id: bytes = b"b", flow: int = 10) -> FastReply:
    return FastReply(batch_id, flow, False, 1, START)


def test_a_reply_subject_is_read_from_its_end() -> None:
    assert read_reply(b"_INBOX.x.y.id.5.ok.7.1.$FI") == FastReply(b"id", 5, True, 7, APPEND, b"_INBOX.x.y.id.5.ok.")
    assert read_reply(b"p..0.fail.1.2.$FI") == FastReply(b"", 10, False, 1, COMMIT, b"p..0.fail.")
    assert read_reply(b"p.id.70000.fail.1.2.$FI").flow == 65_535


@pytest.mark.parametrize(
    "reply",
    [b"id.5.ok.7.1.$FI", b"p.id.5.maybe.7.1.$FI", b"p.id.5.ok.0.4.$FI", b"p.id.5.ok.1.1.$FI", b"p.id.5.ok.2.0.$FI"],
)
def test_another_form_is_refused(reply: bytes) -> None:
    with pytest.raises(JetStreamError) as refused:
        read_reply(reply)
    assert refused.value.err_code == 10206


def test_an_id_has_a_bound() -> None:
    with pytest.raises(JetStreamError) as refused:
        read_reply(b"p.%b.5.ok.1.0.$FI" % (b"x" * 65))
    assert refused.value.err_code == 10207


def flows(batch: FastBatch, messages: int, batches: int) -> list[tuple[int, int]]:
    """After which messages there was an answer, and how many then go without one."""
    found = []
    for _ in range(messages):
        batch.sequence += 1
        if batch.due_answer(batches):
            found.append((batch.sequence, batch.flow))
    return found


def test_a_batch_alone_is_answered_as_rarely_as_it_likes_and_several_share() -> None:
    alone = FastBatches().find(first(flow=60_000), 0)
    assert flows(alone, 1001, 1) == [(500, MOST_UNANSWERED), (1000, MOST_UNANSWERED)]
    both = FastBatches()
    both.find(first(b"a"), 0)
    assert flows(both.find(first(b"b", flow=300), 0), 500, 2) == [
        (1, 2), (3, 4), (7, 8), (15, 16), (31, 32), (63, 64), (127, 128), (255, 250),
    ]  # fmt: skip


def test_a_batch_is_over_when_nothing_comes() -> None:
    batches = FastBatches()
    batch = batches.find(first(), 0)
    assert batches.next_end() == TIMEOUT
    assert batches.find(FastReply(b"b", 1, False, 2, APPEND), TIMEOUT - 1) is batch
    batches.drop_expired(TIMEOUT)
    assert len(batches) == 1
    batches.drop_expired(2 * TIMEOUT)
    with pytest.raises(JetStreamError) as refused:
        batches.find(FastReply(b"b", 1, False, 2, APPEND), 0)
    assert refused.value.err_code == 10208


def test_a_message_that_goes_on_keeps_its_batch_from_the_next_look_on() -> None:
    batches = FastBatches()
    batch = batches.find(first(), 0)
    batch.append(b"p.b.9.fail.2.1.$FI", 2)
    batches.drop_expired(TIMEOUT)
    assert (len(batches), batches.next_end()) == (1, 2 * TIMEOUT)
    batches.drop_expired(2 * TIMEOUT)
    assert len(batches) == 0


def test_there_are_so_many_batches_and_no_more() -> None:
    batches = FastBatches()
    for number in range(MOST_OPEN):
        batches.find(first(b"%d" % number), 0)
    with pytest.raises(JetStreamError) as refused:
        batches.find(first(b"one more"), 0)
    assert refused.value.err_code == 10211


def test_a_ping_begins_no_batch() -> None:
    with pytest.raises(JetStreamError):
        FastBatches().find(FastReply(b"b", 1, False, 1, PING), 0)


def test_batches_are_found_by_the_sequences_that_they_stored() -> None:
    batches = FastBatches()
    batch = batches.find(first(), 0)
    assert batches.with_messages(1, 9) == []
    batch.note_stored(5)
    batch.note_stored(8)
    assert [batches.with_messages(*span) for span in ((1, 4), (1, 5), (8, 9), (9, 9))] == [[], [batch], [batch], []]


def test_answers_are_documents() -> None:
    assert gap_answer(2, 5) == b'{"type":"gap","last_seq":2,"seq":5}'
    error = JetStreamError(400, 10071, "wrong last sequence: 3")
    assert error_answer(7, error) == (
        b'{"type":"err","seq":7,"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"}}'
    )


@given(
    flow=st.integers(1, 12),
    before=st.integers(0, 12),
    reply=st.sampled_from([b"p.b.%d.fail.", b"p.c.%d.fail.", b"q.b.%d.fail.", b"p.b.%d.ok."]),
    number=st.one_of(st.integers(0, 14).map(lambda n: b"%d" % n), st.sampled_from([b"", b"1x", b"-1", b"9" * 30])),
    end=st.sampled_from([b".1.$FI", b".0.$FI", b".2.$FI", b".4.$FI", b"..$FI", b".1.$F"]),
)
def test_what_simply_goes_on_is_the_next_message_of_the_same_batch_without_an_answer(
    flow: int, before: int, reply: bytes, number: bytes, end: bytes
) -> None:
    open_batches = FastBatches()
    batch = open_batches.find(read_reply(b"p.b.%d.fail.1.0.$FI" % flow), 0)
    for sequence in range(1, before + 1):
        batch.sequence = sequence
        batch.due_answer(1)
    whole = reply % flow + number + end
    same = whole == b"p.b.%d.fail.%d.1.$FI" % (flow, before + 1)
    expected = same and before + 1 < batch.answered + batch.flow
    assert batch.is_next(whole) == expected
    batch.committed = True
    assert not batch.is_next(whole)


def test_a_message_that_goes_on_counts_as_one_that_was_taken() -> None:
    open_batches = FastBatches()
    batch = open_batches.find(read_reply(b"p.b.9.fail.1.0.$FI"), 0)
    batch.sequence = 1
    batch.note_stored(40)
    assert batch.is_next(b"p.b.9.fail.2.1.$FI")
    batch.append(b"p.b.9.fail.2.1.$FI", 41)
    assert (batch.sequence, batch.first, batch.stored, batch.last_reply) == (2, 40, 41, b"p.b.9.fail.2.1.$FI")
    open_batches.forget(batch)
    assert not batch.is_next(b"p.b.9.fail.3.1.$FI")
