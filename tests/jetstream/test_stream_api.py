"""Requests about streams: what an account may have, what a configuration may become, and what survives a restart."""

import asyncio
import errno
from pathlib import Path

import pytest
from support.jetstream_in_process import Desk, served
from support.recording_files import RecordingFiles

from headwater.jetstream_documents.account import AccountLimits
from headwater.streams import upkeep


def code(answer: dict[str, object]) -> object:
    error = answer.get("error")
    return error["err_code"] if isinstance(error, dict) else None


def limit(desk: Desk, limits: AccountLimits) -> None:
    registry = desk.service.registry
    registry.settings = registry.settings._replace(limits=limits)


def test_account_limits_are_kept(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            limit(desk, AccountLimits(max_streams=1, max_consumers=1, max_storage=1000, max_memory=0))
            create = "STREAM.CREATE."
            assert code(await desk.api(create + "A", {"name": "A", "max_bytes": 2000})) == 10047
            assert code(await desk.api(create + "A", {"name": "A", "max_bytes": 10, "storage": "memory"})) == 10028
            await desk.make("S", max_bytes=900)
            assert code(await desk.api(create + "B", {"name": "B"})) == 10027
            assert code(await desk.consume("S", "one")) is None
            assert code(await desk.consume("S", "two")) == 10026
            limit(desk, AccountLimits(max_bytes_required=True, storage_max_stream_bytes=500))
            assert code(await desk.api(create + "C", {"name": "C"})) == 10113
            assert code(await desk.api(create + "C", {"name": "C", "max_bytes": 501})) == 10122
            info = await desk.api("INFO")
            assert (info["reserved_storage"], info["limits"]["storage_max_stream_bytes"]) == (900, 500)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("before", "after", "err_code"),
    [
        ({}, {"storage": "memory"}, 10052),
        ({}, {"retention": "workqueue"}, 10052),
        ({}, {"retention": "interest"}, None),
        ({"deny_delete": True}, {}, 10052),
        ({"deny_purge": True}, {}, 10052),
        ({"sealed_later": True}, {}, 10052),
        ({"allow_msg_ttl": True}, {}, 10052),
        ({}, {"max_msgs": 5, "allow_direct": True}, None),
        ({}, {"mirror": {"name": "X"}}, 10034),
        ({}, {"num_replicas": 3}, 10074),
    ],
)
def test_what_may_be_changed(
    tmp_path: Path, before: dict[str, object], after: dict[str, object], err_code: int
) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            seal = before.pop("sealed_later", False)
            await desk.make("S", **before)
            base = {"name": "S", "subjects": ["S.>"], **before}
            if seal:
                assert code(await desk.api("STREAM.UPDATE.S", {**base, "sealed": True})) is None
            request = {"name": "S", "subjects": ["S.>"], **after}
            assert code(await desk.api("STREAM.UPDATE.S", request)) == err_code

    asyncio.run(main())


def test_purges_and_deletions_survive_a_restart_and_sequences_go_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            for number in range(10):
                await desk.publish(f"S.{number % 2}", b"%d" % number)
            assert (await desk.api("STREAM.PURGE.S", {"filter": "S.1", "keep": 1}))["purged"] == 4
            assert (await desk.api("STREAM.MSG.DELETE.S", {"seq": 3}))["success"]
        async with served(tmp_path) as desk:
            info = await desk.api("STREAM.INFO.S", {"deleted_details": True, "subjects_filter": ">"})
            state = info["state"]
            assert (state["messages"], state["first_seq"], state["last_seq"]) == (5, 1, 10)
            assert state["deleted"] == [2, 3, 4, 6, 8]
            assert state["subjects"] == {"S.0": 4, "S.1": 1}
            assert (await desk.publish("S.x"))["seq"] == 11
            assert (await desk.api("STREAM.PURGE.S"))["purged"] == 6
        async with served(tmp_path) as desk:
            state = (await desk.api("STREAM.INFO.S"))["state"]
            assert (state["messages"], state["first_seq"], state["last_seq"]) == (0, 12, 11)

    asyncio.run(main())


def test_requests_behind_a_removal_wait_until_it_is_durable(tmp_path: Path) -> None:
    requests = [
        ("STREAM.MSG.DELETE.S", {"seq": 2}),
        ("STREAM.PURGE.S", {"filter": "S.1"}),
        ("STREAM.PURGE.S", {"filter": "S.none"}),
        ("STREAM.INFO.S", None),
        ("STREAM.PURGE.S", {"seq": 4}),
        ("STREAM.MSG.DELETE.S", {"seq": 2}),
        ("STREAM.INFO.S", None),
    ]

    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            assert code(await desk.consume("S", "reader")) is None
            for number in range(6):
                await desk.publish(f"S.{number % 2}", b"%d" % number)
            answers = await asyncio.gather(*(desk.api(*request) for request in requests))
            deleted, purged, none, info, below, gone, last = answers
            assert (deleted["success"], purged["purged"], none["purged"], below["purged"]) == (True, 2, 0, 2)
            assert (info["state"]["messages"], code(gone), last["state"]["first_seq"]) == (3, 10057, 5)
            consumer = await desk.api("CONSUMER.INFO.S.reader")
            assert consumer["num_pending"] == 1

    asyncio.run(main())


