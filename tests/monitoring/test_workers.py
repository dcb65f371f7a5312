"""The figures that the processes of `serve --workers` share."""

import asyncio
import os

import pytest
from support.clusters import until
from support.monitored import monitored

from headwater.monitoring import workers
from headwater.monitoring.board import FIELDS, SILENT_MS, Board
from headwater.monitoring.workers import Figures


def line(**known: float) -> list[float]:
    return [float(known.get(name, 0)) for name in FIELDS]


def test_a_line_that_another_process_writes_is_read_here() -> None:
    board = Board(3)
    child = os.fork()
    if child == 0:
        board.write(2, line(pid=7, time_ms=1000, alive=1, connections=5, cpu_percent=1.5))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    (found,) = board.read(now_ms=1000)
    assert (found["worker"], found["pid"], found["connections"], found["cpu_percent"]) == (2, 7, 5, 1.5)
    board.close()


def test_a_worker_that_ended_or_is_silent_is_not_alive() -> None:
    board = Board(2)
    board.write(1, line(pid=1, time_ms=1000, alive=1))
    board.write(2, line(pid=2, time_ms=1000, alive=1))
    board.ended(2)
    assert [one["alive"] for one in board.read(now_ms=1000)] == [1, 0]
    assert [one["alive"] for one in board.read(now_ms=1001 + SILENT_MS)] == [0, 0]
    board.close()


def test_a_worker_that_ended_has_no_clients_any_more() -> None:
    board = Board(3)
    board.seat(1, 4)
    board.seat(2, 5)
    assert [board.seated_elsewhere(number) for number in (1, 2, 3)] == [5, 4, 9]
    board.ended(2)
    assert [board.seated_elsewhere(number) for number in (1, 2, 3)] == [0, 4, 4]
    board.close()


def test_the_figures_are_those_of_the_broker_and_are_shown_by_page_history_and_metrics() -> None:
    async def main() -> None:
        async with monitored() as server:
            link = await server.dial()
            link.send(b"PUB a 5\r\nhello\r\n")
            await asyncio.to_thread(link.settle)
            board = Board(1)
            server.monitoring.view.workers = board
            task = asyncio.create_task(Figures(server.monitoring.view).keep(board, 1))
            await until(lambda: bool(board.read()), "a line")
            task.cancel()
            (found,) = (await server.ask("/workersz")).document["workers"]
            assert (found["connections"], found["in_msgs"], found["in_bytes"], found["alive"]) == (1, 1, 5, 1)
            assert found["mem"] > 0
            assert (await server.ask("/historyz")).document["workers"] == [found]
            text = (await server.ask("/metrics")).body.decode()
            (series,) = [row for row in text.splitlines() if row.startswith("headwater_worker_in_bytes{")]
            assert 'worker="1"' in series and series.endswith(" 5.0")
            server.monitoring.view.workers = None
            board.close()
            await asyncio.to_thread(link.close)

    asyncio.run(main())


def test_figures_that_cannot_be_taken_do_not_make_a_worker_pass_for_one_that_hangs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(workers, "EVERY", 0.001)

    async def main() -> None:
        async with monitored() as server:
            board = Board(1)
            figures = Figures(server.monitoring.view)
            real = figures.take

            async def fails_once() -> list[float]:
                monkeypatch.setattr(figures, "take", real)
                raise KeyError("a fault of ours")

            monkeypatch.setattr(figures, "take", fails_once)
            task = asyncio.create_task(figures.keep(board, 1))
            await until(lambda: bool(board.read()), "a line")
            task.cancel()
            board.close()

    asyncio.run(main())
    assert "figures_not_taken worker=1" in caplog.messages
