"""What a clean stop leaves is believed only when it is one of ours."""

import msgspec
import pytest

from headwater.jetstream_state.contents import ContentsDocument
from headwater.jetstream_state.stream_document import StreamDocument


def test_a_document_comes_back() -> None:
    document = StreamDocument(ContentsDocument(1, 2, [], []), [(b"id", 3, 4)], b"id")
    assert StreamDocument.decode(msgspec.msgpack.encode(document)) == document


@pytest.mark.parametrize("other", [None, b"", b"x", msgspec.msgpack.encode([1, 2])])
def test_anything_else_is_none(other: bytes | None) -> None:
    assert StreamDocument.decode(other) is None
