"""Changes the subject and the headers of a message for the copying stream. Pure.

A mirror only changes subjects, if it has transforms. A source also adds the origin of the message.
"""

import random

from headwater.jetstream_documents.source_rules import index_name, transform_of
from headwater.jetstream_documents.streams import StreamSource
from headwater.jetstream_sources.stamp import cleaned, marks, stamped


class Rewriting:
    """The changes of one mirror or source."""

    def __init__(self, source: StreamSource) -> None:
        self._index = index_name(source).encode("utf-8", "surrogateescape")
        self._transforms = [made for each in source.subject_transforms if (made := transform_of(each)) is not None]

    @property
    def moves(self) -> bool:
        """Whether there are transforms."""
        return bool(self._transforms)

    def marks(self, identity: str) -> tuple[bytes, bytes, bytes]:
        """The three parts of what a source writes into each message (`stamp.marks`)."""
        return marks(self._index, identity.encode())

    def subject(self, subject: bytes) -> bytes:
        """The subject under which the message is stored."""
        for transform in self._transforms:
            moved = transform.apply(subject, random.randrange)
            if moved is not None:
                return moved
        return subject

    def stamped(self, header_block: bytes, sequence: int, subject: bytes, identity: str) -> bytes:
        """The headers of a message copied by a source; `subject` and `sequence` are those of the origin."""
        return stamped(cleaned(header_block, of_stamp=True), self._index, sequence, subject, identity.encode())
