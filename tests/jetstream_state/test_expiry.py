"""What ends when: by max_age, by a TTL of its own, never; and the marker that the last message of a subject leaves."""

import random

import msgspec
import pytest

from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_state.contents import Contents
from headwater.jetstream_state.expiry import MARKER_RETRY, REPLAY_GRACE, Patience, marker_block, with_ttl_of_at_least
from headwater.jetstream_state.memory_files import MemoryFiles
from headwater.jetstream_state.sequence import sequence_of
from headwater.streams.log import Log
from headwater.streams.options import LogOptions

SECOND = 10**9


class Life:
    """A stream's contents without a broker: messages are durable at once, markers are noted."""

    def __init__(self, **settings: object) -> None:
        config = msgspec.convert({"name": "S", "subjects": ["s.*"], "allow_msg_ttl": True, **settings}, StreamConfig)
        files = MemoryFiles(random.Random(1).randbytes)
        self.log = Log.open(files, "log", LogOptions(sync="never", preallocate_bytes=0), 0)
        self.contents = Contents(self.log, config, lambda *_: None, lambda: None)
        self.markers: list[bytes] = []
        self.contents.expiry.leave_marker = self.markers.append

    def put(self, subject: bytes, at: int, ttl: bytes = b"", block: bytes = b"") -> None:
        block = block or (b"NATS/1.0\r\nNats-TTL: %b\r\n\r\n" % ttl if ttl else b"")
        offset = self.log.stage(subject, block, b"x", at)
        batch = self.log.seal()
        assert batch is not None
        self.log.write(batch)
        self.log.publish(batch)
        size = self.contents.size_of(subject, block, b"x")
        self.contents.added(subject, sequence_of(offset), size, block, at)

    def held(self) -> list[int]:
        return [sequence_of(record.offset) for record in self.contents.scan(0)]


def test_what_says_never_outlives_the_streams_age() -> None:
    life = Life(max_age=10 * SECOND)
    life.put(b"s.a", 0, b"never")
    life.put(b"s.b", 0)
    life.put(b"s.c", 5 * SECOND)
    life.contents.enforce(9 * SECOND)
    assert life.held() == [1, 2, 3]
    life.contents.enforce(10 * SECOND)
    assert life.held() == [1, 3]
    assert life.contents.next_expiry() == 15 * SECOND
    life.contents.enforce(15 * SECOND)
    assert life.held() == [1]


def test_the_last_of_a_subject_stays_until_a_marker_takes_its_place() -> None:
    life = Life(subject_delete_marker_ttl=SECOND)
    life.put(b"s.a", 0, b"2s")
    life.put(b"s.a", 0, b"2s")
    life.put(b"s.b", 0)
    life.put(b"s.b", 0, b"2s")
    life.contents.enforce(2 * SECOND)
    assert (life.held(), life.markers) == ([2, 3], [b"s.a"])
    assert life.contents.next_expiry() == 2 * SECOND + MARKER_RETRY
    life.contents.enforce(2 * SECOND + MARKER_RETRY)
    assert life.markers == [b"s.a", b"s.a"], "the marker could not be stored: it is asked for again"


def test_age_leaves_markers_too_and_a_marker_none() -> None:
    life = Life(subject_delete_marker_ttl=SECOND, max_age=10 * SECOND)
    life.put(b"s.a", 0)
    life.put(b"s.b", 0, block=marker_block(SECOND))
    life.contents.enforce(SECOND)
    assert (life.held(), life.markers) == ([1], [])
    life.contents.enforce(10 * SECOND)
    assert (life.held(), life.markers) == ([1], [b"s.a"])
    life.contents.enforce(10 * SECOND)
    assert life.markers == [b"s.a"], "one at a time"


@pytest.mark.parametrize(
    ("ttl", "raised"), [(b"1s", b"5"), (b"never", b"never"), (b"9s", b"9s"), (b"5", b"5"), (b"nonsense", b"nonsense")]
)
def test_a_ttl_is_not_shorter_than_the_markers(ttl: bytes, raised: bytes) -> None:
    block = with_ttl_of_at_least(b"NATS/1.0\r\nNats-TTL: %b\r\nA: b\r\n\r\n" % ttl, 5 * SECOND)
    assert b"Nats-TTL: %b\r\n" % raised in block
    assert (block.count(b"Nats-TTL"), block.count(b"A: b\r\n")) == (1, 1)
    assert block.endswith(b"\r\n\r\n")


def test_a_marker_says_why_and_for_how_long() -> None:
    expected = b"NATS/1.0\r\nNats-Marker-Reason: MaxAge\r\nNats-TTL: 1m0s\r\nNats-Rollup: sub\r\n\r\n"
    assert marker_block(60 * SECOND + 5) == expected


def test_time_stands_still_for_a_replay_and_not_for_longer_than_its_grace() -> None:
    patience, start = Patience(), 100 * SECOND
    assert patience.expire_until(start, False) == start
    assert patience.expire_until(start + SECOND, True) == start
    assert patience.expire_until(start + REPLAY_GRACE, True) == start
    assert patience.expire_until(start + REPLAY_GRACE + 7, True) == start + 7
    assert patience.expire_until(start + REPLAY_GRACE + 8, False) == start + REPLAY_GRACE + 8
    assert patience.expire_until(start + REPLAY_GRACE + 9, True) == start + REPLAY_GRACE + 8
