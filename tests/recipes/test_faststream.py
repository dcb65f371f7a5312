"""FastStream's NATS broker on ours: subscribers, publishers, requests, and a pull consumer of a stream."""

import asyncio
from pathlib import Path

import pytest
from support.scripted_server import finish

import headwater

nats_broker = pytest.importorskip("faststream.nats", reason="FastStream is not installed")


def test_a_faststream_application_runs_on_our_broker(tmp_path: Path) -> None:
    async def main() -> None:
        async with headwater.Broker(jetstream=True, store_dir=tmp_path) as server:
            application = nats_broker.NatsBroker(server.url, logger=None)
            seen: asyncio.Queue[str] = asyncio.Queue()

            @application.subscriber("orders.*", queue="workers")  # type: ignore[untyped-decorator, unused-ignore]
            @application.publisher("invoices")  # type: ignore[untyped-decorator, unused-ignore]
            async def on_order(amount: int) -> str:
                return f"invoice of {amount}"

            @application.subscriber("invoices")  # type: ignore[untyped-decorator, unused-ignore]
            async def on_invoice(text: str) -> None:
                seen.put_nowait(text)

            pull = nats_broker.PullSub(batch_size=5, timeout=1)
            jobs = nats_broker.JStream("JOBS")

            @application.subscriber("jobs.*", stream=jobs, durable="D", pull_sub=pull)  # type: ignore[untyped-decorator, unused-ignore]
            async def on_job(body: str) -> None:
                seen.put_nowait(f"job {body}")

            async with application:
                await application.start()
                await application.publish(3, "orders.eu")
                assert await seen.get() == "invoice of 3"
                assert (await application.request(4, "orders.us", timeout=30)).body == b"invoice of 4"
                assert await seen.get() == "invoice of 4"
                await application.publish("x", "jobs.a", stream="JOBS")
                assert await seen.get() == "job x"

    finish(main(), 60)
