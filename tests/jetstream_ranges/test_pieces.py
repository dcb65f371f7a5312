"""Messages in pieces go to the sole client, in order with everything else, and never bypass its permissions."""

import asyncio
import os
from pathlib import Path

import headwater
from headwater.durable_files.files import OsFiles
from headwater.jetstream_ranges.pieces import send_pieces, sole_client


def test_pieces_and_ranges_of_files_arrive_as_one_message_between_its_neighbours(tmp_path: Path) -> None:
    async def main() -> None:
        text = os.urandom(300_000)
        (tmp_path / "f").write_bytes(text)
        file = OsFiles().open(str(tmp_path / "f"))
        part = file.range(1000, 250_000)
        assert part is not None
        async with asyncio.timeout(30), headwater.Broker() as broker, await headwater.connect(broker.url) as client:
            received = await client.subscribe("in")
            await client.flush()
            router = broker.router
            assert router is not None
            found = sole_client(router, b"in")
            assert found is not None
            router.publish(b"in", b"", b"", b"before")
            send_pieces(found, b"in", [b"head ", part, b" tail"])
            router.publish(b"in", b"", b"", b"after")
            payloads = [(await received.next()).data for _ in range(3)]
            assert payloads == [b"before", b"head " + text[1000:251_000] + b" tail", b"after"]
            await client.subscribe("in")
            await client.flush()
            assert sole_client(router, b"in") is None  # two
            assert sole_client(router, b"out") is None  # none
        file.close()

    asyncio.run(main())


def test_a_subscription_with_a_limit_or_of_a_queue_group_is_left_to_the_router() -> None:
    async def main() -> None:
        async with asyncio.timeout(30), headwater.Broker() as broker, await headwater.connect(broker.url) as client:
            await client.subscribe("group", queue="q")
            (await client.subscribe("few")).unsubscribe(2)
            await client.flush()
            assert broker.router is not None
            assert sole_client(broker.router, b"group") is None
            assert sole_client(broker.router, b"few") is None

    asyncio.run(main())
