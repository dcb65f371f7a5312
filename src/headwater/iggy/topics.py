"""An open topic: its partitions, the members of its groups, and the committed offsets.

Committed offsets are kept per topic in one small document. `OffsetSaver` writes the documents of all topics that
changed, one round after the other: a `store_offset` waits for the round that holds it, an automatic commit does not
wait and is on disk at most SAVE_INTERVAL later. So after a crash a group continues where it was, or a little before.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

import msgspec

from headwater.durable_files.documents import NO_IDENTITY
from headwater.iggy.catalog import TopicEntry
from headwater.iggy.groups import Group
from headwater.iggy.partition import Partition
from headwater.iggy.store import Offsets, Store
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.identifiers import Consumer, ConsumerKind, Partitioning, PartitioningKind, position_of_key
from headwater.model.line_limit import LineLimit

logger = logging.getLogger(__name__)

SAVE_INTERVAL: Final = 0.5  # seconds that an automatic commit may wait for its save
BETWEEN_NOTES: Final = 60.0  # seconds between two events about offsets that cannot be saved

InThread = Callable[[Callable[[], Any]], Coroutine[Any, Any, Any]]


def key_of(consumer: Consumer, group_id: int | None) -> str:
    """The key of a consumer's offset: a number and a name are different consumers."""
    return f"g:{group_id}" if consumer.kind is ConsumerKind.GROUP else f"c:{consumer.id.value!r}"


