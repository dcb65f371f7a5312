"""Our broker in this process, in a thread with a loop of its own: ready in milliseconds, spoken to over real sockets."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from headwater.options.broker import BrokerOptions
from headwater.server.broker import Broker
from headwater.server.config.schema import load

TIMEOUT = 20.0  # seconds; starting and stopping take milliseconds


class EmbeddedBroker:
    """A running broker: `.port`, `.websocket_port`, `.broker`. Also a context manager. Raises what starting raises."""

    def __init__(self, options: BrokerOptions, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.broker = Broker(options=options)
        self._loop = loop or asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="embedded broker", daemon=True)
        self._thread.start()
        try:
            self.run(self.broker.start)
        except BaseException:
            self._end_loop()
            raise
        self.port = self.broker.port
        self.websocket_port = self.broker.websocket_port
        self.url = self.broker.url

    def run(self, function: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run a coroutine function in the broker's loop, to its end."""
        asyncio.run_coroutine_threadsafe(function(), self._loop).result(TIMEOUT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stops the broker, lets the connections end, and ends the thread."""
        self.run(self.broker.stop)
        self._end_loop()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIMEOUT)
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


def options_of(config: Path, **changes: Any) -> BrokerOptions:
    """What a configuration file in nats-server's language says, listening on any free port of the loopback interface."""
    draft = load(str(config), lambda path: Path(path).read_text(encoding="utf-8"), {})
    draft.broker |= {"host": "127.0.0.1", "port": -1, **changes}
    return draft.finish().broker
