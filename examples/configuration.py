"""Configuration in a key-value bucket: a program starts with what is there and follows every change while it runs.

python examples/configuration.py nats://127.0.0.1:4222"""

import asyncio
import sys
from typing import NamedTuple

import headwater
from headwater.client.key_value import BucketConfig, KeyValue


class Settings(NamedTuple):
    log_level: str = "info"
    workers: int = 2

    def changed(self, key: str, value: str) -> "Settings":
        if key == "log_level":
            return self._replace(log_level=value)
        if key == "workers" and value.isdecimal():
            return self._replace(workers=int(value))
        print(f"ignored: {key} = {value!r}")  # a value that is none leaves the old one in place
        return self


async def follow(bucket: KeyValue, changes: "asyncio.Queue[Settings]") -> None:
    settings, watch = Settings(), bucket.watch()
    async for entry in watch:  # what is there, then each change: in order, without a gap, also across reconnects
        if entry.operation == "PUT":
            settings = settings.changed(entry.key, entry.value.decode())
        if watch.caught_up:  # what the bucket held when we began has all been read
            changes.put_nowait(settings)


async def main(url: str) -> list[Settings]:
    async with await headwater.connect(url) as client, asyncio.TaskGroup() as tasks:
        bucket = await client.jetstream().create_key_value(BucketConfig(bucket="settings", history=5))
        await bucket.put("log_level", "debug")
        changes = asyncio.Queue[Settings]()
        following = tasks.create_task(follow(bucket, changes))
        seen = [await changes.get()]
        for key, value in (("workers", "8"), ("workers", "many"), ("log_level", "error")):
            await bucket.put(key, value)
            seen.append(await changes.get())
        following.cancel()
    return seen


if __name__ == "__main__":
    print(asyncio.run(main(sys.argv[1] if sys.argv[1:] else "nats://127.0.0.1:4222")))
