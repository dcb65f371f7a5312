"""CRC32C in short pieces."""

from google_crc32c import value as crc32c
from hypothesis import given
from hypothesis import strategies as st

from headwater.compression.checksum import SHORT, extend_crc

PIECE = st.binary(max_size=40) | st.integers(SHORT - 2, SHORT + 2).map(lambda size: bytes(range(256)) * 3 + bytes(size))


@given(st.lists(PIECE, max_size=5))
def test_pieces_have_the_checksum_of_the_whole(pieces: list[bytes]) -> None:
    crc = 0
    for piece in pieces:
        crc = extend_crc(crc, piece)
    assert crc == crc32c(b"".join(pieces))


def test_it_is_the_checksum_of_the_standard() -> None:
    assert extend_crc(0, b"123456789") == 0xE3069283
