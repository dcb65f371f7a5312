"""Fast-ingest batches: what a reply subject says, how many messages go without an answer, what is over when."""

import pytest

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
    assert read_reply(b"_INBOX.x.y.id.5.ok.7.1.$FI") == FastReply(b"id", 5, True, 7, APPEND)
    assert read_reply(b"p..0.fail.1.2.$FI") == FastReply(b"", 10, False, 1, COMMIT)
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
