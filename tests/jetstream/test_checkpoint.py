"""A start after a kill finds with a checkpoint what it finds without one, and in-flight ids are not remembered."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from support.jetstream_in_process import Desk, served

import headwater.streams.log
from headwater.streams.writer import CHECKPOINT_FILE

CHECKED = ("messages", "bytes", "first_seq", "last_seq", "num_subjects", "num_deleted", "subjects", "deleted")


@pytest.fixture(autouse=True)
def _frequent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headwater.streams.log, "CHECKPOINT_BYTES", 3000)
    monkeypatch.setattr(headwater.streams.log, "CHECKPOINT_SHARE", 1)


def run(directory: Path, then: Callable[[Desk], Awaitable[None]]) -> None:
    async def main() -> None:
        async with served(directory) as desk:
            await then(desk)

    asyncio.run(main())


async def state(desk: Desk) -> dict[str, object]:
    info = await desk.api("STREAM.INFO.S", {"subjects_filter": ">", "deleted_details": True})
    return {name: info["state"].get(name) for name in CHECKED}


@pytest.mark.parametrize(
    ("limits", "deletions"),
    [
        ({}, False),
        ({}, True),
        ({"max_msgs_per_subject": 3}, False),
        ({"max_msgs": 40}, False),
        ({"max_bytes": 9000}, True),
    ],
)
def test_a_start_after_a_kill_finds_the_same_with_and_without_a_checkpoint(
    tmp_path: Path, limits: dict[str, int], deletions: bool
) -> None:
    killed = [tmp_path / name for name in ("with", "without")]
    seen: list[dict[str, object]] = []

    async def fill(desk: Desk) -> None:
        await desk.make("S", **limits)
        for number in range(150):
            header = b"NATS/1.0\r\nNats-Msg-Id: id-%d\r\n\r\n" % number if number % 3 == 0 else b""
            assert "error" not in await desk.publish(f"S.{number % 7}", bytes(100), header)
            if deletions and number % 20 == 19:
                await desk.api("STREAM.MSG.DELETE.S", {"seq": number - 5})
        for directory in killed:
            shutil.copytree(tmp_path / "live", directory)
        seen.append(await state(desk))

    async def look(desk: Desk) -> None:
        seen.append(await state(desk))
        if not limits and not deletions:
            log = desk.service.streams["S"].log
            assert (log.document is not None) == (len(seen) == 2), "it starts from the checkpoint"
        again = await desk.publish("S.0", b"", b"NATS/1.0\r\nNats-Msg-Id: id-147\r\n\r\n")
        assert again.get("duplicate") is True
        assert again["seq"] == 148

    run(tmp_path / "live", fill)
    (checkpoint,) = killed[1].rglob(CHECKPOINT_FILE)
    checkpoint.unlink()
    for directory in killed:
        run(directory, look)
    assert seen[1] == seen[0]
    assert seen[2] == seen[0]