class Topic:
    """See the head of this module. `identity`: the identity in the document of its offsets. `failure`: why the topic is
    not served, if a partition could not be recovered; it then has no partitions and can only be deleted."""

    def __init__(
        self,
        entry: TopicEntry,
        partitions: list[Partition],
        offsets: Offsets,
        identity: bytes = NO_IDENTITY,
        failure: str = "",
    ) -> None:
        self.entry = entry
        self.partitions = partitions
        self.offsets = offsets
        self.identity = identity
        self.failure = failure
        self.groups: dict[int, Group] = {}
        self._turn = 0

    @property
    def size(self) -> int:
        return sum(partition.size for partition in self.partitions)

    @property
    def messages(self) -> int:
        return sum(partition.log.record_count for partition in self.partitions)

    def check_served(self) -> None:
        """Raises IggyError for a topic that could not be recovered."""
        if self.failure:
            raise refusal("io_error", f"topic {self.entry.name} could not be recovered, see the log of the server")

    def group(self, group_id: int) -> Group:
        """The members of a group that is in the catalog."""
        found = self.groups.get(group_id)
        if found is None:
            found = self.groups[group_id] = Group(len(self.partitions))
        return found

    def resized(self) -> None:
        """Partitions were added or removed."""
        for group in self.groups.values():
            group.resize(len(self.partitions))
        self.offsets.drop_partitions(len(self.partitions))

    def limit_segments(self) -> None:
        """The topic's limit, or its number of partitions, has changed."""
        for partition in self.partitions:
            partition.log.limit_to(self.entry.max_size // len(self.partitions))

    def partition(self, number: int, first_id: int) -> Partition:
        """The partition with this number in an era's numbering. Raises IggyError."""
        index = number - first_id
        if not 0 <= index < len(self.partitions):
            raise refusal("partition_not_found", f"topic {self.entry.name} has no partition {number}", number)
        return self.partitions[index]

    def incarnation(self, partition: Partition) -> int:
        """The unique number of the partition; for one of another face, that of its topic."""
        return partition.uid or self.entry.uid

    def check_incarnation(self, partition: Partition, wanted: int) -> None:
        """Raises IggyError if `wanted` is not the partition's incarnation; 0 is accepted."""
        if wanted and wanted != self.incarnation(partition):
            raise refusal("history_unavailable", f"partition {partition.index} is another one by now", wanted)

    def for_send(self, partitioning: Partitioning, first_id: int) -> Partition:
        """The partition of a send. Raises IggyError."""
        count = len(self.partitions)
        if not count:
            raise refusal("no_partitions", f"topic {self.entry.name} has no partitions")
        match partitioning.kind:
            case PartitioningKind.PARTITION_ID:
                return self.partition(partitioning.partition_id, first_id)
            case PartitioningKind.BALANCED:
                self._turn += 1
                return self.partitions[(self._turn - 1) % count]
            case PartitioningKind.MESSAGES_KEY:
                return self.partitions[position_of_key(partitioning.raw, count)]

    def committed(self, partition: int, consumer: str) -> int | None:
        """The offset that a consumer has committed."""
        return self.offsets.stored.get(partition, {}).get(consumer)

    def commit(self, partition: int, consumer: str, offset: int) -> None:
        self.offsets.stored.setdefault(partition, {})[consumer] = offset

    def uncommit(self, partition: int, consumer: str) -> None:
        """Remove a committed offset. Raises IggyError when there is none."""
        if self.offsets.stored.get(partition, {}).pop(consumer, None) is None:
            raise refusal("consumer_offset_not_found", f"no offset is stored for {consumer}")


class OffsetSaver:
    """Writes the offsets of topics that changed; those that a full disk refuses are tried again. Belongs to the loop.

    `note`: reports an event to operators, for no client waits for an automatic commit. `save_first`: saves what
    offsets are found by at the next start."""

    def __init__(
        self,
        store: Store,
        in_thread: InThread,
        note: Callable[..., None] = lambda kind, **fields: None,
        save_first: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._store = store
        self._in_thread = in_thread
        self._note = note
        self._save_first = save_first
        self._stopping = False
        self._changed: dict[int, Topic] = {}
        self._saving: dict[int, Topic] = {}
        self._failing: dict[int, LineLimit] = {}  # topics of the last round, if that has failed, or of earlier ones
        self._waiters: list[asyncio.Future[None]] = []
        self._hurry = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def note(self, topic: Topic) -> None:
        """Save these offsets soon."""
        self._changed[topic.entry.uid] = topic
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def saved(self, topic: Topic) -> None:
        """Save them now, durably on return. Raises IggyError when they cannot be written."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self.note(topic)
        self._hurry.set()
        await waiter

    def forget(self, topic: Topic) -> None:
        """The topic was deleted."""
        self._changed.pop(topic.entry.uid, None)
        self._saving.pop(topic.entry.uid, None)
        self._failing.pop(topic.entry.uid, None)

    async def stop(self) -> None:
        """Save all unsaved offsets, as far as the disk takes them."""
        self._stopping = True
        self._hurry.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        try:
            while self._changed:
                try:
                    async with asyncio.timeout(SAVE_INTERVAL):
                        await self._hurry.wait()
                except TimeoutError:
                    pass
                if not self._waiters:
                    self._hurry.clear()
                await self._round()
        finally:
            self._task = None

    async def _round(self) -> None:
        changed, self._changed = self._changed, {}
        self._saving = dict(changed)
        waiters, self._waiters = self._waiters, []
        self._hurry.clear()
        documents = {uid: (msgspec.json.encode(topic.offsets), topic.identity) for uid, topic in changed.items()}

        def save() -> None:
            for uid, (document, identity) in documents.items():
                self._store.save_offsets(uid, document, identity)

        try:
            if self._save_first is not None:
                await self._save_first()
            await self._in_thread(save)
        except Exception as error:  # noqa: BLE001  (whatever it is, who waits gets it, and the next round tries again)
            self._report(error)
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(refusal("io_error", f"the offset could not be saved: {error}"))
            if not self._stopping:
                self._changed = {**self._saving, **self._changed}
            return
        if self._failing:
            self._failing.clear()
            logger.warning("offsets_saved_again topics=%s", ",".join(topic.entry.name for topic in changed.values()))
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _report(self, error: Exception) -> None:
        """Once for each topic, and then with a number: a round that fails is tried again after half a second."""
        now = asyncio.get_running_loop().time()
        for uid, topic in self._saving.items():
            times = self._failing.setdefault(uid, LineLimit(BETWEEN_NOTES)).due(now)
            if times:
                reason = f"offsets not saved{f', {times} times' if times > 1 else ''}: {error}"
                self._note("write_refused", face="iggy", topic=topic.entry.name, reason=reason)
