"""Files in an Iggy directory that belong elsewhere: the original is served, the stranger is named and nothing is deleted."""

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headwater.durable_files import documents
from headwater.durable_files.files import OsFiles
from headwater.errors import IggyError
from headwater.iggy.catalog import Catalog, decode
from headwater.iggy.face import Iggy, IggyOptions
from headwater.iggy.service_options import ServiceOptions
from headwater.iggy_client.client import Client, connect
from headwater.iggy_wire.commands import DeleteTopic, Message, PurgeStream
from headwater.iggy_wire.identifiers import Consumer, Identifier, PollingStrategy
from headwater.monitoring.pages import PAGES
from headwater.monitoring.steps import at_once
from headwater.server.broker import Broker
from headwater.streams.finding import Finding

OPTIONS = IggyOptions(tcp=("127.0.0.1", 0), service=ServiceOptions(housekeeping=3600))
S = Identifier("s")
Then = Callable[[Iggy, Client], Awaitable[object]]


def run(directory: Path, then: Then) -> list[Finding]:
    async def main() -> list[Finding]:
        async with asyncio.timeout(40), Iggy(OPTIONS, directory) as iggy:
            async with await connect(f"iggy://iggy:iggy@127.0.0.1:{iggy.tcp_port}") as client:
                await then(iggy, client)
            return list(iggy.service.files.findings)

    return asyncio.run(main())


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Topics `mine`, of two partitions, and `theirs`, of one."""

    async def fill(iggy: Iggy, client: Client) -> None:
        await client.create_stream("s")
        for name, partitions in (("mine", 2), ("theirs", 1)):
            await client.create_topic("s", name, partitions)
            for partition in range(partitions):
                await client.send("s", name, [Message(b"%s %d" % (name.encode(), partition))] * 3, partition)
            await client.store_offset("s", name, 0, 1, Consumer.single("me"))

    assert run(tmp_path, fill) == []
    return tmp_path


def catalog(store: Path) -> Catalog:
    document = documents.load(OsFiles(), str(store / "catalog"))
    assert document is not None
    return decode(document)


def log_of(store: Path, topic: str, partition: int = 0) -> Path:
    (entry,) = (entry for stream in catalog(store).streams for entry in stream.topics if entry.name == topic)
    return store / "logs" / str(entry.partitions[partition])


async def served(client: Client, topic: str, partition: int = 0) -> list[bytes]:
    found = await client.poll("s", topic, partition, strategy=PollingStrategy.offset(0), count=10)
    return [message.payload for message in found]


async def all_is_served(iggy: Iggy, client: Client) -> None:
    assert await served(client, "mine", 0) == [b"mine 0"] * 3
    assert await served(client, "mine", 1) == [b"mine 1"] * 3
    assert await served(client, "theirs") == [b"theirs 0"] * 3
    assert await client.offset("s", "mine", 0, Consumer.single("me")) is not None


async def mine_is_put_aside(iggy: Iggy, client: Client) -> None:
    assert await served(client, "theirs") == [b"theirs 0"] * 3
    with pytest.raises(IggyError, match="io_error"):
        await client.poll("s", "mine")
    with pytest.raises(IggyError, match="io_error"):
        await client.send("s", "mine", [Message(b"x")], 0)
    stream = await client.stream("s")
    assert stream is not None and stream.topics == 2
    with pytest.raises(IggyError, match="io_error"):
        await client.execute(PurgeStream(S))


def swap(left: Path, right: Path) -> None:
    left.rename(left.with_name("aside"))
    right.rename(left)
    left.with_name("aside").rename(right)


def test_two_partitions_that_were_swapped_are_not_served_and_are_whole_when_they_are_back(store: Path) -> None:
    first, second = log_of(store, "mine", 0), log_of(store, "mine", 1)
    swap(first, second)
    (finding,) = run(store, mine_is_put_aside)
    assert (finding.stream, finding.path, finding.severity) == ("mine", str(first), "unavailable")
    assert "nothing in" in finding.what
    swap(first, second)
    assert run(store, all_is_served) == []


def test_a_partition_copied_over_another_is_not_served_in_its_place(store: Path) -> None:
    mine = log_of(store, "mine", 1)
    shutil.rmtree(mine)
    shutil.copytree(log_of(store, "theirs"), mine)
    (finding,) = run(store, mine_is_put_aside)
    assert (finding.path, finding.severity) == (str(mine), "unavailable")


@pytest.mark.parametrize("harm", [shutil.rmtree, lambda path: [file.unlink() for file in path.iterdir()]])
def test_a_partition_whose_files_are_gone_is_not_made_anew(store: Path, harm: Callable[[Path], object]) -> None:
    harm(log_of(store, "mine", 1))
    (finding,) = run(store, mine_is_put_aside)
    assert finding.severity == "unavailable"


def test_one_file_of_another_partition_is_put_aside(store: Path) -> None:
    mine, theirs = log_of(store, "mine"), log_of(store, "theirs")
    shutil.copy(theirs / "log.state.a", mine / "log.state.a")
    findings = run(store, all_is_served)
    assert len(findings) == 2 and {finding.severity for finding in findings} == {"warning"}
    assert "is not of this log" in findings[0].what + findings[1].what
    assert list(mine.glob("*.stranger-0"))


def test_copies_under_other_names_are_left_alone_and_named(store: Path) -> None:
    mine = log_of(store, "mine")
    copies = [mine.with_name("mine.bak"), mine.with_name("77")]
    for copy in copies:
        shutil.copytree(mine, copy)
    findings = run(store, all_is_served)
    assert sorted(finding.path for finding in findings) == sorted(map(str, copies))
    assert {finding.severity for finding in findings} == {"warning"}
    assert all(copy.is_dir() for copy in copies)


def test_committed_offsets_of_another_topic_are_not_taken(store: Path) -> None:
    mine, theirs = (entry.uid for entry in catalog(store).streams[0].topics)
    shutil.copy(store / "offsets" / f"{theirs}.a", store / "offsets" / f"{mine}.a")
    findings = run(store, all_is_served)
    assert [finding.done for finding in findings] == ["written again from the other copy"]
    assert (store / "offsets" / f"{mine}.a.stranger-0").exists()


def test_offsets_that_cannot_be_read_are_a_loss_that_is_told(store: Path) -> None:
    mine, _ = (entry.uid for entry in catalog(store).streams[0].topics)
    for copy in (store / "offsets").glob(f"{mine}.*"):
        copy.write_bytes(b"garbage")

    async def begins_anew(iggy: Iggy, client: Client) -> None:
        assert await client.offset("s", "mine", 0, Consumer.single("me")) is None

    (finding,) = run(store, begins_anew)
    assert (finding.stream, finding.severity) == ("mine", "loss")


def test_a_store_without_identities_learns_them_at_its_first_start(store: Path) -> None:
    old = catalog(store)
    known, old.identities = old.identities, {}
    documents.save(OsFiles(), str(store / "catalog"), old.encode())
    assert run(store, all_is_served) == []
    learnt = catalog(store).identities
    partitions = {uid for entry in old.streams[0].topics for uid in entry.partitions}
    assert {uid: learnt[uid] for uid in partitions} == {uid: known[uid] for uid in partitions}
    swap(log_of(store, "mine", 0), log_of(store, "mine", 1))
    assert [finding.severity for finding in run(store, mine_is_put_aside)] == ["unavailable"]


def test_a_topic_that_was_put_aside_can_be_deleted_and_made_anew(store: Path) -> None:
    log = log_of(store, "mine", 1)
    (log / "log.state.a").unlink()
    (log / "log.state.b").unlink()
    next(log.glob("*.log")).unlink()

    async def delete(iggy: Iggy, client: Client) -> None:
        await client.execute(DeleteTopic(S, Identifier("mine")))
        await client.create_topic("s", "mine", 1)
        assert await served(client, "mine") == []

    assert run(store, delete) == []
    assert not log.exists()


def test_the_deletion_of_one_leaves_the_finding_about_another_of_the_same_name(store: Path) -> None:
    async def fill(iggy: Iggy, client: Client) -> None:
        await client.create_stream("other")
        await client.create_topic("other", "mine", 1)

    assert run(store, fill) == []
    for entry in (entry for stream in catalog(store).streams for entry in stream.topics if entry.name == "mine"):
        shutil.rmtree(store / "logs" / str(entry.partitions[0]))

    async def delete(iggy: Iggy, client: Client) -> None:
        await client.execute(DeleteTopic(Identifier("other"), Identifier("mine")))

    (finding,) = run(store, delete)
    assert (finding.path, finding.severity) == (str(log_of(store, "mine")), "unavailable")


def test_what_is_wrong_is_told_by_healthz_jsz_and_eventz(tmp_path: Path) -> None:
    async def start(then: Callable[[Broker], Awaitable[object]]) -> None:
        async with asyncio.timeout(40), Broker(jetstream=True, store_dir=tmp_path, iggy=OPTIONS) as broker:
            await then(broker)

    async def fill(broker: Broker) -> None:
        async with await connect(f"iggy://iggy:iggy@127.0.0.1:{broker.iggy.tcp_port}") as client:
            await client.create_stream("s")
            for name in ("mine", "theirs"):
                await client.create_topic("s", name, 1)
                await client.send("s", name, [Message(b"x")], 0)

    async def look(broker: Broker) -> None:
        view = broker.observe()

        def page(path: str) -> tuple[int, Any]:
            status, document = PAGES[path][1](view, {})
            whole = at_once(document) if isinstance(document, Generator) else document
            return status, json.loads(msgspec.json.encode(whole))

        status, health = page("/healthz")
        assert status == 503 and health["error"].startswith("Iggy topic 'mine' could not be recovered")
        (finding,) = page("/jsz")[1]["findings"]
        assert (finding["stream"], finding["severity"]) == ("mine", "unavailable")
        (event,) = page("/eventz")[1]["events"]
        assert (event["kind"], event["path"]) == ("damage_found", finding["path"])

    asyncio.run(start(fill))
    shutil.rmtree(log_of(tmp_path / "iggy", "mine"))
    asyncio.run(start(look))
