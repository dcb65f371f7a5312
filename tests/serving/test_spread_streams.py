"""`headwater serve --workers N --spread_streams`: the process, its store and its pages."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import APIError, NoStreamResponseError
from support.worker_processes import children, one_client_at_each, ready, started, until_printed

from headwater import Broker
from headwater.errors import EnvironmentProblem
from headwater.jetstream_workers.placement import owner_of

pytestmark = pytest.mark.interop

SPREAD = ("--workers", "2", "-js", "--spread_streams")
PATIENCE = 30.0


def name_at(worker: int, beginning: str, account: str = "") -> str:
    """A stream's name that belongs to a worker, from 1."""
    return next(name for name in (f"{beginning}{n}" for n in range(100)) if owner_of(account, name, 2) == worker)


async def kept(stream: JetStreamContext, subject: str) -> int:
    """The sequence of a message, published until its stream is known here."""
    while True:
        with suppress(NoStreamResponseError):
            return (await stream.publish(subject, b"kept", timeout=PATIENCE)).seq
        await asyncio.sleep(0.005)


def monitor_of(lines: list[str]) -> int:
    (line,) = [line for line in lines if "http monitor on" in line]
    return int(line.rpartition(":")[2])


def page(port: int, path: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_a_worker_that_dies_takes_nothing_acknowledged_along_and_the_others_go_on(tmp_path: Path) -> None:
    at_one, at_two = name_at(1, "a"), name_at(2, "b")

    async def fill(port: int) -> None:
        async with one_client_at_each(port, 2) as clients:
            for name in (at_one, at_two):
                await clients[0].jetstream().add_stream(name=name, subjects=[name])
                for number, client in enumerate(clients, 1):
                    assert await kept(client.jetstream(), name) == number

    async def without_the_second(port: int) -> None:
        """By the clients of the first worker, for there is no other."""
        async with await nats.connect(f"nats://127.0.0.1:{port}") as client:
            stream = client.jetstream(timeout=PATIENCE)
            assert await kept(stream, at_one) == 3
            for call in (stream.streams_info(), stream.account_info(), stream.add_stream(name="new")):
                with pytest.raises(APIError) as away:
                    await call
                assert away.value.description == "JetStream system temporarily unavailable: worker 2 did not answer"
            with pytest.raises(APIError) as gone:
                await stream.stream_info(at_two)
            assert (away.value.err_code, gone.value.err_code) == (10008, 10008)
            with pytest.raises(NoStreamResponseError):
                await stream.publish(at_two, b"", timeout=PATIENCE)

    async def read(port: int) -> None:
        async with one_client_at_each(port, 2) as clients:
            for client in clients:
                stream = client.jetstream(timeout=PATIENCE)
                found = {info.config.name: info.state.messages for info in await stream.streams_info()}
                assert found == {at_one: 3, at_two: 2}

    with started(*SPREAD, "-m", "-1", "-sd", str(tmp_path)) as process:
        port, lines = ready(process)
        monitor = monitor_of(lines)
        asyncio.run(asyncio.wait_for(fill(port), 60))
        status, document = page(monitor, "/jsz?streams=1")
        found = json.loads(document)
        assert (status, found["streams"], found["messages"]) == (200, 2, 4)
        assert {one["name"] for one in found["account_details"][0]["stream_detail"]} == {at_one, at_two}
        assert page(monitor, f"/healthz?account=$G&stream={at_two}") == (200, '{"status":"ok"}')
        status, text = page(monitor, "/metrics")
        assert status == 200 and f'"{at_one}"' in text and f'"{at_two}"' in text
        second = children(process.pid)[1]
        os.kill(process.pid, signal.SIGSTOP)  # so that it is not replaced
        os.kill(second, signal.SIGKILL)
        asyncio.run(asyncio.wait_for(without_the_second(port), 60))
        unwell = '{"status":"unavailable","error":"worker 2 did not answer"}'
        assert page(monitor, "/healthz") == (503, unwell)
        assert page(monitor, "/healthz?js-server-only=1")[0] == 200
        for path in ("/jsz", "/connz", "/metrics"):
            assert page(monitor, path) == (503, "worker 2 did not answer")
        os.kill(process.pid, signal.SIGCONT)
        until_printed(process, "worker 2 is replaced\n")
        asyncio.run(asyncio.wait_for(read(port), 60))
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


CONFIG = """
accounts {
  A { users: [{user: a, password: p}], jetstream: { max_file: 10000, max_streams: 3 },
      exports: [{service: "$JS.API.>"}] }
  B { users: [{user: b, password: p}], jetstream: enabled }
  C { users: [{user: c, password: p}], imports: [{service: {account: A, subject: "$JS.API.STREAM.INFO.*"}}] }
}
"""


def test_accounts_keep_to_their_limits_over_all_workers(tmp_path: Path) -> None:
    folder = "account-A"
    names = [name_at(1, "a", folder), name_at(2, "b", folder), name_at(1, "c", folder), name_at(2, "d", folder)]

    async def clients_of(user: str, port: int) -> list[Client]:
        found: dict[str, Client] = {}
        for _ in range(200):
            client = await nats.connect(f"nats://{user}:p@127.0.0.1:{port}")
            if found.setdefault(str(client._server_info["server_id"]), client) is not client:
                await client.close()
            if len(found) == 2:
                break
        assert len(found) == 2
        return list(found.values())

    async def scenario(port: int) -> None:
        clients = await clients_of("a", port)
        one, two = (client.jetstream(timeout=PATIENCE) for client in clients)
        for name in names[:3]:
            await one.add_stream(name=name, subjects=[name])
        for stream in (one, two):
            with pytest.raises(APIError) as refused:
                await stream.add_stream(name=names[3])
            assert refused.value.err_code == 10027
        stored = 0
        with pytest.raises(APIError) as full:
            for number in range(100):
                await kept_of(one, names[number % 2], bytes(1000))
                stored += 1
        assert full.value.err_code == 10002
        assert 7 <= stored <= 9  # together, not each
        others = await clients_of("b", port)
        await others[0].jetstream(timeout=PATIENCE).add_stream(name=names[0], subjects=[names[0]])  # another's name
        importing = await clients_of("c", port)
        for client in importing:
            for name in names[:2]:
                answer = json.loads((await client.request(f"$JS.API.STREAM.INFO.{name}", b"", timeout=PATIENCE)).data)
                assert answer["config"]["name"] == name
        for client in (*clients, *others, *importing):
            await client.close()

    async def kept_of(stream: JetStreamContext, subject: str, payload: bytes) -> None:
        while True:
            with suppress(NoStreamResponseError):
                await stream.publish(subject, payload, timeout=PATIENCE)
                return
            await asyncio.sleep(0.005)

    (tmp_path / "server.conf").write_text(CONFIG)
    with started(*SPREAD, "-sd", str(tmp_path / "js"), "-c", str(tmp_path / "server.conf")) as process:
        port, _ = ready(process)
        asyncio.run(asyncio.wait_for(scenario(port), 60))
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_the_store_of_one_broker_is_refused_and_spread_by_a_command(tmp_path: Path) -> None:
    store = str(tmp_path / "js")
    names = sorted([name_at(1, "a"), name_at(2, "b")])

    async def fill() -> None:
        async with Broker(jetstream=True, store_dir=store) as broker, await nats.connect(broker.url) as client:
            for name in names:
                await client.jetstream(timeout=PATIENCE).add_stream(name=name, subjects=[name])
                await client.jetstream(timeout=PATIENCE).publish(name, b"old")

    async def read(port: int) -> None:
        async with await nats.connect(f"nats://127.0.0.1:{port}") as client:
            found = await client.jetstream(timeout=PATIENCE).streams_info()
            assert [(info.config.name, info.state.messages) for info in found] == [(name, 1) for name in names]

    def run(*flags: str) -> tuple[int, str]:
        with started("-sd", store, *flags) as process:
            _, lines = process.communicate(timeout=60)
            return process.returncode, lines

    def spread(workers: int) -> str:
        command = [sys.executable, "-m", "headwater", "store", "spread", store, "--workers", str(workers)]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    asyncio.run(asyncio.wait_for(fill(), 60))
    status, lines = run(*SPREAD)
    assert status == 1
    assert f"holds streams of one broker, which 2 workers cannot serve (`headwater store spread {store} --work" in lines
    assert spread(2) == f"{store} is for 2 workers now; 2 streams were moved\n"
    with started(*SPREAD, "-sd", store) as process:
        port, _ = ready(process)
        asyncio.run(asyncio.wait_for(read(port), 60))
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    with pytest.raises(EnvironmentProblem, match="holds the streams of 2 workers"):
        asyncio.run(Broker(jetstream=True, store_dir=store).start())


def test_streams_are_spread_over_workers_only(tmp_path: Path) -> None:
    with started("--spread_streams", "-js", "-sd", str(tmp_path)) as process:
        _, lines = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "streams can be spread over workers only" in lines
