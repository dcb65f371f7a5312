"""What a stream holds, against a plain list: limits, purges, deletions, roll-ups, TTLs, with crashes between."""

from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.recording_files import RecordingFiles

from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_state.contents import Contents
from headwater.jetstream_state.items import Item, Particulars
from headwater.jetstream_state.subject_table import SubjectFilter, stored_size
from headwater.jetstream_timing.purging import Purge
from headwater.model.subject_match import matches
from headwater.streams.log import Log, LogOptions

OPTIONS = LogOptions(segment_bytes=64 << 10, cache_bytes=2000, preallocate_bytes=0)
Message = tuple[int, bytes, bytes, int]  # sequence, subject, payload, time


class Model:
    """A list of messages under the same limits."""

    def __init__(self, config: StreamConfig) -> None:
        self.config = config
        self.messages: list[Message] = []

    def add(self, message: Message, now: int) -> None:
        self.add_all([message], now)

    def add_all(self, messages: list[Message], now: int) -> None:
        per_subject = self.config.max_msgs_per_subject
        for message in messages:
            self.messages.append(message)
            if per_subject > 0:
                same = [item for item in self.messages if item[1] == message[1]]
                for old in same[:-per_subject]:
                    self.messages.remove(old)
        self.enforce(now)

    def enforce(self, now: int) -> None:
        config, messages = self.config, self.messages
        while messages and (
            0 < config.max_msgs < len(messages)
            or 0 < config.max_bytes < self.size
            or (config.max_age > 0 and messages[0][3] <= now - config.max_age)
        ):
            del messages[0]

    @property
    def size(self) -> int:
        return sum(stored_size(subject, b"", payload) for _, subject, payload, _ in self.messages)


class Life:
    """A log with its contents, and the model beside it."""

    def __init__(self, config: StreamConfig) -> None:
        self.config = config
        self.files = RecordingFiles()
        self.model = Model(config)
        self.removed: list[int] = []
        self.now = 1000
        self.open()

    def open(self) -> None:
        self.log = Log.open(self.files, "log", OPTIONS, self.now)
        self.contents = Contents(self.log, self.config, lambda sequence, _: self.removed.append(sequence), lambda: None)
        self.contents.recover(lambda _: None, self.now)

    def publish(self, subject: bytes, payload: bytes, block: bytes = b"") -> int:
        self.now += 10
        sequence = self.log.stage(subject, block, payload, self.now) + 1
        self.commit()
        self.contents.added(subject, sequence, stored_size(subject, block, payload), block, self.now)
        self.contents.enforce(self.now)
        self.model.add((sequence, subject, payload, self.now), self.now)
        return sequence

    def publish_batch(self, payloads: list[tuple[bytes, bytes]]) -> None:
        """Several messages that become durable together, (subject, payload) each."""
        self.now += 10
        before = list(self.model.messages)
        items, messages = [], []
        for subject, payload in payloads:
            sequence = self.log.stage(subject, b"", payload, self.now) + 1
            items.append(Item(b"", b"", subject, sequence, stored_size(subject, b"", payload), b""))
            messages.append((sequence, subject, payload, self.now))
        self.commit()
        self.removed.clear()
        assert self.contents.added_all(items) == (items[0].sequence, len(items))
        self.contents.enforce(self.now)
        self.model.add_all(messages, self.now)
        assert sorted(self.removed) == [m[0] for m in before + messages if m not in self.model.messages]

    def commit(self) -> None:
        batch = self.log.seal()
        if batch is not None:
            self.log.write(batch)
            self.log.publish(batch)

    def crash(self) -> None:
        self.commit()
        self.files = RecordingFiles(self.files.snapshot())
        self.open()

    def check(self) -> None:
        found = [(r.offset + 1, r.subject, r.payload, r.timestamp_ns) for r in self.contents.scan(0)]
        assert found == self.model.messages
        table = self.contents.subjects
        assert (table.messages, table.size_bytes) == (len(found), self.model.size)
        for pattern in (b"a", b"*", b"b.>", b">"):
            wanted = SubjectFilter([pattern])
            matching = [message for message in found if wanted.matches(message[1])]
            assert table.count(wanted) == len(matching)
            assert table.last(pattern) == (matching[-1][0] if matching else 0)


