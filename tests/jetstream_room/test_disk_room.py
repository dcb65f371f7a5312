"""Room that runs out is reported before there is none."""

import asyncio
from pathlib import Path

import pytest

from headwater.jetstream_room import disk_room
from headwater.jetstream_room.disk_room import Room, RoomWatch, room_at

GIB = 1 << 30


@pytest.mark.parametrize(
    ("free", "size", "low"),
    [(GIB // 2, 100 * GIB, True), (2 * GIB, 100 * GIB, False), (GIB // 4, 4 * GIB, False), (GIB // 10, 4 * GIB, True)],
)
def test_room_is_low_below_a_twentieth_of_the_disk_and_a_gigabyte(free: int, size: int, low: bool) -> None:
    assert Room(free, size).is_low == low


def test_the_room_of_a_directory_is_that_of_its_disk(tmp_path: Path) -> None:
    room = room_at(str(tmp_path))
    assert room is not None
    assert 0 < room.free <= room.size
    assert room_at(str(tmp_path / "nowhere")) is None


def test_each_change_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    async def main() -> None:
        watch = RoomWatch(str(tmp_path))
        for free in (50, 1, 1, 50, 50, 1):
            watch.note(Room(free * GIB // 50, 100 * GIB) if free == 1 else Room(free * GIB, 100 * GIB))
        watch.stop()

    asyncio.run(main())
    logged = [record.getMessage().split()[0] for record in caplog.records if record.name.endswith("disk_room")]
    assert logged == ["disk_low", "disk_has_room", "disk_low"]


def test_a_look_for_which_there_is_no_thread_is_followed_by_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        looks: list[str] = []
        seen = asyncio.Event()

        async def look(_: object, path: str) -> Room:
            looks.append(path)
            if len(looks) == 1:
                raise RuntimeError("can't start new thread")
            seen.set()
            return Room(1, 100 * GIB)

        monkeypatch.setattr(disk_room, "LOOK", 0.0)
        monkeypatch.setattr(asyncio, "to_thread", look)
        watch = RoomWatch(str(tmp_path))
        async with asyncio.timeout(30):
            await seen.wait()
        watch.stop()

    asyncio.run(main())
    logged = [record.getMessage().split()[0] for record in caplog.records if record.name.endswith("disk_room")]
    assert logged[:2] == ["disk_room_unknown", "disk_low"]
