"""Configuration in a key-value bucket: a program starts with what is there and follows every change while it runs.

python examples/configuration.py nats://127.0.0.1:4222
"""

import asyncio
import sys
from dataclasses import dataclass, replace

import headwater
from headwater.client.client import Client
from headwater.client.key_value import BucketConfig, KeyValue


@dataclass(frozen=True)
class Settings:
    """What can be set; a value that is none leaves the old one in place."""

    log_level: str = "info"
    workers: int = 2

    def changed(self, key: str, value: str) -> "Settings":
        """The settings after a change of one key."""
        if key == "log_level":
            return replace(self, log_level=value)
        if key == "workers" and value.isdecimal():
            return replace(self, workers=int(value))
        print(f"ignored: {key} = {value!r}")
        return self


async def follow(bucket: KeyValue, changes: "asyncio.Queue[Settings]") -> None:
    """The settings now, and after each change: in order, without a gap, also across reconnects."""
    settings, watch = Settings(), bucket.watch()
    async for entry in watch:
        if entry.operation == "PUT":
            settings = settings.changed(entry.key, entry.value.decode())
        if watch.caught_up:  # what the bucket held when we began has all been read
            changes.put_nowait(settings)


async def open_bucket(client: Client) -> KeyValue:
    """The bucket of this program; five revisions of each key are kept."""
    return await client.jetstream().create_key_value(BucketConfig(bucket="settings", history=5))


async def main(url: str) -> list[Settings]:
    """Follow the settings while they change."""
    async with await headwater.connect(url) as client:
        bucket = await open_bucket(client)
        await bucket.put("log_level", "debug")
        changes: asyncio.Queue[Settings] = asyncio.Queue()
        following = asyncio.create_task(follow(bucket, changes))
        seen = [await changes.get()]
        for key, value in (("workers", "8"), ("workers", "many"), ("log_level", "error")):
            await bucket.put(key, value)
            seen.append(await changes.get())
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        return seen


if __name__ == "__main__":
    print(asyncio.run(main(sys.argv[1] if sys.argv[1:] else "nats://127.0.0.1:4222")))
