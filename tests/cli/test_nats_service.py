"""`headwater service …` against both servers, with two instances that answer."""

import asyncio
import json
import secrets
import threading
from collections.abc import Iterator

import pytest
from support.command_line import run

import headwater
from headwater.client.service import Request, add_service


@pytest.fixture
def service(server_url: str) -> Iterator[str]:
    """The name of a service with two instances, in a thread of its own."""
    name = f"S{secrets.token_hex(4)}"
    ready, stop = threading.Event(), threading.Event()

    async def echo(request: Request) -> None:
        request.respond(request.data)

    async def main() -> None:
        async with await headwater.connect(server_url) as client:
            for _ in range(2):
                running = await add_service(client, name, "1.2.3", description="says it again")
                await running.endpoint("echo", echo, subject=f"{name}.echo")
            await client.flush()
            ready.set()
            await asyncio.to_thread(stop.wait, 60)

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    assert ready.wait(20)
    yield name
    stop.set()
    thread.join(20)


def test_services_are_found_and_say_what_they_have_done(
    capsys: pytest.CaptureFixture[str], server_url: str, service: str
) -> None:
    listed = json.loads(run(capsys, server_url, "service", "ls", service, "--json"))
    assert [(each["name"], each["version"]) for each in listed] == [(service, "1.2.3")] * 2
    assert service in run(capsys, server_url, "service", "ls")
    assert run(capsys, server_url, "request", f"{service}.echo", "hello", "--raw") == "hello\n"
    one = listed[0]["id"]
    reported = run(capsys, server_url, "micro", "info", service, one)
    assert f"Service: {service} ({one})" in reported
    assert f"echo: {service}.echo in group q" in reported
    stats = json.loads(run(capsys, server_url, "service", "stats", service, "-j"))
    assert sum(each["endpoints"][0]["num_requests"] for each in stats) == 1
    assert "Service Statistics" in run(capsys, server_url, "service", "stats", service)
    assert run(capsys, server_url, "service", "ping", service).count("rtt=") == 2


def test_a_service_that_is_not_there_is_an_error(capsys: pytest.CaptureFixture[str], server_url: str) -> None:
    assert "no service" in run(capsys, server_url, "service", "info", "nobody", status=1)
    assert "no service" in run(capsys, server_url, "service", "stats", "nobody", status=1)
    assert run(capsys, server_url, "service", "ls", "nobody") == "No Services found\n"
