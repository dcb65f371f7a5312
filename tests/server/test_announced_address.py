"""The address that a broker has others dial instead of its own."""

import asyncio
import json

import pytest

import headwater
from headwater.errors import ConfigError
from headwater.net.address import announced
from headwater.options.cluster import ClusterOptions


@pytest.mark.parametrize(
    ("configured", "address"),
    [
        ("h", "h:4222"),
        ("h:77", "h:77"),
        ("h:-1", "h:4222"),
        ("h:0", "h:4222"),
        ("[::1]", "[::1]:4222"),
        ("[::1]:5", "[::1]:5"),
    ],
)
def test_what_is_announced_has_a_port(configured: str, address: str) -> None:
    assert announced(configured, 4222) == address


@pytest.mark.parametrize("configured", ["", ":5", "h:port", "a:b:c", "h:70000"])
def test_what_is_no_address_is_refused(configured: str) -> None:
    with pytest.raises(ValueError, match=r"address|port"):
        announced(configured, 4222)


def test_clients_see_the_announced_address_with_the_port_of_the_listener() -> None:
    async def main() -> None:
        cluster = ClusterOptions(name="C", host="127.0.0.1", port=0)
        async with headwater.Broker(client_advertise="example.org", cluster=cluster) as broker:
            reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
            info = json.loads((await reader.readline())[len(b"INFO ") :])
            writer.close()
            assert (info["host"], info["port"]) == ("example.org", broker.port)
            assert info["connect_urls"] == [f"example.org:{broker.port}"]

    asyncio.run(main())


def test_a_system_account_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match='system_account "NOPE" is no account of the configuration'):
        headwater.Broker(system_account="NOPE")
