"""The incomplete frame in front of a link's input."""

from typing import cast

from headwater.net.expected_frame import ExpectedFrame
from headwater.net.link import LARGE_BYTES, Link


class NotedLink:
    def __init__(self) -> None:
        self.expected: list[tuple[int, int]] = []

    def expect(self, size: int, missing: int = 0) -> None:
        self.expected.append((size, missing))


def test_a_small_frame_is_awaited_byte_by_byte_and_a_large_one_as_a_whole() -> None:
    noted = NotedLink()
    link, front = cast(Link, noted), ExpectedFrame()
    assert not front.is_incomplete(link, 3)
    front.expect(link, 100, 3)
    assert front.is_incomplete(link, 99)
    assert not front.is_incomplete(link, 100)
    assert (front.size, noted.expected) == (0, [(100, 0)])
    noted.expected.clear()
    front.expect(link, LARGE_BYTES, 3)
    assert front.is_incomplete(link, LARGE_BYTES - 9)
    assert not front.is_incomplete(link, LARGE_BYTES + 5)
    assert noted.expected == [(LARGE_BYTES, LARGE_BYTES - 3), (LARGE_BYTES, 9), (LARGE_BYTES, 1)]
    assert not front.is_incomplete(link, 1)


def test_a_frame_of_a_link_that_is_gone_is_awaited_all_the_same() -> None:
    front = ExpectedFrame()
    front.expect(None, LARGE_BYTES, 3)
    assert front.is_incomplete(None, 4)
    assert not front.is_incomplete(None, LARGE_BYTES)
