"""The live page in a real Chromium, without a window, as a person uses it: brokers of ours in this process, a browser that
Playwright drives, and the page's own clock, which runs as fast as we want.

HEADWATER_SCREENSHOTS=docs writes the pictures of the docs. HEADWATER_LIVE_PAGE_LOAD=FOLDER measures what an open page costs
a broker with 10,000 real connections and 1,000 streams (five minutes), and writes it there; otherwise these are documents
made up here.
"""

import asyncio
import json
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from support.clusters import route_url, until
from support.headwater_server import start_headwater
from support.monitored import Monitored, ask, monitored, work

from headwater.iggy.face import IggyOptions
from headwater.monitoring.board import FIELDS, Board
from headwater.monitoring.server import Monitoring
from headwater.net.listener_options import MonitoringOptions
from headwater.options.cluster import ClusterOptions
from headwater.server.broker import Broker

playwright = pytest.importorskip(
    "playwright.async_api", reason="Playwright is not installed: no browser has shown the live page"
)

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PICTURES = os.environ.get("HEADWATER_SCREENSHOTS", "")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
PATIENCE = 60_000  # ms; a machine under load starts a page in some seconds
WIDE, PHONE = {"width": 1100, "height": 900}, {"width": 390, "height": 844}
LOOK = 2000  # ms between two looks of the page
T = TypeVar("T")

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not installed: no browser has shown the live page"
)


class Stage:
    """One browser and one event loop for all tests of this file."""

    def __init__(self, runner: asyncio.Runner, browser: Any) -> None:
        self.run: Callable[[Coroutine[Any, Any, T]], T] = runner.run
        self.browser = browser

    @asynccontextmanager
    async def page(
        self, url: str, size: dict[str, int] = WIDE, scheme: str = "light", **routed: Any
    ) -> AsyncIterator[Any]:
        """A page that is open, with a clock that `passes` moves. The browser must have had nothing to complain about in the
        end. `routed`: documents in place of the broker's, by the page's name."""
        context = await self.browser.new_context(viewport=size, color_scheme=scheme)
        context.set_default_timeout(PATIENCE)
        page = await context.new_page()
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: complaints.append(line.text) if "ERR_CONNECTION" not in line.text else None)
        for name, document in routed.items():
            await page.route(f"**/{name}?**", partial(answer, json.dumps(document)))
        try:
            await page.clock.install()
            await page.goto(url)
            await page.wait_for_selector("#tiles .tile")
            yield page
            assert complaints == []
        finally:
            await context.close()


async def answer(body: str, route: Any) -> None:
    await route.fulfill(body=body, content_type="application/json")


async def passes(page: Any, looks: int = 1) -> None:
    """Let the page look again, so many times."""
    for _ in range(looks):
        await page.clock.run_for(LOOK)


async def shows(page: Any, text: str, within: str = "#panel") -> None:
    """Wait until `text` is to be seen; the page's clock runs meanwhile."""
    element = page.locator(within)
    for _ in range(200):
        if text in await element.inner_text():
            return
        await passes(page)
        await asyncio.sleep(0.05)
    raise AssertionError(f"never: {text!r}; it shows {await element.inner_text()!r}")


async def picture(page: Any, name: str) -> None:
    if PICTURES:
        await page.screenshot(path=Path(PICTURES) / f"{name}.png")


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with asyncio.Runner() as runner:
        driver = runner.run(playwright.async_playwright().start())
        browser = runner.run(driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=PATIENCE))
        yield Stage(runner, browser)
        runner.run(browser.close())
        runner.run(driver.stop())


