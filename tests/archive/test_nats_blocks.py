"""Blocks of nats-server: what is no block gives gaps, never an exception. Real blocks: cli/test_store_import.py."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from headwater.archive.highway_hash import begin, digest
from headwater.archive.nats_blocks import BlockReader, Deleted, Gap, StoredMessage


def record(sequence: int, subject: bytes, header_block: bytes, payload: bytes, number: int = 1) -> bytes:
    """A record as nats-server writes it."""
    length = 22 + len(subject) + (4 + len(header_block) if header_block else 0) + len(payload) + 8
    head = (length | (1 << 31 if header_block else 0)).to_bytes(4, "little")
    fixed = sequence.to_bytes(8, "little") + (7).to_bytes(8, "little")
    inner = len(header_block).to_bytes(4, "little") if header_block else b""
    key = begin(hashlib.sha256(f"S-{number}".encode()).digest())
    total = digest(key, fixed + subject + header_block + payload).to_bytes(8, "little")
    return head + fixed + len(subject).to_bytes(2, "little") + subject + inner + header_block + payload + total


def read(block: bytes, number: int = 1) -> list[StoredMessage | Deleted | Gap]:
    return list(BlockReader("S").read(number, block))


def test_a_damaged_record_is_left_out_and_the_next_one_read() -> None:
    good = [record(1, b"a", b"", b"one"), record(2, b"b", b"NATS/1.0\r\n\r\n", b"two"), record(3, b"c", b"", b"")]
    messages = [
        StoredMessage(1, 7, b"a", b"", b"one"),
        StoredMessage(2, 7, b"b", b"NATS/1.0\r\n\r\n", b"two"),
        StoredMessage(3, 7, b"c", b"", b""),
    ]
    assert read(b"".join(good)) == messages
    damaged = good[1][:-10] + b"!" + good[1][-9:]
    gap = Gap(len(good[0]), len(good[1]), "the checksum of sequence 2 is wrong")
    assert read(good[0] + damaged + good[2]) == [messages[0], gap, messages[2]]
    assert all(isinstance(one, Gap) for one in read(b"".join(good), number=2)), "the sum knows its block"


def test_deletions_are_of_two_kinds() -> None:
    block = record(5 | 1 << 62, b"", b"", b"") + record(6 | 1 << 63, b"", b"", b"x")
    assert read(block) == [Deleted(5, erased=False), Deleted(6, erased=True)]


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_read(junk: bytes, compressed: bool) -> None:
    begun = b"cmp\x01\x05" if compressed else b""
    for found in read(begun + junk):
        assert isinstance(found, Gap | Deleted | StoredMessage)
