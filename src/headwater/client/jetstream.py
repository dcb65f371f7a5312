"""JetStream as a client sees it: the API, and all that is built on it.

Requests are in `jetstream_api`; reading from consumers in `pull`, `consume`, `ordered` and `push`; publishing with many
messages in flight in `publisher` and `fast_publisher`, all or none of them in `atomic_batch`; sums in `counters`;
key-value buckets and object stores in modules of their own.
"""

from typing import TYPE_CHECKING

from headwater.client.atomic_batch import AtomicBatch
from headwater.client.counters import Counters
from headwater.client.fast_publisher import FastPublisher
from headwater.client.jetstream_api import NO_STREAM, JetStreamApi, checked_name
from headwater.client.jetstream_types import ConsumerConfig
from headwater.client.nats_py_arguments import JETSTREAM as JETSTREAM_ARGUMENTS
from headwater.client.nats_py_arguments import take
from headwater.client.nats_py_names import JETSTREAM_ADVICE, install
from headwater.client.ordered import OrderedConsumer
from headwater.client.publisher import Publisher
from headwater.client.pull import PullConsumer
from headwater.client.push import PushConsumer
from headwater.errors import JetStreamError

if TYPE_CHECKING:
    from headwater.client.key_value import BucketConfig, KeyValue
    from headwater.client.object_store import ObjectStore, StoreConfig


class JetStream(JetStreamApi):
    """The JetStream of one connection. Made by `Client.jetstream`.

    `stream` and `name` are the names of a stream and of a consumer, `bucket` that of a bucket or an object store. Requests
    raise what `JetStreamApi` says.
    """

    def __repr__(self) -> str:
        return f"<JetStream {self.prefix} of {self.client!r}>"

    def publisher(self, window: int = 1024) -> Publisher:
        """Publish with up to `window` messages unacknowledged; use it in `async with`."""
        return Publisher(self._client, window, self._timeout)

    def atomic_batch(self) -> AtomicBatch:
        """Publish several messages all together or not at all, to a stream with `allow_atomic`; use it in `async with`."""
        return AtomicBatch(self._client, self._timeout)

    def fast_publisher(self, flow: int = 100, *, gaps_allowed: bool = False) -> FastPublisher:
        """Publish at full speed to a stream with `allow_batched`, an answer after `flow` messages at most; use it in `async
        with`. `gaps_allowed`: go on where messages are lost or refused."""
        return FastPublisher(self._client, flow, gaps_allowed, self._timeout)

    def counters(self, stream: str) -> Counters:
        """The counters of a stream with `allow_msg_counter`, one for each subject."""
        return Counters(self, checked_name(stream))

    def pull_consumer(self, stream: str, name: str, *, group: str = "") -> PullConsumer:
        """Read from an existing pull consumer, as a member of its priority group `group` if it has groups."""
        return PullConsumer(self._client, checked_name(stream), checked_name(name), self._prefix, group)

    def push_consumer(self, stream: str, config: ConsumerConfig | None = None) -> PushConsumer:
        """A push consumer, created with `config`: use it in `async with`, and iterate."""
        return PushConsumer(self, self._client, checked_name(stream), config or ConsumerConfig())

    def ordered_consumer(
        self, stream: str, config: ConsumerConfig | None = None, *, stop_at_end: bool = False
    ) -> OrderedConsumer:
        """An ordered consumer, which survives lost connections and servers: iterate over it to get every message once,
        in order.

        `config` sets the start and the subjects. `stop_at_end`: end with the stream's last message at the start of the
        iteration.
        """
        return OrderedConsumer(self, checked_name(stream), config or ConsumerConfig(), stop_at_end)

    # ── buckets ──

    async def create_key_value(self, config: "BucketConfig") -> "KeyValue":
        """Create the bucket of `config`; one that exists with the same configuration is no error."""
        from headwater.client.key_value import KeyValue

        return await KeyValue.create_bucket(self, config)

    async def create_object_store(self, config: "StoreConfig") -> "ObjectStore":
        """Create the object store of `config`; one that exists with the same configuration is no error."""
        from headwater.client.object_store import ObjectStore

        return await ObjectStore.create_store(self, config)

    async def delete_key_value(self, bucket: str) -> bool:
        """Delete a bucket with all it holds; False when there was none."""
        return await self.delete_stream(f"KV_{bucket}")

    async def delete_object_store(self, bucket: str) -> bool:
        """Delete an object store with all it holds; False when there was none."""
        return await self.delete_stream(f"OBJ_{bucket}")

    async def key_value(self, bucket: str) -> "KeyValue":
        """A bucket that exists. Raises JetStreamError when it does not."""
        from headwater.client.key_value import KeyValue

        try:
            return await KeyValue.bind(self, bucket)
        except JetStreamError as error:
            raise _hinting(error, f"there is no bucket {bucket!r}") from error

    async def object_store(self, bucket: str) -> "ObjectStore":
        """An object store that exists. Raises JetStreamError when it does not."""
        from headwater.client.object_store import ObjectStore

        try:
            return await ObjectStore.bind(self, bucket)
        except JetStreamError as error:
            raise _hinting(error, f"there is no object store {bucket!r}") from error


install(JetStream, {}, JETSTREAM_ADVICE)
take(JetStream, JETSTREAM_ARGUMENTS)


def _hinting(error: JetStreamError, hint: str) -> JetStreamError:
    """`error` with a hint about the store whose stream is missing."""
    if error.err_code != NO_STREAM:
        return error
    return JetStreamError(error.code, error.err_code, error.description, hint=hint)
