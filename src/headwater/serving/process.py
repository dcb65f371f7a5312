"""A running server: its log lines, the files it writes for other programs, and its reaction to signals.

SIGINT, SIGTERM   stop, exit status 0 (SIGTERM is ignored in lame duck mode)
SIGHUP            read the configuration again (server/config/reload.py defines what may change)
SIGUSR1           reopen the log file by name
SIGUSR2           lame duck mode: accept no new clients, disconnect the others gradually, then stop
"""

import asyncio
import json
import logging
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING

import headwater
from headwater.errors import ConfigError, EnvironmentProblem, HeadwaterError, open_failure
from headwater.net.address import bracketed, reachable
from headwater.net.listening import inherit, left_over
from headwater.net.spare_descriptors import SpareDescriptors
from headwater.net.turn_length import take_short_turns
from headwater.server.broker import Broker
from headwater.server.config.draft import ServerConfig
from headwater.server.garbage import GarbagePolicy
from headwater.server.service_manager import READY, STOPPING, activated, notify
from headwater.serving.setup import reopen_log, set_up_logging
from headwater.version import COMPATIBLE_VERSION

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.iggy.face import IggyOptions
    from headwater.monitoring.server import Monitoring
    from headwater.options.broker import BrokerOptions

logger = logging.getLogger("headwater")

# Who starts a server dials until it answers. What is loaded then, ctypes and msgspec first, takes 10 ms without a pause.
DIALLED_WITHIN = 0.005  # seconds
TURNS_OF_A_GREETING = 2  # of the loop: it accepts the client, then sends INFO
PROGRAM = "nats-server"  # in the name of the ports file, where scripts expect it


