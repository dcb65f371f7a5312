"""Which offsets hold a record, against a set."""

from random import Random

from headwater.streams.live_offsets import LiveOffsets
from headwater.streams.offset_set import OffsetSet


def test_live_offsets_equal_a_set_through_storing_giving_up_and_removing() -> None:
    random = Random(1)
    live, model = LiveOffsets(0, 0, 0, OffsetSet()), set[int]()
    end = 0
    for _ in range(400):
        if random.random() < 0.6:
            base = end + random.choice((0, 0, 0, 3))
            end = base + random.randrange(1, 40)
            live.count += end - base
            live.extend(base, end)
            model |= set(range(base, end))
        else:
            start = random.randrange(end + 1)
            stop = min(end, start + random.choice((1, 5, 200)))
            there = len(model & set(range(start, stop)))
            low, high = max(start, live.start), min(stop, live.end)
            if low < high:
                assert live.remove(low, high) == there
                live.advance()
            model -= set(range(start, stop))
        assert live.count == len(model)
        assert live.start == min(model, default=end) and live.end == end
        low, high = sorted((random.randrange(end + 2), random.randrange(end + 2)))
        assert live.count_in(low, high) == len([offset for offset in model if low <= offset < high])
        assert live.has(low) == (low in model)
