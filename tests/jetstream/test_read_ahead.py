"""New messages of a consumer, read in batches: in order, past what the filter leaves out, anew after a change."""

from types import SimpleNamespace
from typing import cast

import pytest
from support.recording_files import RecordingFiles

import headwater
from headwater.jetstream.consumed_stream import ConsumedStream
from headwater.jetstream.read_ahead import SKIPPED, ReadAhead
from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_ranges.stored_run import LEAST
from headwater.jetstream_state.consumer import Consumer
from headwater.jetstream_state.contents import Contents
from headwater.streams.log import Log, LogOptions


def reading(subjects: list[bytes], **settings: str) -> tuple[ReadAhead, Consumer, Log]:
    log = Log.open(RecordingFiles(), "log", LogOptions(preallocate_bytes=0), 1)
    for subject in subjects:
        log.stage(subject, b"", subject, 1)
    batch = log.seal()
    assert batch is not None
    log.write(batch)
    log.publish(batch)
    contents = Contents(log, StreamConfig(name="S"), lambda sequence, subject: None, lambda: None)
    for number, subject in enumerate(subjects, 1):
        contents.added(subject, number, 40)
    state = Consumer(ConsumerConfig(**settings), 1)  # type: ignore[arg-type]
    state.num_pending = len(subjects)
    stream = cast(ConsumedStream, SimpleNamespace(log=log, contents=contents))
    return ReadAhead(stream, state), state, log


def take(ahead: ReadAhead, state: Consumer) -> int:
    """Deliver the next message; returns its sequence, 0 when there is none."""
    record = ahead.next()
    if record is None:
        return 0
    ahead.at += 1
    state.deliver_new(record.offset + 1, 1)
    return record.offset + 1


def test_a_message_stays_in_place_until_it_is_delivered() -> None:
    ahead, state, _ = reading([b"a", b"b"])
    assert ahead.next() is ahead.next()
    assert [take(ahead, state) for _ in range(3)] == [1, 2, 0]


def test_the_filter_passes_over_others_and_the_position_follows() -> None:
    ahead, state, _ = reading([b"a", b"b", b"a", b"b"], filter_subject="a")
    assert [take(ahead, state) for _ in range(3)] == [1, 3, 0]
    assert state.position == 5


def test_the_only_message_of_a_subject_is_read_at_once_however_many_others_there_are() -> None:
    ahead, state, _ = reading([b"a"] * (2 * SKIPPED) + [b"b"] + [b"a"] * SKIPPED, filter_subject="b")
    assert [take(ahead, state), take(ahead, state)] == [2 * SKIPPED + 1, 0]
    assert state.position == 3 * SKIPPED + 2


def test_what_left_the_stream_is_read_no_more() -> None:
    ahead, state, log = reading([b"a", b"a", b"a"])
    assert take(ahead, state) == 1
    log.discard(1)
    ahead.forget_removed(9)  # behind what was read: nothing to do
    assert ahead.records
    ahead.forget_removed(2)
    assert [take(ahead, state) for _ in range(2)] == [3, 0]


def test_what_was_selected_comes_first_and_what_is_gone_of_it_counts_no_more() -> None:
    ahead, state, log = reading([b"a", b"b", b"c"])
    state.selected.extend([2, 3])
    state.num_pending = 5
    log.discard(1)
    record = ahead.next()
    assert record is not None and record.offset == 2
    assert (list(state.selected), state.num_pending) == ([3], 4)


@pytest.mark.skipif(not headwater.__compiled__, reason="interpreted, there are no runs")
def test_a_run_goes_on_where_the_last_message_was_and_is_read_anew_when_one_of_its_messages_left() -> None:
    ahead, state, log = reading([b"a"] * 3 * LEAST)
    run = ahead.run()
    assert run is not None and (run.offset, run.end) == (0, 3 * LEAST)
    assert ahead.run() is run
    ahead.forget_removed(3 * LEAST + 1)  # behind it
    assert ahead.run() is run
    assert take(ahead, state) == 1
    assert ahead.run() is None, "what was read one by one comes first"
    ahead.forget()
    later = ahead.run()
    assert later is not None and later is not run and later.offset == 1
    log.discard(LEAST)
    ahead.forget_removed(LEAST + 1)
    assert ahead.run() is None, "a message of the batch is gone"
    state.position = LEAST + 2
    behind = ahead.run()
    assert behind is not None and behind.offset == LEAST + 1


@pytest.mark.skipif(not headwater.__compiled__, reason="interpreted, there are no runs")
def test_there_is_no_run_for_a_filter_and_for_selected_messages() -> None:
    ahead, _, _ = reading([b"a"] * 3 * LEAST, filter_subject="a")
    assert ahead.run() is None
    ahead, state, _ = reading([b"a"] * 3 * LEAST)
    state.selected.append(5)
    assert ahead.run() is None


@pytest.mark.parametrize("apart", [1, 3, 250])
def test_selected_messages_are_read_together_and_end_where_one_leaves(apart: int) -> None:
    subjects = [b"wanted" if number % apart == 0 else b"other" for number in range(12 * apart)]
    ahead, state, log = reading(subjects)
    wanted = [1 + apart * number for number in range(12)]
    state.selected.extend(wanted)
    state.position = len(subjects) + 1
    assert take(ahead, state) == wanted[0]
    assert [record.offset + 1 for record in ahead.records] == wanted
    for gone in (wanted[3], wanted[7]):
        log.discard(gone - 1)
        state.selected.remove(gone)
        ahead.forget_removed(gone)
    assert [take(ahead, state) for _ in range(10)] == [n for n in wanted[1:] if n not in (wanted[3], wanted[7])] + [0]
    assert not state.selected


def test_pending_messages_that_cannot_be_read_are_counted_no_more() -> None:
    ahead, state, _ = reading([b"a"])
    assert take(ahead, state) == 1
    state.num_pending = 7
    assert ahead.next() is None
    assert state.num_pending == 0
