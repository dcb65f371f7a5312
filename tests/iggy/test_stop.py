"""A server that stops, or a topic that is deleted, while clients send: what was acknowledged is there, more is refused."""

import asyncio
import gc
import socket
import struct
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from support.iggy_service import Desk, S, T, at_desk

from headwater.errors import HeadwaterError, IggyError, TransportError
from headwater.iggy.face import Iggy, IggyOptions
from headwater.iggy_client.client import connect
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Message
from headwater.iggy_wire.identifiers import PollingStrategy

PARTITIONS = 6


async def produce(
    url: str, partition: int, acked: list[tuple[int, int]], numbers: Iterator[int], enough: asyncio.Event
) -> None:
    """Send until the server refuses or is gone; what was answered is in `acked`."""
    async with await connect(url, heartbeat=0, reconnect_attempts=0) as client:
        for number in numbers:
            try:
                await client.send("s", "t", [Message(b"%d" % number)], partition)
            except (IggyError, TransportError):
                return
            acked.append((partition, number))
            if number % 200 == 0:
                enough.set()


def test_a_stop_leaves_no_connection_open_whose_peer_does_not_close(tmp_path: Path) -> None:
    peer = socket.socket()

    async def run() -> None:
        async with Iggy(IggyOptions(tcp=("127.0.0.1", 0)), tmp_path) as iggy:
            await asyncio.to_thread(peer.connect, ("127.0.0.1", iggy.tcp_port))
            peer.sendall(struct.pack("<II", 4, c.Code.PING))
            assert await asyncio.to_thread(peer.recv, 8)

    asyncio.run(run())
    gc.collect()  # an open transport warns here, and a warning fails the test
    peer.close()


@pytest.mark.timeout(120)
def test_what_was_acknowledged_while_the_server_stopped_is_there_after_the_next_start(tmp_path: Path) -> None:
    acked: list[tuple[int, int]] = []
    numbers = count(1)

    async def run(rounds: int) -> None:
        async with Iggy(IggyOptions(tcp=("127.0.0.1", 0)), tmp_path) as iggy:
            url = f"iggy://iggy:iggy@127.0.0.1:{iggy.tcp_port}"
            async with await connect(url) as client:
                if rounds == 0:
                    await client.create_stream("s")
                    await client.create_topic("s", "t", partitions=PARTITIONS)
                for partition in range(PARTITIONS):
                    there: set[tuple[int, int]] = set()
                    offset = 0
                    while found := await client.poll("s", "t", partition, strategy=PollingStrategy.offset(offset)):
                        there |= {(partition, int(message.payload)) for message in found}
                        offset = found[-1].offset + 1
                    assert {one for one in acked if one[0] == partition} <= there
            enough = asyncio.Event()
            producers = [
                asyncio.create_task(produce(url, number % PARTITIONS, acked, numbers, enough)) for number in range(6)
            ]
            await enough.wait()
        await asyncio.gather(*producers)

    async def main() -> None:
        for rounds in range(3):
            await run(rounds)

    asyncio.run(main())


def test_a_partition_that_is_being_closed_refuses_by_name(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        partition = next(iter(desk.service.topics.values())).partitions[0]
        sending = asyncio.ensure_future(desk.send(b"before"))
        await asyncio.sleep(0)
        ending = asyncio.ensure_future(partition.end())
        assert (await sending).base_offset == 0
        await ending
        with pytest.raises(IggyError) as caught:
            await desk.send(b"after")
        assert caught.value.name == "cannot_append_message" and partition.log.record_count == 1

    at_desk(tmp_path, work)


def test_sends_that_race_the_deletion_of_their_topic_are_all_answered(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        for _ in range(5):
            await desk.make(partitions=3)
            sends = [asyncio.ensure_future(desk.send(b"x", to=number % 3)) for number in range(30)]
            await asyncio.sleep(0)
            deleting = asyncio.ensure_future(desk.do(c.DeleteTopic(S, T)))
            later = []
            while not deleting.done():
                later.append(asyncio.ensure_future(desk.send(b"y")))
                await asyncio.sleep(0)
            results = await asyncio.gather(*sends, *later, return_exceptions=True)
            assert all(not isinstance(one, BaseException) or isinstance(one, HeadwaterError) for one in results)
            assert not isinstance(results[0], BaseException), "it was sent before"
            await desk.do(c.DeleteStream(S))

    at_desk(tmp_path, work)
