"""The server's state, shared by all transports: the catalog, the open topics, the connected clients and their
permissions.

Changes of the catalog are made one at a time, and each is on disk before it is answered; one that cannot be written is
undone (`catalog_changes`). Sends and polls do not wait for changes. The commands are implemented in *_commands.py
(`dispatch`), files are opened and removed in `topic_files`.
"""

import logging
import os
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from headwater.durable_files import documents
from headwater.durable_files.files import Files
from headwater.errors import IggyError
from headwater.group_commit.kept_files import KeepingFiles
from headwater.group_commit.writers import Writers
from headwater.iggy import credentials
from headwater.iggy.catalog import Catalog, StreamEntry
from headwater.iggy.catalog_changes import CatalogChanges
from headwater.iggy.clients import Client, Clients
from headwater.iggy.foreign import ForeignStreams, ForeignTopics
from headwater.iggy.machine import Machine
from headwater.iggy.permissions import ALL, NONE, check
from headwater.iggy.service_options import ServiceOptions
from headwater.iggy.silent_members import SilentMembers
from headwater.iggy.store import Store
from headwater.iggy.topic_files import TopicFiles
from headwater.iggy.topics import OffsetSaver, Topic
from headwater.iggy.upkeep import Housekeeper
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Command, Permissions
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.identifiers import Identifier
from headwater.streams.finding import report

logger = logging.getLogger(__name__)

T = TypeVar("T")
_BEFORE_LOGIN: Final = (c.Ping, c.Login, c.LoginWithToken)


