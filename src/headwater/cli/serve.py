"""`headwater serve`: the broker as a process that a script may start in nats-server's place.

    flags ─▶ configuration file ─▶ ServerConfig ─▶ Broker, monitoring ─▶ "Server is ready" ─▶ signals until the end

Start-up time counts (a test suite starts hundreds of servers), so nothing is imported here that this run does not need.
The exit status is 0 for a server that was told to stop, 1 for one that cannot start, 2 for a wrong command line.
"""

import gc
import logging
import os
import sys
from typing import TYPE_CHECKING

from headwater import __version__
from headwater.broker.config.draft import Draft, ServerConfig
from headwater.cli import serve_flags
from headwater.cli.go_flags import Value
from headwater.errors import ConfigError, EnvironmentProblem, HeadwaterError

if TYPE_CHECKING:
    from headwater.broker.config.draft import LoggingOptions
    from headwater.cli.iggy_serving import IggyFlags

logger = logging.getLogger("headwater")

COMPATIBLE_VERSION = "2.15.1"

# They speak of single clients, which at the normal level nobody wants to read.
_TRACE = 5  # the level of ops
_TALKATIVE = ("headwater.broker.session", "headwater.broker.monitoring")


def main(argv: list[str]) -> int:
    """Serve until a signal says otherwise; returns the exit status."""
    try:
        flags = serve_flags.read(argv)
    except ConfigError as error:
        print(f"headwater serve: {error}\n\n{serve_flags.usage()}", file=sys.stderr)
        return 2
    if flags.get("version"):
        print(f"nats-server: v{COMPATIBLE_VERSION} (headwater {__version__})")
        return 0
    if flags.get("help") or flags.get("help_tls"):
        print(serve_flags.usage())
        return 0
    if "signal" in flags:
        from headwater.cli.process_signals import send

        send(str(flags["signal"]))
        return 0
    if flags.get("test"):
        return _check(flags)
    gc.disable()  # what is imported now stays: looking for garbage in it costs a tenth of the start (see Serving.run)
    try:
        return _run(flags)
    finally:
        gc.enable()


def configure(flags: dict[str, Value]) -> ServerConfig:
    """The configuration file, if any, and the flags over it. Raises ConfigError."""
    draft = Draft()
    if flags.get("config"):
        from headwater.broker.config.schema import load

        draft = load(str(flags["config"]), read_file, os.environ)
    serve_flags.apply(flags, draft)
    return draft.finish()


def read_file(path: str) -> str:
    """The text of a file, with its line ends as they are."""
    with open(path, "rb") as file:
        return file.read().decode("utf-8")


def _check(flags: dict[str, Value]) -> int:
    if not flags.get("config"):
        print("headwater: must specify [-c, --config] option to check configuration file syntax", file=sys.stderr)
        return 1
    from headwater.cli.config_check import check

    return check(str(flags["config"]))


def _run(flags: dict[str, Value]) -> int:
    set_up_logging(None)
    try:
        config = configure(flags)
        iggy = _iggy(flags)
        set_up_logging(config.logging)
    except HeadwaterError as error:
        for line in str(error).splitlines():
            logger.critical("%s", line)
        return 1
    if not iggy:
        _import_asyncio()
    import asyncio

    from headwater.cli.event_loop import loop_factory
    from headwater.cli.serving import Serving, run

    try:
        if flags.get("workers", 1) != 1:
            from headwater.cli.workers import Workers

            gc.enable()
            return Workers(config, flags, iggy).run()
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            run(runner, Serving(config, lambda: configure(flags), str(flags.get("config", "")), iggy))
    except EnvironmentProblem as error:
        logger.critical("%s", _listening_problem(error))
        return 1
    except HeadwaterError as error:
        logger.critical("%s", error)
        return 1
    return 0


def _iggy(flags: dict[str, Value]) -> "IggyFlags | None":
    if not any(name.startswith("iggy") for name in flags):
        return None
    from headwater.cli.iggy_serving import read

    return read(flags)


def _import_asyncio() -> None:
    """Import asyncio without `ssl`, whose OpenSSL is a seventh of the time until the first client can connect.

    asyncio wants `ssl` for TLS transports of its own, and copes where there is none. Nothing here uses them: our TLS
    (net/tls.py) is a layer over plain transports, and imports `ssl` when there is a certificate.
    """
    if "asyncio" in sys.modules or "ssl" in sys.modules:
        return
    sys.modules["ssl"] = None  # type: ignore[assignment]
    try:
        import asyncio  # noqa: F401
    finally:
        del sys.modules["ssl"]


def _listening_problem(error: EnvironmentProblem) -> str:
    """The words that scripts look for when a port is taken; the error's own ones for anything else."""
    cause = error.__cause__
    if not isinstance(cause, OSError) or not error.message.startswith("cannot listen on "):
        return str(error)
    reason = os.strerror(cause.errno).lower() if cause.errno and cause.errno > 0 else str(cause)
    return f'Error listening on port: {error.value}, "listen tcp {error.value}: bind: {reason}"'


def set_up_logging(options: "LoggingOptions | None") -> None:
    """Send log lines to where they are wanted. Raises EnvironmentProblem when the log file cannot be opened."""
    from headwater.broker.log_file import LogFile, StderrHandler
    from headwater.broker.log_lines import NatsLogFormatter

    root = logging.getLogger()
    handler: logging.Handler = StderrHandler()
    if options is not None and options.file is not None:
        try:
            handler = LogFile(options.file, options.size_limit, options.max_files)
        except OSError as error:
            raise EnvironmentProblem(f"cannot write to {options.file}: {error.strerror}", value=options.file) from error
    with_time, utc = (options.time, options.utc) if options is not None else (True, False)
    handler.setFormatter(NatsLogFormatter(with_time=with_time, utc=utc))
    for old in list(root.handlers):
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    chatty = options is not None and options.debug
    root.setLevel(logging.DEBUG if chatty else logging.INFO)
    tracing = options is not None and (options.trace or options.trace_system)
    logging.getLogger("headwater.broker.tracing").setLevel(_TRACE if tracing else logging.WARNING)
    if options is not None and tracing:
        from headwater.broker.tracing import Settings

        Settings.most, Settings.system = options.max_traced, options.trace_system
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.DEBUG if chatty else logging.WARNING)


def reopen_log() -> bool:
    """Open the log file by its name again; False when the log goes to stderr."""
    from headwater.broker.log_file import LogFile

    files = [handler for handler in logging.getLogger().handlers if isinstance(handler, LogFile)]
    for handler in files:
        handler.reopen()
    return bool(files)
