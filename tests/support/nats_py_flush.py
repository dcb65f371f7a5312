"""A flush of nats-py that covers the calls before it.

nats-py writes the PING of a flush at once and SUB, UNSUB and PUB with its next write: one flush may be answered before
the server has read them. The second PING is written after them.
"""

from nats.aio.client import Client


async def flushed(client: Client, timeout: int = 10) -> None:
    """Return once the server has handled all that this client was to send."""
    await client.flush(timeout)
    await client.flush(timeout)
