"""Whether a publish is taken, and which of two faults it is refused for."""

from typing import Any

import pytest
from support.recording_files import RecordingFiles

from headwater.errors import JetStreamError
from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_publishing.publish_rules import PublishRules
from headwater.jetstream_state.contents import Contents
from headwater.jetstream_state.items import Item
from headwater.jetstream_state.publish_checks import MAX_HEADER_BLOCK, Admitted, Duplicate
from headwater.model.dedup import DuplicateWindow
from headwater.streams.log import Log, LogOptions

NOW = 1_000


class Waiting:
    """What is on its way to the disk."""

    def __init__(self, *items: Item) -> None:
        self.full = False
        self.busy = bool(items)
        self.waiting = list(items)
        self.writing: list[Item] = []


def rules(**settings: Any) -> PublishRules:
    log = Log.open(RecordingFiles(), "log", LogOptions(preallocate_bytes=0), 1)
    config = StreamConfig(name="S", subjects=["orders.>"], **settings)
    contents = Contents(log, config, lambda sequence, subject: None, lambda: None)
    made = PublishRules(contents, DuplicateWindow(100), lambda: 50)
    made.unwritten = Waiting()
    return made


def block(**headers: str) -> bytes:
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"NATS/1.0\r\n{lines}\r\n".encode()


def judge(made: PublishRules, header_block: bytes = b"", payload: bytes = b"payload") -> Admitted | Duplicate:
    return made.judge(b"orders.eu", header_block, payload, NOW, b"")


def error_of(made: PublishRules, header_block: bytes = b"", payload: bytes = b"payload") -> int:
    with pytest.raises(JetStreamError) as refused:
        judge(made, header_block, payload)
    return refused.value.err_code


def stage(made: PublishRules, sequence: int) -> None:
    """Admit a publish and give it this sequence."""
    admitted = judge(made)
    assert isinstance(admitted, Admitted)
    made.note_staged(b"orders.eu", sequence, admitted)


def item(sequence: int, size: int = 10) -> Item:
    return Item(b"", b"", b"orders.eu", sequence, size, b"")


def test_a_plain_message_is_admitted_with_what_it_adds_to_the_stream() -> None:
    made = rules()
    admitted = judge(made)
    assert isinstance(admitted, Admitted)
    assert (admitted.header_block, admitted.message_id, admitted.particulars) == (b"", b"", None)
    larger = judge(made, payload=b"payload" * 2)
    assert isinstance(larger, Admitted)
    assert larger.size == admitted.size + len(b"payload")


@pytest.mark.parametrize(
    ("settings", "plain", "bare"),
    [
        ({}, True, True),
        ({"no_ack": True}, False, False),
        ({"discard": "new"}, True, True),
        ({"discard": "new", "max_msgs": 1}, False, False),
        ({"discard": "new", "max_bytes": 1}, False, False),
        ({"discard": "new", "max_msgs_per_subject": 1, "discard_new_per_subject": True}, False, False),
        ({"max_msg_size": 1}, False, False),
        ({"max_msg_size": 0}, True, True),
        ({"allow_rollup_hdrs": True}, False, True),
        ({"allow_msg_ttl": True}, False, True),
        ({"allow_msg_counter": True}, False, False),
        ({"sealed": True}, False, False),
        ({"max_msgs": 1}, True, True),
    ],
)
def test_only_a_stream_that_asks_nothing_of_a_message_is_plain(
    settings: dict[str, Any], plain: bool, bare: bool
) -> None:
    made = rules(**settings)
    assert (made.is_plain, made.takes_bare) == (plain, bare)
    made.has_room = lambda size: True
    assert not made.is_plain
    assert not made.takes_bare


def test_a_message_id_is_a_duplicate_until_its_window_is_over() -> None:
    made = rules()
    made._duplicates.remember(b"a", 6, 49)
    assert judge(made, block(Nats_Msg_Id="a")) == Duplicate(7)
    other = judge(made, block(Nats_Msg_Id="b"))
    assert isinstance(other, Admitted)
    assert other.message_id == b"b"
    made._duplicates.resize(1, 50)
    assert isinstance(judge(made, block(Nats_Msg_Id="a")), Admitted)


