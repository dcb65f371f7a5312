"""What `jetstream/publish_rules.py` decides about a publish, and what it knows of those before it."""

from typing import NamedTuple, Protocol

from headwater.jetstream_state.counters import Sum
from headwater.jetstream_state.items import Item, Particulars


class Admitted(NamedTuple):
    """A publish to be stored. `size`: the bytes it adds to the stream. `particulars`: see `Item`. `tail`: the part of its
    acknowledgement after the sequence; b"" for the ordinary one. `sum`: the new value of a counter."""

    header_block: bytes
    payload: bytes
    message_id: bytes
    size: int
    particulars: Particulars | None
    tail: bytes = b""
    sum: Sum | None = None


class Duplicate(NamedTuple):
    """A publish whose message is already stored, or being written, with this sequence."""

    sequence: int


class Unwritten(Protocol):
    """The messages that are staged or being written (`Committer`)."""

    @property
    def full(self) -> bool:
        """Whether further messages would only pile up in memory."""
        ...

    @property
    def busy(self) -> bool:
        """Whether anything is staged or being written."""
        ...

    @property
    def waiting(self) -> list[Item]:
        """The staged messages."""
        ...

    @property
    def writing(self) -> list[Item]:
        """The messages being written."""
        ...
