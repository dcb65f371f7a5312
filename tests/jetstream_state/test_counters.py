"""Counters: what a copy adds, and what is at hand while nothing is durable."""

import pytest

from headwater.errors import JetStreamError
from headwater.jetstream_state.counters import Sum, Sums, added, sourced, sum_of
from headwater.streams.log import StoredRecord


def block(*lines: str) -> bytes:
    return "\r\n".join(["NATS/1.0", *lines, "", ""]).encode()


def test_a_copy_adds_the_difference_and_notes_where_it_came_from() -> None:
    first = sourced(block("Nats-Incr: 4"), b'{"val":"4"}', "E2", b"e2.k", Sum())
    second = sourced(block("Nats-Incr: 3", "X: y"), b'{"val":"3"}', "E1", b"e1.k", first.sum)
    third = sourced(block("Nats-Incr: 1"), b'{"val":"9"}', "E1", b"e1.k", second.sum)
    assert first.payload == b'{"val":"4"}'
    assert second.header_block == block(
        "Nats-Incr: 3", "X: y", 'Nats-Counter-Sources: {"E1":{"e1.k":"3"},"E2":{"e2.k":"4"}}'
    )
    assert (third.payload, third.tail) == (b'{"val":"13"}', b',"val":"13"}')
    assert b"Nats-Incr: 6\r\n" in third.header_block  # from 3 to 9, whatever was added last there
    direct = added(block("Nats-Incr: 10"), third.sum)
    assert direct.header_block.endswith(b'Nats-Counter-Sources: {"E1":{"e1.k":"9"},"E2":{"e2.k":"4"}}\r\n\r\n')


def test_a_copy_that_holds_no_sum_is_refused() -> None:
    for payload in (b"", b"x", b"{}", b'{"val":"x"}', b"[]"):
        with pytest.raises(JetStreamError) as refused:
            sourced(block("Nats-Incr: 1"), payload, "E", b"e", Sum())
        assert refused.value.err_code == 10172


def test_nonsense_among_the_known_sources_is_as_good_as_none() -> None:
    for sources in (b"nonsense", b'{"E":{"e":"x"}}', b'{"E":1}'):
        counted = sourced(block("Nats-Incr: 1"), b'{"val":"5"}', "E", b"e", Sum(7, sources))
        assert (counted.sum.value, counted.sum.sources) == (12, b'{"E":{"e":"5"}}')


def test_a_sum_is_read_from_the_stream_once_and_what_is_lost_is_forgotten() -> None:
    lasts = {b"a": 3}
    loads: list[int] = []

    def load(sequence: int) -> StoredRecord:
        loads.append(sequence)
        return StoredRecord(sequence - 1, 0, b"a", block("Nats-Counter-Sources: {}"), b'{"val":"7"}')

    sums = Sums(lambda subject: lasts.get(subject, 0), load)
    assert sums.last(b"none") == Sum()
    assert [sums.last(b"a"), sums.last(b"a")] == [Sum(7, b"{}")] * 2
    assert loads == [3]
    sums.note_staged(b"a", 4, Sum(8))
    assert sums.last(b"a") == Sum(8)
    sums.note_done(b"a", 4, stored=False)
    assert sums.last(b"a") == Sum(7, b"{}")
    sums.note_staged(b"a", 5, Sum(9))
    sums.note_staged(b"a", 6, Sum(10))
    sums.note_done(b"a", 5, stored=True)
    assert sums.last(b"a") == Sum(10)
    sums.note_done(b"a", 6, stored=True)
    lasts[b"a"] = 6
    assert (sums.last(b"a"), loads) == (Sum(10), [3])


def test_a_message_without_a_sum_says_so() -> None:
    with pytest.raises(JetStreamError) as refused:
        sum_of(StoredRecord(0, 0, b"a", b"", b"plain"))
    assert refused.value.err_code == 10172
