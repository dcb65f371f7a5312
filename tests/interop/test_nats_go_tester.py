"""What nats.go's suites ask for servers, asked by a client of ours: so the service is run where there is no Go, too."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support.foreign_suites import environment, make_launcher
from support.nats_go_tester import serving_tests

import headwater
from headwater.client.client import Client
from headwater.errors import NoResponders, TransportError

pytestmark = [pytest.mark.interop, pytest.mark.anyio]


async def ask(tester: Client, what: str, **fields: Any) -> dict[str, Any]:
    answer = await tester.request(f"tester.{what}", json.dumps(fields).encode(), timeout=30)
    assert "Nats-Service-Error" not in answer.headers, answer.headers
    found: dict[str, Any] = json.loads(answer.data)
    return found


async def first_answer(client: Client) -> bytes:
    """Of the other node, when it has announced the subscription there."""
    while True:
        try:
            return bytes((await client.request("greet", timeout=10)).data)
        except NoResponders:
            await asyncio.sleep(0.01)


@pytest.mark.timeout(90)
async def test_servers_are_made_stopped_started_and_changed(tmp_path: Path) -> None:
    env = environment(make_launcher(tmp_path / "bin"), tmp_path / "scratch")
    websocket = "websocket { no_tls: true, port: {{ .Ports.websocket }} }"
    async with serving_tests(tmp_path / "servers", env) as url, await headwater.connect(url) as tester:
        made = await ask(tester, "create.server", jetstream=True, snippets={"websocket": websocket})
        server = made["servers"][0]
        name, address = server["name"], f"nats://127.0.0.1:{server['port']}"
        assert server["ports"].keys() == {"websocket"}
        async with await headwater.connect(address) as client:
            assert client.server_info.jetstream
        assert await ask(tester, "stop.server", name=name) == {"shutdown": True}
        with pytest.raises(TransportError):
            await headwater.connect(address)
        assert await ask(tester, "start.server", name=name) == {"started": True}
        smaller = await ask(tester, "update.server", name=name, snippets={"top": "max_payload: 1000"})
        assert smaller == {"updated": True}
        assert await ask(tester, "reload.server", name=name) == {"reloaded": True}
        async with await headwater.connect(address) as client:
            assert client.server_info.max_payload == 1000
        assert await ask(tester, "destroy", instance_id=made["id"]) == {"destroyed": True}


@pytest.mark.timeout(90)
async def test_clusters_find_each_other_and_speak_tls(tmp_path: Path) -> None:
    env = environment(make_launcher(tmp_path / "bin"), tmp_path / "scratch")
    async with serving_tests(tmp_path / "servers", env) as url, await headwater.connect(url) as tester:
        made = await ask(tester, "create.cluster", servers=2, tls={"mode": "mutual"})
        for name in ("ca_pem", "client_cert_pem", "client_key_pem"):
            (tmp_path / name).write_text(made["tls"][name], encoding="utf-8")
        files: dict[str, Any] = {"tls_ca": "ca_pem", "tls_cert": "client_cert_pem", "tls_key": "client_key_pem"}
        files = {name: str(tmp_path / file) for name, file in files.items()}
        first, second = (f"tls://localhost:{server['port']}" for server in made["servers"])
        async with await headwater.connect(first, **files) as here, await headwater.connect(second, **files) as there:
            await there.subscribe("greet", callback=lambda message: message.respond(b"hello"))
            await there.flush()
            assert await first_answer(here) == b"hello"
