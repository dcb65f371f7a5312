"""Where records are and how much they weigh is found as if all of them had been read."""

from hypothesis import given
from hypothesis import strategies as st
from support.recording_files import RecordingFiles

from headwater.streams.log import Log, LogOptions, StoredRecord
from headwater.streams.log_reader import Wanted
from headwater.streams.record_places import RecordPlaces

BLOCK = b"NATS/1.0\r\nA: 1\r\n\r\n"


def weight(record: StoredRecord) -> int:
    more = 10 if record.header_block else 1
    return more + len(record.subject) + len(record.header_block) + len(record.payload)


def filled(batches: list[list[bytes]]) -> Log:
    log = Log.open(RecordingFiles(), "log", LogOptions(preallocate_bytes=0), 1)
    for subjects in batches:
        for subject in subjects:
            log.stage(subject, BLOCK if log.next_offset % 3 == 0 else b"", b"x" * (log.next_offset % 7), 1)
        batch = log.seal()
        assert batch is not None
        log.write(batch)
        log.publish(batch)
    return log


@given(
    batches=st.lists(st.lists(st.sampled_from([b"a", b"b", b"c"]), min_size=1, max_size=5), max_size=8),
    gone=st.sets(st.integers(0, 20)),
    reach=st.tuples(st.integers(0, 25), st.integers(0, 45)),
    step=st.tuples(st.integers(1, 4), st.integers(1, 9)),
    wanted=st.sampled_from([b"a", lambda subject: subject != b"b", None]),
)
def test_places_of_matching_records_come_as_if_all_had_been_read_however_few_at_a_time(
    batches: list[list[bytes]],
    gone: set[int],
    reach: tuple[int, int],
    step: tuple[int, int],
    wanted: Wanted | None,
) -> None:
    log, (start, end), (most, passed) = filled(batches), reach, step
    for offset in gone:
        log.discard(offset)
    expected = [
        (record.offset, record.subject, weight(record))
        for record in log.read(start, 1000, 1 << 20)
        if record.offset < end
        and (wanted is None or (record.subject == wanted if isinstance(wanted, bytes) else wanted(record.subject)))
    ]
    found: list[tuple[int, bytes, int]] = []
    offset = start
    while offset < min(end, log.end_offset):
        places = RecordPlaces(1, 10)
        after = log.reader.find_places(places, offset, end, wanted, most, passed)
        assert offset < after <= end
        assert len(places) <= most
        found += zip(places.offsets, places.subjects, places.sizes, strict=True)
        offset = after
    assert found == expected


def test_of_places_those_stay_that_are_named() -> None:
    log = filled([[b"a", b"b", b"c"]])
    places = RecordPlaces(1, 10)
    log.reader.find_places(places, 0, 3, None, 10, 10)
    kept = places.keep([0, 2])
    assert (kept.offsets, kept.subjects, len(kept)) == ([0, 2], [b"a", b"c"], 2)
    assert kept.sizes == [places.sizes[0], places.sizes[2]]