@asynccontextmanager
async def silent_client(port: int) -> AsyncIterator[None]:
    """A client that says nothing yet."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


def sample(server: Monitored) -> None:
    """What the broker does every two seconds, now."""
    history = server.monitoring.view.history
    assert history is not None
    history.note(server.broker.observe().ledger.totals(server.monitoring.view.sessions()), time.time_ns())


def test_with_traffic_a_person_sees_rates_streams_consumers_clients_and_iggy(stage: Stage, tmp_path: Path) -> None:
    async def main() -> None:
        iggy = IggyOptions(tcp=("127.0.0.1", 0))
        options: dict[str, Any] = {"jetstream": True, "store_dir": tmp_path, "server_name": "n<1>", "iggy": iggy}
        async with monitored(**options, base_path="/b") as server, silent_client(server.broker.iggy.tcp_port):
            sample(server)
            link = await asyncio.to_thread(work, server.broker.port)
            link.send(b"PUB s.y 5\r\nhello\r\n" * 500)
            await asyncio.to_thread(link.settle)
            await asyncio.sleep(0.01)  # two samples are never of one millisecond
            sample(server)
            board = Board(2)
            server.monitoring.view.workers = board
            board.write(1, [1.0] * len(FIELDS))
            board.write(2, [2.0, time.time_ns() // 1_000_000, 1.0, *[7.0] * (len(FIELDS) - 3)])
            async with stage.page(f"http://127.0.0.1:{server.monitoring.port}/b/") as page:
                assert await page.title() == "n<1> · Headwater"
                assert await page.locator("#health").get_attribute("class") == "pill good"
                tiles = await page.locator("#tiles").inner_text()
                assert "505 since the start" in tiles
                await page.get_by_role("button", name="S", exact=True).click()
                await shows(page, "Waiting pulls")
                assert "500" in await page.locator("#panel").inner_text()
                await picture(page, "live-page")
                await page.get_by_role("tab", name="Connections").press("Enter")
                await page.get_by_role("button", name="subscriptions of client").click()
                await shows(page, "a.* a.* reply")
                await page.get_by_role("tab", name="Iggy").click()
                await shows(page, "not logged in")
                assert "nats\tS\t1\t" in await page.locator("#panel").inner_text()
                await picture(page, "live-page-iggy")
                await page.get_by_role("tab", name="Workers").click()
                await shows(page, "ended, or silent")
                assert "running" in await page.locator("#panel").inner_text()
            await asyncio.to_thread(link.close)
            server.monitoring.view.workers = None
            board.close()

    stage.run(main())


def test_a_lost_peer_is_red_and_named_and_one_that_is_back_is_not(stage: Stage) -> None:
    async def main() -> None:
        options = ClusterOptions(name="hw", host="127.0.0.1")
        async with monitored(server_name="a", cluster=options) as first:
            cluster = first.broker.cluster
            assert cluster is not None
            beside = ClusterOptions(name="hw", host="127.0.0.1", routes=(route_url(first.broker),))
            url = f"http://127.0.0.1:{first.monitoring.port}/"
            async with Broker(server_name="b", cluster=beside):
                async with Broker(server_name="c", cluster=beside):
                    await until(lambda: len(cluster.routes()) == 2, "both peers")
                    sample(first)
                await until(lambda: len(cluster.routes()) == 1, "c has gone")
                sample(first)
                async with stage.page(url) as page:
                    await page.get_by_role("tab", name="Cluster").click()
                    await shows(page, "not joined: c (lost")
                    assert await page.locator("g.node.missing text").all_text_contents() == ["c"]
                    stroke = "node => getComputedStyle(node).stroke"
                    red = await page.locator("g.node.missing circle").evaluate(stroke)
                    calm = await page.locator("g.node:not(.missing) circle").first.evaluate(stroke)
                    assert (red, calm) == ("rgb(179, 38, 30)", "rgb(11, 107, 138)")
                    await picture(page, "live-page-cluster")
                    async with Broker(server_name="c", cluster=beside):
                        await until(lambda: len(cluster.routes()) == 2, "c is back")
                        sample(first)
                        await passes(page)
                        await page.locator("g.missing").first.wait_for(state="detached")

    stage.run(main())


def test_when_the_broker_restarts_the_page_says_so_and_begins_anew(stage: Stage) -> None:
    async def main() -> None:
        points = "document.querySelector('#tiles polyline').getAttribute('points').split(' ').length"
        async with monitored(server_name="before") as server:
            for _ in range(50):
                sample(server)
                await asyncio.sleep(0.002)
            options = MonitoringOptions(host="127.0.0.1", port=server.monitoring.port)
            async with stage.page(f"http://127.0.0.1:{options.port}/") as page:
                assert await page.evaluate(points) >= 49
                await server.monitoring.__aexit__(None, None, None)
                await shows(page, "no answer", "#health")
                async with Broker(server_name="after") as again, Monitoring(again, options) as monitoring:
                    for _ in range(3):
                        sample(Monitored(again, monitoring))
                        await asyncio.sleep(0.002)
                    await shows(page, "after", "#facts")
                    assert await page.locator("#health").inner_text() == "ok"
                    assert await page.evaluate(points) < 49, "the broker before is not in the picture"

    stage.run(main())


def many_streams(count: int) -> dict[str, Any]:
    state = {"messages": 5, "bytes": 900, "first_ts": "2026-01-01T00:00:00Z", "consumer_count": 0}
    streams = [
        {"name": f"S{n}", "state": state | {"last_seq": n}, "config": {"max_bytes": 1000}, "writes": {"refused": 0}}
        for n in range(count)
    ]
    return {"account_details": [{"name": "$G", "stream_detail": streams}]}


def many_connections(count: int, shown: int) -> dict[str, Any]:
    one = {"name": "a name that is not short", "account": "$G", "lang": "go", "version": "1.50.0", "ip": "127.0.0.1"}
    numbers = {"rtt": "1ms", "pending_bytes": 0, "in_msgs": 1, "out_msgs": 1, "idle": "1s", "subscriptions": 3}
    listed = [one | numbers | {"cid": n} for n in range(shown)]
    return {"connections": listed, "num_connections": shown, "total": count}


@pytest.mark.parametrize(
    ("size", "scheme"), [(WIDE, "light"), (PHONE, "dark")], ids=["wide and light", "phone and dark"]
)
def test_ten_thousand_clients_and_a_thousand_streams_fit_a_screen(
    stage: Stage, tmp_path: Path, size: dict[str, int], scheme: str
) -> None:
    async def main() -> None:
        async with monitored(jetstream=True, store_dir=tmp_path) as server:
            sample(server)
            documents = {"jsz": many_streams(1000), "connz": many_connections(10_000, 200)}
            url = f"http://127.0.0.1:{server.monitoring.port}/"
            async with stage.page(url, size, scheme, **documents) as page:
                await shows(page, "the first 200 of 1,000 streams")
                assert await page.locator("#panel tbody tr").count() == 200
                await page.get_by_label("sorted by").select_option("fullness")
                if size is PHONE:
                    await picture(page, "live-page-dark-390")
                await page.get_by_role("tab", name="Connections").click()
                await shows(page, "200 of 10,000, sorted by")
                assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out"
                ground = await page.evaluate("getComputedStyle(document.body).backgroundColor")
                assert ground == {"dark": "rgb(18, 23, 26)", "light": "rgb(251, 251, 249)"}[scheme]

    stage.run(main())


@pytest.mark.skipif(not os.environ.get("HEADWATER_LIVE_PAGE_LOAD"), reason="HEADWATER_LIVE_PAGE_LOAD=1 measures it")
@pytest.mark.parametrize(("clients", "streams"), [(10, 5), (10_000, 1000)])
def test_an_open_page_costs_less_than_a_hundredth_of_a_core(
    stage: Stage, tmp_path: Path, clients: int, streams: int
) -> None:
    seconds = 30.0

    async def used(pid: int) -> float:
        """Percent of a core over `seconds`."""

        def ticks() -> int:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            return int(fields[11]) + int(fields[12])

        before = ticks()
        await asyncio.sleep(seconds)
        return (ticks() - before) / os.sysconf("SC_CLK_TCK") / seconds * 100

    async def main(port: int, http: int, pid: int) -> None:
        links = [await asyncio.open_connection("127.0.0.1", port) for _ in range(clients)]
        for at, (_, writer) in enumerate(links):
            writer.write(b'CONNECT {"verbose":false,"name":"c%d"}\r\nPING\r\n' % at)
        for n in range(streams):
            body = json.dumps({"name": f"S{n}", "subjects": [f"s{n}.>"], "storage": "memory"}).encode()
            links[0][1].write(b"PUB $JS.API.STREAM.CREATE.S%d x %d\r\n%b\r\n" % (n, len(body), body))
        for _ in range(1200):
            if (await asyncio.to_thread(ask, http, "/jsz")).document["streams"] == streams:
                break
            await asyncio.sleep(0.05)
        await asyncio.sleep(5)
        alone = await used(pid)
        costs = {}
        for tab in ("Streams", "Connections", "Events"):
            context = await stage.browser.new_context()
            page = await context.new_page()
            await page.goto(f"http://127.0.0.1:{http}/", timeout=PATIENCE)
            await page.get_by_role("tab", name=tab).click(timeout=PATIENCE)
            await page.wait_for_selector("#panel > *", timeout=PATIENCE)
            costs[tab] = round(await used(pid) - alone, 2)
            await context.close()
        for _, writer in links:
            writer.close()
        line = f"{clients} clients, {streams} streams: {alone:.2f} % without a page, more with one: {costs}"
        (Path(os.environ["HEADWATER_LIVE_PAGE_LOAD"]) / f"{clients}.txt").write_text(line)
        assert max(costs.values()) < 1, line

    settings = f'http: "127.0.0.1:-1"\njetstream {{ store_dir: "{tmp_path}/js" }}\nping_interval: "10m"\n'
    (tmp_path / "x.conf").write_text(settings)
    with start_headwater(tmp_path, "-c", str(tmp_path / "x.conf")) as server:
        log = (tmp_path / "headwater.log").read_text()
        stage.run(main(server.port, int(log.partition("http monitor on 127.0.0.1:")[2].split()[0]), server.pid))
