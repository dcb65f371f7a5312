"""A blocking client: an event loop in a separate thread runs the asyncio client, and each call waits for its result.

`LoopThread` is the loop; `SyncProxy` makes any object of a client blocking: coroutine methods block, asynchronous
iterations become plain ones, `async with` becomes `with`. A call costs two hops between threads, some 50 us. Any thread
may call.
"""

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import CancelledError
from types import TracebackType
from typing import Any, Self, TypeVar

from headwater.errors import ConnectionClosed, LocalProtocolError

T = TypeVar("T")

STOP_SECONDS = 10.0
_VALUES = (str, bytes, int, float, bool, type(None), list, tuple, dict, set)


class LoopThread:
    """An event loop that runs until `stop`; `run` executes a coroutine in it and waits for the result."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="headwater client", daemon=True)
        self._thread.start()

    @property
    def is_here(self) -> bool:
        """Whether the caller is in the loop's thread, as a callback of a subscription is."""
        return threading.current_thread() is self._thread

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop. Raises its exception; an interrupted wait (Ctrl-C) cancels it. In the loop's own
        thread it raises LocalProtocolError: waiting there would be for ever."""
        if self.is_here:
            coroutine.close()
            raise LocalProtocolError(
                "a callback runs in the client's own thread, and nothing that waits for the server can be called there",
                hint="iterate over the subscription, or hand the message to another thread; publish and respond are allowed",
            )
        if not self._thread.is_alive():
            coroutine.close()
            raise ConnectionClosed("the client is closed")
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except CancelledError as error:
            raise ConnectionClosed("the client was closed meanwhile") from error
        except BaseException:
            future.cancel()
            raise

    def call(self, function: Callable[..., T], *args: Any, **named: Any) -> T:
        """Call a plain function in the loop."""
        if self.is_here:
            return function(*args, **named)

        async def run() -> T:
            return function(*args, **named)

        return self.run(run())

    def stop(self) -> None:
        """End the loop and its thread; safe to call again."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(_settle(), self._loop).result(STOP_SECONDS)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(STOP_SECONDS)
            self._loop.close()


async def _settle() -> None:
    """Let cancelled tasks and closing transports finish."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()


class SyncProxy:
    """A blocking proxy for an object of the asyncio client, `asynchronous`."""

    def __init__(self, loop: LoopThread, target: Any) -> None:
        self._loop = loop
        self.asynchronous = target

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.asynchronous, name)
        if not callable(found):
            return _wrapped(self._loop, found)

        def call(*args: Any, **named: Any) -> Any:
            plain = [each.asynchronous if isinstance(each, SyncProxy) else each for each in args]
            result = self._loop.call(found, *plain, **named)
            if inspect.iscoroutine(result):
                result = self._loop.run(result)
            return _wrapped(self._loop, result)

        return call

    def __iter__(self) -> Iterator[Any]:
        for item in iterate(self._loop, self.asynchronous):
            yield _wrapped(self._loop, item)

    def __enter__(self) -> Self:
        self._loop.run(self.asynchronous.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.run(self.asynchronous.__aexit__(kind, error, trace))

    def __repr__(self) -> str:
        return f"<blocking {self.asynchronous!r}>"


def _wrapped(loop: LoopThread, result: Any) -> Any:
    """Wrap objects with coroutine methods in a SyncProxy; other values stay as they are."""
    if isinstance(result, list):
        return [_wrapped(loop, each) for each in result]
    kind = type(result)
    if isinstance(result, _VALUES) or (
        not kind.__module__.startswith(("headwater.client.", "headwater.client_connection.", "headwater.iggy_client."))
        and not hasattr(kind, "__anext__")
    ):
        return result
    if hasattr(kind, "__aiter__") or any(inspect.iscoroutinefunction(getattr(kind, name)) for name in dir(kind)):
        return SyncProxy(loop, result)
    return result


def iterate(loop: LoopThread, source: Any) -> Iterator[Any]:
    """Iterate over an asynchronous iterator, one hop between threads for each item."""
    iterator = aiter(source)
    try:
        while True:
            try:
                yield loop.run(anext(iterator))
            except StopAsyncIteration:
                return
    finally:
        if hasattr(iterator, "aclose"):
            loop.run(iterator.aclose())
