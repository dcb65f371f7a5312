"""Ten minutes of figures: what a sample holds, what a request selects, and when the disk will be full."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from support.monitored import monitored, work

from headwater.jetstream_room.disk_room import Room
from headwater.jetstream_workers.line import Line
from headwater.monitoring import history as module
from headwater.monitoring.board import FIELDS as LINE
from headwater.monitoring.board import STREAM_FIELDS, Board
from headwater.monitoring.history import FIELDS, KEPT, History
from headwater.monitoring.ledger import Totals


def test_a_sample_has_a_number_for_every_field(tmp_path: Path) -> None:
    async def main() -> None:
        async with monitored(jetstream=True, store_dir=tmp_path) as server:
            link = await asyncio.to_thread(work, server.broker.port)
            kept = server.monitoring.view.history
            assert kept is not None
            kept.note(server.broker.observe().ledger.totals(server.monitoring.view.sessions()), 5_000_000_000)
            page = (await server.ask("/historyz")).document
            assert page["fields"] == list(FIELDS)
            sample = dict(zip(FIELDS, page["samples"][-1], strict=True))
            assert (sample["time_ms"], sample["connections"], sample["stored_messages"]) == (5000, 1, 1)
            assert sample["in_msgs"] >= 2
            assert sample["api_requests"] >= 2
            assert 0 < sample["ack_p50_ns"] <= sample["ack_p99_ns"]
            assert sample["disk_free"] > 0
            assert page["server_id"] == server.broker.server_id
            await asyncio.to_thread(link.close)

    asyncio.run(main())


def test_a_page_asks_for_what_is_new_to_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with monitored() as server:
            kept = server.monitoring.view.history
            assert kept is not None
            start = 10**12  # ahead of every sample that the listener takes meanwhile
            for number in range(KEPT + 5):
                kept.note(Totals(), (start + number) * 10**9)
            samples = (await server.ask(f"/historyz?since={(start + KEPT) * 1000}")).document["samples"]
            assert [sample[0] for sample in samples] == [(start + KEPT + n) * 1000 for n in range(1, 5)]
            assert len((await server.ask("/historyz")).document["samples"]) == KEPT
            assert (await server.ask("/historyz?since=x")).status == 400

    asyncio.run(main())


@pytest.mark.parametrize(
    ("free", "seconds", "left"),
    [
        ((100, 90), 10, 90),
        ((100, 100), 10, None),
        ((90, 100), 10, None),
        ((100, 50), 5, None),
        ((), 10, None),
        ((100, 40), 60, 40),
    ],
)
def test_the_disk_is_full_when_it_goes_on_like_this(
    tmp_path: Path, free: tuple[int, ...], seconds: int, left: float | None
) -> None:
    async def main() -> None:
        async with monitored(jetstream=True, store_dir=tmp_path) as server:
            kept = History(server.broker.observe())
            (service,) = [one for one in server.broker.jetstreams.values() if one.room is not None][:1]
            assert service._watches is not None
            for number, room in enumerate(free):
                service._watches[0].room = Room(room, 1000)
                kept.note(Totals(), number * seconds * 10**9)
            assert kept.seconds_until_full() == left
            assert kept.document()["disk_seconds_left"] == left

    asyncio.run(main())


def test_the_listener_takes_samples_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.monitoring.server.LOOK_SECONDS", 0.01)

    async def main() -> None:
        async with monitored() as server:
            link = await server.dial()
            samples: list[list[float]] = []
            while not samples or not samples[-1][FIELDS.index("connections")]:
                samples = (await server.ask("/historyz")).document["samples"]
            await asyncio.to_thread(link.close)

    asyncio.run(main())
    assert module.KEPT * module.EVERY == 600


def test_a_sample_of_the_first_worker_is_about_all_of_them() -> None:
    async def main() -> None:
        async with monitored() as server:
            view, board = server.monitoring.view, Board(3)
            view.workers, view.line = board, Line(cast(Any, None), 1, 3)
            written = dict.fromkeys(LINE + STREAM_FIELDS, 0.0) | {"pid": 7.0, "in_msgs": 30.0, "api_requests": 5.0}
            written |= {"connections": 2.0, "stored_messages": 4.0, "ack_p99_ns": 9.0, "alive": 1.0}
            for number in (1, 2, 3):
                board.write(number, list(written.values()))
            board.ended(3)
            kept = History(view)
            kept.note(Totals(), 5_000_000_000)
            samples = cast(list[list[float]], kept.document()["samples"])
            sample = dict(zip(FIELDS, samples[-1], strict=True))
            assert (sample["time_ms"], sample["in_msgs"], sample["api_requests"]) == (5000, 60, 10)
            assert (sample["connections"], sample["stored_messages"], sample["ack_p99_ns"]) == (2, 4, 9)
            view.workers = view.line = None
            board.close()

    asyncio.run(main())
