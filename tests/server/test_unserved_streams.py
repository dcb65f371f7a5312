"""Streams whose account does not serve them any more are reported at the start, and stay."""

import asyncio
from pathlib import Path

import pytest

from headwater import Broker, connect
from headwater.client.client import Client
from headwater.client.jetstream_types import StreamConfig
from headwater.errors import JetStreamError, NoResponders
from headwater.options.access import AccountOptions, JetStreamLimits, UserOptions
from headwater.options.broker import BrokerOptions
from headwater.server.unserved_streams import unserved_streams

ACCOUNTS = (
    AccountOptions(name="A/B", users=(UserOptions(username="a", password="p"),), jetstream=JetStreamLimits()),
    AccountOptions(name="C", users=(UserOptions(username="c", password="p"),)),
)


def test_streams_of_an_account_that_is_gone_are_named_at_the_start(tmp_path: Path) -> None:
    async def start(accounts: tuple[AccountOptions, ...], stream: str = "", **login: str) -> list[dict[str, object]]:
        """Start a broker, create a stream if one is named, and return the events about unserved ones."""
        options = BrokerOptions(port=0, jetstream=True, store_dir=str(tmp_path), accounts=accounts)
        async with asyncio.timeout(30), Broker(options=options) as broker:
            if stream:
                async with await connect(broker.url, **login) as client:  # type: ignore[arg-type]
                    await client.jetstream().create_stream(StreamConfig(name=stream, subjects=[stream]))
            return [dict(event) for event in broker.journal.events if event["kind"] == "streams_unserved"]

    async def main() -> None:
        assert await start((), "ONE") == []
        (event,) = await start(ACCOUNTS, "TWO", user="a", password="p")
        assert (event["account"], event["streams"], event["folder"]) == ("$G", 1, str(tmp_path))
        (event,) = await start((), "THREE")
        assert (event["account"], event["streams"]) == ("A/B", 1)

    asyncio.run(main())
    (kept,) = (tmp_path / "accounts").glob("*/streams/*/")
    assert kept.name.startswith("TWO-")


def test_a_reload_takes_streams_from_an_account_and_gives_them_back(tmp_path: Path) -> None:
    """As at nats-server: messages stay on disk, clients are refused, and other accounts notice nothing."""

    def allowed(limits: JetStreamLimits | None) -> BrokerOptions:
        return BrokerOptions(
            port=0, jetstream=True, store_dir=str(tmp_path), accounts=(ACCOUNTS[0].replace(jetstream=limits),)
        )

    async def answers(client: Client) -> bool:
        try:
            await client.jetstream().account_info()
        except JetStreamError as error:
            assert error.err_code == 10039, error
            return False
        return True

    async def main() -> None:
        async with asyncio.timeout(30), Broker(options=allowed(JetStreamLimits())) as broker:
            async with await connect(broker.url, user="a", password="p") as client:
                jetstream = client.jetstream()
                await jetstream.create_stream(StreamConfig(name="S", subjects=["s"]))
                await jetstream.publish("s", b"one")
                for _ in range(2):
                    broker.reload(allowed(None))
                    assert not await answers(client)
                    with pytest.raises(NoResponders):
                        await client.request("s", b"stored nowhere")
                    broker.reload(allowed(JetStreamLimits(max_streams=1)))
                    while not await answers(client):
                        await client.flush()
                    assert (await jetstream.stream_info("S")).state.messages == 1
                with pytest.raises(JetStreamError, match="maximum number of streams"):
                    await jetstream.create_stream(StreamConfig(name="T", subjects=["t"]))
                (first, *_) = [event for event in broker.journal.events if event["kind"] == "streams_unserved"]
                assert (first["account"], first["streams"]) == ("A/B", 1)

    asyncio.run(main())


def test_folders_of_nobody_and_accounts_without_streams_are_not_named(tmp_path: Path) -> None:
    (tmp_path / "accounts" / "account-E" / "streams").mkdir(parents=True)
    (tmp_path / "accounts" / "lost+found" / "streams" / "S").mkdir(parents=True)
    (tmp_path / "streams" / "ONE-0123456789abcdef.deleted").mkdir(parents=True)  # being deleted when the process died
    assert list(unserved_streams(str(tmp_path), ())) == []
    assert list(unserved_streams(str(tmp_path / "none"), ())) == []
