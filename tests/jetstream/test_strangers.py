"""Files in a store directory that belong elsewhere: the original is served, the stranger is named and nothing is deleted."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from support.jetstream_in_process import Desk, served

from headwater.streams.finding import Finding

CONSUMER = {"durable_name": "c", "ack_policy": "explicit"}
Then = Callable[[Desk], Awaitable[object]]


def run(directory: Path, then: Then) -> list[Finding]:
    async def main() -> list[Finding]:
        async with served(directory) as desk:
            await then(desk)
            return desk.service.findings()

    return asyncio.run(main())


@pytest.fixture
def store(tmp_path: Path) -> Path:
    async def fill(desk: Desk) -> None:
        for name, messages in (("MINE", 3), ("THEIRS", 7)):
            await desk.make(name)
            for number in range(messages):
                await desk.publish(f"{name}.x", b"%d" % number)
            assert "error" not in await desk.consume(name, "c", **CONSUMER)

    assert run(tmp_path, fill) == []
    return tmp_path


def path_of(store: Path, name: str) -> Path:
    (found,) = (path for path in (store / "streams").glob(f"{name}-*") if "." not in path.name)
    return found


async def mine_is_whole(desk: Desk) -> None:
    assert (await desk.api("STREAM.INFO.MINE"))["state"]["messages"] == 3
    assert (await desk.api("CONSUMER.INFO.MINE.c"))["num_pending"] == 3
    assert (await desk.publish("MINE.x", b"more"))["seq"] == 4


def test_a_copy_of_a_stream_directory_is_left_out_and_the_original_is_served(store: Path) -> None:
    mine = path_of(store, "MINE")
    shutil.copytree(mine, mine.with_name("AAA.bak"))
    shutil.copytree(mine, mine.with_name(mine.name + ".bak"))
    findings = run(store, mine_is_whole)
    assert sorted(Path(finding.path).name for finding in findings) == ["AAA.bak", mine.name + ".bak"]
    assert {finding.severity for finding in findings} == {"unavailable"}
    assert all("'MINE', which belongs in " + mine.name in finding.what for finding in findings)
    assert (mine.with_name("AAA.bak") / "stream.a").exists()


@pytest.mark.parametrize("document", ["stream", "consumers/c-*", "log/log.state"])
@pytest.mark.parametrize("copy", [".a", ".b"])
def test_one_copy_of_another_streams_document_is_put_aside_and_told(store: Path, document: str, copy: str) -> None:
    (theirs,) = path_of(store, "THEIRS").glob(document + copy)
    (place,) = path_of(store, "MINE").glob(document + copy)
    content = theirs.read_bytes()
    place.write_bytes(content)
    findings = run(store, mine_is_whole)
    assert findings
    assert {finding.severity for finding in findings} == {"warning"}
    kept = place.with_name(place.name + ".stranger-0")
    assert kept.read_bytes() == content
    assert run(store, lambda desk: desk.api("STREAM.NAMES")) == [], "told once: the document is whole again"


def test_both_copies_of_another_streams_configuration_make_it_unavailable(store: Path) -> None:
    for copy in ("stream.a", "stream.b"):
        shutil.copy(path_of(store, "THEIRS") / copy, path_of(store, "MINE") / copy)

    async def then(desk: Desk) -> None:
        assert (await desk.api("STREAM.NAMES"))["streams"] == ["THEIRS"]

    (finding,) = run(store, then)
    assert (finding.stream, finding.severity) == ("MINE", "unavailable")


def test_another_streams_log_is_not_served_and_not_changed(store: Path) -> None:
    mine, theirs = path_of(store, "MINE") / "log", path_of(store, "THEIRS") / "log"
    shutil.rmtree(mine)
    shutil.copytree(theirs, mine)
    before = {path.name: path.read_bytes() for path in mine.iterdir()}

    async def then(desk: Desk) -> None:
        assert (await desk.api("STREAM.INFO.MINE"))["error"]["err_code"] == 10194
        assert (await desk.api("STREAM.INFO.THEIRS"))["state"]["messages"] == 7

    (finding,) = run(store, then)
    assert (finding.stream, finding.severity) == ("MINE", "unavailable")
    assert "nothing in" in finding.what
    assert {path.name: path.read_bytes() for path in mine.iterdir()} == before


def test_a_consumer_of_another_stream_is_told_as_lost(store: Path) -> None:
    for theirs in (path_of(store, "THEIRS") / "consumers").iterdir():
        shutil.copy(theirs, path_of(store, "MINE") / "consumers" / theirs.name)

    async def then(desk: Desk) -> None:
        assert (await desk.api("CONSUMER.INFO.MINE.c"))["error"]["err_code"] == 10014

    (finding,) = run(store, then)
    assert (finding.stream, finding.severity) == ("MINE", "loss")
    assert "not its own" in finding.what


def test_a_segment_of_another_stream_is_put_aside_and_the_loss_is_told(store: Path) -> None:
    (theirs,) = (path_of(store, "THEIRS") / "log").glob("*.log")
    (place,) = (path_of(store, "MINE") / "log").glob("*.log")
    shutil.copy(theirs, place)

    async def then(desk: Desk) -> None:
        info = await desk.api("STREAM.INFO.MINE")
        assert info["state"]["messages"] == 0
        assert (await desk.publish("MINE.x", b"more"))["seq"] >= 4, "a sequence is not used again"

    findings = run(store, then)
    assert any(finding.severity == "loss" and finding.lost == 3 for finding in findings)
    assert place.with_name(place.name + ".stranger-0").read_bytes() == theirs.read_bytes()


def killed_with_an_older_newest_segment(tmp_path: Path, *, with_end: bool) -> Path:
    """Six messages, all delivered; then the newest segment of a moment when there were three is put back."""
    live, killed = tmp_path / "live", tmp_path / "killed"

    async def fill(desk: Desk) -> None:
        await desk.make("S")
        await desk.consume("S", "c", durable_name="c", ack_policy="explicit", deliver_subject="here")
        inbox = desk.listen("here")
        for number in range(6):
            if number == 3:
                shutil.copytree(path_of(live, "S") / "log", tmp_path / "older")
            await desk.publish("S.x", b"%d" % number)
        await inbox.take(6)
        stream = desk.service.streams["S"]
        assert stream.keeper is not None
        await stream.keeper.close()
        shutil.copytree(live, killed)

    run(live, fill)
    names = [path.name for path in (tmp_path / "older").glob("*.log")] + (["log.end"] if with_end else [])
    for name in names:
        shutil.copy(tmp_path / "older" / name, path_of(killed, "S") / "log" / name)
    return killed


@pytest.mark.parametrize("with_end", [False, True])
def test_an_older_newest_segment_is_missed_after_a_kill_by_log_end_or_by_what_consumers_know(
    tmp_path: Path, with_end: bool
) -> None:
    killed = killed_with_an_older_newest_segment(tmp_path, with_end=with_end)

    async def then(desk: Desk) -> None:
        state = (await desk.api("STREAM.INFO.S"))["state"]
        assert state["messages"] == 3 and state["lost"]["msgs"][:3] == [4, 5, 6]
        assert (await desk.publish("S.x", b"more"))["seq"] > 6, "a sequence is not used again"

    findings = run(killed, then)
    assert [finding.severity for finding in findings if finding.lost >= 3] == ["loss"]


def test_a_log_that_is_gone_is_not_made_anew_in_silence(store: Path) -> None:
    mine = path_of(store, "MINE") / "log"
    for path in mine.iterdir():
        path.unlink()
    (finding,) = run(store, lambda desk: desk.api("STREAM.NAMES"))
    assert finding.what == "there is nothing in the log's directory"
    shutil.rmtree(mine)

    async def then(desk: Desk) -> None:
        assert (await desk.api("STREAM.INFO.MINE"))["error"]["err_code"] == 10194

    (finding,) = run(store, then)
    assert finding.severity == "unavailable"