def test_the_size_decides_before_the_headers_and_a_duplicate_before_the_room() -> None:
    made = rules(max_msg_size=10)
    wrong = block(Nats_Expected_Stream="other")
    too_large, not_the_stream = error_of(made, payload=bytes(11)), error_of(rules(), wrong)
    assert too_large != not_the_stream
    assert error_of(made, wrong, bytes(11)) == too_large
    assert isinstance(judge(made, payload=bytes(10)), Admitted)
    full = rules()
    full.has_room = lambda size: False
    full._duplicates.remember(b"a", 0, 49)
    assert judge(full, block(Nats_Msg_Id="a")) == Duplicate(1)
    assert error_of(full, block(Nats_Msg_Id="b")) == 10002


def test_a_stream_whose_disk_is_behind_refuses_before_it_looks_at_anything() -> None:
    made = rules(sealed=True)
    assert made.unwritten is not None
    sealed = error_of(made)
    waiting = Waiting()
    waiting.full = True
    made.unwritten = waiting
    assert error_of(made) == 10167
    assert sealed != 10167


def test_a_header_block_beyond_what_the_format_holds_is_refused() -> None:
    made = rules()
    longest = block(A="x" * (MAX_HEADER_BLOCK - len(block(A=""))))
    assert len(longest) == MAX_HEADER_BLOCK
    assert isinstance(judge(made, longest), Admitted)
    assert error_of(made, longest.replace(b"A: ", b"AB: ")) == 10097


def test_what_is_staged_counts_for_the_expected_sequences() -> None:
    made = rules()
    assert isinstance(judge(made, block(Nats_Expected_Last_Subject_Sequence="0")), Admitted)
    made.unwritten = Waiting(item(1), item(2))
    assert error_of(made, block(Nats_Expected_Last_Subject_Sequence="0")) == 10071
    assert error_of(made, block(Nats_Expected_Last_Subject_Sequence="1")) == 10071
    assert isinstance(judge(made, block(Nats_Expected_Last_Subject_Sequence="2")), Admitted)


def test_with_discard_new_what_has_a_sequence_and_is_not_durable_counts_as_stored() -> None:
    made = rules(discard="new", max_msgs=2)
    for sequence in (1, 2):
        stage(made, sequence)
        made.unwritten = Waiting(*(item(number) for number in range(1, sequence + 1)))
    assert error_of(made) == 10077
    made.note_done([item(1)])
    assert isinstance(judge(made), Admitted)
    made.note_done([item(1), item(2), item(3)])  # never below nothing
    stage(made, 3)
    assert isinstance(judge(made), Admitted)


def test_a_new_configuration_counts_anew_what_is_in_flight() -> None:
    made = rules()
    stage(made, 1)  # not counted: the oldest messages make room
    made.unwritten = Waiting(item(1))
    config = StreamConfig(name="S", subjects=["orders.>"], discard="new", max_msgs=1)
    made.configure(config)
    made._contents.reconfigure(config, NOW)
    assert error_of(made) == 10077
    made.note_done([item(1)])
    assert isinstance(judge(made), Admitted)


def test_only_a_roll_up_a_ttl_and_a_republish_leave_something_to_do() -> None:
    rolled = judge(rules(allow_rollup_hdrs=True), block(Nats_Rollup="sub"))
    assert isinstance(rolled, Admitted)
    assert rolled.particulars is not None
    assert rolled.particulars.rollup == b"sub"
    assert error_of(rules(), block(Nats_Rollup="sub")) == 10111
    plain = judge(rules(allow_rollup_hdrs=True), block(A="1"))
    assert isinstance(plain, Admitted)
    assert plain.particulars is None


def test_a_message_is_durable_once_the_log_has_it() -> None:
    made = rules()
    log = made._contents.log
    log.stage(b"orders.eu", b"", b"payload", NOW)
    assert not made.is_durable(1)
    batch = log.seal()
    assert batch is not None
    log.write(batch)
    log.publish(batch)
    assert made.is_durable(1)
    assert not made.is_durable(2)
