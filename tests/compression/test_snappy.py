"""What compresses and decompresses: the library where it is installed, our own decoder where it is not."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.compression.s2_block import decode_block
from headwater.compression.snappy import compressor, decompressor
from headwater.errors import RemoteProtocolError

COMPRESS = compressor()
S2_ONLY = b"\x0b\x08abc\x01\x03\x01\x00"  # "the last offset again", which Snappy has not


@given(st.binary(max_size=3000).map(lambda data: data * 3))
def test_what_is_compressed_comes_back_by_the_library_and_without_it(content: bytes) -> None:
    assert COMPRESS is not None
    block = COMPRESS(content)
    assert decompressor()(block, len(content)) == content == decode_block(block, len(content))


def test_a_block_that_only_s2_has_is_read_too_and_what_is_no_block_or_too_large_is_refused() -> None:
    decompress = decompressor()
    assert decompress(S2_ONLY, 100) == b"abcabcabcab"
    for block in (b"", b"\x05\x08abc", b"\xff\xff\xff\xff\x7f\x08abc"):
        with pytest.raises(RemoteProtocolError):
            decompress(block, 100)
    assert COMPRESS is not None
    with pytest.raises(RemoteProtocolError):
        decompress(COMPRESS(b"x" * 101), 100)


def test_without_the_library_nothing_is_compressed_and_everything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert COMPRESS is not None
    block = COMPRESS(b"abc" * 100)
    monkeypatch.setitem(sys.modules, "cramjam", None)
    assert compressor() is None
    assert decompressor()(block, 300) == b"abc" * 100
