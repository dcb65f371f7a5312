"""What the server says about itself: statistics, listeners, options, and the diagnostic snapshot."""

import asyncio
import io
import zipfile
from pathlib import Path

from support.iggy_service import Desk, S, T, at_desk

from headwater.iggy.server_commands import SERVER_VERSION
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.eras import Era


def test_the_server_says_what_it_is_and_what_it_has(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make(3)
        await desk.send(b"a", b"b")
        desk.now += 5_000_000
        stats = await desk.do(c.GetStats())
        counted = (stats.streams, stats.topics, stats.partitions, stats.segments, stats.messages, stats.groups)
        assert counted == (1, 1, 3, 3, 2, 1) and stats.clients == 1
        assert (stats.run_time, stats.server_version) == (5_000_000, SERVER_VERSION) and stats.messages_size > 0
        assert "headwater" in stats.os_name and 0 < stats.free_disk <= stats.total_disk
        assert stats.threads >= 1 and stats.memory_usage > 1 << 20 and stats.available_memory <= stats.total_memory
        desk.service.machine.listeners = {"tcp": ("192.0.2.9", 8090), "websocket": ("192.0.2.9", 8092)}
        (node,) = (await desk.do(c.GetClusterMetadata())).nodes
        assert (node.ip, node.tcp, node.quic, node.http, node.websocket) == ("192.0.2.9", 8090, 0, 0, 8092)
        assert "message_expiry" in [option.key for option in await desk.do(c.DescribeOptions(1))]
        assert await desk.do(c.DescribeOptions(2)) == []
        assert await desk.do(c.Ping()) is None
        assert await desk.do(c.FlushUnsavedBuffer(S, T, 0, True)) is None
        assert await desk.refused(c.Kill(), desk.client(Era.S, user=None)) == "feature_unavailable"

    at_desk(tmp_path, work)


def test_a_snapshot_is_an_archive_of_what_was_asked_for(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        desk.service.machine.listeners = {"tcp": ("192.0.2.9", 8090)}
        with zipfile.ZipFile(io.BytesIO(await desk.do(c.GetSnapshot(2, [100])))) as archive:
            texts = {name: archive.read(name).decode() for name in archive.namelist()}
        assert texts.keys() == {
            "filesystem_overview.txt",
            "process_list.txt",
            "resource_usage.txt",
            "test.txt",
            "server_logs.txt",
            "server_config.txt",
        }
        assert "catalog" in texts["filesystem_overview.txt"] and texts["test.txt"] == "test\n"
        assert "192.0.2.9:8090" in texts["server_config.txt"] and "streams 1" in texts["resource_usage.txt"]
        assert desk.service.options.root_password not in texts["server_config.txt"].split()
        with zipfile.ZipFile(io.BytesIO(await desk.do(c.GetSnapshot(1, [4])))) as archive:
            assert archive.namelist() == ["test.txt"]
        assert await desk.refused(c.GetSnapshot(1, [100, 4])) == "invalid_command"
        assert await desk.refused(c.GetSnapshot(1, [9])) == "invalid_command"
        assert await desk.refused(c.GetSnapshot(4, [4])) == "feature_unavailable"

    at_desk(tmp_path, work)


def test_one_snapshot_is_made_at_a_time(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        first = asyncio.ensure_future(desk.do(c.GetSnapshot(1, [1])))
        await asyncio.sleep(0)
        assert await desk.refused(c.GetSnapshot(1, [4])) == "snapshot_failed"
        assert await first
        assert await desk.do(c.GetSnapshot(1, [4]))

    at_desk(tmp_path, work)
