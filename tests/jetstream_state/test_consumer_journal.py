"""The journal of what happens to consumers: what was written is read back, and nothing else is believed."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from headwater.durable_files.files import OsFiles
from headwater.jetstream_state.consumer_journal import Entry, JournalFiles, encode, identity_of, load

OURS = identity_of("S", 1)
NUMBERS = st.integers(0, 2**63 - 1)
EVENTS = st.lists(st.tuples(st.integers(0, 4), NUMBERS, NUMBERS).map(list), max_size=5)
ENTRIES = st.lists(st.tuples(st.text(max_size=9), EVENTS), max_size=3)


def write(directory: Path, *parts: bytes) -> Path:
    path = directory / "state.00000000000000000001.journal"
    path.write_bytes(b"".join(parts))
    return path


def frames(directory: Path) -> list[tuple[int, list[Entry]]]:
    return [(frame.number, frame.entries) for frame in load(OsFiles(), str(directory), OURS).frames]


@given(written=st.lists(ENTRIES, max_size=4), cut=st.integers(0, 400))
def test_frames_come_back_in_their_order_and_a_cut_costs_what_it_cut(
    tmp_path_factory: object, written: list[list[Entry]], cut: int
) -> None:
    directory = tmp_path_factory.mktemp("j")  # type: ignore[attr-defined]
    encoded = [encode(OURS, number, entries) for number, entries in enumerate(written)]
    content = b"".join(encoded)
    write(directory, content[: max(0, len(content) - cut)])
    whole, size = 0, 0
    for frame in encoded:
        size += len(frame)
        whole += size <= len(content) - cut
    assert frames(directory) == list(enumerate(written))[:whole]
    assert load(OsFiles(), str(directory), OURS).damage == []


def test_a_flipped_bit_ends_the_journal_and_is_said_when_frames_follow(tmp_path: Path) -> None:
    first, second, third = (encode(OURS, number, [("c", [[1, number, number]])]) for number in (1, 2, 3))
    for at in range(len(second)):
        spoiled = bytearray(second)
        spoiled[at] ^= 1
        path = write(tmp_path, first, bytes(spoiled), third)
        journal = load(OsFiles(), str(tmp_path), OURS)
        assert [frame.number for frame in journal.frames] == [1], at
        assert [found for found, _ in journal.damage] == [str(path)], at


def test_the_frames_of_another_stream_or_of_an_older_time_are_not_believed(tmp_path: Path) -> None:
    entries: list[Entry] = [("c", [[1, 1, 1]])]
    write(tmp_path, encode(identity_of("T", 1), 1, entries))
    journal = load(OsFiles(), str(tmp_path), OURS)
    assert (journal.frames, len(journal.damage)) == ([], 1)
    write(tmp_path, encode(OURS, 5, entries), encode(OURS, 4, entries))
    journal = load(OsFiles(), str(tmp_path), OURS)
    assert ([frame.number for frame in journal.frames], len(journal.damage)) == ([5], 1)


def test_files_follow_each_other_and_are_removed_by_name(tmp_path: Path) -> None:
    journal = JournalFiles(OsFiles(), str(tmp_path / "consumers"))
    entries: list[Entry] = [("c", [[1, 1, 1]])]
    for number, fresh in ((1, True), (2, False), (3, True)):
        journal.append(encode(OURS, number, entries), number, fresh=fresh, sync=True)
    found = load(OsFiles(), str(tmp_path / "consumers"), OURS)
    assert [frame.number for frame in found.frames] == [1, 2, 3]
    assert len(found.paths) == 2
    journal.remove(found.paths[:1])
    journal.close()
    assert [number for number, _ in frames(tmp_path / "consumers")] == [3]
    assert load(OsFiles(), str(tmp_path / "never was"), OURS).frames == []
