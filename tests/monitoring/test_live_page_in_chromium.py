"""The live page in a real Chromium, without a window: what its script has written, and that nothing was blocked.

`HEADWATER_SCREENSHOT=FILE` keeps a picture of it.
"""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.monitored import monitored, work

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MOMENT = "3000"  # ms of the page's own clock, which runs ahead of ours while it waits for nothing
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--window-size=1100,900", "--enable-logging=stderr", f"--virtual-time-budget={MOMENT}",
)  # fmt: skip

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not installed: no browser has shown the live page"
)


def shown(url: str, profile: Path, *flags: str) -> tuple[str, list[str]]:
    """The document after a moment, and what the console says."""
    assert CHROMIUM is not None
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", *flags, url]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout, [line for line in ran.stderr.splitlines() if ":CONSOLE" in line]


def test_a_person_sees_what_the_broker_does_and_the_browser_blocks_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with monitored(
            jetstream=True, store_dir=tmp_path / "store", server_name="n<1>", base_path="/b"
        ) as server:
            link = await asyncio.to_thread(work, server.broker.port)
            url = f"http://127.0.0.1:{server.monitoring.port}/b/"
            document, console = await asyncio.to_thread(shown, url, tmp_path / "profile", "--dump-dom")
            assert console == []
            assert "<title>n&lt;1&gt; · Headwater</title>" in document
            assert '<p id="health" class="pill good" role="status">ok</p>' in document
            panel = document.partition('id="panel"')[2]
            assert ">S<" in panel, "the stream has a row"
            for title in ("Messages in", "Sync p99", "Disk left", "JetStream requests"):
                assert f"<h3>{title}</h3>" in document
            picture = os.environ.get("HEADWATER_SCREENSHOT", "")
            if picture:
                await asyncio.to_thread(shown, url, tmp_path / "profile", f"--screenshot={picture}")
            await asyncio.to_thread(link.close)

    asyncio.run(main())
