"""JetStream as a client sees it: streams, publishing with acknowledgement, pull consumers.

Each method is one request to `$JS.API.…` and raises JetStreamError with the server's numbers when it says no. What
reads a consumer is in `pull`, publishing with many messages in flight in `publisher`.
"""

from typing import TYPE_CHECKING, TypeVar

import msgspec

from headwater.client.connection_ops import BytesLike
from headwater.client.jetstream_types import (
    ConsumerConfig,
    ConsumerInfo,
    PubAck,
    StreamConfig,
    StreamInfo,
    decode_answer,
)
from headwater.client.publisher import Publisher
from headwater.client.pull import PullConsumer
from headwater.errors import EnvironmentProblem, JetStreamError, NoResponders, SubjectError
from headwater.model.header_names import NatsHeader
from headwater.model.headers import Headers, HeaderSource

if TYPE_CHECKING:
    from headwater.client.client import Client

T = TypeVar("T")

_NO_STREAM = 10059
_FORBIDDEN_IN_NAMES = frozenset(" \t\r\n.*>/\\")


class _Names(msgspec.Struct, kw_only=True):
    streams: list[str] | None = None
    total: int = 0


class _Done(msgspec.Struct, kw_only=True):
    success: bool = False


class JetStream:
    """The JetStream of one connection; `timeout` seconds for each request."""

    def __init__(self, client: "Client", timeout: float) -> None:
        self._client = client
        self._timeout = timeout

    # ── streams ──

    async def create_stream(self, config: StreamConfig) -> StreamInfo:
        """Create a stream; one that exists with the same configuration is no error."""
        return await self._ask(f"STREAM.CREATE.{_name(config.name)}", config, StreamInfo)

    async def stream_info(self, name: str) -> StreamInfo:
        """Configuration and state of a stream."""
        return await self._ask(f"STREAM.INFO.{_name(name)}", None, StreamInfo)

    async def delete_stream(self, name: str) -> bool:
        """Delete a stream with its messages; False when there was none."""
        try:
            return (await self._ask(f"STREAM.DELETE.{_name(name)}", None, _Done)).success
        except JetStreamError as error:
            if error.err_code == _NO_STREAM:
                return False
            raise

    async def stream_names(self, subject: str = "") -> list[str]:
        """The names of all streams, or of those that capture `subject`."""
        names: list[str] = []
        while True:
            body: dict[str, object] = {"offset": len(names), **({"subject": subject} if subject else {})}
            page = await self._ask("STREAM.NAMES", body, _Names)
            names += page.streams or []
            if not page.streams or len(names) >= page.total:
                return names

    # ── publishing ──

    async def publish(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        headers: HeaderSource | Headers | None = None,
        msg_id: str | None = None,
    ) -> PubAck:
        """Publish and wait until the stream has the message on disk.

        Raises NoResponders when no stream captures the subject, JetStreamError when it refuses the message.
        """
        if msg_id is not None:
            headers = Headers(headers or {})
            headers[NatsHeader.MSG_ID] = msg_id
        try:
            message = await self._client.request(subject, data, headers=headers, timeout=self._timeout)
        except NoResponders as error:
            raise NoResponders(
                f"no stream captures {subject!r}", value=subject, hint="create the stream first"
            ) from error
        return decode_answer(message.data, PubAck, f"the publish on {subject!r}")

    def publisher(self, window: int = 1024) -> Publisher:
        """Publish with up to `window` messages unacknowledged; use it in `async with`."""
        return Publisher(self._client, window, self._timeout)

    # ── consumers ──

    async def create_consumer(self, stream: str, config: ConsumerConfig) -> ConsumerInfo:
        """Create a pull consumer: durable with `durable_name`, else it ends when it is not used for a while."""
        body = {"stream_name": stream, "config": config}
        name = config.durable_name or config.name
        suffix = f".{_name(name)}" if name else ""
        return await self._ask(f"CONSUMER.CREATE.{_name(stream)}{suffix}", body, ConsumerInfo)

    async def consumer_info(self, stream: str, name: str) -> ConsumerInfo:
        """Configuration and position of a consumer."""
        return await self._ask(f"CONSUMER.INFO.{_name(stream)}.{_name(name)}", None, ConsumerInfo)

    async def delete_consumer(self, stream: str, name: str) -> bool:
        """Delete a consumer."""
        return (await self._ask(f"CONSUMER.DELETE.{_name(stream)}.{_name(name)}", None, _Done)).success

    def pull_consumer(self, stream: str, name: str) -> PullConsumer:
        """Read from an existing pull consumer."""
        return PullConsumer(self._client, _name(stream), _name(name))

    # ── inside ──

    async def _ask(self, call: str, body: object, kind: type[T]) -> T:
        payload = b"" if body is None else msgspec.json.encode(body)
        try:
            message = await self._client.request(f"$JS.API.{call}", payload, timeout=self._timeout)
        except NoResponders as error:
            raise EnvironmentProblem(
                "the server has no JetStream for this account",
                value=call,
                hint="start nats-server or `headwater serve` with -js",
            ) from error
        return decode_answer(message.data, kind, call)


def _name(name: str) -> str:
    """A stream or consumer name as a token of the API subject. Raises SubjectError."""
    if not name or not _FORBIDDEN_IN_NAMES.isdisjoint(name):
        raise SubjectError(f"{name!r} is no name of a stream or consumer", value=name, limit="no blank . * > / \\")
    return name
