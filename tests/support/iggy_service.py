"""An Iggy service without a transport: commands in, views out, as any user."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import IggyError
from headwater.iggy import message_commands
from headwater.iggy.clients import TCP, Client
from headwater.iggy.dispatch import execute
from headwater.iggy.foreign import ForeignStreams
from headwater.iggy.partition import Batch
from headwater.iggy.service import Service
from headwater.iggy.service_options import ServiceOptions
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.batches import admit, messages, of_messages
from headwater.iggy_wire.commands import Command, Message
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.identifiers import Consumer, Identifier, Partitioning, PollingStrategy
from headwater.iggy_wire.reply_codec import SentView
from headwater.monitoring.steps import at_once

S, T, G = Identifier("s"), Identifier("t"), Identifier("g")
SECOND = 1_000_000  # microseconds


class Desk:
    """A running service. `now` is its clock, in microseconds; `root` a client of today who may do everything."""

    root: Client

    def __init__(self, directory: Path, foreign: ForeignStreams | None = None) -> None:
        self.now = 1_000 * SECOND
        options = ServiceOptions(sync="never", housekeeping=3600)
        self.service = Service(directory, options, clock_us=lambda: self.now, foreign=foreign)

    def client(self, era: Era = Era.V, user: str | None = "iggy") -> Client:
        """Another connection, of this user."""
        made = self.service.connect(TCP, "192.0.2.1:5", era)
        made.user = next((entry for entry in self.service.catalog.users if entry.name == user), None)
        return made

    async def do(self, command: Command, client: Client | None = None) -> Any:
        view = execute(self.service, client or self.root, command)
        return await view if inspect.isawaitable(view) else view

    async def refused(self, command: Command, client: Client | None = None) -> str:
        """The name of the error that it ends with."""
        with pytest.raises(IggyError) as caught:
            await self.do(command, client)
        return caught.value.name

    async def make(self, partitions: int = 2) -> None:
        """Stream `s` with topic `t` and group `g`."""
        await self.do(c.CreateStream("s"))
        await self.do(c.CreateTopic(S, "t", partitions))
        await self.do(c.CreateGroup(S, T, "g"))

    async def send(
        self,
        *payloads: bytes,
        to: Partitioning | int = 0,
        topic: Identifier = T,
        stream: Identifier = S,
        client: Client | None = None,
    ) -> SentView:
        where = Partitioning.partition(to) if isinstance(to, int) else to
        batch, count = of_messages([Message(payload) for payload in payloads], self.now)
        done: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        sent = message_commands.send(
            self.service,
            client or self.root,
            c.SendMessages(stream, topic, where, count),
            Batch(batch, 0, len(batch)),
            admit(batch, 0, len(batch), count),
            done.set_result,
        )
        error = await done
        if error is not None:
            raise error
        return sent

    def poll(
        self,
        partition: int | None = 0,
        strategy: PollingStrategy | None = None,
        consumer: Consumer | None = None,
        client: Client | None = None,
        commit: bool = False,
        count: int = 100,
        topic: Identifier = T,
        stream: Identifier = S,
    ) -> tuple[int, list[bytes]]:
        """(the partition that answers, the payloads)."""
        where = strategy or PollingStrategy.first()
        reader = consumer or Consumer.single()
        command = c.PollMessages(reader, stream, topic, partition, where, count, commit)
        found = at_once(message_commands.poll(self.service, client or self.root, command))
        return found.partition, [message.payload for message in messages(b"".join(found.polled.read()))]


def at_desk(directory: Path, work: Callable[[Desk], Awaitable[None]], foreign: ForeignStreams | None = None) -> None:
    """Start, `work`, stop."""

    async def main() -> None:
        desk = Desk(directory, foreign)
        await desk.service.start()
        try:
            desk.root = desk.client()
            async with asyncio.timeout(60):
                await work(desk)
        finally:
            await desk.service.stop()

    asyncio.run(main())
