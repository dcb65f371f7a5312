"""Which events reach which listener: callbacks and iterations, in order, bounded, and harmless when they fail."""

import asyncio
import gc

import pytest
from support.scripted_server import finish

from headwater.client_connection.events import KEPT, Closed, Event, Events, Failed, LameDuck
from headwater.errors import HeadwaterError


def test_an_iteration_hears_all_from_its_beginning_to_the_end() -> None:
    async def main() -> list[Event]:
        events = Events()
        events.emit(LameDuck(server="before"))
        stream = events.stream()
        reading = asyncio.create_task(_all(stream))
        await asyncio.sleep(0)
        events.emit(LameDuck(server="a"))
        events.emit(Closed(reason=None))
        assert await _all(events.stream()) == [Closed(reason=None)], "one that comes too late hears the end"
        return await reading

    assert finish(main()) == [LameDuck(server="a"), Closed(reason=None)]


async def _all(stream: object) -> list[Event]:
    return [event async for event in stream]  # type: ignore[attr-defined]


def test_an_iteration_that_nobody_reads_is_bounded_and_keeps_the_newest() -> None:
    events = Events()
    stream = events.stream()
    for number in range(KEPT + 10):
        events.emit(LameDuck(server=str(number)))
    assert stream.dropped == 10
    events.emit(Closed(reason=None))
    received = finish(_all(stream))
    assert len(received) == KEPT
    assert received[0] == LameDuck(server="11")


def test_an_iteration_that_was_dropped_is_forgotten() -> None:
    events = Events()
    for _ in range(5):
        events.stream()
    gc.collect()
    assert len(events._streams) == 0


def test_callbacks_hear_in_order_and_one_that_raises_is_logged_and_harms_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    received: list[Event] = []

    def fail(event: Event) -> None:
        raise RuntimeError("mine")

    events = Events(event_callback=received.append)
    forget = events.listen(fail)
    events.emit(LameDuck(server="a"))
    forget()
    forget()
    events.emit(LameDuck(server="b"))
    assert received == [LameDuck(server="a"), LameDuck(server="b")]
    assert caplog.text.count("event_callback_failed event=LameDuck") == 1


def test_an_error_is_an_event_and_goes_to_the_error_callback_or_the_log(caplog: pytest.LogCaptureFixture) -> None:
    received: list[BaseException] = []
    seen: list[Event] = []
    error = HeadwaterError("bad luck")
    Events(received.append, seen.append).report(error)
    assert received == [error]
    assert seen == [Failed(error=error)]
    assert "bad luck" not in caplog.text
    Events().report(error)
    assert "bad luck" in caplog.text


def test_a_coroutine_function_is_a_callback_too_and_what_it_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> list[object]:
        received: asyncio.Queue[object] = asyncio.Queue()

        async def fail(error: BaseException) -> None:
            received.put_nowait(error)
            raise RuntimeError("mine")

        async def receive(event: Event) -> None:
            received.put_nowait(event)

        events = Events(fail, receive)
        events.report(HeadwaterError("theirs"))
        return [await received.get(), await received.get()]

    event, error = finish(main())
    assert isinstance(event, Failed) and event.error is error
    assert "error_callback_failed" in caplog.text and "RuntimeError: mine" in caplog.text
