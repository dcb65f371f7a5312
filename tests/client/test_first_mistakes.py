"""What a program gets wrong at first, without a type checker: the error says what to write instead."""

import asyncio
import tempfile
from typing import Any

import pytest

import headwater
from headwater.client.jetstream_types import StreamConfig
from headwater.client.key_value import BucketConfig
from headwater.client.object_store import StoreConfig
from headwater.errors import ConfigError

TEXT = r"a payload is bytes, not str: encode it, with data\.encode\(\)"


def test_a_payload_that_is_no_bytes() -> None:
    text: Any = "text"
    number: Any = 3

    async def main() -> None:
        async with headwater.Broker() as broker, await headwater.connect(broker.url) as client:
            for headers in (None, {"K": "v"}):
                with pytest.raises(TypeError, match=TEXT):
                    await client.publish("a", text, headers=headers)
            with pytest.raises(TypeError, match="not int: say how it becomes bytes"):
                await client.publish("a", number)
            with pytest.raises(TypeError, match=TEXT):
                await client.request("a", text)
            with pytest.raises(TypeError, match=TEXT):
                await client.publish_many([("a", b"1"), ("a", text)])

    asyncio.run(main())


def test_a_number_of_messages_below_zero() -> None:
    async def main() -> None:
        async with headwater.Broker() as broker, await headwater.connect(broker.url) as client:
            with pytest.raises(ConfigError, match="max_messages is below 0"):
                await client.subscribe("a", max_messages=-1)

    asyncio.run(main())


def test_what_describes_no_stream_and_stores_of_other_things() -> None:
    name: Any = "ORDERS"

    async def main() -> None:
        with tempfile.TemporaryDirectory() as directory:
            broker = headwater.Broker(jetstream=True, store_dir=directory)
            async with broker, await headwater.connect(broker.url) as client:
                jetstream = client.jetstream()
                with pytest.raises(
                    TypeError, match=r"by a StreamConfig\(name=\.\.\., subjects=\[\.\.\.\]\), not by str"
                ):
                    await jetstream.create_stream(name)
                with pytest.raises(TypeError, match=r"subjects is a list: \['ORDERS'\]"):
                    await jetstream.create_stream(StreamConfig(name="ORDERS", subjects=name))
                bucket = await jetstream.create_key_value(BucketConfig(bucket="B"))
                value: Any = 3
                with pytest.raises(TypeError, match="not int"):
                    await bucket.put("k", value)
                store = await jetstream.create_object_store(StoreConfig(bucket="O"))
                with pytest.raises(TypeError, match=TEXT):
                    await store.put("o", name)
                assert (await store.put("o", bytearray(b"x" * 300_000))).chunks == 3
                assert await store.get("o") == b"x" * 300_000

    asyncio.run(main())


def test_names_that_do_not_exist_are_answered_with_those_that_do() -> None:
    unknown: Any = {"prt": 1}
    with pytest.raises(TypeError, match="BrokerOptions has no field 'prt'; did you mean 'port'"):
        headwater.Broker(**unknown)
    block: Any = {"authorization": {"token": "x"}}
    with pytest.raises(TypeError, match=r"authorization is no dict but AuthorizationOptions\(\.\.\.\)"):
        headwater.Broker(**block)
    with pytest.raises(TypeError, match="unexpected argument 'pasword'; did you mean 'password'"):
        asyncio.run(headwater.connect("nats://127.0.0.1", pasword="x"))  # type: ignore[call-arg]
