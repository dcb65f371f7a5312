"""`headwater serve`: the broker as a process that a script can start in place of nats-server.

    flags ─▶ configuration file ─▶ ServerConfig ─▶ Broker, monitoring ─▶ "Server is ready" ─▶ signals until the end

Start-up time matters (a test suite starts hundreds of servers), so only what this run needs is imported. The exit status is
0 for a server that was stopped, 1 for one that cannot start, 2 for a wrong command line.
"""

import gc
import logging
import os
import sys
from typing import TYPE_CHECKING

from headwater.errors import ConfigError, HeadwaterError
from headwater.net.lean_imports import import_asyncio, import_msgspec
from headwater.serving import serve_flags
from headwater.serving.go_flags import Value
from headwater.serving.setup import configure, raise_descriptor_limit, set_up_logging
from headwater.version import COMPATIBLE_VERSION, VERSION

if TYPE_CHECKING:
    from headwater.iggy.face import IggyOptions

logger = logging.getLogger("headwater")


def main(argv: list[str]) -> int:
    """Serve until a signal stops it; returns the exit status."""
    try:
        flags = serve_flags.read(argv)
    except ConfigError as error:
        print(f"headwater serve: {error}\n\n{serve_flags.usage()}", file=sys.stderr)
        return 2
    if flags.get("version"):
        print(f"nats-server: v{COMPATIBLE_VERSION} (headwater {VERSION})")
        return 0
    if flags.get("help") or flags.get("help_tls"):
        print(serve_flags.usage())
        return 0
    if "signal" in flags:
        from headwater.serving.process_signals import send

        send(str(flags["signal"]))
        return 0
    if flags.get("test"):
        return _check(flags)
    gc.disable()  # imported objects stay: collecting garbage among them takes a tenth of the start (see Serving.run)
    try:
        return _run(flags)
    finally:
        gc.enable()


def _check(flags: dict[str, Value]) -> int:
    if not flags.get("config"):
        print("headwater: must specify [-c, --config] option to check configuration file syntax", file=sys.stderr)
        return 1
    from headwater.serving.config_check import check

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
    raise_descriptor_limit()
    if not iggy:
        import_asyncio()
    alone = flags.get("workers", 1) == 1 and not flags.get("spread_streams")
    greets_first = alone and not iggy  # other faces and workers need the streams at once
    if config.monitoring or (config.broker.jetstream and not greets_first):
        import_msgspec()
    import asyncio

    from headwater.serving.event_loop import loop_factory
    from headwater.serving.process import Serving, run

    try:
        if not alone:
            from headwater.serving.workers import Workers

            gc.enable()
            return Workers(config, flags, iggy).run()
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            serving = Serving(config, lambda: configure(flags), str(flags.get("config", "")), iggy)
            serving.broker.stream_services.greets_first = greets_first
            run(runner, serving)
    except HeadwaterError as error:
        from headwater.serving.start_failures import start_failure

        logger.critical("%s", start_failure(error, config))
        return 1
    return 0


def _iggy(flags: dict[str, Value]) -> "IggyOptions | None":
    if not any(name.startswith("iggy") for name in flags):
        return None
    from headwater.serving.iggy_flags import read

    return read(flags, os.environ)
