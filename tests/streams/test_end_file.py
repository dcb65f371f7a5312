"""`log.end`: what is written is read, and nothing else is."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.durable_files.documents import NO_IDENTITY
from headwater.streams.end_file import BOOT_AT, END_FILE_SIZE, RecordedEnd, decode_end, encode_boot, encode_end

BOOT = b"start of a system"[:16]
OFFSETS = st.integers(0, (1 << 63) - 1)


@given(st.binary(min_size=8, max_size=8), OFFSETS, OFFSETS, OFFSETS)
def test_what_is_written_is_read(identity: bytes, end: int, base: int, size: int) -> None:
    content = encode_end(identity, end, base, size, encode_boot(BOOT))
    assert len(content) == END_FILE_SIZE
    assert decode_end(content, BOOT) == (identity, RecordedEnd(end, base, size, is_exact=True))


def test_it_is_exact_only_where_the_system_was_not_started_since_it_was_written() -> None:
    content = encode_end(b"identity", 7, 0, 4096)
    for boot, now in ((BOOT, BOOT[::-1]), (BOOT, b""), (b"", BOOT), (b"", b"")):
        assert decode_end(content + encode_boot(boot), now) == (b"identity", RecordedEnd(7, 0, 4096))
    assert decode_end(content, BOOT) == (b"identity", RecordedEnd(7, 0, 4096)), "one of an older Headwater"


@given(st.integers(0, END_FILE_SIZE * 8 - 1), st.integers(1, END_FILE_SIZE - 1))
def test_a_flipped_bit_and_a_cut_are_noticed(bit: int, size: int) -> None:
    content = encode_end(b"identity", 7, 0, 4096, encode_boot(BOOT))
    flipped = bytearray(content)
    flipped[bit // 8] ^= 1 << bit % 8
    assert decode_end(bytes(flipped), BOOT) == (NO_IDENTITY, RecordedEnd())
    assert size == BOOT_AT or decode_end(content[:size], BOOT) == (NO_IDENTITY, RecordedEnd())


def test_a_file_that_was_made_and_not_written_says_nothing() -> None:
    assert decode_end(b"") is None
    assert decode_end(bytes(END_FILE_SIZE)) is None