class Serving:
    """One run of the server. `configure` reads the flags and the file again for a reload."""

    def __init__(
        self,
        config: ServerConfig,
        configure: Callable[[], ServerConfig],
        config_file: str,
        iggy: "IggyOptions | None" = None,
    ) -> None:
        self.config = config
        self.broker = Broker(options=config.broker, iggy=iggy)
        self.monitoring: Monitoring | None = None
        self.has_iggy = bool(iggy)
        self.stores = self.has_iggy or config.broker.jetstream
        self._configure = configure
        self._config_file = config_file
        self._stop = asyncio.Event()
        self._lame_duck: asyncio.Task[None] | None = None
        self._reloads: set[asyncio.Task[str]] = set()
        self._one_reload = asyncio.Lock()

    async def run(self) -> None:
        """Start, log it, and serve until stopped. Raises HeadwaterError when the server cannot start."""
        self._greet()
        async with AsyncExitStack() as running:
            running.push_async_callback(self.broker.stop)
            inherit(activated())
            if self.has_iggy:
                _limit_heaps()  # before its threads: once there are nine heaps, glibc has a limit of its own
            await self.broker.prepare()
            if self.broker.system is not None:
                self.broker.system.reload = self.reload_on_request
            if self.config.monitoring is not None:
                self.monitoring = running.push_async_exit(self._make_monitoring())
                self.monitoring.prepare()
            if not self._stop.is_set():  # a signal during recovery of the streams: open no ports at all
                await self._open()
                for port in left_over():
                    logger.warning("systemd listens on port %d for this server, which has no listener there", port)
                self._log_addresses()
                running.callback(self._write_files())
                await self._ready()
                loop = asyncio.get_running_loop()
                running.enter_context(SpareDescriptors(loop.call_soon_threadsafe, loop.call_later))
                await self._load_late()
                running.enter_context(GarbagePolicy())
            await self._stop.wait()
            logger.info("Initiating Shutdown...")
            self._announce_stop()
        logger.info("Server Exiting..")

    async def _open(self) -> None:
        """Open all ports in one turn of the loop: a program that waits for one port and then uses another finds it open."""
        if self.monitoring is not None:
            self.monitoring.open()
        self.broker.open()
        await asyncio.sleep(0)  # the dials of routes begin before the log says that this server is ready

    async def _load_late(self) -> None:
        """Load what no client needs to be greeted, and serve clients in between; a signal to stop ends it."""
        if self.stores:
            await asyncio.sleep(DIALLED_WITHIN)
            for _ in range(TURNS_OF_A_GREETING):
                await asyncio.sleep(0)
            _limit_heaps()
        for _ in self.broker.stream_services.load_late():
            await asyncio.sleep(0)
            if self._stop.is_set():
                return

    # ── its log ──

    def _greet(self) -> None:
        kind = "compiled" if headwater.__compiled__ else "interpreted"
        logger.info("Starting headwater %s (%s), a nats-server", headwater.__version__, kind)
        logger.info("  Version:  %s", COMPATIBLE_VERSION)
        logger.info("  Name:     %s", self.config.broker.server_name or self.broker.server_id)
        logger.info("  ID:       %s", self.broker.server_id)
        if self._config_file:
            logger.info("Using configuration file: %s (%s)", self._config_file, self.config.digest)
        for warning in self.config.warnings:
            logger.warning("%s", warning)
        if self.config.broker.jetstream:
            log_store(str(self.config.broker.store_dir), self.config.broker.sync)

    def _announce_stop(self) -> None:
        notify(STOPPING)

    async def _ready(self) -> None:
        logger.info("Server is ready")
        notify(READY)

    def _log_addresses(self) -> None:
        broker = self.broker
        if self.monitoring is not None:
            logger.info("Starting %s monitor on %s", self.monitoring.scheme, self.monitoring.address)
        websocket = self._websocket_url()
        if websocket:
            logger.info("Listening for websocket clients on %s", websocket)
        logger.info("Listening for client connections on %s:%d", bracketed(broker.host), broker.port)
        if broker.options.tls is not None:
            logger.info("TLS required for client connections")
        if broker.cluster is not None and broker.options.cluster is not None:
            logger.info("Cluster name is %s", broker.options.cluster.name or broker.server_id)
            host = bracketed(broker.options.cluster.host)
            logger.info("Listening for route connections on %s:%d", host, broker.cluster.port)

    def _websocket_url(self) -> str:
        return self.broker.websocket_url

    def _make_monitoring(self) -> "Monitoring":
        from headwater.monitoring.server import Monitoring

        assert self.config.monitoring is not None
        return Monitoring(self.broker, self.config.monitoring, digest=self.config.digest)

    # ── the files it leaves ──

    def _write_files(self) -> Callable[[], None]:
        """Write the pid file and the ports file; returns a function that removes the latter."""
        if self.config.pid_file is not None:
            _write("pidfile", self.config.pid_file, str(os.getpid()))
        if self.config.ports_file_dir is None:
            return lambda: None
        path = self.config.ports_file_dir / f"{PROGRAM}_{os.getpid()}.ports"
        _write("ports file", path, json.dumps(self._ports()))
        return lambda: path.unlink(missing_ok=True)

    def _ports(self) -> dict[str, list[str]]:
        broker = self.broker
        scheme = "tls" if broker.options.tls is not None else "nats"
        ports = {"nats": [f"{scheme}://{reachable(broker.host)}:{broker.port}"]}
        if self.monitoring is not None:
            address = f"{reachable(self.monitoring.host)}:{self.monitoring.port}"
            ports["monitoring"] = [f"{self.monitoring.scheme}://{address}"]
        if broker.cluster is not None and broker.options.cluster is not None:
            ports["cluster"] = [f"nats://{reachable(broker.options.cluster.host)}:{broker.cluster.port}"]
        if self._websocket_url():
            ports["websocket"] = [self._websocket_url()]
        return ports

    # ── signals ──

    def handlers(self) -> dict[signal.Signals, Callable[[], None]]:
        """The reaction to each signal."""
        return {
            signal.SIGINT: lambda: self._trapped("interrupt", self._stop.set),
            signal.SIGTERM: lambda: self._trapped("terminated", self._on_terminate),
            signal.SIGHUP: lambda: self._trapped("hangup", self.reload),
            signal.SIGUSR1: lambda: self._trapped("user defined signal 1", self._reopen),
            signal.SIGUSR2: lambda: self._trapped("user defined signal 2", self._enter_lame_duck),
        }

    def _trapped(self, name: str, react: Callable[[], object]) -> None:
        logger.info('Trapped "%s" signal', name)
        react()

    def _on_terminate(self) -> None:
        if self._lame_duck is None:
            self._stop.set()

    def _reopen(self) -> None:
        try:
            if reopen_log():
                logger.info("File log re-opened")
        except OSError as error:
            logger.error("cannot open the log file again: %s", error.strerror)

    def reload(self) -> "asyncio.Task[str]":
        """Read the configuration again and apply all of its changes or none; the task returns the error text, or "". The
        file is read in a thread, because a thousand accounts take a tenth of a second, during which clients are served."""
        task = asyncio.get_running_loop().create_task(self._reload())
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)
        return task

    def reload_on_request(self) -> "asyncio.Task[str]":
        """As `reload`, for a request in the system account."""
        return self.reload()

    async def _reload(self) -> str:
        if not self._config_file:
            logger.error("Failed to reload server configuration: there is no configuration file")
            return "there is no configuration file"
        async with self._one_reload:
            try:
                fresh = await asyncio.to_thread(self._configure)
            except HeadwaterError as error:
                return self._reload_failed(error)
            return self._apply(fresh)

    def _apply(self, fresh: ServerConfig) -> str:
        """Apply `fresh`, or return why it cannot be applied."""
        from headwater.server.config.reload import compare

        try:
            difference = compare(self.config, fresh)
            if difference.refused:
                raise ConfigError("; ".join(difference.refused), hint="it needs a restart")
            set_up_logging(fresh.logging)
            self._change(fresh.broker.replace(port=self.config.broker.port))
        except HeadwaterError as error:
            set_up_logging(self.config.logging)
            return self._reload_failed(error)
        if fresh.pid_file is not None and fresh.pid_file != self.config.pid_file:
            _write("pidfile", fresh.pid_file, str(os.getpid()))
        self.config = fresh
        for warning in fresh.warnings:
            logger.warning("%s", warning)
        for change in difference.changed:
            logger.info("Reloaded: %s", change)
        logger.info("Reloaded server configuration")
        self.broker.journal.note("reload", changes=", ".join(map(str, difference.changed)), log=False)
        return ""

    def _reload_failed(self, error: HeadwaterError) -> str:
        for line in str(error).splitlines():
            logger.error("Failed to reload server configuration: %s", line)
        self.broker.journal.note("reload_failed", reason=str(error), log=False)
        return str(error)

    def _change(self, options: "BrokerOptions") -> None:
        """Give the running broker new options."""
        if options.tls is not None:
            self.broker.renew_certificates(options.tls)  # the files may have changed, even with equal options
        left = self.broker.reload(options)
        if left:
            logger.info("%d clients were sent away, because their credentials have changed", left)

    def _enter_lame_duck(self) -> None:
        if self._lame_duck is None:
            logger.info("Entering lame duck mode, stop accepting new clients")
            self._lame_duck = asyncio.get_running_loop().create_task(self._run_lame_duck())

    async def _run_lame_duck(self) -> None:
        await self.broker.lame_duck()
        self._stop.set()


