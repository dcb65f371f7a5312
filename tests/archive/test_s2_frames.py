"""The framing, on what a real nats-server 2.15.1 sent, and both ways."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.archive.s2_frames import WRITTEN, FrameReader, FrameWriter, masked_sum
from headwater.compression.snappy import compressor
from headwater.errors import RemoteProtocolError

ARCHIVES = Path(__file__).parents[1] / "vectors" / "archives"
SENT, CONTENT = (ARCHIVES / "stream.s2").read_bytes(), (ARCHIVES / "stream.natsarc").read_bytes()


def read(data: bytes, *cuts: int) -> bytes:
    reader, out, at = FrameReader(), b"", 0
    for cut in (*sorted(cuts), len(data)):
        out += reader.feed(data[at:cut])
        at = cut
    reader.finish()
    return out


@given(st.lists(st.integers(0, len(SENT)), max_size=5))
def test_what_nats_server_compressed_is_read_however_it_is_cut(cuts: list[int]) -> None:
    assert read(SENT, *cuts) == CONTENT


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("size", [0, 1, WRITTEN, 2 * WRITTEN + 7])
def test_what_is_written_is_read_again(size: int, compressed: bool) -> None:
    content = (b"the same again and again; " * (size // 20 + 1))[:size]
    writer = FrameWriter(compressor() if compressed else None)
    assert read(writer.feed(content[:100]) + writer.feed(content[100:]) + writer.finish()) == content


def test_a_chunk_that_says_less_than_it_would_hold_is_compressed() -> None:
    block = b"\x80\x08\x00a" + bytes([(63 << 2) | 2, 1, 0]) * 15 + bytes([(62 << 2) | 2, 1, 0])
    assert len(block) < 1024
    writer = FrameWriter(lambda content: block)
    framed = writer.feed(b"a" * 1024) + writer.finish()
    assert framed[10] == 0
    assert read(framed) == b"a" * 1024


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (SENT[:-1], "s2: corrupt input"),
        (SENT[:30] + bytes([SENT[30] ^ 1]) + SENT[31:], "s2: corrupt input, crc mismatch"),
        (SENT[:14] + bytes(4) + SENT[18:], "s2: corrupt input, crc mismatch"),
        (b"nonsense", "s2: corrupt input"),
        (b"\xff\x06\x00\x00S2sTwX", "s2: corrupt input"),
        (SENT[:10] + b"\x02\x00\x00\x00", "s2: corrupt input"),
        (SENT[:10] + b"\x01\xff\xff\xff", "s2: corrupt input"),
    ],
)
def test_what_is_damaged_is_refused_in_the_words_of_nats_server(data: bytes, why: str) -> None:
    with pytest.raises(RemoteProtocolError) as refused:
        read(data)
    assert refused.value.message == why


def test_padding_is_passed_over_and_snappys_beginning_is_taken() -> None:
    chunk = b"\x01\x07\x00\x00" + masked_sum(b"abc") + b"abc"
    assert read(b"\xff\x06\x00\x00sNaPpY" + b"\xfe\x02\x00\x00xx" + chunk + b"\x99\x01\x00\x00x") == b"abc"
