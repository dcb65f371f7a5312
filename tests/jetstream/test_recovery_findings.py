"""What is wrong in a store directory is shown on request, and one bad stream never stops the others."""

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from support.jetstream_in_process import Desk, served

from headwater.durable_files.files import File, OsFiles
from headwater.exchange.router import Router
from headwater.jetstream.service import JetStream

CONSUMER = {"durable_name": "c", "ack_policy": "explicit"}


class RefusingFiles(OsFiles):
    """A file system that refuses reads below paths with this word in them."""

    def __init__(self, word: str) -> None:
        self.word = word

    def _check(self, path: str) -> None:
        if self.word in path:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    def open(self, path: str) -> File:
        self._check(path)
        return super().open(path)

    def listdir(self, path: str) -> list[str]:
        self._check(path)
        return super().listdir(path)


def flip_bits(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def with_streams(directory: Path, then: Callable[[Desk], Awaitable[None]], files: OsFiles | None = None) -> None:
    """BAD and GOOD with a message and a durable consumer each, the damage of `then`'s caller done in between."""

    async def main() -> None:
        async with served(directory, files=files) as desk:
            await then(desk)

    asyncio.run(main())


def fill(directory: Path) -> None:
    async def then(desk: Desk) -> None:
        for name in ("BAD", "GOOD"):
            await desk.make(name)
            await desk.publish(f"{name}.x", b"1")
            assert "error" not in await desk.consume(name, "c", **CONSUMER)

    with_streams(directory, then)


def bad(directory: Path) -> Path:
    (found,) = (directory / "streams").glob("BAD-*")
    return found


def unreadable_document(directory: Path) -> None:
    for copy in bad(directory).glob("stream.?"):
        flip_bits(copy, 40)


def missing_document(directory: Path) -> None:
    for copy in bad(directory).glob("stream.?"):
        copy.unlink()


def dangling_link(directory: Path) -> None:
    path = bad(directory)
    path.rename(directory / "elsewhere")
    path.symlink_to(directory / "nowhere")


def unknown_version(directory: Path) -> None:
    from headwater.durable_files import documents

    documents.save(OsFiles(), str(bad(directory) / "stream"), b'{"config": 7}')


async def expect_put_aside(desk: Desk) -> None:
    """GOOD works, BAD is named as what it is, and no answer tells a path of the server."""
    assert (await desk.publish("GOOD.x", b"2"))["seq"] == 2
    (finding,) = [one for one in desk.service.findings() if one.severity == "unavailable"]
    assert finding.stream == "BAD"
    assert finding.what.startswith("could not be recovered: ")
    config = {"name": "BAD", "subjects": ["BAD.>"]}
    for verb, document in (("INFO", None), ("CREATE", config), ("UPDATE", config)):
        answer = await desk.api(f"STREAM.{verb}.BAD", document)
        assert answer["error"]["err_code"] == 10194, answer
        assert "/" not in answer["error"]["description"]
    assert (await desk.api("STREAM.NAMES"))["streams"] == ["GOOD"]


@pytest.mark.parametrize("harm", [unreadable_document, missing_document, dangling_link, unknown_version])
def test_a_stream_that_cannot_be_recovered_is_put_aside_and_the_others_start(
    tmp_path: Path, harm: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    fill(tmp_path)
    harm(tmp_path)
    with_streams(tmp_path, expect_put_aside)
    lines = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert any(line.startswith("stream_unavailable stream=BAD ") for line in lines)


@pytest.mark.parametrize("harm", [unreadable_document, missing_document, dangling_link, unknown_version])
def test_a_stream_that_was_put_aside_can_be_deleted_and_made_again(
    tmp_path: Path, harm: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    fill(tmp_path)
    harm(tmp_path)

    async def delete(desk: Desk) -> None:
        assert (await desk.api("STREAM.DELETE.BAD"))["success"]
        assert desk.service.findings() == []
        assert (await desk.api("STREAM.DELETE.BAD"))["error"]["err_code"] == 10059
        await desk.make("BAD")
        assert (await desk.publish("BAD.x", b"new"))["seq"] == 1
        assert (await desk.api("STREAM.INFO.GOOD"))["state"]["messages"] == 1

    with_streams(tmp_path, delete)
    assert any(record.getMessage().startswith("unrecovered_stream_deleted") for record in caplog.records)
    with_streams(tmp_path, expect_both)


async def expect_both(desk: Desk) -> None:
    assert desk.service.findings() == []
    assert (await desk.api("STREAM.NAMES"))["streams"] == ["BAD", "GOOD"]


@pytest.mark.parametrize("word", ["/BAD-", "/stream.", "/consumers", "/log"])
def test_what_may_not_be_read_is_put_aside_too(tmp_path: Path, word: str) -> None:
    fill(tmp_path)
    files = RefusingFiles(f"{bad(tmp_path)}{word}" if word != "/BAD-" else str(bad(tmp_path)))
    with_streams(tmp_path, expect_put_aside, files)


def test_a_stream_that_was_put_aside_is_whole_again_when_its_files_are(tmp_path: Path) -> None:
    fill(tmp_path)
    with_streams(tmp_path, expect_put_aside, RefusingFiles(f"{bad(tmp_path)}/consumers"))

    async def whole(desk: Desk) -> None:
        assert desk.service.findings() == []
        assert (await desk.api("STREAM.INFO.BAD"))["state"]["messages"] == 1
        assert (await desk.api("CONSUMER.INFO.BAD.c"))["num_pending"] == 1

    with_streams(tmp_path, whole)


def test_a_document_of_which_one_copy_is_damaged_is_mended_and_said_once(tmp_path: Path) -> None:
    fill(tmp_path)
    flip_bits(bad(tmp_path) / "stream.b", 40)

    async def mended(desk: Desk) -> None:
        (finding,) = desk.service.findings()
        assert (finding.stream, finding.severity, finding.lost) == ("BAD", "warning", 0)
        assert finding.done == "written again from the other copy"

    async def clean(desk: Desk) -> None:
        assert desk.service.findings() == []

    with_streams(tmp_path, mended)
    with_streams(tmp_path, clean)


def test_a_consumer_that_cannot_be_read_is_a_loss_that_is_told_and_no_message_goes_with_it(tmp_path: Path) -> None:
    async def interested(desk: Desk) -> None:
        await desk.make("I", retention="interest")
        for name in ("one", "two"):
            assert "error" not in await desk.consume("I", name, durable_name=name, ack_policy="explicit")
        await desk.publish("I.x", b"1")

    async def without_one(desk: Desk) -> None:
        (finding,) = desk.service.findings()
        assert (finding.stream, finding.severity) == ("I", "loss")
        assert "consumer one" in finding.what
        assert (await desk.api("STREAM.INFO.I"))["state"]["messages"] == 1

    with_streams(tmp_path, interested)
    for copy in tmp_path.rglob("one-*"):
        flip_bits(copy, 40)
    with_streams(tmp_path, without_one)


def test_a_failed_creation_leaves_nothing_in_its_way(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            leftover = tmp_path / "streams" / "x"
            leftover.mkdir()
            await desk.make("S")

    asyncio.run(main())


def test_an_unreadable_store_is_an_error_of_the_start(tmp_path: Path) -> None:
    from headwater.errors import EnvironmentProblem

    async def main() -> None:
        router = Router(asyncio.get_running_loop().call_soon, 1)
        service = JetStream(router, tmp_path, clock_ns=lambda: 1, files=RefusingFiles("/streams"))
        with pytest.raises(EnvironmentProblem, match="Permission denied"):
            await service.start()

    asyncio.run(main())


def test_damage_that_reading_meets_is_logged_listed_and_no_longer_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def write(desk: Desk) -> None:
        await desk.make("KV", max_msgs_per_subject=4)
        for number in range(3):
            await desk.publish("KV.key", b"value-%d-" % number * 9)

    async def read(desk: Desk) -> None:
        state = (await desk.api("STREAM.INFO.KV"))["state"]
        assert state["messages"] == 3
        answer = await desk.api("STREAM.MSG.GET.KV", {"seq": 2})
        assert answer["error"]["err_code"] == 10037
        await asyncio.sleep(0)
        state = (await desk.api("STREAM.INFO.KV"))["state"]
        assert (state["messages"], state["lost"]["msgs"]) == (2, [2])
        made = await desk.consume("KV", "c", filter_subject="KV.key", **CONSUMER)
        assert made["num_pending"] == 2
        (finding,) = desk.service.findings()
        assert (finding.stream, finding.lost, finding.severity) == ("KV", 1, "loss")

    with_streams(tmp_path, write)
    (segment,) = tmp_path.rglob("*.log")
    flip_bits(segment, segment.read_bytes().index(b"value-1-"))
    with_streams(tmp_path, read)
    lines = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert [line.split()[:2] for line in lines] == [["stream_finding", "stream=KV"]]


@pytest.mark.parametrize("messages", [9, 9000])
def test_counts_by_subject_and_pending_are_exact_after_damage_without_a_limit_per_subject(
    tmp_path: Path, messages: int
) -> None:
    """The lost one is the last of its subject; while the rest is counted, messages are stored, deleted and expire."""

    async def write(desk: Desk) -> None:
        await desk.make("S")
        for number in range(messages):
            desk.router.publish(b"S.%d" % (number % 3), b"", b"", b"value-%d-" % number * 9)
        await desk.service.streams["S"].flush()

    async def read(desk: Desk) -> None:
        stream = desk.service.streams["S"]
        assert stream.state().messages == messages
        before = stream.state().bytes
        made = await desk.consume("S", "before", filter_subject="S.2", **{**CONSUMER, "durable_name": "before"})
        assert made["num_pending"] == messages // 3
        answer = await desk.api("STREAM.MSG.GET.S", {"seq": messages})
        assert answer["error"]["err_code"] == 10037
        await desk.publish("S.2", b"new")
        for sequence in (1, 3, messages - 2):
            assert (await desk.api("STREAM.MSG.DELETE.S", {"seq": sequence}))["success"]
        await stream._recounts.done()
        state = (await desk.api("STREAM.INFO.S", {"subjects_filter": ">"}))["state"]
        third = messages // 3
        assert state["subjects"] == {"S.0": third - 2, "S.1": third, "S.2": third - 1}
        assert state["messages"] == 3 * third - 3
        each = stream.contents.size_of(b"S.0", b"", b"")
        there = list(stream.contents.scan(0))
        assert state["bytes"] == sum(each + len(record.payload) for record in there) < before
        assert (await desk.api("CONSUMER.INFO.S.before"))["num_pending"] == third - 1
        made = await desk.consume("S", "after", filter_subject="S.2", **{**CONSUMER, "durable_name": "after"})
        assert made["num_pending"] == third - 1
        last = await desk.api("STREAM.MSG.GET.S", {"last_by_subj": "S.2"})
        assert last["message"]["seq"] == messages + 1

    with_streams(tmp_path, write)
    (segment,) = tmp_path.rglob("*.log")
    flip_bits(segment, segment.read_bytes().index(b"value-%d-" % (messages - 1)))
    with_streams(tmp_path, read)


def test_losses_at_the_beginning_are_in_the_state(tmp_path: Path) -> None:
    async def write(desk: Desk) -> None:
        await desk.make("S")
        for number in range(3):
            await desk.publish("S.x", b"value-%d-" % number * 9)

    async def read(desk: Desk) -> None:
        state = (await desk.api("STREAM.INFO.S"))["state"]
        assert (state["messages"], state["first_seq"], state["lost"]["msgs"]) == (2, 2, [1])

    with_streams(tmp_path, write)
    (segment,) = tmp_path.rglob("*.log")
    flip_bits(segment, segment.read_bytes().index(b"value-0-"))
    next(tmp_path.rglob("log.index")).unlink()
    with_streams(tmp_path, read)
