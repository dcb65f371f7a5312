"""What becomes of a message on its way into a copy: its subject and its headers. Pure.

A mirror changes subjects where it has transforms, and nothing else. A source also writes where the message comes from.
"""

import random

from headwater.jetstream_documents.source_rules import index_name, transform_of
from headwater.jetstream_documents.streams import StreamSource
from headwater.jetstream_sources.stamp import cleaned, stamped


class Rewriting:
    """Of one mirror or source."""

    def __init__(self, source: StreamSource) -> None:
        self._index = index_name(source).encode("utf-8", "surrogateescape")
        self._transforms = [made for each in source.subject_transforms if (made := transform_of(each)) is not None]

    def subject(self, subject: bytes) -> bytes:
        """Where the message goes."""
        for transform in self._transforms:
            moved = transform.apply(subject, random.randrange)
            if moved is not None:
                return moved
        return subject

    def stamped(self, header_block: bytes, sequence: int, subject: bytes, identity: str) -> bytes:
        """The headers of a message that a source has taken; `subject` and `sequence` are the origin's."""
        return stamped(cleaned(header_block), self._index, sequence, subject, identity.encode())
