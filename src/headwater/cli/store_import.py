"""`headwater store import DIR --store-dir NEW`: import the streams of a nats-server into our own store.

DIR is the `store_dir` of a stopped nats-server; NEW is a store directory that no broker has open. Each stream is read and
then restored by a broker inside this process, like any backup: either all of it is imported, or none.

`--check` only reads the streams, and reports what would be imported.

Exit status: 0 when everything was imported, 1 when something was not, 2 for a wrong command line.
"""

import argparse
import asyncio
import json
import logging
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.errors import HeadwaterError
from headwater.operations.nats_store import Converted, ForeignStream, convert, find_streams

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


def main(argv: list[str]) -> int:
    """The verb `store`; `spread` is in store_spread.py."""
    if argv[:1] == ["spread"]:
        from headwater.cli.store_spread import main as spread

        return spread(argv[1:])
    parser = argparse.ArgumentParser(prog="headwater store", description="Bring the streams of a nats-server over.")
    parser.add_argument("what", choices=["import", "spread"], help="`store spread -h` is about the other one")
    parser.add_argument("directory", type=Path, help="the store_dir of a nats-server that has ended")
    parser.add_argument("--store-dir", type=Path, help="the store directory of Headwater that gets them")
    parser.add_argument("--check", action="store_true", help="only say what would come over")
    parser.add_argument("--json", "-j", action="store_true", help="one JSON document")
    arguments = parser.parse_args(argv)
    if arguments.store_dir is None and not arguments.check:
        parser.error("name the store directory of Headwater: --store-dir DIR")
    streams = [one for one in find_streams(arguments.directory) if one.account != SYSTEM]
    outcomes: list[Outcome] = []
    for account in dict.fromkeys(one.account for one in streams):
        own = [one for one in streams if one.account == account]
        if not arguments.check:
            arguments.store_dir.mkdir(parents=True, exist_ok=True)
        outcomes += _check(own) if arguments.check else asyncio.run(_import(arguments.store_dir, account, own))
    if arguments.json:
        print(json.dumps({"streams": [outcome.document() for outcome in outcomes]}, indent=1))
    else:
        for outcome in outcomes:
            print("\n".join(outcome.lines()))
    lost = [one for one in outcomes if one.failure or (one.converted is not None and one.converted.problems)]
    if lost and not arguments.json:
        print(
            f"headwater store: {len(lost)} of {len(outcomes)} streams did not come over as they were", file=sys.stderr
        )
    return 1 if lost else 0


def _check(streams: list[ForeignStream]) -> list[Outcome]:
    def check(stream: ForeignStream) -> Outcome:
        with tempfile.TemporaryDirectory() as scratch:
            return _convert(stream, Path(scratch))

    return [check(stream) for stream in streams]


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


async def _import(target: Path, account: str, streams: list[ForeignStream]) -> list[Outcome]:
    """Restore the streams of one account. Raises what a broker's start raises, for example when the store is in use."""
    from headwater.client.client import connect
    from headwater.exchange.access_options import AccountOptions, JetStreamLimits, UserOptions
    from headwater.exchange.options import BrokerOptions
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
