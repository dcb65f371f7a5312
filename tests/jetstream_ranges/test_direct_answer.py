"""Answers to direct gets as they stand on the wire: equal to what the plain functions for headers and times make of them."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import cast

from hypothesis import example, given
from hypothesis import strategies as st
from support.fake_link import make_outlet
from support.recording_files import RecordingFiles

from headwater.exchange.router import Router
from headwater.exchange.sublist import Subscription
from headwater.jetstream_ranges.direct_answer import (
    DIRECT_PREFIX,
    KEPT,
    WRITTEN_TOGETHER,
    DirectAnswer,
    DirectRequests,
    DirectStream,
)
from headwater.jetstream_state.subject_table import SubjectTable
from headwater.model.header_edits import with_lines
from headwater.model.timestamps import SECOND, format_time
from headwater.streams.log import Log
from headwater.streams.log_format import StoredRecord
from headwater.streams.options import LogOptions

Call = tuple[bytes, bytes, bytes, bytes]
DAY = 86_400 * SECOND


def answering(received: list[Call]) -> DirectAnswer:
    router = Router(lambda function: None, seed=1)
    router.subscribe_internal(b"inbox.*", lambda *call: received.append(call))
    return DirectAnswer(router)


def expected(record: StoredRecord, more: bytes) -> bytes:
    lines = b"Nats-Stream: ORDERS\r\nNats-Subject: %b\r\nNats-Sequence: %d\r\nNats-Time-Stamp: %b%b" % (
        record.subject,
        record.offset + 1,
        format_time(record.timestamp_ns).encode(),
        more,
    )
    return with_lines(record.header_block, lines)


blocks = st.sampled_from([b"", b"NATS/1.0\r\nA: 1\r\n\r\n", b"\r\n", b"no header block"])
times = st.one_of(st.integers(0, 4_000_000_000 * SECOND), st.integers(0, 10**6).map(lambda second: second * SECOND))
records = st.builds(StoredRecord, st.integers(0, 2**62), times, st.binary(max_size=20), blocks, st.binary(max_size=40))


@given(st.lists(st.tuples(records, st.sampled_from([b"", b"\r\nNats-Num-Pending: 3"])), max_size=5))
@example([(StoredRecord(0, time, b"s", b"", b""), b"") for time in (0, DAY - 1, DAY, -1, -DAY, 10 * DAY + 100)])
def test_an_answer_says_where_its_message_is_from(several: list[tuple[StoredRecord, bytes]]) -> None:
    received: list[Call] = []
    answers = answering(received)
    for record, more in several:
        answers.send(b"inbox.a", b"ORDERS", record, more, False)
        answers.send(b"inbox.b", b"ORDERS", record, more, True)
    assert received == [
        call
        for record, more in several
        for call in (
            (b"inbox.a", b"", expected(record, more), record.payload),
            (b"inbox.b", b"", b"", record.payload),
        )
    ]


def test_who_asks_again_while_an_answer_is_on_its_way_gets_another() -> None:
    received: list[Call] = []
    router = Router(lambda function: None, seed=1)
    answers = DirectAnswer(router)
    first, second = (StoredRecord(number, number, b"s", b"", b"%d" % number * 9) for number in range(2))

    def ask_again(*call: bytes) -> None:
        answers.send(b"other", b"ORDERS", second, b"", False)

    router.subscribe_internal(b"inbox", ask_again)
    router.subscribe_internal(b"inbox", lambda *call: received.append(call))
    router.subscribe_internal(b"other", lambda *call: received.append(call))
    answers.send(b"inbox", b"ORDERS", first, b"", False)
    assert sorted(received) == [
        (b"inbox", b"", expected(first, b""), first.payload),
        (b"other", b"", expected(second, b""), second.payload),
    ]


def test_answers_are_right_behind_one_that_was_too_large_to_keep_its_buffer() -> None:
    received: list[Call] = []
    answers = answering(received)
    both = [StoredRecord(7, 7, b"s", b"", bytes(KEPT + 1)), StoredRecord(8, 8, b"s", b"", b"small")]
    for record in both:
        answers.send(b"inbox.a", b"ORDERS", record, b"", False)
    assert received == [(b"inbox.a", b"", expected(record, b""), record.payload) for record in both]


def stream(log: object, subjects: SubjectTable, *, allow_direct: bool = True) -> SimpleNamespace:
    """What a get needs of a stream."""
    contents = SimpleNamespace(log=log, subjects=subjects)
    return SimpleNamespace(config=SimpleNamespace(allow_direct=allow_direct), contents=contents)


def test_answers_of_one_read_are_written_before_its_end_when_they_are_many() -> None:
    router = Router(lambda function: None, seed=1)
    answers = DirectAnswer(router)
    link, outlet = make_outlet()
    router.subscribe(Subscription(b"inbox", b"", b"1", outlet, None))
    record = StoredRecord(1, 1, b"s", b"", bytes(100))
    router.begin_read()
    answered = 0
    while not link.flushed:
        answers.send(b"inbox", b"ORDERS", record, b"", False)
        answered += 1
    router.end_read()
    assert WRITTEN_TOGETHER // 400 < answered < WRITTEN_TOGETHER // 100
    assert link.take_flushed().count(record.payload) == answered


def test_the_last_message_of_a_subject_is_sent_and_whether_there_is_one_is_said() -> None:
    received: list[Call] = []
    answers = answering(received)
    log, subjects = Log.open(RecordingFiles(), "log", LogOptions(preallocate_bytes=0), 1), SubjectTable()
    for number in range(60):
        log.stage(b"key.%d" % (number % 7), b"", b"%d" % number, number)
        subjects.add(b"key.%d" % (number % 7), number + 1, 1)
    batch = log.seal()
    assert batch is not None
    log.write(batch)
    log.publish(batch)
    there = stream(log, subjects)
    shown = stream(object(), subjects)
    refusing = stream(log, subjects, allow_direct=False)
    streams = cast(Mapping[str, DirectStream], {"ORDERS": there, "VIEW": shown, "OTHER": refusing})
    assert answers.send_one(streams, DIRECT_PREFIX + b"ORDERS.key.3", b"inbox.a", b"")
    assert answers.send_one(streams, DIRECT_PREFIX + b"ORDERS.key.*", b"inbox.a", b"")
    for request in (b"ORDERS.key.9", b"ORDERS", b"ORDERS.", b"VIEW.key.3", b"OTHER.key.3", b"NO.key.3", b"\xff.key.3"):
        assert not answers.send_one(streams, DIRECT_PREFIX + request, b"inbox.a", b"")
    assert not answers.send_one(streams, DIRECT_PREFIX + b"ORDERS.key.3", b"", b""), "nobody to answer"
    for payload in (
        b'{"seq":61}',
        b'{"seq":0}',
        b'{"seq":060}',
        b'{"seq":6"}',
        b'{"seq":60',
        b'{"seq":}',
        b'{"seq":-1}',
        b"60",
    ):
        assert not answers.send_one(streams, DIRECT_PREFIX + b"ORDERS", b"inbox.a", payload)
    assert not answers.send_one(streams, DIRECT_PREFIX + b"ORDERS", b"inbox.a", b'{"seq":%d}' % (60 + (1 << 64)))
    assert not answers.send_one(streams, DIRECT_PREFIX + b"ORDERS.key.3", b"inbox.a", b'{"seq":60}')
    assert answers.send_one(streams, DIRECT_PREFIX + b"ORDERS", b"inbox.a", b'{"seq":58}')
    passed_on: list[Call] = []
    waiting: dict[str, object] = {}
    longer: list[Call] = []
    requests = DirectRequests(
        answers, streams, waiting, lambda *call: passed_on.append(call), lambda *call: longer.append(call)
    )
    for taken, call in (
        (longer, (DIRECT_PREFIX + b"ORDERS.key.3", b"inbox.a", b"", b"{}")),
        (longer, (DIRECT_PREFIX + b"ORDERS.key.9", b"inbox.a", b"", b"")),
        (passed_on, (b"$JS.API.INFO", b"inbox.a", b"A: 1", b"")),
    ):
        requests.take(*call)
        assert taken.pop() == call
        assert not [*passed_on, *longer], "a get is not looked up twice"
    requests.take(DIRECT_PREFIX + b"ORDERS.key.3", b"inbox.a", b"", b"")
    assert not [*passed_on, *longer]
    _, behind = make_outlet()
    for held in (waiting.setdefault, lambda *_: answers.router.flusher.congested.append(behind)):
        held("client", behind)
        requests.take(DIRECT_PREFIX + b"ORDERS.key.3", b"inbox.a", b"", b"")
        assert passed_on.pop()[0] == DIRECT_PREFIX + b"ORDERS.key.3", "it may have to wait"
        waiting.clear()
    answers.router.flusher.congested.clear()
    log.discard(59)
    assert not answers.send_one(streams, DIRECT_PREFIX + b"ORDERS.key.3", b"inbox.a", b"")
    assert [payload for _, _, _, payload in received] == [b"59", b"59", b"57", b"59"]
