"""Set up a server process: its configuration from file and flags, its log, and its limit on descriptors.

All of this can be repeated while the server runs: a reload reads the file again, and a signal reopens the log file.
"""

import logging
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from headwater.errors import EnvironmentProblem, open_failure
from headwater.options.broker import TRACE_LEVEL, TRACE_LOGGER
from headwater.server.config.draft import Draft, ServerConfig
from headwater.serving import serve_flags
from headwater.serving.go_flags import Value

if TYPE_CHECKING:
    from headwater.server.config.draft import LoggingOptions

# They log a line for each client, which is too much at the normal level.
_TALKATIVE = ("headwater.exchange.session", "headwater.monitoring", "uvicorn")


def configure(flags: dict[str, Value]) -> ServerConfig:
    """The configuration from the file, if any, overridden by flags. Raises ConfigError."""
    draft = Draft()
    if flags.get("config"):
        from headwater.server.config.schema import load

        draft = load(str(flags["config"]), read_file, os.environ)
    serve_flags.apply(flags, draft)
    return draft.finish()


def raise_descriptor_limit() -> None:
    """Raise the soft limit on descriptors to the hard limit, as Go programs do: each connection and each segment needs
    one."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):  # not every system allows an unlimited value
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def read_file(path: str) -> str:
    """The text of a file, with unchanged line ends."""
    with open(path, "rb") as file:
        return file.read().decode("utf-8")


def set_up_logging(options: "LoggingOptions | None") -> None:
    """Configure logging from `options`. Raises EnvironmentProblem when the log file cannot be opened."""
    from headwater.server.log_file import LogFile, StderrHandler
    from headwater.server.log_lines import NatsLogFormatter

    root = logging.getLogger()
    handler: logging.Handler = StderrHandler()
    if options is not None and options.file is not None:
        try:
            handler = LogFile(options.file, options.size_limit, options.max_files)
        except OSError as error:
            text = f"error opening file: {open_failure(options.file, error)}"
            raise EnvironmentProblem(text, value=options.file) from error
    with_time, utc = (options.time, options.utc) if options is not None else (True, False)
    handler.setFormatter(NatsLogFormatter(with_time=with_time, utc=utc))
    for old in list(root.handlers):
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    chatty = options is not None and options.debug
    root.setLevel(logging.DEBUG if chatty else logging.INFO)
    tracing = options is not None and (options.trace or options.trace_system)
    logging.getLogger(TRACE_LOGGER).setLevel(TRACE_LEVEL if tracing else logging.WARNING)
    if options is not None and tracing:
        from headwater.exchange.tracing import Settings

        Settings.most, Settings.system = options.max_traced, options.trace_system
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.DEBUG if chatty else logging.WARNING)


def reopen_log() -> bool:
    """Reopen the log file by name; False when the log goes to stderr."""
    from headwater.server.log_file import LogFile

    files = [handler for handler in logging.getLogger().handlers if isinstance(handler, LogFile)]
    for handler in files:
        handler.reopen()
    return bool(files)
