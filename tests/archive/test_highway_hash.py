"""HighwayHash: the vectors of its authors, every length up to two packets, and a key of the wrong length."""

import pytest

from headwater.archive.highway_hash import begin, digest

KEY = begin(bytes(range(32)))
OF_AUTHORS = {0: 0x907A56DE22C26E53, 1: 0x7EAB43AAC7CDDD78, 2: 0xB8D0569AB0B53D62, 3: 0x5C6BEFAB8A463D80}


@pytest.mark.parametrize("size", OF_AUTHORS)
def test_the_hash_is_that_of_its_authors(size: int) -> None:
    assert digest(KEY, bytes(range(size))) == OF_AUTHORS[size]


def test_every_byte_and_every_length_counts() -> None:
    seen = {digest(KEY, bytes(size)) for size in range(65)}
    assert len(seen) == 65
    for size in (5, 31, 32, 40, 64):
        data = bytes(range(size))
        changed = {digest(KEY, data[:at] + b"\xff" + data[at + 1 :]) for at in range(size)}
        assert len(changed | {digest(KEY, data)}) == size + 1


def test_a_key_has_32_bytes() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        begin(b"short")
