"""What a table has too many of, whatever is removed while the count runs."""

from random import Random

import pytest
from support.recording_files import RecordingFiles

from headwater.jetstream_state import recount as module
from headwater.jetstream_state.recount import Recount
from headwater.streams.log import Log
from headwater.streams.options import LogOptions


@pytest.mark.parametrize("seed", range(5))
def test_the_excess_is_what_was_lost_whatever_leaves_and_comes_meanwhile(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RECORDS_A_TURN", 3)
    random = Random(seed)
    log = Log.open(RecordingFiles(), "log", LogOptions(), 1)

    def store(count: int) -> None:
        for _ in range(count):
            log.stage(b"%d" % random.randrange(4), b"", b"xx", 1)
        batch = log.seal()
        assert batch is not None
        log.write(batch)
        log.publish(batch)

    store(40)
    subjects = {record.offset: record.subject for record in log.read(0, 99, 9999)}
    lost = random.sample(sorted(subjects), 5)
    for offset in lost:
        log.discard(offset)  # so that it cannot be read
    table: dict[bytes, int] = {}
    for subject in subjects.values():
        table[subject] = table.get(subject, 0) + 1
    recount = Recount(table, 2 * len(subjects), log.end_offset)

    for _ in recount.turns(log, lambda record: len(record.payload)):
        offset = random.randrange(log.end_offset)
        found = log.read(offset, 1, 1)
        if found and found[0].offset == offset and log.discard(offset):
            recount.note_removed(found[0].subject, offset, 2)
        store(1)
    expected: dict[bytes, int] = {}
    for offset in lost:
        expected[subjects[offset]] = expected.get(subjects[offset], 0) + 1
    assert {subject: count for subject, count in recount.excess.items() if count} == expected
    assert recount.excess_bytes == 2 * len(lost)
