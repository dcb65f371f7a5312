"""A push consumer: the server sends as fast as acknowledgements and flow control allow.

    async with jetstream.push_consumer("ORDERS", ConsumerConfig(durable_name="billing")) as messages:
        async for message in messages: ...

Heartbeats (status 100) are skipped; a flow-control request is answered once everything before it was read, which paces
the server. Silence for three heartbeats raises ConsumerGone.
"""

from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from headwater.client.consume import ConsumerGone
from headwater.client.jetstream_api import JetStreamApi
from headwater.client.jetstream_types import ConsumerConfig, ConsumerInfo
from headwater.client.requester import Requester
from headwater.client.stream_message import StreamMessage, status_of
from headwater.errors import LocalProtocolError, RequestTimeout
from headwater.model.header_names import NatsHeader
from headwater.model.status import IDLE_HEARTBEAT, REQUEST_TIMEOUT

if TYPE_CHECKING:
    from headwater.client_connection.subscription import Subscription

HEARTBEATS_MISSED = 3


class PushConsumer:
    """`info`: the server's description at the start. A consumer without a durable name is deleted at the end."""

    def __init__(self, jetstream: JetStreamApi, client: Requester, stream: str, config: ConsumerConfig) -> None:
        self._jetstream = jetstream
        self._client = client
        self._stream = stream
        self._config = config
        self._subscription: Subscription | None = None
        self.info: ConsumerInfo | None = None

    async def __aenter__(self) -> Self:
        config = self._config
        if not config.deliver_subject:
            config = msgspec.structs.replace(config, deliver_subject=self._client.new_inbox())
        self._subscription = await self._client.subscribe(config.deliver_subject, queue=config.deliver_group)
        try:
            self.info = await self._jetstream.create_consumer(self._stream, config)
        except BaseException:
            self._subscription.unsubscribe()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._subscription is not None:
            self._subscription.unsubscribe()
        if self.info is not None and not self._config.durable_name and not self._client.is_closed:
            self._jetstream.forget_consumer(self._stream, self.info.name)

    async def __aiter__(self) -> AsyncIterator[StreamMessage]:
        if self._subscription is None:
            raise LocalProtocolError("use the push consumer in `async with`")
        heartbeat = self._config.idle_heartbeat
        while True:
            try:
                message = await self._subscription.next(HEARTBEATS_MISSED * heartbeat or None)
            except RequestTimeout as error:
                if not self._client.is_connected:
                    continue
                raise ConsumerGone(REQUEST_TIMEOUT, 0, "the consumer sends no heartbeat any more") from error
            status = status_of(message, pushed=True)
            if status is None:
                yield StreamMessage(self._client, message)
            elif status.code != IDLE_HEARTBEAT:
                raise ConsumerGone(status.code, 0, status.description or "the consumer is gone")
            elif message.reply:
                self._client.publish(message.reply)
            elif stalled := message.headers.first(NatsHeader.CONSUMER_STALLED):
                self._client.publish(stalled)
