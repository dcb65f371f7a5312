"""The recogniser of the common form of a message on a route agrees with the general parser."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.wire.route_frames import MessageLine

Words = tuple[bytes, bytes, bytes, bytes, int, int]


def read(line: bytes) -> Words | None:
    """First word, second word, reply, list of queues, header size and size; None if this is not the common form."""
    found, buffer = MessageLine(), bytearray(line)
    if not found.read(buffer, 0, len(buffer)):
        return None
    assert found.body == len(line)
    reply = buffer[found.reply : found.reply_end]
    return (
        bytes(buffer[found.first : found.first_end]),
        bytes(buffer[found.second : found.second_end]),
        bytes(reply),
        bytes(buffer[found.queues : found.queues_end]),
        found.header_size,
        found.size,
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"RMSG $G foo 5\r\n", (b"$G", b"foo", b"", b"", 0, 5)),
        (b"RMSG $G foo bar 5\r\n", (b"$G", b"foo", b"bar", b"", 0, 5)),
        (b"RMSG $G foo 7 5\r\n", (b"$G", b"foo", b"7", b"", 0, 5)),
        (b"HMSG $G foo 12 17\r\n", (b"$G", b"foo", b"", b"", 12, 17)),
        (b"HMSG $G foo bar 12 17\r\n", (b"$G", b"foo", b"bar", b"", 12, 17)),
        (b"MSG foo RSID:4:9 5\r\n", (b"foo", b"RSID:4:9", b"", b"", 0, 5)),
        (b"MSG foo RSID:4:9 bar 5\r\n", (b"foo", b"RSID:4:9", b"bar", b"", 0, 5)),
        (b"RMSG $G foo | a 5\r\n", (b"$G", b"foo", b"", b"a", 0, 5)),
        (b"RMSG $G foo | a b 7 5\r\n", (b"$G", b"foo", b"", b"a b 7", 0, 5)),
        (b"RMSG $G foo + bar a 5\r\n", (b"$G", b"foo", b"bar", b"a", 0, 5)),
        (b"HMSG $G foo | a 12 17\r\n", (b"$G", b"foo", b"", b"a", 12, 17)),
        (b"HMSG $G foo + bar a b 12 17\r\n", (b"$G", b"foo", b"bar", b"a b", 12, 17)),
        (b"RMSG $G foo | 5\r\n", (b"$G", b"foo", b"|", b"", 0, 5)),
        (b"HMSG $G foo + 12 17\r\n", (b"$G", b"foo", b"+", b"", 12, 17)),
        (b"RMSG $G foo + bar 5\r\n", None),
        (b"RMSG $G foo | a x\r\n", None),
        (b"RMSG $G foo |  a 5\r\n", None),
        (b"MSG foo | a 5\r\n", (b"foo", b"|", b"a", b"", 0, 5)),
        (b"MSG foo RSID:4:9 | a 5\r\n", None),
        (b"RMSG $G foo 5\n", None),
        (b"RMSG $G  foo 5\r\n", None),
        (b"RMSG $G foo 5 \r\n", None),
        (b"rmsg $G foo 5\r\n", None),
        (b"RMSG $G foo 5x\r\n", None),
        (b"RMSG $G foo 1234567890\r\n", None),
        (b"RMSG $G 5\r\n", None),
        (b"HMSG $G foo x 17\r\n", None),
        (b"MSG foo 5\r\n", None),
    ],
)
def test_common_form_and_what_is_left_to_the_general_parser(line: bytes, words: Words | None) -> None:
    assert read(line) == words


@given(
    st.lists(
        st.sampled_from([b"RMSG", b"HMSG", b"MSG", b"$G", b"a", b"12", b"5", b" ", b"\t", b"", b"|", b"+"]), max_size=9
    )
)
def test_it_agrees_with_splitting_the_line(words: list[bytes]) -> None:
    line = b" ".join(words) + b"\r\n"
    found = read(line)
    if found is None:
        return
    numbers = [found[4], found[5]] if line.startswith(b"H") else [found[5]]
    reply = [found[2]] if found[2] else []
    if found[3]:
        reply = [b"+" if reply else b"|", *reply, *found[3].split(b" ")]
    rest = [found[0], found[1], *reply, *(b"%d" % number for number in numbers)]
    assert words == [line.split(b" ")[0], *rest]


def test_incomplete_line_is_no_line() -> None:
    line = b"HMSG $G foo bar 12 17\r\n"
    for end in range(len(line)):
        assert not MessageLine().read(bytearray(line), 0, end)
