"""`headwater serve --workers N`: N broker processes behind one port, for more than one core.

    parent ── holds the port, starts the workers, passes signals on; serves no clients
      ├─ worker 1   clients, streams, the Iggy face, monitoring (with the figures of all: monitoring/workers.py)
      ├─ worker 2   clients
      └─ …          each routes to each other over a Unix socket

All listen on the same address (SO_REUSEPORT), and the system deals new connections out. Among themselves they are a cluster
under a name and a route password made for this run, which are on no command line and in no file. One line says that the
server is ready, once every worker knows every other.

A worker that ends by itself is replaced: the others go on, and the new one has its number, its socket for routes and, if
it is the first, its streams, opened as after any crash. One that ends again and again waits for its next start
(`serving.restarts`); if none is left, the server ends. When the parent is killed, its workers see the end of a pipe.
`max_connections` is one limit for all of them, and so are those of accounts: each writes the numbers of its clients into
shared memory.
"""

import asyncio
import logging
import os
import secrets
import select
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from headwater import __version__
from headwater.errors import ConfigError, EnvironmentProblem, HeadwaterError, open_failure
from headwater.jetstream_workers.line import ALL
from headwater.model.worker_options import WorkerOptions
from headwater.monitoring.account_seats import AccountSeats
from headwater.monitoring.board import Board
from headwater.monitoring.whole import PageAnswers
from headwater.monitoring.workers import Figures, Seats
from headwater.net.local_sockets import forget, new_place
from headwater.net.tcp import reserve
from headwater.options.cluster import ClusterOptions
from headwater.server.config.draft import ServerConfig
from headwater.server.service_manager import READY, STOPPING, notify
from headwater.serving.event_loop import loop_factory
from headwater.serving.go_flags import Value
from headwater.serving.process import PROGRAM, Serving, log_store, run
from headwater.serving.restarts import ENDS_WITHIN, MOST_ENDS, Restarts
from headwater.serving.setup import configure, reopen_log, set_up_logging
from headwater.serving.worker_watch import WorkerWatch

if TYPE_CHECKING:
    from headwater.cluster.service import Cluster
    from headwater.iggy.face import IggyOptions
    from headwater.jetstream_workers.usage import Usage
    from headwater.monitoring.server import Monitoring

logger = logging.getLogger("headwater")

HOST = "127.0.0.1"
MOST_WORKERS = 64
PATIENCE = 30.0  # seconds until the workers must know each other; they need some 10 ms
AGAIN = 3.0  # seconds that one in the place of another waits for them: a third may have died meanwhile
# A worker that answers nothing for 30 to 40 s is no route any more: what is for its streams has no responders then. Clients
# wait no longer than 5 s; but a worker may be that slow, and its route costs what is on it when it is closed.
PING_INTERVAL = 10.0
PING_MAX = 3
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class Report(msgspec.Struct, omit_defaults=True):
    """What a worker tells its parent, a line each: where it is once it listens, `meshed`, or why it `failed`."""

    monitor: str = ""
    ports: dict[str, list[str]] = {}
    iggy: dict[str, str] = {}
    meshed: bool = False
    failed: str = ""


class Shape(msgspec.Struct, frozen=True):
    """What turns the configuration of the whole into that of one worker."""

    count: int
    port: int
    websocket_port: int
    name: str
    password: str
    sockets: str
    spread: bool
    pushed: str = ""  # a directory of this run for pushed account JWTs, where the configuration names none

    def config(self, whole: ServerConfig, number: int, place: "Place") -> ServerConfig:
        """That of worker `number`, from 1."""
        first, broker = number == 1, whole.broker
        cluster = ClusterOptions(
            name=self.name,
            host=HOST,
            port=number,
            place=self.sockets,
            username="worker",
            password=self.password,
            routes=place.routes,
            advertise=f"{HOST}:{number}",
            no_advertise=True,
            ping_interval=PING_INTERVAL,
            ping_max=PING_MAX,
        )
        websocket = broker.websocket and broker.websocket.replace(port=self.websocket_port)
        name = f"{broker.server_name}-{number}" if broker.server_name else ""
        operator = broker.operator
        if operator is not None and self.pushed:
            operator = operator.replace(accounts_from=operator.accounts_from.replace(directory=self.pushed))
        changed = broker.replace(
            operator=operator,
            port=self.port,
            reuse_port=True,
            server_name=name,
            jetstream=broker.jetstream and (first or self.spread),
            worker=WorkerOptions(number=number, count=self.count, spread=self.spread),
            websocket=websocket,
            cluster=cluster,
        )
        monitoring = whole.monitoring if first else None
        return whole.replace(broker=changed, monitoring=monitoring, pid_file=None, ports_file_dir=None, warnings=())


