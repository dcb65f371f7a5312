"""The timer of a stream's limits of time: due with the next message, set anew when the clock was, silent after the end."""

import asyncio
from collections.abc import Callable

from support.recording_files import RecordingFiles

from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_state.contents import Contents
from headwater.jetstream_timing.message_expiry import ExpiryTimer
from headwater.model.timestamps import SECOND
from headwater.streams.log import Log, LogOptions


class Bench:
    """A stream of one message that is a second old at most, by a clock of the test's."""

    def __init__(self) -> None:
        self.now = 100 * SECOND
        self.applied = 0
        log = Log.open(RecordingFiles(), "log", LogOptions(preallocate_bytes=0), 1)
        log.stage(b"s", b"", b"", self.now)
        batch = log.seal()
        assert batch is not None
        log.write(batch)
        log.publish(batch)
        config = StreamConfig(name="S", max_age=SECOND)
        self.contents = Contents(log, config, lambda sequence, subject: None, lambda: None)
        self.contents.recover(lambda record: None, self.now)
        self.timer = ExpiryTimer(self.contents, lambda: self.now, list, self._on_applied)

    def _on_applied(self) -> None:
        self.applied += 1
        self.timer.set()


def in_loop(work: Callable[[], None]) -> None:
    async def main() -> None:
        work()

    asyncio.run(main())


def test_a_message_goes_when_its_time_is_over_and_nothing_is_timed_after_it() -> None:
    async def main() -> None:
        bench = Bench()
        bench.timer.set()
        bench.now += SECOND  # the clock of the test runs ahead of the loop's: the timer is not due yet
        assert bench.contents.subjects.messages == 1
        bench.timer.on_clock_step()
        assert (bench.contents.subjects.messages, bench.applied) == (0, 1)
        bench.timer.on_clock_step()
        assert bench.applied == 1, "no timer is set, so there is nothing to look at"

    asyncio.run(main())


def test_the_timer_fires_by_itself() -> None:
    async def main() -> None:
        bench = Bench()
        bench.now += SECOND - 1
        bench.timer.set()
        bench.now += 1
        async with asyncio.timeout(15):
            while not bench.applied:  # noqa: ASYNC110  (no event says so)
                await asyncio.sleep(0.005)
        assert bench.contents.subjects.messages == 0

    asyncio.run(main())


def test_nothing_is_applied_after_the_end() -> None:
    def work() -> None:
        bench = Bench()
        bench.timer.set()
        bench.timer.stop()
        bench.now += SECOND
        bench.timer.on_clock_step()
        assert bench.contents.subjects.messages == 1

    in_loop(work)