def test_a_removal_that_cannot_be_written_is_refused_and_the_next_request_served() -> None:
    async def main() -> None:
        files = RecordingFiles()
        async with served(Path("/store"), files=files) as desk:
            await desk.make("S")
            for number in range(4):
                await desk.publish("S.x", b"%d" % number)
            files.faults |= dict.fromkeys(range(files.attempts, files.attempts + 8), errno.EIO)
            requests = [("STREAM.MSG.DELETE.S", {"seq": 2}), ("STREAM.PURGE.S", {"seq": 4}), ("STREAM.INFO.S", None)]
            deleted, purged, info = await asyncio.gather(*(desk.api(*request) for request in requests))
            assert (code(deleted), code(purged)) == (10057, 10110)
            assert info["state"]["messages"] == 3

    asyncio.run(main())


def _holds(directory: Path, secret: bytes) -> bool:
    return any(secret in path.read_bytes() for path in directory.rglob("*.log"))


def test_an_erased_message_leaves_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "SMALLEST_COMPACTION", 0)

    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            for word in (b"public", b"top secret", b"public too"):
                await desk.publish("S.x", word)
            await desk.api("STREAM.MSG.DELETE.S", {"seq": 2})
            while _holds(tmp_path, b"top secret"):  # noqa: ASYNC110  (no event says so)
                await asyncio.sleep(0.02)
            assert (await desk.api("STREAM.MSG.GET.S", {"seq": 3}))["message"]["seq"] == 3

    asyncio.run(main())


def test_a_memory_stream_works_alike_and_is_gone_after_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("M", storage="memory", max_msgs_per_subject=1)
            for number in range(6):
                assert (await desk.publish(f"M.{number % 2}", b"%d" % number))["seq"] == number + 1
            state = (await desk.api("STREAM.INFO.M"))["state"]
            assert (state["messages"], state["first_seq"], state["last_seq"]) == (2, 5, 6)
        async with served(tmp_path) as desk:
            assert code(await desk.api("STREAM.INFO.M")) == 10059

    asyncio.run(main())


def test_what_is_stored_goes_out_again_under_another_subject(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S", republish={"src": "S.*", "dest": "copy.{{wildcard(1)}}"})
            ear = desk.listen("copy.>")
            await desk.publish("S.a", b"body")
            received = await ear.next()
            assert (received.subject, received.payload) == (b"copy.a", b"body")
            assert b"Nats-Stream: S\r\nNats-Subject: S.a\r\nNats-Sequence: 1\r\n" in received.header_block

    asyncio.run(main())


def test_a_purge_of_a_subject_moves_only_the_consumers_that_get_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            filters = {"own": "S.a", "other": "S.b", "part": "S.>", "beside": "*.b"}
            for name, subject in filters.items():
                await desk.consume("S", name, filter_subject=subject, ack_policy="explicit")
            for subject in ("S.a", "S.a", "S.b", "S.a"):
                await desk.publish(subject)
            assert (await desk.api("STREAM.PURGE.S", {"filter": "S.a", "seq": 3}))["purged"] == 2
            infos = {name: await desk.api(f"CONSUMER.INFO.S.{name}") for name in filters}
            floors = {name: info["ack_floor"]["stream_seq"] for name, info in infos.items()}
            assert floors == {"own": 3, "other": 0, "part": 2, "beside": 0}
            assert {name: info["delivered"]["stream_seq"] for name, info in infos.items()} == floors
            assert {name: info["num_pending"] for name, info in infos.items()} == {
                "own": 1,
                "other": 1,
                "part": 2,
                "beside": 1,
            }
            await desk.api("STREAM.PURGE.S", {"filter": "S.*"})
            infos = {name: await desk.api(f"CONSUMER.INFO.S.{name}") for name in filters}
            assert {name: info["ack_floor"]["stream_seq"] for name, info in infos.items()} == {
                "own": 4,
                "other": 4,
                "part": 4,
                "beside": 0,
            }

    asyncio.run(main())


def test_what_a_purge_takes_of_the_last_of_each_subject_is_not_pending(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            for subject in ("S.a", "S.b", "S.c"):
                await desk.publish(subject)
            last = {"deliver_policy": "last_per_subject", "ack_policy": "explicit"}
            await desk.consume("S", "all", **last, filter_subject="S.>")
            await desk.consume("S", "some", **last, filter_subjects=["S.a", "S.c"])
            await desk.publish("S.b")
            assert (await desk.api("STREAM.PURGE.S", {"filter": "S.a"}))["purged"] == 1
            pending = [(await desk.api(f"CONSUMER.INFO.S.{name}"))["num_pending"] for name in ("all", "some")]
            assert pending == [3, 1]

    asyncio.run(main())
