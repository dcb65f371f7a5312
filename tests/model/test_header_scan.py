"""One pass over plain blocks: it takes what the grammar draws and nothing else, and splits it as the careful scan does."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.model.header_scan import find_plain, is_plain, split_plain
from headwater.model.header_syntax import Scan

# The grammar again, as the head of the module draws it; the module's interpreted half is written differently.
LINE = rb"[!-9;-~]+:[^\r\n]*\r\n"
GRAMMAR = re.compile(rb"NATS/1\.0([ \t][^\r\n]*)?\r\n(" + LINE + rb")*\r\n")

PIECES = [
    b"NATS/1.0",
    b"\r\n",
    b"\r",
    b"\n",
    b":",
    b" ",
    b"\t",
    b"a",
    b"Nats-Msg-Id",
    b"v",
    b"\xc3\xa9",
    b"\xff",
    b"\x00",
]
near_blocks = st.lists(st.sampled_from(PIECES), max_size=14).map(lambda pieces: b"NATS/1.0" + b"".join(pieces))
ended_blocks = near_blocks.map(lambda block: block + b"\r\n\r\n")


@given(near_blocks | ended_blocks | st.binary(max_size=40))
def test_plain_is_what_the_grammar_says(block: bytes) -> None:
    assert is_plain(block) == (GRAMMAR.fullmatch(block) is not None)


@given(ended_blocks)
def test_plain_block_splits_into_what_the_scan_reads(block: bytes) -> None:
    if is_plain(block):
        assert split_plain(block) == Scan(block, strict=False).pairs()


@given(ended_blocks, st.text(st.sampled_from("a:\r\n NATS/1.0vé"), max_size=9))
def test_search_finds_the_first_of_the_lines_and_nothing_across_them(block: bytes, name: str) -> None:
    if is_plain(block):
        pairs = split_plain(block)
        for sought in {name, *(name for name, _ in pairs)}:
            assert find_plain(block, sought) == next((value for name, value in pairs if name == sought), None)


@pytest.mark.parametrize("cut", range(1, 30))
def test_block_cut_anywhere_is_not_plain(cut: int) -> None:
    block = b"NATS/1.0\r\nName: value\r\nb:\r\n\r\n"
    assert is_plain(block)
    assert not is_plain(block[:-cut])


def test_names_that_share_a_place_in_the_memory_are_not_confused() -> None:
    names = [f"{a}{b}" for a in "abcdefghijklmnopqrstuvwxyz" for b in "abcdefghijklmnopqrstuvwxyz"]  # 676 in 256 places
    block = b"NATS/1.0\r\n" + b"".join(b"%s: 1\r\n" % name.encode() for name in names) + b"\r\n"
    for _ in range(2):
        assert split_plain(block) == [(name, "1") for name in names]


def test_a_value_that_is_no_utf8_is_found_byte_for_byte() -> None:
    assert find_plain(b"NATS/1.0\r\nA: x\xff\r\n\r\n", "A") == "x\udcff"


def test_only_the_first_colon_ends_a_name_also_where_the_careful_scan_reads() -> None:
    assert Scan(b"NATS/1.0\r\nA: x:y\r\n z:1\r\n\r\n", strict=False).pairs() == [("A", "x:y z:1")]
