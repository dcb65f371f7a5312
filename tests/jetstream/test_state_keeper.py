"""What consumers know is durable when it is confirmed to a client: synced together, written within 10 ms otherwise, refused
when the disk fails, and whole after a power loss at any call."""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from itertools import chain
from random import Random
from typing import Any, cast

import msgspec
import pytest
from support.recording_files import VARIANTS, RecordingFiles, Replay

from headwater.durable_files import documents
from headwater.jetstream import state_keeper
from headwater.jetstream.state_keeper import KeptConsumer, StateKeeper
from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_state.consumer import Consumer, ConsumerSnapshot
from headwater.jetstream_state.consumer_journal import identity_of, load
from headwater.jetstream_state.store import StreamDirectory

DIRECTORY = "store/s"
STATES = f"{DIRECTORY}/consumers"
OURS = identity_of("S", 1)


class Kept:
    """A durable consumer as the keeper sees it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.durable = True
        self.state = Consumer(ConsumerConfig(ack_policy="explicit", max_ack_pending=-1), 1)
        self.state.events = []


class Calls:
    """A router that remembers who was answered, how, and after how many calls to the disk."""

    def __init__(self, files: RecordingFiles) -> None:
        self.files = files
        self.answers: list[tuple[bytes, bytes, int]] = []

    def publish(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        self.answers.append((subject, header_block, len(self.files.calls)))


class Place:
    """A keeper over recorded files, and the consumer `c` of 1,000 messages."""

    def __init__(self, files: RecordingFiles, *, durable: bool = True, settles_at_once: bool = True) -> None:
        self.files = files
        self.router = Calls(files)
        self.consumer = Kept("c")
        self.settled = 0
        self.settling = False
        self.may_settle = asyncio.Event()
        if settles_at_once:
            self.may_settle.set()
        directory = StreamDirectory(files, DIRECTORY)
        files.mkdir(STATES)
        self.keeper = StateKeeper(
            directory,
            "S",
            1,
            cast(Any, self.router),
            None,
            durable=durable,
            save=self.save,
            settle=self.settle,
        )

    async def save(self, consumer: KeptConsumer) -> None:
        frame = self.keeper.cover(consumer)
        documents.save(
            self.files, f"{STATES}/{consumer.name}", msgspec.msgpack.encode((frame, consumer.state.snapshot()))
        )

    async def settle(self) -> None:
        self.settling = True
        await self.may_settle.wait()
        self.settled += 1

    def deliver(self, *sequences: int) -> None:
        for sequence in sequences:
            self.consumer.state.deliver_new(sequence, 0)
        self.keeper.note(self.consumer)

    def ack(self, sequence: int, *, confirmed: bool = False) -> None:
        self.consumer.state.ack(sequence, sequence)
        if confirmed:
            self.keeper.confirm(self.consumer, b"%d" % sequence)
        self.keeper.note(self.consumer)

    def count(self, verb: str) -> int:
        return sum(1 for call in self.files.calls if call[0] == verb)


def recovered(files: RecordingFiles) -> Consumer:
    """The consumer as a start after a crash finds it."""
    files.mkdir(STATES)  # a directory is durable once it is made; the recorded one would need a sync
    document = documents.load(files, f"{STATES}/c")
    again = Consumer(ConsumerConfig(ack_policy="explicit", max_ack_pending=-1), 1)
    saved = 0
    if document is not None:
        saved, snapshot = msgspec.msgpack.decode(document, type=tuple[int, ConsumerSnapshot])
        again.restore(snapshot, 1 << 40, 0)
    frames = load(files, STATES, OURS).frames
    events = [events for frame in frames if frame.number > saved for _, events in frame.entries]
    again.replay(chain.from_iterable(events), 1 << 40, 0)
    return again


def run(then: Callable[[Place], Awaitable[None]], files: RecordingFiles | None = None, **options: bool) -> Place:
    async def main() -> Place:
        place = Place(files or RecordingFiles(), **options)
        async with asyncio.timeout(10):
            await then(place)
        return place

    return asyncio.run(main())


async def until(condition: Callable[[], object]) -> None:
    """Turns of the loop, until it holds."""
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise TimeoutError


def test_confirmed_acknowledgements_that_come_together_share_one_sync_and_are_answered_after_it() -> None:
    async def then(place: Place) -> None:
        place.deliver(*range(1, 101))
        for sequence in range(1, 101):
            place.ack(sequence, confirmed=True)
        assert place.router.answers == []
        await until(lambda: len(place.router.answers) == 100)
        assert place.count("sync") == 1
        assert all(not block and calls == len(place.files.calls) for _, block, calls in place.router.answers)

    run(then)


def test_unconfirmed_acknowledgements_are_written_within_ten_milliseconds_without_a_sync() -> None:
    async def then(place: Place) -> None:
        loop = asyncio.get_running_loop()
        place.deliver(1, 2, 3)
        place.ack(2)
        begun = loop.time()
        await until(lambda: place.count("write"))
        assert state_keeper.WRITE_DELAY < 0.01 <= loop.time() - begun + 0.01
        assert (place.count("write"), place.count("sync")) == (1, 0)
        assert sorted(recovered(place.files).unacked) == [1, 3]
        place.ack(1, confirmed=True)
        await until(lambda: place.router.answers)
        assert place.count("sync") == 1

    run(then)


def test_what_nobody_confirms_is_synced_after_a_while_and_then_nothing_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_keeper, "SYNC_DELAY", 0.02)

    async def then(place: Place) -> None:
        place.deliver(1)
        await until(lambda: place.count("sync"))
        calls = len(place.files.calls)
        await asyncio.sleep(0.06)
        assert len(place.files.calls) == calls

    run(then)


def test_where_publishes_do_not_wait_for_a_sync_confirmations_do_not_either() -> None:
    async def then(place: Place) -> None:
        place.deliver(1)
        place.ack(1, confirmed=True)
        await until(lambda: place.router.answers)
        assert place.count("sync") == 0

    run(then, durable=False)


def test_a_second_confirmation_of_what_is_durable_costs_nothing() -> None:
    async def then(place: Place) -> None:
        place.deliver(1)
        for count in (1, 2):
            place.ack(1, confirmed=True)
            await until(lambda count=count: len(place.router.answers) == count)  # type: ignore[misc]
        assert place.count("sync") == 1

    run(then)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_fails_is_answered_with_503_until_the_states_are_saved_whole(
    error: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_keeper, "RETRY_DELAY", 0.02)

    async def then(place: Place) -> None:
        place.deliver(1, 2, 3)
        place.files.faults = {place.files.attempts + ahead: error for ahead in range(9)}
        place.ack(1, confirmed=True)
        await until(lambda: place.router.answers)
        assert place.router.answers[0][1].startswith(b"NATS/1.0 503 ")
        assert place.keeper.failure is not None
        await until(lambda: place.keeper.failure is None)
        place.ack(2, confirmed=True)
        await until(lambda: len(place.router.answers) == 2)
        assert place.router.answers[1][1] == b""
        assert sorted(recovered(place.files).unacked) == [3]

    run(then)


def test_a_long_journal_gives_way_to_saved_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_keeper, "CHECKPOINT_BYTES", 200)

    async def then(place: Place) -> None:
        for sequence in range(1, 60):
            place.deliver(sequence)
            place.ack(sequence, confirmed=True)
            await until(lambda sequence=sequence: len(place.router.answers) == sequence)  # type: ignore[misc]
        assert place.settled > 3  # a work queue's deletions are durable before its frames go
        await until(lambda: len(load(place.files, STATES, OURS).paths) == 1)
        assert recovered(place.files).unacked == {}
        await place.keeper.close()

    run(then)


def test_a_write_that_fails_while_the_states_are_saved_whole_loses_no_later_confirmation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state_keeper, "CHECKPOINT_BYTES", 0)
    monkeypatch.setattr(state_keeper, "RETRY_DELAY", 0.02)

    async def then(place: Place) -> None:
        place.deliver(1, 2, 3)
        place.ack(1, confirmed=True)
        await until(lambda: place.settling)  # the states are being saved
        place.files.faults = {place.files.attempts: errno.EIO}
        place.ack(2, confirmed=True)
        await until(lambda: len(place.router.answers) == 2)
        assert place.router.answers[1][1].startswith(b"NATS/1.0 503 ")
        place.may_settle.set()
        await until(lambda: place.keeper.failure is None)
        place.ack(3, confirmed=True)
        await until(lambda: len(place.router.answers) == 3)
        assert place.router.answers[2][1] == b""
        assert recovered(place.files).unacked == {}

    run(then, settles_at_once=False)


async def life(place: Place, random: Random, acked: set[int]) -> None:
    """Deliveries, acks of both kinds and redeliveries, in any order."""
    state, at = place.consumer.state, 0
    await place.save(place.consumer)
    for _ in range(60):
        if random.random() < 0.5:
            place.deliver(*range(at + 1, at := at + random.randint(1, 4)), at)
        for sequence in random.sample(sorted(state.unacked), min(len(state.unacked), random.randint(0, 3))):
            acked.add(sequence)
            place.ack(sequence, confirmed=random.random() < 0.5)
        if state.unacked and random.random() < 0.2:
            state.nak(next(iter(state.unacked)), 0, 0)
            if sequence := state.next_redelivery():
                state.deliver_again(sequence, 0)
        if random.random() < 0.3:
            await asyncio.sleep(random.choice((0, 0.001, 0.01)))
    await place.keeper.close()


@pytest.mark.parametrize("seed", range(25))
def test_a_power_loss_at_any_call_takes_back_no_confirmation_and_skips_no_message(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_keeper, "CHECKPOINT_BYTES", 300)
    monkeypatch.setattr(state_keeper, "SYNC_DELAY", 0.02)
    acked: set[int] = set()
    random = Random(seed)
    place = run(lambda place: life(place, random, acked))
    assert {block for _, block, _ in place.router.answers} == {b""}
    assert place.count("unlink") > 0
    delivered = place.consumer.state.delivered_stream
    replay = Replay(place.files)
    for position in range(len(place.files.calls) + 1):
        replay.advance(position)
        confirmed = {int(subject) for subject, _, calls in place.router.answers if calls <= position}
        for variant in VARIANTS:
            again = recovered(replay.crash(variant, random))
            to_come = {sequence for sequence in range(1, delivered + 1) if sequence >= again.position} | set(
                again.unacked
            )
            assert not confirmed & to_come, (position, variant)
            assert set(range(1, delivered + 1)) - acked <= to_come, (position, variant)
    final = recovered(replay.crash("everything", random))
    assert final.snapshot() == place.consumer.state.snapshot()