def purge(contents: Contents, wanted: SubjectFilter | None, below: int, keep: int) -> int:
    """As a stream does it, all turns in a row."""
    purge = Purge(contents, wanted, below, keep, lambda _: None, None)
    rest = purge.begin()
    with suppress(StopIteration):
        while rest is not None:
            rest.send(None)
    return purge.count


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.sampled_from([b"a", b"b.1", b"b.2", b"c"]), st.integers(0, 200)),
        st.tuples(st.just("batch"), st.sampled_from([b"a", b"b.1"]), st.integers(1, 40)),
        st.tuples(st.just("remove"), st.just(b""), st.integers(1, 30)),
        st.tuples(st.just("purge"), st.sampled_from([b"", b"a", b"b.*"]), st.integers(0, 12)),
        st.tuples(st.just("keep"), st.sampled_from([b"", b"b.>"]), st.integers(1, 5)),
        st.tuples(st.just("wait"), st.just(b""), st.integers(0, 300)),
        st.tuples(st.just("crash"), st.just(b""), st.just(0)),
    ),
    max_size=30,
)
CONFIGS = st.builds(
    lambda messages, size, age, per_subject: StreamConfig(
        name="S", max_msgs=messages, max_bytes=size, max_age=age, max_msgs_per_subject=per_subject
    ),
    st.sampled_from([-1, 1, 7]),
    st.sampled_from([-1, 900]),
    st.sampled_from([0, 250]),
    st.sampled_from([-1, 1, 3]),
)


@given(CONFIGS, STEPS)
@settings(max_examples=80)
def test_contents_equal_a_list_under_the_same_limits(config: StreamConfig, steps: list[tuple[str, bytes, int]]) -> None:
    life = Life(config)
    for verb, subject, number in steps:
        messages = life.model.messages
        wanted = SubjectFilter([subject]) if subject else None
        matches: Callable[[bytes], bool] = wanted.matches if wanted is not None else lambda _: True
        match verb:
            case "publish":
                life.publish(subject, b"x" * number)
            case "batch":
                life.publish_batch([(b"c" if n % 3 == 1 else subject, b"x" * n) for n in range(number)])
            case "remove":
                there = [message for message in messages if message[0] == number]
                assert life.contents.remove(number) == bool(there)
                life.model.messages = [message for message in messages if message[0] != number]
            case "purge":
                gone = [m for m in messages if matches(m[1]) and (not number or m[0] < number)]
                assert purge(life.contents, wanted, number, 0) == len(gone)
                life.model.messages = [message for message in messages if message not in gone]
            case "keep":
                matching = [message for message in messages if matches(message[1])]
                gone = matching[: max(0, len(matching) - number)]
                assert purge(life.contents, wanted, 0, number) == len(gone)
                life.model.messages = [message for message in messages if message not in gone]
            case "wait":
                life.now += number
                life.contents.enforce(life.now)
                life.model.enforce(life.now)
            case "crash":
                life.crash()
                life.model.enforce(life.now)
            case _:
                raise AssertionError(verb)
        life.check()


def test_a_roll_up_stands_for_what_was_before_it_also_after_a_crash() -> None:
    life = Life(StreamConfig(name="S", allow_rollup_hdrs=True))
    for number in range(6):
        life.publish(b"a" if number % 2 else b"b", b"%d" % number)
    block = b"NATS/1.0\r\nNats-Rollup: sub\r\n\r\n"
    sequence = life.publish(b"a", b"", block)
    life.files = RecordingFiles(life.files.snapshot())  # before the roll-up took effect
    life.open()
    assert life.contents.subjects.total(b"a") == 1
    assert life.contents.subjects.total(b"b") == 3
    assert life.contents.subjects.last(b"a") == sequence


KINDS = st.sampled_from([b"", b"sub", b"sub", b"all"])


ROLLED = st.sampled_from([b"a.x", b"a.y", b"b", b"a.*", b">"])


