"""The page at `/`: what it loads, what it may do, and what its script shows of a running broker.

The script runs in node, on a small document; where node is missing that test is skipped. A real
browser: test_live_page_in_chromium.py.
"""

import asyncio
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.monitored import Answer, monitored, work

from headwater.monitoring import live_page

SCRIPT = Path(__file__).parent / "live_page.mjs"
NODE = shutil.which("node")
PAGE = Path(live_page.__file__).parent / "page"


def header(raw: bytes, name: str) -> str:
    found = re.search(rb"(?im)^" + name.encode() + rb": (.*)\r$", raw)
    return found[1].decode() if found else ""


def test_the_page_and_its_files_come_from_the_base_path_and_nowhere_else() -> None:
    async def main() -> None:
        async with monitored(base_path="/nats") as server:
            page = (await server.ask("/nats/")).body.decode()
            loaded = re.findall(r'(?:href|src)="([^"]*)"', page)
            assert {"/nats/live.css", "/nats/live.js", "/nats/varz", "/nats/metrics", "/nats/historyz"} <= set(loaded)
            assert all(path.startswith("/nats/") or path == "data:," for path in loaded)
            script: Answer = await server.ask("/nats/live.js")
            assert (script.status, script.content_type) == (200, "text/javascript; charset=utf-8")
            assert (await server.ask("/nats/live.css")).content_type == "text/css; charset=utf-8"
            assert (await server.ask("/live.js")).status == 404
            assert (await server.ask("/nats/live.html")).status == 404

    asyncio.run(main())


def test_a_browser_may_run_no_other_script_and_send_nothing_elsewhere() -> None:
    async def main() -> None:
        async with monitored() as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.monitoring.port)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            raw = await asyncio.wait_for(reader.read(), 20)
            writer.close()
            await writer.wait_closed()
            policy = dict(part.strip().split(" ", 1) for part in header(raw, "Content-Security-Policy").split(";"))
            assert policy["default-src"] == policy["form-action"] == policy["frame-ancestors"] == "'none'"
            assert policy["script-src"] == policy["connect-src"] == "'self'"
            body = raw.partition(b"\r\n\r\n")[2].decode()
            assert not re.search(r"<script(?![^>]*src=)|\son\w+=|style=", body)  # what such a policy would block

    asyncio.run(main())


def test_the_script_writes_texts_and_no_markup() -> None:
    source = (PAGE / "live.js").read_text()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", source)
    assert "method" not in source  # every request is a GET


def seen_in(port: int, base: str = "") -> Any:
    assert NODE is not None
    ran = subprocess.run(
        [NODE, str(SCRIPT), f"http://127.0.0.1:{port}{base}/"], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.skipif(NODE is None, reason="node is not installed: the script of the live page did not run")
def test_a_reader_sees_streams_consumers_clients_accounts_and_events(tmp_path: Path) -> None:
    async def main() -> None:
        async with monitored(jetstream=True, store_dir=tmp_path, server_name="n<1>", base_path="/b") as server:
            link = await asyncio.to_thread(work, server.broker.port)
            server.broker.journal.note("slow_consumer", client="c9", log=False)
            seen = await asyncio.to_thread(seen_in, server.monitoring.port, "/b")
            assert seen["health"] == "ok"
            assert "n<1>" in seen["title"]
            assert "sync always" in seen["facts"]
            for title in ("Messages in", "Ack p99", "Disk left", "Connections", "Refused writes"):
                assert title in seen["tiles"]
            assert "S" in seen["streams"].split()
            assert {"D", "Pending", "Redelivered"} <= set(seen["consumers"].split())
            assert {"worker", "bytes"} <= set(seen["connections"].split())
            assert "$G" in seen["accounts"].split()
            assert "stands alone" in seen["cluster"]
            assert "no listeners for Iggy" in seen["iggy"]
            assert "One process" in seen["workers"]
            assert "client=c9" in seen["events"]
            assert seen["selected"] == ["false", "false", "false", "false", "false", "false", "true"]
            await asyncio.to_thread(link.close)

    asyncio.run(main())
