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


def test_while_all_threads_are_busy_others_wait_for_their_turn_in_order() -> None:
    async def main() -> None:
        writers = Writers(1, "test")
        gate = threading.Event()
        order: list[str] = []
        over = asyncio.Event()

        def submit(name: str) -> None:
            writers.submit(lambda _: gate.wait(30), None, lambda _, __: order.append(f"{name} done"))

        def begin(name: str) -> None:
            if writers.is_free(lambda: begin(name)):
                order.append(f"{name} begins")
                submit(name)
                if name == "last":
                    over.set()

        for name in ("a", "b"):  # one that is done, and the next
            begin(name)
        for name in ("c", "d", "last"):
            begin(name)
        assert order == ["a begins", "b begins"]
        assert writers.waiting >= 3
        gate.set()
        async with asyncio.timeout(30):
            await over.wait()
        await asyncio.get_running_loop().run_in_executor(None, writers.shutdown)
        await asyncio.sleep(0)
        assert [each for each in order if "begins" in each] == [
            f"{name} begins" for name in ("a", "b", "c", "d", "last")
        ]
        assert [each for each in order if "done" in each][:4] == [f"{name} done" for name in ("a", "b", "c", "d")]
        assert writers.waits >= 3

    asyncio.run(main())


def test_a_callback_that_raises_keeps_no_other_from_its_result() -> None:
    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: raised.append(context["exception"]))
        raised: list[BaseException] = []
        writers = Writers(1, "test")
        both = asyncio.Event()

        def fail(_result: object, _error: BaseException | None) -> None:
            raise ValueError("the first")

        writers.submit(lambda _: None, None, fail)
        writers.submit(lambda _: None, None, lambda _, __: both.set())
        writers.shutdown()  # both have ended before the loop looks
        async with asyncio.timeout(30):
            await both.wait()
        assert [str(error) for error in raised] == ["the first"]

    asyncio.run(main())
