"""A client whose connection has ended is freed at once, and still has a description."""

import asyncio
import gc
import weakref

from headwater import Broker, connect
from headwater.exchange.client_info import client_info
from headwater.exchange.former_client import FormerClient


def test_an_ended_connection_is_freed_without_the_garbage_collector() -> None:
    async def main() -> None:
        async with asyncio.timeout(30), Broker() as broker:
            async with await connect(broker.url, name="passing") as client:
                await client.subscribe("a")
                await client.flush()
                assert broker.sessions is not None
                (session,) = broker.sessions.all()
                link = weakref.ref(session.link)
                del session
            while link() is not None:  # noqa: ASYNC110  (nothing reports that memory was freed)
                await asyncio.sleep(0.01)

    gc.collect()
    gc.disable()
    try:
        asyncio.run(main())
    finally:
        gc.enable()


def test_a_request_of_a_client_that_has_left_names_it() -> None:
    async def main() -> None:
        async with asyncio.timeout(30), Broker() as broker:
            async with await connect(broker.url, name="passing") as client:
                await client.flush()
                assert broker.sessions is not None
                (session,) = broker.sessions.all()
                link, before = session.link, client_info(session)
            assert link is not None
            while link.owner is session:  # noqa: ASYNC110  (no event reports it)
                await asyncio.sleep(0.01)
            assert isinstance(link.owner, FormerClient) and client_info(link.owner) == before
            assert before["name"] == "passing" and before["host"] == "127.0.0.1"

    asyncio.run(main())
