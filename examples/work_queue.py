"""A work queue: each job is done by one of the workers, again if a worker fails, and removed when it is done.

python examples/work_queue.py nats://127.0.0.1:4222
"""

import asyncio
import sys
from datetime import timedelta

import headwater
from headwater.client.client import Client
from headwater.client.jetstream_types import ConsumerConfig, StreamConfig
from headwater.client.stream_message import StreamMessage

STREAM = StreamConfig(name="JOBS", subjects=["jobs.>"], retention="workqueue", max_age=timedelta(days=7))
WORKERS = ConsumerConfig(durable_name="workers", ack_wait=30, max_deliver=5)


async def work(message: StreamMessage) -> None:
    """Resize a picture, send a mail, ... Raises what goes wrong."""
    if b"broken" in message.data and message.metadata.delivered < 2:
        raise ValueError(f"cannot do {message.data!r}")


async def worker(client: Client, done: asyncio.Queue[str]) -> None:
    """Do jobs for ever; a failed one comes again, to this worker or another, a little later each time."""
    consumer = client.jetstream().pull_consumer("JOBS", "workers")
    async with consumer.consume(batch=10) as messages:
        async for message in messages:
            try:
                await work(message)
            except ValueError as error:
                print(f"again: {error}")
                await message.nak(delay=0.1 * message.metadata.delivered)
            else:
                await message.ack(confirm=5)  # once the server knows, the job is gone
                done.put_nowait(message.subject)


async def main(url: str, jobs: int = 10) -> list[str]:
    """Publish `jobs` jobs, one of them broken at first, and have two workers do them."""
    async with await headwater.connect(url) as client:
        jetstream = client.jetstream()
        await jetstream.create_stream(STREAM)
        await jetstream.create_consumer("JOBS", WORKERS)
        done: asyncio.Queue[str] = asyncio.Queue()
        workers = [asyncio.create_task(worker(client, done)) for _ in range(2)]
        for number in range(jobs):
            body = b"broken" if number == 3 else b"picture"
            await jetstream.publish(f"jobs.resize.{number}", body, msg_id=f"job-{number}")
        finished = [await done.get() for _ in range(jobs)]
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        return finished


if __name__ == "__main__":
    print(asyncio.run(main(sys.argv[1] if sys.argv[1:] else "nats://127.0.0.1:4222")))
