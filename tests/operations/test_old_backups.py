"""Backups of nats-servers before 2.15, a tar: from a store that the real server wrote, and by older servers themselves.

HEADWATER_OLD_NATS_SERVERS names those, several as in PATH (2.10.29, 2.11.11, 2.12.8 and 2.14.6 were tried).
"""

import asyncio
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from support.nats_server import older_nats_servers, start_nats_server

import headwater
from headwater.archive.s2_frames import FrameWriter
from headwater.compression.snappy import compressor
from headwater.errors import HeadwaterError
from headwater.operations.backups import ARCHIVE, DOCUMENT, restore_stream, save_stream
from headwater.operations.old_backups import as_of_today

pytestmark = pytest.mark.interop


async def fill(url: str) -> Any:
    """A stream with a message that was deleted, repeated headers and a consumer; its configuration and state."""
    async with await headwater.connect(url) as client:
        stream = {"name": "S", "subjects": ["s.>"], "storage": "file", "retention": "limits"}
        await client.request("$JS.API.STREAM.CREATE.S", json.dumps(stream).encode(), timeout=30)
        for number in range(20):
            headers = [("A", str(number)), ("A", "again")]
            await client.request(f"s.{number % 3}", b"%d" % number * 50, headers=headers, timeout=30)
        await client.request("$JS.API.STREAM.MSG.DELETE.S", b'{"seq": 7}', timeout=30)
        consumer = {
            "stream_name": "S",
            "config": {"durable_name": "C", "ack_policy": "explicit", "deliver_policy": "all"},
        }
        await client.request("$JS.API.CONSUMER.DURABLE.CREATE.S.C", json.dumps(consumer).encode(), timeout=30)
        inbox = client.new_inbox()
        deliveries = await client.subscribe(inbox)
        await client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C", b'{"batch": 3}', reply=inbox)
        for _ in range(3):
            await client.request((await deliveries.next(30)).reply or "", b"+ACK", timeout=30)
        info = json.loads((await client.request("$JS.API.STREAM.INFO.S", b"", timeout=30)).data)
        return {"config": info["config"], "state": info["state"]}


async def restored(backup: Path, store: Path) -> list[object]:
    async with (
        headwater.Broker(jetstream=True, store_dir=store) as broker,
        await headwater.connect(broker.url) as client,
    ):
        with as_of_today(backup) as (directory, converted):
            assert converted is not None and not converted.problems
            await restore_stream(client, client.jetstream(), directory, lambda sent, size: None)
        state = json.loads((await client.request("$JS.API.STREAM.INFO.S", b"", timeout=30)).data)["state"]
        message = json.loads((await client.request("$JS.API.STREAM.MSG.GET.S", b'{"seq": 20}', timeout=30)).data)[
            "message"
        ]
        consumer = json.loads((await client.request("$JS.API.CONSUMER.INFO.S.C", b"", timeout=30)).data)
        floor = consumer["ack_floor"]["stream_seq"], consumer["num_pending"]
        return [state["messages"], state["last_seq"], state["num_deleted"], message["subject"], message["hdrs"], *floor]


HEADERS = "TkFUUy8xLjANCkE6IDE5DQpBOiBhZ2Fpbg0KDQo="  # A: 19, A: again
WANTED = [19, 20, 1, "s.1", HEADERS, 3, 16]


def packed(folder: Path, names: list[str]) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for name in names:
            tar.add(folder / name, name)
        evil = tarfile.TarInfo("../../escaped")
        evil.size = 3
        tar.addfile(evil, io.BytesIO(b"bad"))
    writer = FrameWriter(compressor())
    return writer.feed(plain.getvalue()) + writer.finish()


def test_a_tar_is_restored_and_reaches_no_other_place(tmp_path: Path) -> None:
    with start_nats_server(tmp_path / "nats") as server:
        document = asyncio.run(fill(server.url))
    (meta,) = (tmp_path / "nats").rglob("streams/S/meta.inf")
    names = ["meta.inf", "meta.sum", *(f"msgs/{path.name}" for path in (meta.parent / "msgs").glob("*.blk"))]
    backup = tmp_path / "a" / "b" / "backup"
    backup.mkdir(parents=True)
    consumer = ["obs/C/meta.inf", "obs/C/meta.sum", "obs/C/o.dat"]
    (backup / ARCHIVE).write_bytes(packed(meta.parent, names + consumer))
    (backup / DOCUMENT).write_text(json.dumps(document))
    assert asyncio.run(restored(backup, tmp_path / "ours")) == WANTED
    assert not list(tmp_path.rglob("escaped"))
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["backup"], "nothing is left behind"


def test_a_tar_that_is_cut_is_refused(tmp_path: Path) -> None:
    (tmp_path / "meta.inf").write_bytes(b"{}" * 40_000)
    whole = packed(tmp_path, ["meta.inf"])
    (tmp_path / "backup").mkdir()
    (tmp_path / "backup" / ARCHIVE).write_bytes(whole[:-20])
    with pytest.raises(HeadwaterError), as_of_today(tmp_path / "backup"):
        raise AssertionError("it was taken")
    (tmp_path / "backup" / ARCHIVE).write_bytes(b"NATSARC1 is not in a frame")
    with as_of_today(tmp_path / "backup") as (directory, converted):
        assert (directory, converted) == (tmp_path / "backup", None)  # the restore says what is wrong with it


@pytest.mark.skipif(
    not older_nats_servers(), reason="HEADWATER_OLD_NATS_SERVERS names no older nats-server: none wrote a backup"
)
@pytest.mark.parametrize("binary", older_nats_servers(), ids=str)
def test_the_backup_of_an_older_server_is_restored(binary: Path, tmp_path: Path) -> None:
    async def save(url: str) -> None:
        await fill(url)
        async with await headwater.connect(url) as client:
            await save_stream(client, client.jetstream(), "S", tmp_path / "backup", lambda messages, size: None)

    with start_nats_server(tmp_path / "nats", binary=binary) as server:
        asyncio.run(save(server.url))
    assert asyncio.run(restored(tmp_path / "backup", tmp_path / "ours")) == WANTED
