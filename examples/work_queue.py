"""A work queue: each job is done by one of the workers, again if a worker fails, and removed when it is done.

python examples/work_queue.py nats://127.0.0.1:4222"""

import asyncio
import sys
from datetime import timedelta

import headwater
from headwater.client.jetstream import JetStream
from headwater.client.jetstream_types import ConsumerConfig, StreamConfig
from headwater.client.stream_message import StreamMessage

JOBS = StreamConfig(name="JOBS", subjects=["jobs.>"], retention="workqueue", max_age=timedelta(days=7))


def work(message: StreamMessage) -> None:  # resizes a picture, sends a mail, ...; raises what goes wrong
    if b"broken" in message.data and message.metadata.delivered < 2:
        raise ValueError(f"cannot do {message.data!r}")


async def worker(jetstream: JetStream, done: asyncio.Queue[str]) -> None:
    async with jetstream.pull_consumer("JOBS", "workers").consume(batch=10) as messages:
        async for message in messages:
            try:
                work(message)
            except ValueError as error:  # it comes again, to this worker or another, a little later each time
                print(f"again: {error}")
                await message.nak(delay=0.1 * message.metadata.delivered)
            else:
                await message.ack(confirm=5)  # once the server knows, the job is gone
                done.put_nowait(message.subject)


async def main(url: str, jobs: int = 10) -> list[str]:
    async with await headwater.connect(url) as client, asyncio.TaskGroup() as tasks:
        jetstream, done = client.jetstream(), asyncio.Queue[str]()
        await jetstream.create_stream(JOBS)
        await jetstream.create_consumer("JOBS", ConsumerConfig(durable_name="workers", ack_wait=30, max_deliver=5))
        workers = [tasks.create_task(worker(jetstream, done)) for _ in range(2)]
        for number in range(jobs):
            await jetstream.publish(f"jobs.{number}", b"broken" if number == 3 else b"picture", msg_id=f"job-{number}")
        finished = [await done.get() for _ in range(jobs)]
        for each in workers:
            each.cancel()
    return finished


if __name__ == "__main__":
    print(asyncio.run(main(sys.argv[1] if sys.argv[1:] else "nats://127.0.0.1:4222")))
