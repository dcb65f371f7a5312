"""Work goes to a thread, its result comes back into the loop, and so does its error."""

import asyncio
import threading

from headwater.group_commit.writers import Writers


def test_work_is_done_in_a_thread_and_told_in_the_loop() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        writers = Writers(2, "test")
        ended: asyncio.Queue[tuple[str | None, BaseException | None, int]] = asyncio.Queue()

        def work(fail: bool) -> str:
            if fail:
                raise OSError("no")
            return threading.current_thread().name

        def done(result: str | None, error: BaseException | None) -> None:
            ended.put_nowait((result, error, threading.get_ident()))

        async with asyncio.timeout(10):
            writers.submit(work, False, done)
            result, error, where = await ended.get()
            assert result is not None
            assert result.startswith("test-")
            assert error is None
            assert where == threading.get_ident()
            writers.submit(work, True, done)
            result, error, _ = await ended.get()
            assert result is None
            assert isinstance(error, OSError)
        await loop.run_in_executor(None, writers.shutdown)

    asyncio.run(main())


def test_what_was_submitted_before_a_shutdown_is_done() -> None:
    async def main() -> None:
        writers = Writers(1, "test")
        ended: list[int] = []
        for number in range(50):
            writers.submit(lambda n: n * n, number, lambda result, _: ended.append(result or 0))
        writers.shutdown()
        await asyncio.sleep(0)
        assert ended == [number * number for number in range(50)]

    asyncio.run(main())
