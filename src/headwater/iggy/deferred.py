"""Polls of protocol 0.12 that wait until there is something to read, and reads of many partitions in one answer.

A wait ends when enough messages have arrived, at its timeout, when the client cancels it, and with the connection. It
needs no task beyond that of the request, and no polling: each partition notifies its waiters. Partitions written by
another face send no notification and are checked every 50 ms.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from headwater.errors import HeadwaterError, IggyError
from headwater.iggy.clients import Client
from headwater.iggy.group_commands import consumer_key
from headwater.iggy.message_commands import (
    NOTHING,
    Found,
    found_in,
    partition_to_poll,
    poll,
    poll_in_turns,
)
from headwater.iggy.partition import Partition
from headwater.iggy.service import Service
from headwater.iggy.topics import Topic
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.error_numbers import as_refusal, of_today, refusal
from headwater.iggy_wire.identifiers import Consumer, Identifier, PollingStrategy, StrategyKind
from headwater.streams.iggy_batch import BATCH_HEADER_SIZE, FRAME_SIZE

MOST_AT_ONCE: Final = 64  # waits of one connection: as many as the released client begins
MOST_TARGETS: Final = 1000
LONGEST_WAIT: Final = 600_000_000  # µs
HEAD_BYTES: Final = 40  # bytes of the head of a poll's answer
LEAST_BYTES: Final = HEAD_BYTES + BATCH_HEADER_SIZE + FRAME_SIZE
LOOK: Final = 0.05  # seconds between checks of a partition without notifications
REST: Final = 1.0  # seconds after which every wait checks again: partitions may have been replaced


class Wait:
    """One waiting request."""

    def __init__(self) -> None:
        self.bell = asyncio.Event()
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True
        self.bell.set()


class Waits:
    """The waits of one connection, or of the HTTP interface, by request number; at most `most` at a time."""

    def __init__(self, most: int = MOST_AT_ONCE) -> None:
        self._open: dict[int, Wait] = {}
        self._most = most

    def begin(self, number: int) -> Wait:
        """Raises IggyError when there are too many."""
        if len(self._open) >= self._most or number in self._open:
            raise refusal("deferred_poll_capacity_exceeded", f"there are at most {self._most} waiting requests")
        wait = self._open[number] = Wait()
        return wait

    def end(self, number: int) -> None:
        self._open.pop(number, None)

    def cancel(self, number: int) -> None:
        """Cancel a wait; ignored if the request is unknown or already answered."""
        if number in self._open:
            self._open[number].cancel()

    def cancel_all(self) -> None:
        for wait in self._open.values():
            wait.cancel()


class Reading(NamedTuple):
    """A consumer's position in a partition."""

    topic: Topic
    partition: Partition
    consumer: str
    strategy: PollingStrategy
    offset: int

    def start(self) -> int:
        """The offset at which a read would start."""
        if self.strategy.kind is not StrategyKind.NEXT:
            return max(self.offset, self.partition.log.start_offset)
        committed = self.topic.committed(self.partition.index, self.consumer)
        return max(self.partition.start_of(self.strategy, 1, committed), self.partition.log.start_offset)

    def there(self) -> int:
        """An upper bound of the messages that can be read."""
        return max(0, self.partition.log.end_offset - self.start())


def _reading(service: Service, client: Client, plain: c.PollMessages) -> Reading:
    topic = service.topic(plain.stream, plain.topic)[1]
    partition = partition_to_poll(topic, client, plain)
    if partition is None:
        raise refusal("consumer_group_partition_not_owned", f"client {client.id} does not own this partition")
    consumer = consumer_key(topic, plain.consumer)
    committed = topic.committed(partition.index, consumer)
    return Reading(
        topic, partition, consumer, plain.strategy, partition.start_of(plain.strategy, plain.count, committed)
    )


