"""Accounts and streams: whose requests reach whose streams, against nats-server and ours with the same file."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import nats
import nats.errors
import nats.js.errors
import pytest
from nats.aio.client import Client
from support.configured_servers import KINDS, Running, serve

pytestmark = pytest.mark.interop

CONFIG = """
jetstream {{ store_dir: "{store}", domain: "here" }}
accounts {{
    A {{ jetstream: enabled, users = [ {{ user: a, password: p }} ] }}
    B {{ jetstream: enabled, users = [
        {{ user: b, password: p }}
        {{ user: reader, password: p, permissions: {{
            publish: {{ deny: ["$JS.API.STREAM.DELETE.>", "$JS.API.STREAM.CREATE.>"] }} }} }}
    ] }}
    C {{ users = [ {{ user: c, password: p }} ] }}
}}
"""


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    directory: Path = tmp_path_factory.mktemp(str(request.param))
    with serve(str(request.param), directory, CONFIG.format(store=directory / "store")) as running:
        yield running


async def enter(server: Running, user: str) -> Client:
    return await nats.connect(
        f"nats://127.0.0.1:{server.port}", user=user, password="p", allow_reconnect=False, error_cb=ignore
    )


async def ignore(error: Exception) -> None:
    """nats-py tells of refused publishes here."""


def test_streams_of_one_name_in_two_accounts_are_two_streams(server: Running) -> None:
    async def main() -> None:
        async with asyncio.timeout(20):
            a, b = await enter(server, "a"), await enter(server, "b")
            for client, text in ((a, b"of a"), (b, b"of b")):
                await client.jetstream().add_stream(name="S", subjects=["s.>"])
                await client.jetstream().publish("s.x", text)
            for client, text in ((a, b"of a"), (b, b"of b")):
                stream = await client.jetstream().stream_info("S")
                assert stream.state.messages == 1
                assert (await client.jetstream().get_msg("S", 1)).data == text
            await a.jetstream().delete_stream("S")
            assert (await b.jetstream().stream_info("S")).state.messages == 1
            await b.jetstream().delete_stream("S")
            await a.close()
            await b.close()

    asyncio.run(main())


def test_an_account_without_streams_has_no_api(server: Running) -> None:
    async def main() -> None:
        async with asyncio.timeout(20):
            client = await enter(server, "c")
            with pytest.raises(
                (nats.js.errors.ServiceUnavailableError, nats.errors.NoRespondersError, nats.js.errors.APIError)
            ):
                await client.jetstream(timeout=1).account_info()
            await client.close()

    asyncio.run(main())


def test_denied_parts_of_the_api_are_refused_like_any_subject(server: Running) -> None:
    async def main() -> None:
        async with asyncio.timeout(20):
            owner, reader = await enter(server, "b"), await enter(server, "reader")
            await owner.jetstream().add_stream(name="KEPT", subjects=["kept"])
            for attempt in (
                reader.jetstream(timeout=0.3).delete_stream("KEPT"),
                reader.jetstream(timeout=0.3).add_stream(name="NEW", subjects=["new"]),
            ):
                with pytest.raises(nats.errors.TimeoutError):
                    await attempt
            assert (await reader.jetstream().stream_info("KEPT")).config.subjects == ["kept"]
            await owner.jetstream().delete_stream("KEPT")
            await owner.close()
            await reader.close()

    asyncio.run(main())