class Service:
    """See the head of this module. Times come from `clock_us`, microseconds since 1970.

    Raises EnvironmentProblem from `start` when the directory cannot be used.
    """

    def __init__(
        self,
        directory: Path,
        options: ServiceOptions | None = None,
        *,
        clock_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        files: Files | None = None,
        foreign: ForeignStreams | None = None,
        entropy: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.options = options or ServiceOptions()
        self.topics: dict[int, Topic] = {}  # by uid
        self.clients = Clients()
        self.clock_us = clock_us
        self.entropy = entropy
        self.started_us = clock_us()
        self.operations = self.started_us  # in modern replies; W compares it across restarts
        self.machine = Machine()
        self.note: Callable[..., None] = _log  # reports an event to operators (`net.journal`): the kind, and fields
        self.saver: OffsetSaver
        self.files = TopicFiles(
            directory,
            self.options,
            self.topics,
            files=files if files is not None else KeepingFiles(),
            clock_us=lambda: self.clock_us(),
            entropy=entropy,
        )
        self.files.note = lambda kind, **fields: self.note(kind, **fields)
        self.changes = CatalogChanges(self.files.save_catalog, self._undone, self.files.note)
        interval = self.options.housekeeping
        self.silent = SilentMembers(
            self.clients,
            self.options.heartbeat,
            interval,
            self.leave_groups,
            lambda kind, **what: self.note(kind, **what),
        )
        self._housekeeper = Housekeeper(self.topics, interval, lambda: self.clock_us(), self.silent.look)
        self._foreign = ForeignTopics(self, foreign) if foreign is not None else None

    @property
    def catalog(self) -> Catalog:
        """The catalog; another object after a change that was undone."""
        return self.changes.catalog

    @property
    def store(self) -> Store:
        """The documents on disk, between start and stop."""
        return self.files.store

    @property
    def writers(self) -> Writers:
        """The threads that write logs."""
        return self.files.writers

    # ── life ──

    async def start(self) -> None:
        """Recover everything."""
        try:
            catalog, recovered = await self.in_thread(self.files.recover)
        except BaseException:
            self.files.close()
            raise
        self.changes.catalog = catalog
        self.saver = OffsetSaver(
            self.store, self.in_thread, lambda kind, **fields: self.note(kind, **fields), self._save_first
        )
        for entry, logs, offsets, failure in recovered:
            partitions = self.files.partitions(entry, logs) if not failure else []
            identity = catalog.identities[entry.uid]
            self.topics[entry.uid] = Topic(entry, partitions, offsets, identity, failure)
        for finding in self.files.findings:
            report(logger, finding)
        self.refresh()
        self.files.watch()
        self._housekeeper.start()

    async def stop(self) -> None:
        """Write what is staged, save committed offsets, release the files. Safe to call again."""
        if not self.files.is_open:
            return
        await self._housekeeper.stop()
        self.files.reserve.release()
        for topic in list(self.topics.values()):
            if topic.entry.partitions:
                await self.files.close_partitions(topic.partitions)
            else:  # the log belongs to another face: wait only for sends of this one
                for partition in topic.partitions:
                    await partition.flush()
        await self.saver.stop()
        self.topics.clear()
        self.files.close()

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run blocking work in one thread of this service, in the order of the calls."""
        return await self.files.in_thread(work)

    def new_identity(self, uid: int) -> bytes:
        """The identity for the documents of a new topic."""
        return self.catalog.identities.setdefault(uid, self.entropy(len(documents.NO_IDENTITY)))

    # ── connected clients ──

    def connect(self, transport: int, address: str, era: Era) -> Client:
        """A new connection, not logged in yet."""
        return self.clients.add(transport, address, era)

    def disconnect(self, client: Client) -> None:
        """The client is gone."""
        self.clients.remove(client)
        self.leave_groups(client)

    def leave_groups(self, client: Client) -> None:
        """Remove the client from its groups."""
        for uid, group_id in client.memberships:
            topic = self.topics.get(uid)
            if topic is not None:
                topic.group(group_id).leave(client.id)
        client.memberships.clear()

    # ── who may do what ──

    def refresh(self) -> None:
        """Update the topics of streams that another face has created or removed."""
        if self._foreign is not None and self._foreign.refresh():
            self.spawn(self._keep_topics())

    async def _keep_topics(self) -> None:
        with suppress(IggyError):  # it is noted; the next offset that is saved tries again
            await self._save_first()

    async def _save_first(self) -> None:
        """What has to be durable before offsets are."""
        if self._foreign is not None:
            await self._foreign.keep()

    def authorize(self, client: Client, command: Command) -> None:
        """Raises IggyError when the client must log in first, or may not do this."""
        if isinstance(command, _BEFORE_LOGIN) or client.era is Era.S:
            return
        user = client.user
        if user is None:
            raise refusal("unauthenticated", "log in first")
        if user.id == credentials.ROOT_ID:
            return
        stream_id = topic_id = None
        about = getattr(command, "stream", None)
        if isinstance(about, Identifier):
            stream = next((s for s in self.catalog.streams if about.value in (s.id, s.name)), None)
            stream_id = stream.id if stream is not None else None
            inner = getattr(command, "topic", None)
            if stream is not None and isinstance(inner, Identifier):
                topic_id = next((t.id for t in stream.topics if inner.value in (t.id, t.name)), None)
        itself = isinstance(command, c.GetUser | c.ChangePassword) and command.user.value in (user.id, user.name)
        if itself:
            return
        try:
            check(command, user.permissions or NONE, stream_id, topic_id)
        except IggyError:
            kind = "publish_refused" if isinstance(command, c.SendMessages) else "request_refused"
            place = "/".join(str(one.value) for one in (about, getattr(command, "topic", None)) if one is not None)
            where = {"user": user.name, "client": client.id, "address": client.address, "subject": place}
            self.note(kind, face="iggy", request=type(command).__name__, **where)
            raise

    def granted(self, client: Client) -> Permissions:
        """The permissions of the client."""
        if client.era is Era.S or (client.user is not None and client.user.id == credentials.ROOT_ID):
            return ALL
        return client.user.permissions or NONE if client.user is not None else NONE

    def topic(self, stream: Identifier, topic: Identifier) -> tuple[StreamEntry, Topic]:
        """Raises IggyError when there is none, and for one that could not be recovered."""
        inside, entry = self.catalog.topic(stream, topic)
        found = self.topics[entry.uid]
        found.check_served()
        return inside, found

    # ── changes ──

    def change(self) -> AbstractAsyncContextManager[Catalog]:
        """Alter the catalog inside the block; see `CatalogChanges.change`."""
        return self.changes.change()

    def _undone(self) -> None:
        """The catalog is an older one again: use its entries."""
        users = {entry.id: entry for entry in self.catalog.users}
        for client in self.clients:
            client.user = users.get(client.user.id) if client.user is not None else None
        for stream in self.catalog.streams:
            for entry in stream.topics:
                if entry.uid in self.topics:
                    self.topics[entry.uid].entry = entry

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` in a task of its own."""
        self._housekeeper.spawn(work)


def _log(kind: str, *, log: bool = True, **fields: object) -> None:
    """Log an event, for a server without a journal."""
    if log:
        logger.warning("iggy_%s %s", kind, " ".join(f"{name}={value!r}" for name, value in fields.items()))
