"""`headwater serve`: the broker as a process, with nats-server's flags and readiness lines.

Start-up time counts (a test suite starts hundreds of servers), so nothing is imported here that serving does not need.
Go's flag syntax is kept: one or two dashes, `-sd DIR` or `-sd=DIR`. A flag of nats-server's that is not built yet is
refused by argparse with the list of those that are.
"""

import argparse
import asyncio
import logging
import os
import signal
import sys
import time
from pathlib import Path

from headwater import __version__
from headwater.broker.broker import COMPATIBLE_VERSION, Broker
from headwater.broker.options import BrokerOptions
from headwater.cli.event_loop import loop_factory
from headwater.errors import HeadwaterError

logger = logging.getLogger("headwater")

_LEVELS = {
    logging.DEBUG: "DBG",
    logging.INFO: "INF",
    logging.WARNING: "WRN",
    logging.ERROR: "ERR",
    logging.CRITICAL: "FTL",
}


class NatsLogFormatter(logging.Formatter):
    """`[pid] 2026/11/21 03:30:08.123456 [INF] text`: scripts that start nats-server look for these lines."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y/%m/%d %H:%M:%S", time.localtime(record.created))
        micros = int(record.created % 1 * 1_000_000)
        line = f"[{os.getpid()}] {moment}.{micros:06d} [{_LEVELS.get(record.levelno, 'INF')}] {record.getMessage()}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    """The flags; `port` -1 means any free one, as for nats-server."""
    parser = argparse.ArgumentParser(prog="headwater serve", description="Run the broker.", allow_abbrev=False)
    add = parser.add_argument
    add("-a", "-addr", "--addr", "--net", dest="host", default="0.0.0.0", help="host to bind to")
    add("-p", "-port", "--port", dest="port", type=int, default=4222, help="port for clients; -1 for any free one")
    add("-n", "-name", "--name", "--server_name", dest="name", default="", help="server name")
    add("-js", "--js", "-jetstream", "--jetstream", dest="jetstream", action="store_true", help="enable JetStream")
    add("-sd", "--sd", "-store_dir", "--store_dir", dest="store_dir", type=Path, help="where streams are kept")
    add("--sync", choices=["always", "interval", "never"], default="always", help="when a stream is made durable")
    add("--max_payload", type=int, default=1 << 20, help="bytes of one message")
    add("-D", "--debug", dest="debug", action="store_true", help="log more")
    add("-v", "--version", action="version", version=f"nats-server: v{COMPATIBLE_VERSION} (headwater {__version__})")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    """Serve until SIGTERM or SIGINT. Returns the exit status: 1 when the broker cannot start."""
    arguments = parse_arguments(argv)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(NatsLogFormatter())
    logging.basicConfig(level=logging.DEBUG if arguments.debug else logging.INFO, handlers=[handler])
    for noisy in ("asyncio", "headwater.broker.session"):
        logging.getLogger(noisy).setLevel(logging.DEBUG if arguments.debug else logging.WARNING)
    try:
        options = BrokerOptions(
            host=arguments.host,
            port=0 if arguments.port == -1 else arguments.port,
            server_name=arguments.name,
            jetstream=arguments.jetstream,
            store_dir=arguments.store_dir or Path("headwater-data"),
            sync=arguments.sync,
            max_payload=arguments.max_payload,
        )
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_serve(Broker(options=options)))
    except HeadwaterError as error:
        logger.critical("%s", error)
        return 1
    return 0


async def _serve(broker: Broker) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    logger.info("Starting headwater %s, compatible with nats-server %s", __version__, COMPATIBLE_VERSION)
    async with broker:
        if broker.options.jetstream:
            logger.info("JetStream store directory %s, sync %s", broker.options.store_dir, broker.options.sync)
        logger.info("Listening for client connections on %s", broker.url.removeprefix("nats://"))
        logger.info("Server is ready")
        await stop.wait()
        logger.info("Shutting down")
