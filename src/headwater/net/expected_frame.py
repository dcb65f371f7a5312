"""The incomplete frame in front of a link's input, for protocols whose frames begin with their size.

A receiver that knows the size asks for the rest of a large frame at once, and looks at the frame again only when all of it
is there.
"""

from headwater.net.link import LARGE_BYTES, Link


class ExpectedFrame:
    """`size`: the bytes of the frame in front; 0 while none is known to be incomplete."""

    def __init__(self) -> None:
        self.size = 0

    def expect(self, link: Link | None, size: int, filled: int) -> None:
        """The frame in front has `size` bytes, of which `filled` are there."""
        self.size = size
        if link is not None:
            link.expect(size, size - filled if size >= LARGE_BYTES else 0)

    def is_incomplete(self, link: Link | None, filled: int) -> bool:
        """Whether bytes are missing still, now that `filled` are there; False without such a frame."""
        size = self.size
        if not size:
            return False
        if filled >= size:
            self.size = 0
        if size >= LARGE_BYTES and link is not None:
            link.expect(size, max(1, size - filled))
        return filled < size
