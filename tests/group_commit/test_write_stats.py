"""Durations of writes and acks: quantiles of the last minutes, within a tenth; sums since the start."""

import asyncio
from pathlib import Path
from random import Random

import pytest
from support.jetstream_in_process import served

from headwater.group_commit.write_stats import Latency, quantile


def test_quantiles_are_exact_to_a_tenth() -> None:
    latency, random = Latency(), Random(1)
    noted = sorted(10 ** random.uniform(-5, 0.5) for _ in range(1000))
    for seconds in noted:
        latency.note(seconds, 1.0)
    for share in (0.5, 0.99):
        assert quantile([latency], share, 2.0) == pytest.approx(noted[int(share * 1000) - 1], rel=0.1)
    assert latency.count == 1000
    assert latency.total == pytest.approx(sum(noted))


def test_what_is_two_minutes_old_counts_no_more() -> None:
    latency = Latency()
    latency.note(1.0, 100.0)
    assert quantile([latency], 0.5, 150.0) > 0.9
    latency.note(0.001, 161.0)
    assert quantile([latency], 0.99, 162.0) > 0.9
    latency.note(0.001, 222.0)
    assert quantile([latency], 0.99, 223.0) < 0.002
    assert quantile([latency], 0.99, 400.0) == 0.0
    assert (latency.count, quantile([], 0.5, 1.0)) == (3, 0.0)


@pytest.mark.parametrize("seconds", [0.0, -1.0, 1e9])
def test_no_duration_is_too_odd_to_be_counted(seconds: float) -> None:
    latency = Latency()
    latency.note(seconds, 1.0)
    assert sum(latency.counts(1.0)) == 1


def test_a_stream_counts_its_writes_its_acks_and_what_it_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S", max_msg_size=10)
            for _ in range(3):
                await desk.publish("S.x", b"1")
            assert "error" in await desk.publish("S.x", b"1" * 11)
            stats = desk.service.stats
            assert (stats.writes.count, stats.acks.count, stats.refused) == (3, 3, 1)
            assert 0 < stats.writes.total <= stats.acks.total
            stream = desk.service.streams["S"]
            assert (stream.refused, stream.waiting) == (1, (0, 0))

    asyncio.run(main())