async def _until(
    enough: Callable[[], bool], find: Callable[[], Sequence[Reading]], wait_us: int, wait: Wait
) -> Sequence[Reading]:
    """Wait until `enough(find())`, checked after every arrival; returns the last result of `find`. Raises what `find`
    raises."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_us / 1e6
    while True:
        readings = find()
        left = deadline - loop.time()
        if wait.cancelled or left <= 0 or enough():
            return readings
        rings = all(reading.partition.uid for reading in readings)
        wait.bell.clear()
        for reading in readings:
            reading.partition.watchers.append(wait.bell.set)
        try:
            async with asyncio.timeout(min(left, REST if rings else LOOK)):
                await wait.bell.wait()
        except TimeoutError:
            pass
        finally:
            for reading in readings:
                reading.partition.watchers.remove(wait.bell.set)


def _check(wait_us: int, min_count: int, count: int, max_bytes: int) -> None:
    if wait_us > LONGEST_WAIT or not 1 <= min_count <= count or max_bytes < LEAST_BYTES:
        raise refusal(
            "invalid_command",
            f"a wait has up to {LONGEST_WAIT} us, 1 to {count} messages and {LEAST_BYTES} bytes or more",
        )


def _plain(
    command: c.PollDeferred | c.WaitForMessages | c.FetchMessages,
    partition: int | None,
    strategy: PollingStrategy,
    count: int,
    auto_commit: bool,
) -> c.PollMessages:
    where: tuple[Consumer, Identifier, Identifier] = (command.consumer, command.stream, command.topic)
    return c.PollMessages(*where, partition, strategy, count, auto_commit)


async def poll_deferred(service: Service, client: Client, command: c.PollDeferred, wait: Wait) -> Found:
    """Raises HeadwaterError."""
    _check(command.wait_us, command.min_count, command.count, command.max_bytes)
    plain = _plain(command, command.partition, command.strategy, command.count, command.auto_commit)
    found: list[Reading] = []

    def find() -> Sequence[Reading]:
        found[:] = [_reading(service, client, plain)]
        return found

    await _until(lambda: found[0].there() >= command.min_count, find, command.wait_us, wait)
    if wait.cancelled:
        reading = found[0]
        return found_in(client, reading.topic, reading.partition, command.consumer, NOTHING)
    return await poll_in_turns(poll(service, client, plain, most=command.max_bytes - HEAD_BYTES))


async def wait_for_messages(service: Service, client: Client, command: c.WaitForMessages, wait: Wait) -> list[int]:
    """The numbers of the partitions with messages. Raises HeadwaterError."""
    _check(command.wait_us, 1, 1, LEAST_BYTES)
    _check_targets([target.partition for target in command.targets])
    found: list[Reading] = []

    def find() -> Sequence[Reading]:
        found[:] = [
            _reading(service, client, _plain(command, target.partition, target.strategy, 1, False))
            for target in command.targets
        ]
        return found

    readings = await _until(lambda: any(one.there() for one in found), find, command.wait_us, wait)
    return [one.partition.index + client.era.first_id for one in readings if one.there()]


class Section(NamedTuple):
    """The answer for one target: `status` 0, or an error number."""

    partition: int
    status: int
    found: Found | None
    next_offset: int


def _check_targets(partitions: list[int]) -> None:
    if not 1 <= len(partitions) <= MOST_TARGETS or len(set(partitions)) != len(partitions):
        raise refusal("invalid_command", f"a request has 1 to {MOST_TARGETS} partitions, each once")


async def fetch(service: Service, client: Client, command: c.FetchMessages, wait: Wait) -> list[Section]:
    """The messages of each target, in order, until `count` or `max_bytes` is reached: later targets get no section. A
    target that cannot be read ends the wait with its error. Raises HeadwaterError."""
    _check(command.wait_us, command.min_count, command.count, command.max_bytes)
    _check_targets([target.partition for target in command.targets])
    service.topic(command.stream, command.topic)
    refused: dict[int, HeadwaterError] = {}
    found: dict[int, Reading] = {}

    def find() -> Sequence[Reading]:
        found.clear()
        refused.clear()
        for target in command.targets:
            plain = _plain(command, target.partition, target.strategy, 1, False)
            try:
                reading = _reading(service, client, plain)
                reading.topic.check_incarnation(reading.partition, target.incarnation)
            except HeadwaterError as error:
                refused[target.partition] = error
            else:
                found[target.partition] = reading
        return list(found.values())

    def enough() -> bool:
        return bool(refused) or sum(one.there() for one in found.values()) >= command.min_count

    await _until(enough, find, command.wait_us, wait)
    return await _sections(service, client, command, found, refused, wait)


async def _sections(
    service: Service,
    client: Client,
    command: c.FetchMessages,
    found: dict[int, Reading],
    refused: dict[int, HeadwaterError],
    wait: Wait,
) -> list[Section]:
    sections: list[Section] = []
    count, most = command.count, command.max_bytes
    for target in command.targets:
        number = target.partition
        if number in refused:
            sections.append(_refused(number, refused[number]))
            continue
        if not count or most < LEAST_BYTES:
            break
        reading = found[number]
        start = reading.start()
        if wait.cancelled or not reading.there():
            empty = found_in(client, reading.topic, reading.partition, command.consumer, NOTHING)
            sections.append(Section(number, 0, empty, start))
            continue
        plain = _plain(command, number, target.strategy, count, command.auto_commit)
        limit = min(most, target.max_bytes)
        try:
            read = await poll_in_turns(poll(service, client, plain, most=limit, strict=bool(sections)))
        except HeadwaterError as error:
            sections.append(_refused(number, error))
            continue
        polled = read.polled
        count -= polled.messages
        most -= polled.size
        sections.append(Section(number, 0, read, polled.last_offset + 1 if polled.messages else start))
    return sections


def _refused(number: int, error: HeadwaterError) -> Section:
    refused: IggyError = of_today(as_refusal(error))
    return Section(number, refused.number, None, 0)
