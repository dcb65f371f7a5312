"""The streams of one account: made, changed, deleted and recovered, each durable when the call returns."""

import asyncio
from pathlib import Path

import pytest
from support.registries import registries

from headwater.errors import JetStreamError
from headwater.jetstream_documents.streams import StreamConfig
from headwater.streams.finding import Finding


def directories(store: Path) -> list[Path]:
    return sorted((store / "streams").iterdir())


def test_a_stream_and_its_messages_are_there_after_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        async with registries(tmp_path) as first:
            await first.create()
            await first.publish(b"s", 3)
            await first.streams.update(
                first.streams.stream("S"), StreamConfig(name="S", subjects=["s"], description="changed")
            )
        async with registries(tmp_path) as second:
            stream = second.streams.stream("S")
            assert stream.config.description == "changed"
            assert [record.payload for record in stream.log.read(0, 9, 999)] == [b"0", b"1", b"2"]
            assert b'"seq":4' in (await second.publish(b"s"))[0]

    asyncio.run(main())


def test_a_deleted_stream_is_gone_from_the_disk_and_from_the_router(tmp_path: Path) -> None:
    async def main() -> None:
        async with registries(tmp_path) as made:
            await made.streams.delete(await made.create())
            assert directories(tmp_path) == []
            assert made.router.publish(b"s", b"", b"", b"x") == 0
            with pytest.raises(JetStreamError) as missing:
                made.streams.stream("S")
            assert missing.value.err_code == 10059

    asyncio.run(main())


def test_a_stream_in_memory_leaves_nothing_on_the_disk(tmp_path: Path) -> None:
    async def main() -> None:
        async with registries(tmp_path) as made:
            stream = await made.create(storage="memory")
            await made.publish(b"s", 2)
            assert stream.log.record_count == 2
            assert directories(tmp_path) == []
            assert stream.keeper is None

    asyncio.run(main())


def test_a_stream_that_cannot_be_made_leaves_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with registries(tmp_path) as made:

            def fail(*_: object) -> None:
                raise OSError(5, "made to fail")

            with monkeypatch.context() as patch:
                patch.setattr(made.streams, "_open", fail)
                with pytest.raises(OSError, match="made to fail"):
                    await made.create()
            assert directories(tmp_path) == []
            assert made.streams.streams == {}
            await made.create()

    asyncio.run(main())


def test_a_name_goes_to_one_of_two_that_make_it_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with registries(tmp_path) as made:
            results = await asyncio.gather(made.create(), made.create(), return_exceptions=True)
            refused = [result for result in results if isinstance(result, JetStreamError)]
            assert [error.err_code for error in refused] == [10058]
            assert len(directories(tmp_path)) == 1
            await made.streams.delete(made.streams.stream("S"))
            await made.create()  # the name is free again

    asyncio.run(main())


def test_an_unreadable_stream_is_put_aside_the_others_start_and_it_can_be_deleted(tmp_path: Path) -> None:
    async def main() -> None:
        async with registries(tmp_path) as made:
            await made.create("BAD")
            await made.create("GOOD")
            await made.publish(b"good")
        (bad,) = (path for path in directories(tmp_path) if path.name.startswith("BAD"))
        for copy in bad.glob("stream.*"):
            copy.write_bytes(b"garbage")
        async with registries(tmp_path) as made:
            assert list(made.streams.streams) == ["GOOD"]
            assert made.streams.is_put_aside("BAD")
            assert not made.streams.is_put_aside("GOOD")
            assert made.streams.findings()[0].severity == "unavailable"
            with pytest.raises(JetStreamError) as refused:
                made.streams.stream("BAD")
            assert refused.value.err_code == 10194
            await made.streams.delete_put_aside("BAD")
            assert not bad.exists()
            await made.create("BAD")

    asyncio.run(main())


def test_the_room_of_an_account_is_that_of_all_its_streams_with_the_same_storage(tmp_path: Path) -> None:
    async def main() -> None:
        async with registries(tmp_path, max_storage=150) as made:
            await made.create("A")
            await made.create("B")
            await made.create("M", storage="memory")
            acks = [(await made.publish(subject))[0] for subject in (b"a", b"b", b"a", b"b", b"a", b"m", b"m")]
            taken = [b"error" not in ack for ack in acks]
            assert taken[:2] == [True, True]
            assert taken[4] is False
            assert taken[5:] == [True, True], "another storage, without a limit"
            await made.streams.delete(made.streams.stream("A"))
            assert b"error" not in (await made.publish(b"b"))[0]

    asyncio.run(main())


def test_a_finding_after_the_start_is_reported(tmp_path: Path) -> None:
    async def main() -> None:
        async with registries(tmp_path) as made:
            found: list[Finding] = []
            made.streams.reports.on_finding = found.append
            stream = await made.create()
            await made.publish(b"s", 3)
        (segment,) = next(iter(directories(tmp_path))).glob("log/*.log")
        content = bytearray(segment.read_bytes())
        content[-1] ^= 1
        async with registries(tmp_path) as made:
            made.streams.reports.on_finding = found.append
            stream = made.streams.stream("S")
            segment.write_bytes(content)  # behind the log's back, after the index of the clean stop was believed
            list(stream.log.read(0, 9, 999))
        assert [finding.severity for finding in found] == ["loss"]
        assert found[0].stream == "S"

    asyncio.run(main())
