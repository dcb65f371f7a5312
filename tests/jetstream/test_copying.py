"""A stream with sources remembers where they are, whatever has become of the messages that it has copied."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from support.jetstream_in_process import Desk, served

COUNT = 5


def run(directory: Path, then: Callable[[Desk], Awaitable[None]]) -> None:
    async def main() -> None:
        async with served(directory) as desk:
            await then(desk)

    asyncio.run(main())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  (no event says so; `served` bounds it)
        await asyncio.sleep(0.01)


async def copy_some(desk: Desk, count: int = COUNT) -> None:
    for number in range(count):
        assert "error" not in await desk.publish("O.x", b"what was published, %d" % number)
    copied = desk.service.streams["O"].last_sequence
    await until(lambda: desk.service.streams["Z"].last_sequence >= copied)


async def make_and_copy(desk: Desk) -> None:
    await desk.make("O")
    await desk.make("Z", subjects=[], sources=[{"name": "O"}])
    await copy_some(desk)


async def nothing_comes_again(desk: Desk) -> None:
    await copy_some(desk, 1)
    assert desk.service.streams["Z"].last_sequence == COUNT + 1


def files_with(directory: Path, text: bytes) -> list[Path]:
    (place,) = (path for path in directory.glob("**/streams/*") if path.name.startswith("Z-"))
    return [path for path in place.rglob("*.log") if text in bytes_in(path)]


def bytes_in(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:  # upkeep has removed it since its name was read
        return b""


def test_after_a_kill_a_source_knows_what_was_copied_and_purged(tmp_path: Path) -> None:
    async def before(desk: Desk) -> None:
        await make_and_copy(desk)
        assert (await desk.api("STREAM.PURGE.Z"))["purged"] == COUNT
        shutil.copytree(tmp_path / "live", tmp_path / "killed")

    run(tmp_path / "live", before)
    run(tmp_path / "killed", nothing_comes_again)


async def erase_all(desk: Desk, directory: Path) -> None:
    await make_and_copy(desk)
    for sequence in range(1, COUNT + 1):
        assert (await desk.api("STREAM.MSG.DELETE.Z", {"seq": sequence}))["success"]
    await until(lambda: not files_with(directory, b"what was published"))


def test_after_a_kill_a_source_knows_what_was_copied_and_has_left_the_disk(tmp_path: Path) -> None:
    async def before(desk: Desk) -> None:
        await erase_all(desk, tmp_path / "live")
        shutil.copytree(tmp_path / "live", tmp_path / "killed")

    run(tmp_path / "live", before)
    run(tmp_path / "killed", nothing_comes_again)


@pytest.mark.parametrize(("damaged", "outcome"), [("ab", "may be copied again"), ("a", "the other copy serves")])
def test_saved_positions_that_cannot_be_read_are_reported(tmp_path: Path, damaged: str, outcome: str) -> None:
    async def before(desk: Desk) -> None:
        await erase_all(desk, tmp_path / "live")
        shutil.copytree(tmp_path / "live", tmp_path / "killed")

    async def after(desk: Desk) -> None:
        findings = [finding for finding in desk.service.streams["Z"].findings() if "positions" in finding.path]
        assert [outcome in finding.done for finding in findings] == [True] * len(damaged)
        if damaged == "a":
            await nothing_comes_again(desk)

    run(tmp_path / "live", before)
    for copy in damaged:
        (path,) = (tmp_path / "killed").rglob(f"positions.{copy}")
        path.write_bytes(b"something else")
    run(tmp_path / "killed", after)


def test_a_status_that_an_older_origin_has_stored_is_no_control_and_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mirror took the first for a request of its origin, and began anew for ever; readers took the second for the end of
    their own requests."""

    async def work(desk: Desk) -> None:
        await desk.make("O")
        rules = desk.service.streams["O"]._publishing.rules
        monkeypatch.setattr(rules, "plain_block", lambda block: block)
        assert "error" not in await desk.publish("O.x", b"", b"NATS/1.0 100 Idle Heartbeat\r\nNats-X: 1\r\n\r\n")
        assert "error" not in await desk.publish("O.x", b"p", b"NATS/1.0 503\r\nA: 1\r\n\r\n")
        assert "error" not in await desk.publish("O.x", b"q", b"NATS/1.0\r\nA: 1")
        await desk.make("M", subjects=[], mirror={"name": "O"})
        await desk.make("Z", subjects=[], sources=[{"name": "O"}])
        for name in "MZ":
            copy = desk.service.streams[name]
            await until(lambda copy=copy: copy.last_sequence == 3)  # type: ignore[misc]
            blocks = [record.header_block for record in copy.log.read(0, 9, 1 << 20)]
            assert not any(block.startswith(b"NATS/1.0 ") for block in blocks)
            assert blocks[1].startswith(b"NATS/1.0\r\nA: 1\r\n")
            assert name == "M" or b"\r\nNats-Stream-Source: O 3 " in blocks[2], "found again, whatever stands before it"

    run(tmp_path, work)
