"""Acknowledgements and replays as they stand on the wire: equal to what the router makes of them one by one."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from support.fake_link import make_outlet

from headwater.exchange.router import Router
from headwater.exchange.sublist import Subscription
from headwater.jetstream_ranges.outgoing import RecordSender, send_acks, send_at_once
from headwater.jetstream_state.items import Item
from headwater.model.header_edits import with_lines
from headwater.streams.log_format import StoredRecord

Call = tuple[bytes, bytes, bytes, bytes]


def router_with(subject: bytes, received: list[Call]) -> Router:
    router = Router(lambda function: None, seed=1)
    router.subscribe_internal(subject, lambda *call: received.append(call))
    return router


def test_each_publish_is_answered_in_its_turn_with_its_sequence_or_its_own_answer() -> None:
    received: list[Call] = []
    router = router_with(b"inbox.*", received)
    items = [
        Item(b"inbox.a", b"", b"s", 9, 1, b""),
        Item(b"", b"", b"s", 10, 1, b""),
        Item(b"inbox.b", b'{"duplicate": true}', b"", 3, 0, b""),
        Item(b"inbox.c", b"", b"s", 18_446_744_073_709, 1, b""),
    ]
    send_acks(router, items, b'{"stream":"S","seq":')
    assert received == [
        (b"inbox.a", b"", b"", b'{"stream":"S","seq":9}'),
        (b"inbox.b", b"", b"", b'{"duplicate": true}'),
        (b"inbox.c", b"", b"", b'{"stream":"S","seq":18446744073709}'),
    ]


replies = st.sampled_from([b"inbox.a", b"inbox.a", b"inbox.bb", b"other.x", b"nobody"])
gaps = st.sampled_from([1, 1, 1, 1, 2, 89, 900])


@given(st.integers(0, 120), st.lists(st.tuples(replies, gaps, st.sampled_from([b"", b"", b"own"])), max_size=30))
def test_acks_count_on_whatever_the_replies_and_the_digits(start: int, given: list[tuple[bytes, int, bytes]]) -> None:
    received: list[Call] = []
    router = router_with(b"inbox.*", received)
    router.subscribe_internal(b"other.x", lambda *call: received.append(call))
    items, expected, sequence = [], [], start
    for reply, gap, own in given:
        sequence += gap
        items.append(Item(reply, own, b"s", sequence, 1, b""))
        if reply != b"nobody":
            expected.append((reply, b"", b"", own or b'{"seq":%d}' % sequence))
    send_acks(router, items, b'{"seq":')
    assert received == expected


def test_an_ack_reaches_whoever_listens_when_its_turn_comes() -> None:
    received: list[Call] = []
    router = router_with(b"inbox", received)
    late: list[Call] = []
    joins = Item(b"inbox", b"", b"s", 2, 1, b"", None, lambda error: listen())

    def listen() -> None:
        router.subscribe_internal(b"inbox", lambda *call: late.append(call))

    send_acks(router, [Item(b"inbox", b"", b"s", 1, 1, b""), joins, Item(b"inbox", b"", b"s", 3, 1, b"")], b"#")
    assert [call[3] for call in received] == [b"#1}", b"#2}", b"#3}"]
    assert [call[3] for call in late] == [b"#2}", b"#3}"]


def test_answers_of_several_batches_are_written_together() -> None:
    scheduled: list[Callable[[], None]] = []
    router = Router(scheduled.append, seed=1)
    link, outlet = make_outlet()
    router.subscribe(Subscription(b"inbox", b"", b"1", outlet))
    for sequence in (1, 2):
        send_acks(router, [Item(b"inbox", b"", b"s", sequence, 1, b"")], b'{"seq":')
        assert not link.flushed
    (write,) = scheduled
    write()
    assert link.flushed == b'MSG inbox 1 9\r\n{"seq":1}\r\nMSG inbox 1 9\r\n{"seq":2}\r\n'


def test_a_lone_answer_is_written_at_once_but_not_where_a_callback_would_look_at_the_stream() -> None:
    scheduled: list[Callable[[], None]] = []
    router = Router(scheduled.append, seed=1)
    link, outlet = make_outlet()
    router.subscribe(Subscription(b"inbox", b"", b"1", outlet))
    assert send_at_once(router, Item(b"inbox", b"", b"s", 7, 1, b""), b'{"seq":')
    assert (link.flushed, scheduled) == (b'MSG inbox 1 9\r\n{"seq":7}\r\n', [])
    assert send_at_once(router, Item(b"nobody", b"", b"s", 8, 1, b""), b'{"seq":')
    received: list[Call] = []
    router.subscribe_internal(b"inbox", lambda *call: received.append(call))
    assert not send_at_once(router, Item(b"inbox", b"", b"s", 9, 1, b""), b'{"seq":')
    assert (received, scheduled, b'"seq":9' in link.flushed) == ([], [], False)


def test_a_publisher_that_takes_runs_gets_one_answer_for_consecutive_rows_that_are_durable_together() -> None:
    received: list[Call] = []
    called: list[None] = []
    router = router_with(b"_INBOX.>", received)
    rows = (97, 98, 99, 100, 101, 103, 104)
    items = [Item(b"_INBOX.HWRUNS.x.%d" % row, b"", b"s", row + 1, 1, b"") for row in rows]
    items += [
        Item(b"_INBOX.HWRUNS.x.105", b'{"duplicate": true}', b"", 3, 0, b""),
        Item(b"_INBOX.HWRUNS.x.106", b"", b"s", 120, 1, b""),
        Item(b"_INBOX.HWRUNS.y.107", b"", b"s", 121, 1, b""),
        Item(b"_INBOX.HWRUNS.y.108", b"", b"s", 122, 1, b"", None, lambda error: called.append(None)),
        Item(b"_INBOX.z.1", b"", b"s", 123, 1, b""),
        Item(b"_INBOX.z.2", b"", b"s", 124, 1, b""),
    ]
    send_acks(router, items, b'{"stream":"S","seq":')
    assert [(subject.removeprefix(b"_INBOX."), answer) for subject, _, _, answer in received] == [
        (b"HWRUNS.x.99", b'{"stream":"S","seq":100,"run":3}'),
        (b"HWRUNS.x.101", b'{"stream":"S","seq":102,"run":2}'),
        (b"HWRUNS.x.104", b'{"stream":"S","seq":105,"run":2}'),
        (b"HWRUNS.x.105", b'{"duplicate": true}'),
        (b"HWRUNS.x.106", b'{"stream":"S","seq":120}'),
        (b"HWRUNS.y.107", b'{"stream":"S","seq":121}'),
        (b"HWRUNS.y.108", b'{"stream":"S","seq":122}'),
        (b"z.1", b'{"stream":"S","seq":123}'),
        (b"z.2", b'{"stream":"S","seq":124}'),
    ]
    assert called == [None]


blocks = st.sampled_from([b"", b"NATS/1.0\r\nA: 1\r\n\r\n"])
records = st.builds(
    StoredRecord,
    st.integers(0, 2**62),
    st.integers(-(2**62), 2**62),
    st.sampled_from([b"a", b"orders.new"]),
    blocks,
    st.binary(max_size=40),
)


@given(st.lists(records, max_size=5), st.integers(0, 2**40), st.integers(10, 2**40), st.booleans())
def test_records_go_out_with_the_numbers_of_their_delivery_and_with_the_size_of_a_payload_left_out(
    given_records: list[StoredRecord], given_before: int, pending: int, headers_only: bool
) -> None:
    received: list[Call] = []
    router = router_with(b"inbox", received)
    sent: list[int] = []
    head = b"$JS.ACK.S.C."
    sender = RecordSender(router, b"inbox", head, given_before, pending, -1, headers_only)
    size = sender.send(given_records, 0, 9, sent)
    expected = [
        (
            record.subject,
            b"$JS.ACK.S.C.1.%d.%d.%d.%d"
            % (record.offset + 1, given_before + number, record.timestamp_ns, pending - number),
            with_lines(record.header_block, b"Nats-Msg-Size: %d" % len(record.payload))
            if headers_only
            else record.header_block,
            b"" if headers_only else record.payload,
        )
        for number, record in enumerate(given_records, 1)
    ]
    assert received == expected
    assert size == sum(len(part) for call in expected for part in call)
    assert sent == [record.offset + 1 for record in given_records]


def test_a_run_begins_and_ends_where_it_is_told_and_stops_when_nobody_listens() -> None:
    received: list[Call] = []
    some = [StoredRecord(offset, 0, b"s", b"", b"") for offset in range(10)]
    router = router_with(b"inbox", received)
    sent: list[int] = []
    assert RecordSender(router, b"inbox", b"", 0, 10, -1).send(some, 3, 2, sent) > 0
    assert sent == [4, 5]
    assert [call[1].split(b".")[1] for call in received] == [b"4", b"5"]
    assert RecordSender(router, b"nobody", b"", 0, 10, -1).send(some, 0, 9, sent) == 0
    assert sent == [4, 5]


@given(st.lists(records, max_size=5), st.integers(0, 200))
def test_a_run_stops_before_the_message_that_has_no_room(given_records: list[StoredRecord], room: int) -> None:
    everything: list[Call] = []
    head = b"$JS.ACK.S.C."
    RecordSender(router_with(b"inbox", everything), b"inbox", head, 0, 9, -1).send(given_records, 0, 9, [])
    fitting, size = 0, 0
    while fitting < len(everything) and size + sum(map(len, everything[fitting])) <= room:
        size += sum(map(len, everything[fitting]))
        fitting += 1
    received: list[Call] = []
    router = router_with(b"inbox", received)
    sent: list[int] = []
    assert RecordSender(router, b"inbox", head, 0, 9, room).send(given_records, 0, 9, sent) == size
    assert sent == [record.offset + 1 for record in given_records[:fitting]]
    assert received == everything[:fitting]
