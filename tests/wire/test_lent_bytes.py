"""Bytes that are lent: what they look like, and that the array keeps its size meanwhile."""

import gc
import os
from pathlib import Path
from typing import Any

import pytest
from google_crc32c import value as crc32c

from headwater.wire.lent_bytes import lend
from headwater.wire.memory import COMPILED


def test_they_are_checked_and_written_as_bytes(tmp_path: Path) -> None:
    array = bytearray(range(200))
    lent = lend(array, 10, 150)
    assert len(lent) == 140 and bytes(lent) == bytes(array[10:150])
    assert crc32c(lent) == crc32c(bytes(array[10:150]))
    with (tmp_path / "file").open("wb") as file:
        assert os.pwritev(file.fileno(), [b"head", lent, lent], 0) == 284
    assert (tmp_path / "file").read_bytes() == b"head" + 2 * bytes(array[10:150])
    assert b"".join([b"x", lent]) == b"x" + bytes(array[10:150])
    assert bytes(lend(array, 200, 200)) == b""


@pytest.mark.skipif(not COMPILED, reason="interpreted, they are a copy")
def test_the_array_keeps_its_size_while_they_are_there() -> None:
    array = bytearray(100)
    lent: Any = lend(array, 0, 50)
    assert type(lent).__name__ == "LentBytes" and memoryview(lent).readonly
    with pytest.raises(BufferError):
        array.extend(b"x")
    array[0] = 7
    assert bytes(lent)[0] == 7, "it is no copy"
    del lent
    gc.collect()
    array.extend(b"x")
