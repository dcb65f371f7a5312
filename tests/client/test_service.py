"""Services: found, described, counted, and not stopped by a bad request; on both servers."""

import asyncio
import json
import secrets

import nats
import pytest
from support.both_servers import Serve
from support.scripted_server import finish

import headwater
from headwater.client.service import Request, ServiceError, add_service
from headwater.errors import ConfigError, NoResponders


def test_requests_are_answered_and_errors_are_answers(serve: Serve) -> None:
    async def main() -> None:
        reported: list[BaseException] = []
        name = f"sums-{secrets.token_hex(4)}"
        async with serve() as url, await headwater.connect(url, error_callback=reported.append) as client:
            async with await add_service(client, name, "1.0.0", description="adds") as service:

                async def add(request: Request) -> bytes:
                    numbers = json.loads(request.data)
                    if not numbers:
                        raise ServiceError(400, "nothing to add", b"[]")
                    return b"%d" % sum(numbers)

                await service.group(name).endpoint("add", add, queue="adders")
                assert (await client.request(f"{name}.add", b"[1,2]")).data == b"3"
                refused = await client.request(f"{name}.add", b"[]")
                assert refused.data == b"[]"
                assert refused.headers["Nats-Service-Error"] == "nothing to add"
                assert refused.headers["Nats-Service-Error-Code"] == "400"
                broken = await client.request(f"{name}.add", b"no json")
                assert broken.headers["Nats-Service-Error-Code"] == "500"
                assert [type(error).__name__ for error in reported] == ["JSONDecodeError"]
                (endpoint,) = service.stats().endpoints
                assert (endpoint.num_requests, endpoint.num_errors) == (3, 2)
                assert endpoint.average_processing_time > 0
                service.reset()
                assert service.stats().endpoints[0].num_requests == 0
            with pytest.raises(NoResponders):
                await client.request(f"{name}.add", b"[]")

    finish(main(), 30)


def test_a_service_is_found_by_its_kind_its_name_and_its_id(serve: Serve) -> None:
    async def main() -> None:
        name = f"found-{secrets.token_hex(4)}"
        async with serve() as url, await headwater.connect(url) as client:
            async with await add_service(client, name, "1.2.3", metadata={"k": "v"}) as service:
                await service.endpoint("e", lambda request: b"", subject="the.subject", metadata={"e": "m"})
                for tail in (f".{name}", f".{name}.{service.id}"):
                    pong = json.loads((await client.request(f"$SRV.PING{tail}")).data)
                    assert pong == {
                        "type": "io.nats.micro.v1.ping_response",
                        "name": name,
                        "id": service.id,
                        "version": "1.2.3",
                        "metadata": {"k": "v"},
                    }
                info = json.loads((await client.request(f"$SRV.INFO.{name}")).data)
                assert info["endpoints"] == [
                    {"name": "e", "subject": "the.subject", "queue_group": "q", "metadata": {"e": "m"}}
                ]
                stats = json.loads((await client.request(f"$SRV.STATS.{name}")).data)
                assert stats["type"] == "io.nats.micro.v1.stats_response"

    finish(main(), 30)


def test_nats_pys_services_answer_us_and_ours_answer_nats_py(serve: Serve) -> None:
    async def main() -> None:
        name = f"both-{secrets.token_hex(4)}"
        async with serve() as url, await headwater.connect(url) as client:
            theirs = await nats.connect(url, allow_reconnect=False)
            async with await add_service(client, name, "1.0.0") as service:
                await service.endpoint("echo", lambda request: request.data, subject=f"{name}.echo")
                await client.flush()
                assert (await theirs.request(f"{name}.echo", b"hello")).data == b"hello"
                pong = json.loads((await theirs.request(f"$SRV.PING.{name}")).data)
                assert pong["id"] == service.id
            await theirs.close()
            await asyncio.sleep(0)

    finish(main(), 30)


def test_names_and_versions_that_are_none_are_refused(serve: Serve) -> None:
    async def main() -> None:
        async with serve() as url, await headwater.connect(url) as client:
            with pytest.raises(ConfigError):
                await add_service(client, "a b", "1.0.0")
            with pytest.raises(ConfigError):
                await add_service(client, "a", "one")
            async with await add_service(client, "a", "1.0.0") as service:
                with pytest.raises(ConfigError):
                    await service.endpoint("a.b", lambda request: b"")

    finish(main(), 30)
