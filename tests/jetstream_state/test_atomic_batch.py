"""Open batches: bounds of number and memory, time-outs, and what is never kept."""

import pytest

from headwater.errors import JetStreamError
from headwater.jetstream_state import atomic_batch
from headwater.jetstream_state.atomic_batch import Abandoned, BatchSoFar, Message, OpenBatches
from headwater.model.stream_limits import ServerLimits


def part(batch: str, sequence: int, commit: str = "", size: int = 1) -> Message:
    lines = f"NATS/1.0\r\nNats-Batch-Id: {batch}\r\nNats-Batch-Sequence: {sequence}\r\n"
    lines += f"Nats-Batch-Commit: {commit}\r\n" if commit else ""
    return Message(b"s", f"{lines}\r\n".encode(), b"x" * size)


def test_a_message_of_a_batch_gives_it_more_time_and_the_end_is_told_once() -> None:
    batches = OpenBatches(2)
    batches.take(part("a", 1), 0)
    batches.take(part("b", 1), 5)
    batches.take(part("a", 2), ServerLimits().batch_timeout - 1)
    assert batches.next_end() == ServerLimits().batch_timeout + 5
    assert batches.expired(ServerLimits().batch_timeout + 5) == [b"b"]
    assert batches.expired(ServerLimits().batch_timeout + 5) == []
    with pytest.raises(JetStreamError) as refused:
        batches.take(part("b", 2, "1"), ServerLimits().batch_timeout + 6)
    assert refused.value.err_code == 10176
    committed = batches.take(part("a", 3, "1"), ServerLimits().batch_timeout + 6)
    assert committed is not None
    assert len(committed.messages) == 3
    assert (len(batches), batches.next_end()) == (0, 0)


def test_open_batches_take_no_more_memory_than_allowed_and_give_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic_batch, "MOST_BYTES", 1000)
    batches = OpenBatches(2)
    for _ in range(3):
        batches.take(part("a", 1, size=400), 0)
        batches.take(part("b", 1, size=400), 0)
        with pytest.raises(Abandoned) as ended:
            batches.take(part("b", 2, size=400), 0)
        assert (ended.value.reason, ended.value.refusal.err_code) == ("large", 10199)
        assert batches.take(part("a", 2, "eob"), 0) is not None
        assert len(batches) == 0


@pytest.mark.parametrize("expected", ["", "7", "x", "8", "9" * 5000])
def test_an_expected_sequence_that_no_stream_can_have_is_a_wrong_one(expected: str) -> None:
    block = f"NATS/1.0\r\nNats-Expected-Last-Sequence: {expected}\r\n\r\n".encode()
    if expected in ("", "7"):
        BatchSoFar(7).check_expectations(block, b"s")
        return
    with pytest.raises(JetStreamError) as refused:
        BatchSoFar(7).check_expectations(block, b"s")
    assert refused.value.err_code == 10071