@given(st.lists(st.lists(st.tuples(ROLLED, KINDS), min_size=1, max_size=6), max_size=8))
def test_roll_ups_replace_what_was_before_them_wherever_they_are_in_a_batch(
    batches: list[list[tuple[bytes, bytes]]],
) -> None:
    life = Life(StreamConfig(name="S", allow_rollup_hdrs=True))
    kept: list[tuple[int, bytes]] = []
    for batch in batches:
        items = []
        for subject, kind in batch:
            sequence = life.log.stage(subject, b"", b"x", life.now) + 1
            particulars = Particulars(kind, b"", b"x", life.now) if kind else None
            items.append(Item(b"", b"", subject, sequence, stored_size(subject, b"", b"x"), b"", particulars))
            kept = [old for old in kept if not (kind == b"all" or (kind == b"sub" and matches(subject, old[1])))]
            kept.append((sequence, subject))
        life.commit()
        life.contents.added_all(items)
        for item in items:
            if item.particulars is not None:
                life.contents.roll_up(item.particulars.rollup, item.subject, item.sequence)
        assert [(record.offset + 1, record.subject) for record in life.contents.scan(0)] == kept
        assert life.contents.subjects.messages == len(kept)
        assert life.contents.subjects.size_bytes == sum(stored_size(subject, b"", b"x") for _, subject in kept)


def test_a_roll_up_of_a_subject_with_one_message_does_not_read_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(StreamConfig(name="S", allow_rollup_hdrs=True))
    for number in range(20):
        life.publish(b"other.%d" % number, b"x")
    replaced = life.publish(b"a", b"old")
    sequence = life.log.stage(b"a", b"", b"new", life.now) + 1
    life.commit()
    particulars = Particulars(b"sub", b"", b"new", life.now)
    life.contents.added_all([Item(b"", b"", b"a", sequence, stored_size(b"a", b"", b"new"), b"", particulars)])
    monkeypatch.setattr(life.contents, "scan", lambda _: pytest.fail("the log was scanned"))
    life.contents.roll_up(b"sub", b"a", sequence)
    assert life.contents.load(replaced) is None
    assert life.contents.subjects.total(b"a") == 1


def test_a_message_with_a_ttl_goes_when_its_time_is_over() -> None:
    life = Life(StreamConfig(name="S", allow_msg_ttl=True))
    life.publish(b"a", b"forever")
    life.publish(b"a", b"brief", b"NATS/1.0\r\nNats-TTL: 2\r\n\r\n")
    expiry = life.contents.next_expiry()
    assert expiry == life.now + 2_000_000_000
    life.crash()
    assert life.contents.next_expiry() == expiry, "a restart forgets no TTL"
    life.contents.enforce(expiry)
    assert [record.payload for record in life.contents.scan(0)] == [b"forever"]
    assert life.contents.next_expiry() == 0


def test_what_a_clean_stop_leaves_is_what_a_reading_of_the_log_finds() -> None:
    config = StreamConfig(name="S", max_msgs_per_subject=3)
    life = Life(config)
    random = Random(4)
    for number in range(60):
        life.publish(random.choice((b"a", b"b", b"c.d")), b"%d" % number)
    document = life.contents.document()
    restored = Contents(life.log, config, lambda *_: None, lambda: None)
    restored.restore(document)
    read = Contents(life.log, config, lambda *_: None, lambda: None)
    read.recover(lambda _: None, life.now)
    left, right = restored.document(), read.document()
    assert (left.messages, left.bytes, left.expiries) == (right.messages, right.bytes, right.expiries)
    assert sorted(left.subjects, key=lambda row: row.subject) == sorted(right.subjects, key=lambda row: row.subject)


@pytest.mark.parametrize("per_subject", [1, 2])
def test_a_limit_per_subject_that_comes_later_is_applied_to_what_is_there(per_subject: int) -> None:
    life = Life(StreamConfig(name="S"))
    for number in range(9):
        life.publish(b"a" if number % 3 else b"b", b"%d" % number)
    life.contents.reconfigure(StreamConfig(name="S", max_msgs_per_subject=per_subject), life.now)
    assert life.contents.subjects.total(b"a") == per_subject
    assert [r.payload for r in life.contents.scan(0)][-1] == b"8"


def test_the_last_of_a_subject_is_looked_for_when_it_was_deleted() -> None:
    life = Life(StreamConfig(name="S"))
    for subject in (b"a", b"b", b"a", b"b", b"a"):
        life.publish(subject, b"")
    assert life.contents.remove(5)
    assert life.contents.subjects.last(b"a") == 3
    assert life.contents.remove(3)
    assert life.contents.subjects.last(b"a") == 1
