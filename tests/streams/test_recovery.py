"""The pure decisions: what is a batch, what is spoiled, and where numbering goes on."""

from dataclasses import replace

from headwater.streams.head_page import HEAD_PAGE_SIZE, Mark, SegmentHead, encode_head_page
from headwater.streams.index import SparseIndex
from headwater.streams.log_format import MAX_OFFSET, BatchBuilder
from headwater.streams.log_state import LogState
from headwater.streams.recovery import SegmentFacts, decide, examine, identity_of, kept_aside

IDENTITY = b"identity"
STATE = LogState(IDENTITY, 0, 1000, 0, marks_are_synced=True)


def encoded(base: int, records: int = 2, identity: bytes = IDENTITY) -> bytes:
    builder = BatchBuilder(base)
    for number in range(records):
        builder.append(b"s", b"", b"%d" % (base + number), 1)
    _, head, body = builder.encode(identity)
    return head + body


def fetch_from(content: bytes):  # type: ignore[no-untyped-def]
    return lambda size, position: content[position : position + size]


def segment_file(base: int, *batches: bytes, mark: Mark | None = None) -> bytes:
    page = encode_head_page(SegmentHead(IDENTITY, base, base, 1), mark or Mark(base, base))
    return page + b"".join(batches)


def facts_of(content: bytes, base: int = 0, limit: int = MAX_OFFSET) -> SegmentFacts:
    return examine(fetch_from(content), len(content), f"{base}.log", base, IDENTITY, limit)


def test_a_segment_is_summed_up() -> None:
    facts = facts_of(segment_file(4, encoded(4), encoded(6, 3), b"torn", mark=Mark(6, 9)), 4)
    assert (facts.base_offset, facts.end_offset, facts.record_count, facts.tail) == (4, 9, 5, 4)
    assert (facts.mark, facts.page_in_order) == (Mark(6, 9), True)
    assert facts.head == SegmentHead(IDENTITY, 4, 4, 1)


def test_a_segment_tells_whose_it_is_even_without_its_head() -> None:
    content = segment_file(0, encoded(0))
    assert identity_of(fetch_from(content)) == IDENTITY
    assert identity_of(fetch_from(b"x" + content[1:])) == IDENTITY
    assert identity_of(fetch_from(b"x" + content[1:-1])) == IDENTITY
    assert identity_of(fetch_from(b"x" * 5000)) is None
    assert identity_of(fetch_from(b"")) is None


def test_a_whole_tail_goes_on_where_it_ends() -> None:
    decision = decide([facts_of(segment_file(0, encoded(0), mark=Mark(0, 2)))], STATE)
    assert (decision.next_offset, decision.cut_at, decision.roll, decision.damage) == (2, None, False, [])


def test_a_torn_tail_is_cut_and_numbering_goes_on_behind_the_mark() -> None:
    facts = facts_of(segment_file(0, encoded(0), encoded(2)[:-40], mark=Mark(2, 4)))
    decision = decide([facts], STATE)
    assert (decision.next_offset, decision.cut_at, decision.roll) == (4, HEAD_PAGE_SIZE + len(encoded(0)), False)
    (damage,) = kept_aside(decision.damage, "aside")
    assert (damage.kind, damage.start, damage.end, damage.certain, damage.kept) == ("torn", 2, 4, False, "aside")
    assert (
        str(damage)
        == f"torn: offsets [2, 4), {len(encoded(2)) - 40} bytes, 0.log at byte {facts.end_position}, kept in aside"
    )


def test_a_tail_that_the_mark_calls_durable_is_a_certain_loss() -> None:
    decision = decide([facts_of(segment_file(0, encoded(0), mark=Mark(4, 6)))], STATE)
    (damage,) = decision.damage
    assert (damage.kind, damage.start, damage.end, damage.certain) == ("missing", 2, 6, True)


def test_a_damaged_head_page_sends_numbering_to_the_reservation_in_a_new_segment() -> None:
    content = segment_file(0, encoded(0), b"junk", mark=Mark(0, 2))
    for at in (0, 600, 4000):
        damaged = content[:at] + b"!" + content[at + 1 :]
        decision = decide([facts_of(damaged)], STATE)
        assert (decision.next_offset, decision.roll) == (1000, True)
        assert (decision.cut_at is None) == (at == 0), "a file that is not known to be ours is not cut"
        assert decision.notes == ["0.log: damaged head page"]


def test_marks_that_were_not_synced_prove_nothing() -> None:
    facts = facts_of(segment_file(0, encoded(0), mark=Mark(0, 2)))
    decision = decide([facts], replace(STATE, marks_are_synced=False))
    assert (decision.next_offset, decision.roll) == (1000, True)
    assert [damage.certain for damage in decision.damage] == [False]


def test_without_a_state_the_bytes_decide() -> None:
    decision = decide([facts_of(segment_file(0, encoded(0), mark=Mark(0, 7)))], None)
    assert decision.next_offset == 7
    assert decide([], None)[:3] == (0, None, True)


def test_a_new_segment_never_takes_the_name_of_one_that_holds_something() -> None:
    damaged = b"x" * (HEAD_PAGE_SIZE + 10)
    decision = decide([facts_of(damaged, 5)], None)
    assert (decision.next_offset, decision.roll) == (6, True)


def test_a_segment_without_its_head_page_is_a_certain_loss_only_where_it_was_made_durably() -> None:
    cut = [facts_of(segment_file(0, encoded(0))), facts_of(b"", 2)]
    for synced in (True, False):
        decision = decide(cut, replace(STATE, marks_are_synced=synced))
        assert [(item.start, item.end, item.certain) for item in decision.damage] == [(2, 1000, synced)]
        assert (decision.next_offset, decision.roll) == (1000, True)


def test_segments_that_are_gone_are_missed_at_every_place() -> None:
    def empty(base: int, previous_end: int) -> SegmentFacts:
        head = SegmentHead(IDENTITY, base, previous_end, 1)
        return SegmentFacts(
            str(base),
            base,
            HEAD_PAGE_SIZE,
            SparseIndex(0),
            head,
            mark=Mark(base, base),
            page_in_order=True,
            end_offset=base,
        )

    assert decide([], STATE).next_offset == 1000
    assert [(d.start, d.end) for d in decide([], STATE).damage] == [(0, 1000)]
    assert [(d.start, d.end) for d in decide([empty(10, 10)], STATE).damage] == [(0, 10)]
    assert [(d.start, d.end) for d in decide([empty(0, 0), empty(10, 8)], STATE).damage] == [(0, 8)]
    assert decide([empty(0, 0), empty(10, 0)], STATE).damage == []
    gone = decide([empty(0, 0)], replace(STATE, active_base=50))
    assert (gone.next_offset, gone.roll, [d.certain for d in gone.damage]) == (1000, True, [True])