class Place(msgspec.Struct, frozen=True):
    """Where a worker is among the others: whether it replaces one, the routes it dials, and how many others it awaits."""

    replaces: bool
    routes: tuple[str, ...]
    others: int


class Worker(Serving):
    """One of them. It says nothing but warnings, for its parent speaks for all; `lifeline` ends with the parent."""

    def __init__(
        self,
        config: ServerConfig,
        again: "Again",
        config_file: str,
        iggy: "IggyOptions | None",
        reports: int,
        lifeline: int,
        board: "Board",
        usage: "Usage | None" = None,
    ) -> None:
        super().__init__(config, again, config_file, iggy)
        self._reports = reports
        self._lifeline = lifeline
        self._others = again.place.others
        self._replaces = again.place.replaces
        self._number = again.number
        self._iggy = iggy
        self._board = board
        self.broker.stream_services.usage = usage
        self._figures: asyncio.Task[None] | None = None
        self._parent = os.getppid()

    def _greet(self) -> None:
        self._be_quiet()
        asyncio.get_running_loop().add_reader(self._lifeline, self._orphaned)

    def _be_quiet(self) -> None:
        logger.setLevel(logging.NOTSET if self.config.logging.debug else logging.WARNING)

    def _apply(self, fresh: ServerConfig) -> str:
        logger.setLevel(logging.NOTSET)  # each worker reports what it has loaded
        try:
            return super()._apply(fresh)
        finally:
            self._be_quiet()

    def _enter_lame_duck(self) -> None:
        logger.setLevel(logging.NOTSET)  # each worker says that it ends gradually, for that takes minutes
        super()._enter_lame_duck()
        self._be_quiet()

    def reload_on_request(self) -> "asyncio.Task[str]":
        """A request of the system account names one worker, but means the server: the others follow, if this one can."""
        task = super().reload_on_request()
        task.add_done_callback(self._pass_on_reload)
        return task

    def _pass_on_reload(self, task: "asyncio.Task[str]") -> None:
        if not task.cancelled() and not task.exception() and not task.result() and os.getppid() == self._parent:
            os.kill(self._parent, signal.SIGHUP)

    def _orphaned(self) -> None:
        asyncio.get_running_loop().remove_reader(self._lifeline)
        self._stop.set()

    def _make_monitoring(self) -> "Monitoring":
        made = super()._make_monitoring()
        made.view.workers = self._board
        made.view.line = self.broker.stream_services.line
        return made

    async def run(self) -> None:
        """As Serving has it."""
        try:
            await super().run()
        finally:
            if self._figures is not None:
                self._figures.cancel()
                await asyncio.gather(self._figures, return_exceptions=True)

    def _announce_stop(self) -> None:
        pass  # the parent says it

    async def _ready(self) -> None:
        """Wait for the others; a signal to stop ends that, too."""
        cluster = self.broker.cluster
        if cluster is None:
            raise AssertionError("a worker was started without its cluster")
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
        if self.broker.sessions is not None:
            Seats(self.broker.sessions, self._board, self._number)
            AccountSeats(self.broker.sessions, self._board.accounts, self._number)
        if self.broker.stream_services.line is not None:
            self.broker.stream_services.line.attach(ALL, PageAnswers(self.broker.observe()))
        self._figures = asyncio.create_task(Figures(self.broker.observe()).keep(self._board, self._number))
        monitor = f"{self.monitoring.scheme} monitor on {self.monitoring.address}" if self.monitoring else ""
        ports = {kind: urls for kind, urls in self._ports().items() if kind != "cluster"}
        listeners = {} if self._iggy is None else self.broker.iggy.listeners()
        iggy = {name: f"{host}:{port}" for name, (host, port) in listeners.items()}
        send_report(self._reports, Report(monitor=monitor, ports=ports, iggy=iggy))
        meshed = asyncio.ensure_future(self._together(cluster))
        stopped = asyncio.ensure_future(self._stop.wait())
        patience = AGAIN if self._replaces else PATIENCE
        await asyncio.wait({meshed, stopped}, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        if meshed.done() or (self._replaces and not stopped.done()):
            if not meshed.done():
                logger.warning("worker %d goes on, and does not know every other worker yet", self._number)
            send_report(self._reports, Report(meshed=True))
        elif not stopped.done():
            raise HeadwaterError(f"the workers did not find each other within {PATIENCE:g} s")
        for task in (meshed, stopped):
            task.cancel()
        await asyncio.gather(meshed, stopped, return_exceptions=True)

    async def _together(self, cluster: "Cluster") -> None:
        """Until the other workers that run are known, and answer questions."""
        await cluster.wait_for_peers(self._others)
        line = self.broker.stream_services.line
        if line is not None:
            await line.until_answered(self._others)


def check_shared(config: ServerConfig) -> None:
    """Raise ConfigError for what workers cannot share, at the start and at a reload."""
    if config.broker.cluster is not None:
        raise ConfigError("workers are a cluster of their own", hint="leave out the cluster, or --workers")
    config.broker.check_routed_names()
    if config.broker.leafnodes is not None:
        raise ConfigError(
            "workers do not share a listener for leaf nodes, nor a hub", hint="leave out leafnodes, or --workers"
        )
    if config.logging.size_limit:
        raise ConfigError("workers share the log file: none may begin a new one", hint="let logrotate do it")


class Again:
    """Reads the configuration again for worker `number`, on a request to reload."""

    def __init__(self, flags: Mapping[str, Value], shape: Shape, number: int, place: Place) -> None:
        self.place = place
        self._shape = shape
        self._flags = dict(flags)
        self.number = number

    def __call__(self) -> ServerConfig:
        whole = configure(self._flags)
        check_shared(whole)
        return self._shape.config(whole, self.number, self.place)


class Workers:
    """The parent. Raises ConfigError for what cannot be shared, EnvironmentProblem when the port is taken."""

    def __init__(self, config: ServerConfig, flags: Mapping[str, Value], iggy: "IggyOptions | None") -> None:
        count = int(flags.get("workers", 1))
        if not 1 <= count <= MOST_WORKERS:
            allowed = f"1 to {MOST_WORKERS}"
            raise ConfigError(f"there cannot be {count} workers", value=count, limit=allowed, hint=allowed)
        spread = bool(flags.get("spread_streams"))
        if spread and (count == 1 or not config.broker.jetstream):
            raise ConfigError("streams can be spread over workers only", hint="--workers 2 -js --spread_streams")
        check_shared(config)
        self._config = config
        self._flags = flags
        self._iggy = iggy
        broker = config.broker
        self._held = [reserve(broker.host, broker.port)]
        if broker.websocket is not None:
            self._held.append(reserve(broker.websocket.host or broker.host, broker.websocket.port))
        ports = [int(held.getsockname()[1]) for held in self._held]
        # Before the directories below are made, which a start that fails here would leave behind.
        self._usage = self._prepare_store(count) if spread and broker.jetstream else None
        token = secrets.token_hex(8)
        self._shape = Shape(
            count,
            ports[0],
            ports[-1],
            f"workers-{token}",
            secrets.token_urlsafe(32),
            new_place(),
            spread,
            _place_for_pushed(config),
        )
        self._running: dict[int, int] = {}  # process id -> number
        self._reports: dict[int, IO[bytes]] = {}  # by number
        self._restarts = Restarts()
        self._starting: dict[int, Report] = {}  # those that replace others and are not ready; with their first reports
        self._silent: set[int] = set()  # they have closed their reports: they are about to end
        self._lifeline = os.pipe()
        self._watch = WorkerWatch(Board(count))
        self._stopping = False
        self._failed = False

    def _prepare_store(self, count: int) -> "Usage":
        from headwater.durable_files.files import OsFiles
        from headwater.jetstream_workers.folders import prepare_store
        from headwater.jetstream_workers.usage import Usage

        prepare_store(OsFiles(), str(self._config.broker.store_dir), count)
        return Usage(count)

    def run(self) -> int:
        """Start all, and wait until all have ended; returns the exit status."""
        self._greet()
        try:
            for number in SIGNALS:
                signal.signal(number, self._pass_on)
            first = self._start_all()
            if first is not None:
                self._log_addresses(first)
                with _Files(self._config, first.ports):
                    logger.info("Server is ready")
                    notify(READY)
                    self._wait()
                    if not self._stopping:
                        logger.critical("no worker is left: the server ends")
        finally:
            self._end_all()
        if self._stopping:
            logger.info("Server Exiting..")
        return 1 if self._failed or self._restarts.waiting else 0

    def _greet(self) -> None:
        logger.info("Starting headwater %s, a nats-server, in %d workers", __version__, self._shape.count)
        if self._config.broker.jetstream:
            log_store(str(self._config.broker.store_dir), self._config.broker.sync)
        for warning in self._config.warnings:
            logger.warning("%s", warning)

    def _log_addresses(self, first: Report) -> None:
        if first.monitor:
            logger.info("Starting %s", first.monitor)
        _log_iggy(first)
        for url in first.ports.get("websocket", []):
            logger.info("Listening for websocket clients on %s", url)
        logger.info("Listening for client connections on %s:%d", self._config.broker.host, self._shape.port)

    # ── starting ──

    def _start_all(self) -> Report | None:
        """Start the workers; the first has to listen before the others dial it. None when it did not start."""
        others = self._shape.count - 1
        first = self._start(1, Place(False, (), others)) and self._next_report(1)
        if not first:
            return None
        place = Place(False, _routes_to([1]), others)
        numbers = range(2, self._shape.count + 1)
        if not all(self._start(number, place) for number in numbers) or not all(map(self._next_report, numbers)):
            return None
        return first if all(self._next_report(number) for number in range(1, self._shape.count + 1)) else None

    def _start(self, number: int, place: Place) -> bool:
        """Fork worker `number`; False when it is not wanted any more."""
        if self._stopping:
            return False
        reading, writing = os.pipe()
        sys.stderr.flush()
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        process = os.fork()
        if process == 0:
            status = 1
            try:
                status = self._be_worker(number, place, writing)
            except Exception:  # a fault of ours; whatever it is, this process must not run on as a second parent
                logger.exception("worker %d has failed", number)
            finally:
                os._exit(status)
        os.close(writing)
        self._running[process] = number
        self._reports[number] = open(reading, "rb")
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        return True

    def _be_worker(self, number: int, place: Place, reports: int) -> int:
        for trapped in SIGNALS:
            signal.signal(trapped, signal.SIG_DFL)
        # SIGHUP waits until there is what to reload.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, set(SIGNALS) - {signal.SIGHUP})
        os.close(self._lifeline[1])
        for others in self._reports.values():
            others.close()
        again = Again(self._flags, self._shape, number, place)
        config = self._shape.config(self._config, number, place)
        try:
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                iggy = self._iggy if number == 1 else None
                config_file = str(self._flags.get("config", ""))
                shared = self._lifeline[0], self._watch.board, self._usage
                run(runner, Worker(config, again, config_file, iggy, reports, *shared))
        except HeadwaterError as error:
            send_report(reports, Report(failed=str(error)))
            return 1
        return 0

    def _next_report(self, number: int) -> Report | None:
        """The next report of a worker; None when it failed, or ended."""
        line = self._reports[number].readline()
        report = msgspec.json.decode(line, type=Report) if line else Report(failed="it ended")
        if not report.failed:
            return report
        self._complain(number, report.failed)
        return None

    def _complain(self, number: int, problem: str) -> None:
        if not self._stopping:
            self._failed = True
            logger.critical("worker %d cannot serve: %s", number, problem)

    # ── until the end ──

    def _pass_on(self, number: int, frame: object) -> None:
        """A signal for all. Ctrl-C reaches the workers by itself as well, and twice does no harm."""
        if number in (signal.SIGINT, signal.SIGTERM):
            if not self._stopping:
                notify(STOPPING)
            self._stopping = True
            number = signal.SIGTERM
        elif number == signal.SIGUSR1:
            with suppress(OSError):
                reopen_log()
        elif number == signal.SIGHUP:
            self._reload()
        elif number == signal.SIGUSR2:
            self._stopping = True  # lame ducks end by themselves
        for process in self._running:
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def _reload(self) -> None:
        """Keep what the workers load now for one that replaces another: with the configuration of the start it would let in
        users that a reload has removed. They judge it in the same way, and log what they find."""
        from headwater.server.config.reload import compare  # here: a start does not need it

        if not self._flags.get("config"):
            return
        try:
            fresh = configure(dict(self._flags))
            check_shared(fresh)
            before, after = (self._shape.config(one, 1, Place(False, (), 0)) for one in (self._config, fresh))
            if compare(before, after).refused:
                return
            if fresh.logging != self._config.logging:
                set_up_logging(fresh.logging)
        except HeadwaterError:
            return
        self._config = fresh

    def _wait(self) -> None:
        """Until no worker is left. One that replaces another may take minutes to open its streams: the others are watched
        meanwhile."""
        while self._running:
            waiting = {self._reports[number].fileno(): number for number in self._running.values()}
            look_in = self._watch.look({} if self._stopping else self._running)  # which is soon enough for `_restarts`
            readable, _, _ = select.select(waiting, (), (), look_in)  # a report, or the end of a process
            for descriptor in readable:
                self._take_reports(waiting[descriptor], os.read(descriptor, 65536))
            found = []
            for process, number in list(self._running.items()):  # all of them: a new one waits for those that run
                ended, status = os.waitpid(process, 0 if number in self._silent else os.WNOHANG)
                if ended:
                    found.append((self._running.pop(process), os.waitstatus_to_exitcode(status)))
            self._silent.clear()
            for number, code in found:
                self._watch.board.ended(number)
                self._starting.pop(number, None)
                if not self._stopping:
                    logger.error("worker %d ended with status %d; %d go on", number, code, len(self._running))
            for number, _ in found:
                if not self._stopping:
                    self._replace(number)
            for number in self._restarts.take_due(time.monotonic()):
                self._start_again(number)

    def _take_reports(self, number: int, lines: bytes) -> None:
        """What a worker has reported; nothing when it has closed its end."""
        if not lines:
            self._silent.add(number)
        for line in lines.splitlines():
            report = msgspec.json.decode(line, type=Report)
            if report.failed:
                self._complain(number, report.failed)
            elif number in self._starting and not report.meshed:
                self._starting[number] = report
            elif number in self._starting:
                _log_iggy(self._starting.pop(number))  # a port that was not chosen is another one now
                logger.warning("worker %d is replaced", number)

    def _replace(self, number: int) -> None:
        """Start a worker anew in the place of one that has ended by itself, at once or later."""
        self._reports[number].close()
        wait = self._restarts.ended(number, time.monotonic())
        if wait:
            lines = "worker %d has ended %d times in %g s and is started again in %.0f s"
            logger.critical(lines, number, MOST_ENDS + 1, ENDS_WITHIN, wait)
        else:
            self._start_again(number)

    def _start_again(self, number: int) -> None:
        alive = self._running.values()
        if self._start(number, Place(True, _routes_to(alive), len(alive))):
            self._starting[number] = Report()

    def _end_all(self) -> None:
        """Whatever happened: no worker stays behind."""
        for process in self._running:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
        self._stopping = self._stopping or bool(self._running)
        self._wait()
        for fd in self._lifeline:
            os.close(fd)
        for reports in self._reports.values():
            reports.close()
        forget(self._shape.sockets)
        if self._shape.pushed:
            forget(self._shape.pushed)
        self._watch.board.close()
        if self._usage is not None:
            self._usage.close()
        for held in self._held:
            held.close()


def _place_for_pushed(config: ServerConfig) -> str:
    """A directory for the JWTs that are pushed to a resolver in memory. Without it a worker that replaces another has those
    of the start alone, and lets in revoked users. Empty for other resolvers."""
    operator = config.broker.operator
    if operator is None or operator.accounts_from.kind != "memory":
        return ""
    import tempfile  # here: few servers have an operator

    return tempfile.mkdtemp(prefix="headwater-")


class _Files:
    """The pid file and the ports file, which name the parent; the latter goes when it ends."""

    def __init__(self, config: ServerConfig, ports: dict[str, list[str]]) -> None:
        self._pid_file = config.pid_file
        directory = config.ports_file_dir
        self._ports_file = directory / f"{PROGRAM}_{os.getpid()}.ports" if directory is not None else None
        self._ports = ports

    def __enter__(self) -> None:
        if self._pid_file is not None:
            _write("pidfile", self._pid_file, str(os.getpid()).encode())
        if self._ports_file is not None:
            _write("ports file", self._ports_file, msgspec.json.encode(self._ports))

    def __exit__(self, *_: object) -> None:
        if self._ports_file is not None:
            self._ports_file.unlink(missing_ok=True)


def _log_iggy(report: Report) -> None:
    for name, address in report.iggy.items():
        logger.info("Listening for Iggy clients (%s) on %s", name, address)


def _routes_to(numbers: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"nats-route://{HOST}:{number}" for number in numbers)


def send_report(fd: int, report: Report) -> None:
    """Send a report to the parent, unless it has ended."""
    with suppress(BrokenPipeError):
        os.write(fd, msgspec.json.encode(report) + b"\n")


def _write(what: str, path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise EnvironmentProblem(f"Could not write {what}: {open_failure(path, error)}", value=path) from error
