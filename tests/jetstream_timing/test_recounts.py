"""Recounts run one at a time, in turns with other work."""

import asyncio
from collections.abc import Generator

import pytest

from headwater.errors import StorageError
from headwater.jetstream_timing.recounts import Recounts


def test_counts_run_one_at_a_time_and_once_more_for_what_came_meanwhile() -> None:
    ran: list[str] = []

    def count() -> Generator[None, None, None]:
        ran.append("begins")
        if len(ran) == 1:
            recounts.ask()
            recounts.ask()
        yield
        ran.append("ends")

    async def main() -> None:
        recounts.ask()
        for _ in range(9):
            await asyncio.sleep(0)

    recounts = Recounts(count, lambda: ran.append("then"))
    asyncio.run(main())
    assert ran == ["begins", "ends", "then"] * 2


def test_a_disk_that_cannot_be_read_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def count() -> Generator[None, None, None]:
        yield
        raise StorageError("no")

    async def main() -> None:
        recounts.ask()
        await recounts.done()

    recounts = Recounts(count, lambda: None)
    asyncio.run(main())
    assert [record.getMessage() for record in caplog.records] == ["stream_not_counted reason=no"]
