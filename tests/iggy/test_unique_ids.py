"""Message ids that are stored once: what of a batch is new, for how long, and over a restart."""

from support.recording_files import RecordingFiles

from headwater.errors import StorageError
from headwater.iggy.unique_ids import UniqueIds
from headwater.iggy_wire.batches import messages, of_messages
from headwater.iggy_wire.commands import Message
from headwater.streams.iggy_batch import CHECKSUM_SIZE, stamp
from headwater.streams.log import Log
from headwater.streams.options import LogOptions

SECOND_US = 1_000_000
WINDOW_NS = 10 * 1_000_000_000
ALL = bytearray()  # what is left of a batch of which everything is new: it is taken as it is


def open_log(files: RecordingFiles) -> Log:
    return Log.open(files, "log", LogOptions(preallocate_bytes=0), 1)


def batch_of(*ids: int) -> bytes:
    return bytes(of_messages([Message(b"%d" % number, id=number) for number in ids], 1)[0])


def ids_of(batch: bytearray) -> list[int]:
    return [message.id for message in messages(bytes(batch))]


def test_what_is_known_is_left_out() -> None:
    unique = UniqueIds(open_log(RecordingFiles()), WINDOW_NS, 0)
    first = unique.admit(batch_of(1, 2, 3), 0, SECOND_US)
    assert first.batch == ALL and len(first.ids) == 3  # all of it is new: the batch is taken as it is
    mixed = unique.admit(batch_of(2, 4, 3, 5), 3, SECOND_US)
    assert mixed.batch is not None and ids_of(mixed.batch) == [4, 5]
    assert len(mixed.checksums) == 2 * CHECKSUM_SIZE and mixed.original == 1
    again = unique.admit(batch_of(3, 4), 5, SECOND_US)
    assert (again.batch, again.original) == (None, 2)


def test_a_message_without_an_id_is_always_new() -> None:
    unique = UniqueIds(open_log(RecordingFiles()), WINDOW_NS, 0)
    for _ in range(2):
        admitted = unique.admit(batch_of(0, 0), 0, SECOND_US)
        assert admitted.batch == ALL and admitted.ids == []


def test_an_id_that_is_twice_in_a_batch_is_stored_once() -> None:
    unique = UniqueIds(open_log(RecordingFiles()), WINDOW_NS, 0)
    admitted = unique.admit(batch_of(1, 1, 2), 0, SECOND_US)
    assert admitted.batch is not None and ids_of(admitted.batch) == [1, 2]


def test_ids_are_forgotten_after_the_window_and_after_a_write_that_failed() -> None:
    unique = UniqueIds(open_log(RecordingFiles()), WINDOW_NS, 0)
    unique.admit(batch_of(1), 0, SECOND_US)
    assert unique.admit(batch_of(1), 1, 9 * SECOND_US).batch is None
    assert unique.admit(batch_of(1), 1, 30 * SECOND_US).batch == ALL
    failed = unique.admit(batch_of(7), 2, 30 * SECOND_US)
    unique.forget(failed.ids, StorageError("the disk"))
    assert unique.admit(batch_of(7), 2, 30 * SECOND_US).batch == ALL
    unique.forget(unique.admit(batch_of(8), 3, 30 * SECOND_US).ids, None)
    assert unique.admit(batch_of(8), 4, 30 * SECOND_US).batch is None


def test_the_log_brings_back_what_is_within_the_window() -> None:
    files = RecordingFiles()
    log = open_log(files)
    for base, (message_id, second) in enumerate([(1, 1), (2, 20)]):
        body = bytearray(batch_of(message_id))
        stamp(body, 0, 0, base, second * SECOND_US)
        log.stage_iggy(bytes(body), 1, second * SECOND_US * 1000)
        staged = log.seal()
        assert staged is not None
        log.write(staged)
        log.publish(staged)
    log.close()
    unique = UniqueIds(open_log(files), WINDOW_NS, 22 * SECOND_US * 1000)
    assert unique.admit(batch_of(2), 2, 22 * SECOND_US).batch is None
    assert unique.admit(batch_of(1), 2, 22 * SECOND_US).batch == ALL
