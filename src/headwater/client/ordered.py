"""An ordered consumer: every message of a stream once and in order, with nothing to acknowledge.

It is a sequence of short-lived pull consumers, each created to start after the last message delivered. A gap in the
consumer's own count, a deleted consumer, or a silent or unavailable server ends one and starts the next, unnoticed by
the iterating program. A deleted stream ends the iteration with JetStreamError; so does one that was made anew meanwhile, as
far as it is shorter than what was read: its first messages would not come.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

import msgspec

from headwater.client.consume import ConsumerGone
from headwater.client.iteration import Iteration
from headwater.client.jetstream_api import NO_STREAM, JetStreamApi
from headwater.client.jetstream_types import ConsumerConfig, ConsumerInfo
from headwater.client.pull import PullConsumer
from headwater.client.stream_message import StreamMessage
from headwater.errors import HeadwaterError, JetStreamError, RequestTimeout
from headwater.model.status import NOT_FOUND

INACTIVE_SECONDS = 300
UNAVAILABLE = 10008  # err_code while a cluster elects, or a worker is being replaced
PAUSE = 0.1  # seconds until that is asked again


class OrderedConsumer(Iteration[StreamMessage]):
    """Iterate over it; `async with` ends that at once after a `break`. `pending`: messages left after the last one
    delivered."""

    def __init__(self, jetstream: JetStreamApi, stream: str, config: ConsumerConfig, stop_at_end: bool) -> None:
        super().__init__()
        self._jetstream = jetstream
        self._stream = stream
        self._config = config
        self._stop_at_end = stop_at_end
        self._last = 0  # stream sequence of the last message delivered
        self.pending: int | None = None  # None before the first consumer exists
        self.resets = -1  # consumers beyond the first

    async def _items(self) -> AsyncGenerator[StreamMessage, None]:
        while True:
            try:
                info = await self._begin()
            except RequestTimeout:
                continue  # disconnected, or the server is starting; the client reconnects, or closes and raises
            except JetStreamError as error:
                if error.err_code != UNAVAILABLE or self.resets < 0:
                    raise
                await asyncio.sleep(PAUSE)
                continue
            if self._stop_at_end and self.pending == 0:
                await self._forget(info)
                return
            try:
                async with aclosing(self._read(info)) as messages:
                    async for message in messages:
                        yield message
                        if self._stop_at_end and self.pending == 0:
                            return
            except ConsumerGone:
                pass
            finally:
                await self._forget(info)

    async def _begin(self) -> ConsumerInfo:
        config = msgspec.structs.replace(
            self._config,
            ack_policy="none",
            max_deliver=1,
            mem_storage=True,
            num_replicas=1,
            inactive_threshold=INACTIVE_SECONDS,
        )
        if self._last:
            config.deliver_policy = "by_start_sequence"
            config.opt_start_seq = self._last + 1
            config.opt_start_time = None
        if self._last:
            await self._check_end()
        info = await self._jetstream.create_consumer(self._stream, config)
        self.pending = info.num_pending
        self.resets += 1
        return info

    async def _check_end(self) -> None:
        """Raises JetStreamError if the stream ends before what was read. A client that may not ask does not learn it."""
        try:
            last = (await self._jetstream.stream_info(self._stream)).state.last_seq
        except HeadwaterError:
            return
        if last < self._last:
            there = f"stream {self._stream!r} ends at {last}, and {self._last} was read"
            raise JetStreamError(NOT_FOUND, NO_STREAM, f"{there}: it was deleted and made anew, or restored")

    async def _read(self, info: ConsumerInfo) -> AsyncGenerator[StreamMessage, None]:
        """The messages of one consumer until one is missing."""
        count = 0
        consumer = PullConsumer(self._jetstream.client, self._stream, info.name, self._jetstream.prefix)
        async with consumer.consume() as messages:
            async for message in messages:
                where = message.metadata
                count += 1
                if where.consumer_seq != count:
                    return
                self._last = where.stream_seq
                self.pending = where.pending
                yield message

    async def _forget(self, info: ConsumerInfo) -> None:
        """Delete the consumer without waiting; the server deletes an idle one anyway."""
        with suppress(HeadwaterError):
            self._jetstream.forget_consumer(self._stream, info.name)