def log_store(directory: str, sync: str) -> None:
    """Log the store directory in the lines that scripts look for in nats-server's log."""
    logger.info("Starting JetStream")
    logger.info('  Store Directory: "%s"', directory)
    logger.info("  Sync:            %s", sync)


def run(runner: asyncio.Runner, serving: Serving) -> None:
    """Serve until stopped, handling signals meanwhile. Raises HeadwaterError when the server cannot start."""
    if serving.config.broker.cluster is not None:
        from headwater.net.exit_order import close_sockets_first

        close_sockets_first()
    take_short_turns()
    with _handling(runner.get_loop(), serving.handlers()):
        runner.run(serving.run())


@contextmanager
def _handling(loop: asyncio.AbstractEventLoop, handlers: Mapping[signal.Signals, Callable[[], None]]) -> Iterator[None]:
    """Call the handlers in the loop. This saves 3 ms of the start: `loop.add_signal_handler` looks up all 64 signals of the
    system for each handler, and a runner that finds SIGINT taken installs no handler of its own, for which the `signal`
    module would format a name that is never used.
    """

    def in_loop(handler: Callable[[], None]) -> Callable[[int, object], object]:
        return lambda number, frame: loop.call_soon_threadsafe(handler)

    before = {number: signal.signal(number, in_loop(handler)) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _write(what: str, path: "Path", text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise EnvironmentProblem(f"Could not write {what}: {open_failure(path, error)}", value=path) from error


def _limit_heaps() -> None:
    from headwater.server.heap_limits import limit_heaps  # here: ctypes is 3 ms of a start

    limit_heaps()
