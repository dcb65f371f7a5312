"""The streams of a stopped nats-server, restored by a broker inside this process: `headwater store import`."""

import asyncio
import logging
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.errors import HeadwaterError
from headwater.operations.nats_store import Converted, ForeignStream, convert

if TYPE_CHECKING:
    from headwater.client.client import Client

SYSTEM = "$SYS"
GLOBAL = "$G"
RESTORE_SECONDS = 60.0  # for one answer from the broker


class Outcome(NamedTuple):
    """The result of one stream; `failure`: why none of it was imported."""

    stream: ForeignStream
    converted: Converted | None
    failure: str = ""

    def document(self) -> dict[str, Any]:
        """As JSON, for programs."""
        found: dict[str, Any] = {"account": self.stream.account, "stream": self.stream.name}
        if self.converted is not None:
            found |= self.converted._asdict()
        return {**found, "failure": self.failure} if self.failure else found

    def lines(self) -> list[str]:
        """As text, for people."""
        title = f"{self.stream.account} > {self.stream.name}"
        if self.converted is None:
            return [f"{title}: NOT taken: {self.failure}"]
        found = self.converted
        held = f"{found.messages:,} messages ({found.first} to {found.last}), {found.consumers} consumers"
        first = f"{title}: {held}" + (f": NOT taken: {self.failure}" if self.failure else "")
        return [first, *(f"    {each}" for each in (*found.notes, *found.problems))]


def check(streams: list[ForeignStream]) -> list[Outcome]:
    """What importing the streams would bring; they are only read."""

    def read(stream: ForeignStream) -> Outcome:
        with tempfile.TemporaryDirectory() as scratch:
            return _convert(stream, Path(scratch))

    return [read(stream) for stream in streams]


def _convert(stream: ForeignStream, directory: Path) -> Outcome:
    try:
        return Outcome(stream, convert(stream, directory, lambda messages: None))
    except HeadwaterError as error:
        return Outcome(stream, None, str(error))


@contextmanager
def _errors_only() -> Iterator[None]:
    """Suppress what every broker logs at start; the result of each stream is printed anyway."""
    logger = logging.getLogger("headwater")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


async def import_streams(target: Path, account: str, streams: list[ForeignStream]) -> list[Outcome]:
    """Restore the streams of one account. Raises what a broker's start raises, for example when the store is in use."""
    from headwater.client.client import connect
    from headwater.options.access import AccountOptions, JetStreamLimits, UserOptions
    from headwater.options.broker import BrokerOptions
    from headwater.server.broker import Broker

    password = secrets.token_urlsafe(24)  # keeps other users of this machine out
    user = UserOptions(username="import", password=password)
    options = BrokerOptions(jetstream=True, store_dir=target)
    if account == GLOBAL:
        options = options.replace(authorization=options.authorization.replace(users=(user,)))
    else:
        options = options.replace(accounts=(AccountOptions(name=account, users=(user,), jetstream=JetStreamLimits()),))
    outcomes = []
    with _errors_only():
        async with Broker(options=options) as broker:
            client = await connect(broker.url, user="import", password=password)
            try:
                for stream in streams:
                    with tempfile.TemporaryDirectory(dir=target.parent, prefix="headwater-import-") as scratch:
                        outcomes.append(await _bring(client, stream, Path(scratch)))
            finally:
                await client.close()
    return outcomes


async def _bring(client: "Client", stream: ForeignStream, scratch: Path) -> Outcome:
    from headwater.operations.backups import restore_stream

    outcome = await asyncio.to_thread(_convert, stream, scratch)
    if outcome.converted is None:
        return outcome
    try:
        await restore_stream(client, client.jetstream(timeout=RESTORE_SECONDS), scratch, lambda sent, size: None)
    except HeadwaterError as error:
        return outcome._replace(failure=str(error))
    return outcome
