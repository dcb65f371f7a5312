"""Publishing several messages to a stream all together or not at all (`allow_atomic`, ADR-50 of NATS).

    async with jetstream.atomic_batch() as batch:
        await batch.publish("orders.a", b"1")
        await batch.publish("orders.b", b"2")
    # here both are stored, and `ack` of the batch says where

The last message commits the batch, so each is held back until the next one comes. An exception inside the block abandons
the batch: nothing of it is stored. The first message and each CHECKED-th are requests, so that a stream without atomic
batches, or one that has too many open, refuses before all is sent. A batch that is lost (server restart, ten seconds of
silence) is refused at its end with 10176.
"""

import secrets
from types import TracebackType
from typing import Self

import msgspec

from headwater.client.jetstream_types import BatchAck, decode_answer
from headwater.client.requester import Requester
from headwater.client.units import Lifetime, lifetime
from headwater.client_connection.connection_ops import BytesLike
from headwater.errors import LocalProtocolError, NoResponders
from headwater.model.header_names import NatsHeader
from headwater.model.headers import Headers, HeaderSource

CHECKED = 100  # messages


class _Held(msgspec.Struct):
    subject: str
    data: bytes
    headers: Headers


class AtomicBatch:
    """One batch; use it in `async with`. `ack`: the acknowledgement with stream and sequence, None until the commit."""

    def __init__(self, client: Requester, timeout: float) -> None:
        self.ack: BatchAck | None = None
        self._client = client
        self._timeout = timeout
        self._id = secrets.token_hex(11)
        self._count = 0
        self._held: _Held | None = None
        self._open = False

    async def __aenter__(self) -> Self:
        if self._count:
            raise LocalProtocolError("a batch is used once", value=self._id)
        self._open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        held, self._held = self._held, None
        if error is None and held is not None:
            held.headers[NatsHeader.BATCH_COMMIT] = "1"
            data = await self._request(held)
            self.ack = decode_answer(data, BatchAck, f"the commit of a batch on {held.subject!r}")

    async def publish(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        headers: HeaderSource | Headers | None = None,
        msg_id: str | None = None,
        expect_last_sequence: int | None = None,
        expect_last_subject_sequence: int | None = None,
        ttl: Lifetime | None = None,
    ) -> None:
        """Add a message. Its expectations are checked at the commit; `expect_last_sequence` is for the first message
        only. Raises JetStreamError when the stream refuses the batch."""
        if not self._open:
            raise LocalProtocolError("use the batch in `async with`", value=subject)
        self._count += 1
        demands = {
            NatsHeader.BATCH_ID: self._id,
            NatsHeader.BATCH_SEQUENCE: self._count,
            NatsHeader.MSG_ID: msg_id,
            NatsHeader.EXPECTED_LAST_SEQUENCE: expect_last_sequence,
            NatsHeader.EXPECTED_LAST_SUBJECT_SEQUENCE: expect_last_subject_sequence,
            NatsHeader.TTL: lifetime(ttl),
        }
        complete = Headers(headers or {})
        for name, value in demands.items():
            if value is not None:
                complete[name] = str(value)
        held, self._held = self._held, _Held(subject, bytes(data), complete)  # the caller may reuse its buffer
        if held is None:
            return
        if self._count % CHECKED != 2:
            await self._client.publish(held.subject, held.data, headers=held.headers)
            return
        answer = await self._request(held)
        if answer:  # only a refusal has a body
            decode_answer(answer, BatchAck, f"a message of a batch on {held.subject!r}")

    async def _request(self, held: _Held) -> bytes:
        try:
            message = await self._client.request(held.subject, held.data, headers=held.headers, timeout=self._timeout)
        except NoResponders as error:
            hint = "create the stream first"
            raise NoResponders(f"no stream captures {held.subject!r}", value=held.subject, hint=hint) from error
        return bytes(message.data)
