"""The end of an account's streams: what goes wrong with one of them is logged, and every log is closed."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from support.registries import registries

from headwater.errors import StorageError
from headwater.jetstream.ending import _sync
from headwater.jetstream.stream import Stream


@pytest.mark.parametrize("part", ["detach", "document", "keeper.close", "keeper.remove_files"])
def test_an_unexpected_error_of_one_stream_leaves_no_log_open(
    part: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> bytes:
        raise RuntimeError("not a fault of the disk")

    async def fail_later() -> None:
        fail()

    async def main() -> None:
        async with registries(tmp_path) as made:
            streams = [await made.create(name) for name in ("A", "B", "C")]
            for stream in streams:
                await made.publish(stream.name.lower().encode())
            *path, name = part.split(".")
            broken = getattr(streams[1], path[0]) if path else streams[1]
            setattr(broken, name, fail_later if part in ("detach", "keeper.close") else fail)
        assert not made.streams.streams

    asyncio.run(main())
    assert "stream_not_ended_cleanly stream=B" in caplog.text
    assert "not a fault of the disk" in caplog.text

    async def again() -> None:
        async with registries(tmp_path) as made:
            assert not made.streams.put_aside  # as a log would be that is still locked
            assert [stream.subjects.messages for stream in made.streams.streams.values()] == [1, 1, 1]

    asyncio.run(again())


def test_a_log_that_cannot_be_made_durable_at_a_stop_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    def sync() -> None:
        raise StorageError("no such device")

    _sync(cast(Stream, SimpleNamespace(log=SimpleNamespace(directory="/store/S", sync=sync))))
    assert "log_not_closed directory=/store/S reason=no such device" in caplog.text
