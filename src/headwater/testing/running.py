"""A broker in its own thread, so that a test need not be asynchronous to use one.

    with RunningBroker(jetstream=True, store_dir=directory) as broker:
        …  broker.url, from any thread and any event loop

Starting takes a few milliseconds: no process, a free port. Stopping closes all connections and waits until they have
ended; it leaves nothing that a strict test run would warn about. `call` runs coroutines in the broker's loop.
"""

import asyncio
import threading
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from headwater.errors import EnvironmentProblem, LocalProtocolError
from headwater.options.broker import BrokerOptions
from headwater.server.broker import Broker

if TYPE_CHECKING:
    from headwater.iggy.face import IggyOptions
    from headwater.server.broker_arguments import AllBrokerArguments

START_SECONDS = 30.0
STOP_SECONDS = 30.0

T = TypeVar("T")


class RunningBroker:
    """A broker that a test starts and stops. The keywords are those of `headwater.Broker`, including `iggy`; `url` and
    `port` are set once it is started. Raises ConfigError for invalid options; `start` raises what the broker's `start`
    raises.
    """

    def __init__(self, **options: "Unpack[AllBrokerArguments]") -> None:
        fields: dict[str, Any] = {**options}
        if "store_dir" in fields:
            fields["store_dir"] = Path(fields["store_dir"])
        self.iggy: IggyOptions | None = fields.pop("iggy", None)
        self.options: BrokerOptions = fields.pop("options", None) or BrokerOptions(**fields)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._broker: Broker | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._failure: BaseException | None = None

    # ── life ──

    def start(self) -> None:
        """Start, and return when clients can connect. Raises LocalProtocolError when it is started already,
        EnvironmentProblem when it is not ready within START_SECONDS, and any error of the broker.
        """
        if self._thread is not None:
            raise LocalProtocolError("the broker is started already")
        self._ready.clear()
        self._failure = None
        self._thread = threading.Thread(target=self._run, name="headwater-broker", daemon=True)
        self._thread.start()
        if not self._ready.wait(START_SECONDS):
            raise EnvironmentProblem(f"the broker did not start within {START_SECONDS:g} s")
        if self._failure is not None:
            self._thread.join()
            self._thread = None
            raise self._failure

    def stop(self) -> None:
        """Close all connections, write staged messages, and return when that is done. Safe to call again. Raises
        EnvironmentProblem when it takes longer than STOP_SECONDS.
        """
        thread, loop, stop = self._thread, self._loop, self._stop
        if thread is None or loop is None or stop is None:
            return
        loop.call_soon_threadsafe(stop.set)
        thread.join(STOP_SECONDS)
        if thread.is_alive():
            raise EnvironmentProblem(f"the broker did not stop within {STOP_SECONDS:g} s")
        self._thread = None

    def restart(self) -> None:
        """Stop, and start on the same ports with the same store; clients see a server restart."""
        port = self.port
        if self.iggy is not None:
            self.iggy = self.broker.iggy.bound_options
        self.stop()
        self.options = replace(self.options, port=port)
        self.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # ── for tests ──

    @property
    def broker(self) -> Broker:
        """The broker itself. It lives in another thread: read plain attributes, and use `call` for anything else. Raises
        LocalProtocolError when it is not started.
        """
        if self._broker is None:
            raise LocalProtocolError("the broker is not started")
        return self._broker

    @property
    def url(self) -> str:
        """The URL for clients: `nats://127.0.0.1:…`."""
        return self.broker.url

    @property
    def websocket_url(self) -> str:
        """The URL for WebSocket clients; empty without such a listener."""
        return self.broker.websocket_url

    @property
    def port(self) -> int:
        """The port for clients."""
        return self.broker.port

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine `work` in the broker's loop, for at most START_SECONDS, and return its result. Raises
        LocalProtocolError when the broker is not started.
        """
        if self._loop is None or self._thread is None:
            work.close()
            raise LocalProtocolError("the broker is not started")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(START_SECONDS)

    def drop_clients(self) -> None:
        """Abort all connections, like a failing network: clients notice, and reconnect."""

        async def cut() -> None:
            sessions = self.broker.sessions
            for session in sessions.all() if sessions is not None else ():
                if session.link is not None:
                    session.link.abort()

        self.call(cut())

    # ── the thread ──

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 (it is raised again where start() waits)
            self._failure = error
        finally:
            self._loop = self._stop = None
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        broker = Broker(options=self.options, iggy=self.iggy)
        await broker.start()
        self._broker = broker
        self._ready.set()
        await self._stop.wait()
        await broker.stop()

    def __repr__(self) -> str:
        where = self._broker.url if self._broker is not None and self._thread is not None else "stopped"
        return f"<RunningBroker {where}>"
