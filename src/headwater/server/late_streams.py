"""JetStream that is loaded after the greeting: its modules are half of a start, and an empty store needs none of them.

    no account has a stream on disk        the stores are checked and locked, a `LateAccount` takes the requests of each
    the ports are open                     `LateStreams.load`: its modules, part by part; clients are served in between
    all are loaded, or a request is there  `LateStreams.finish`: each account gets its service, and the request goes on to it

A request that comes early loads at once what is missing; other clients wait for that, and its answer comes as early as if
everything had been loaded before the greeting. When the loading fails, the reason is logged, the request is answered with an
error, and the next request tries again. Streams on disk are recovered before the greeting.
"""

import logging
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from headwater.durable_files.files import File
from headwater.exchange.sublist import Subscription
from headwater.jetstream.domain import API_PREFIX, subscribe_domain
from headwater.net.lean_imports import import_msgspec
from headwater.server.without_streams import answer_unavailable

if TYPE_CHECKING:
    from headwater.exchange.account import Account
    from headwater.jetstream.service import JetStream
    from headwater.message_tracing.message_trace import MessageTrace

logger = logging.getLogger("headwater.server.broker")

PARTS = (
    "headwater.group_commit.writers",
    "headwater.jetstream.journal_writer",
    "headwater.model.headers",
    "headwater.jetstream_documents.strict_reading",
    "headwater.streams.head_page",
    "headwater.streams.walking",
    "headwater.streams.segment",
    "headwater.streams.writer",
    "headwater.streams.opening",
    "headwater.jetstream_state.schedules",
    "headwater.jetstream_state.store",
    "headwater.jetstream_state.audience",
    "headwater.jetstream_state.contents",
    "headwater.jetstream_documents.stream_rules",
    "headwater.jetstream_documents.consumer_rules",
    "headwater.jetstream.delivering",
    "headwater.jetstream.push",
    "headwater.jetstream_publishing.publish_rules",
    "headwater.jetstream_publishing.publishing",
    "headwater.jetstream.stream",
    "headwater.jetstream_room.server_caps",
    "headwater.jetstream.stream_registry",
    "headwater.jetstream.backup_api",
    "headwater.jetstream.service",
)
"""Each imports the next few of JetStream's modules, which takes 1 to 3 ms compiled."""


class LateStreams:
    """The accounts that wait for their service; `start` makes it, for a store whose lock is given."""

    def __init__(self, start: "Callable[[Account, File], JetStream]") -> None:
        self._start = start
        self._waiting: dict[str, LateAccount] = {}

    def __contains__(self, account: str) -> bool:
        return account in self._waiting

    def add(self, account: "Account", lock: File, domain: str) -> None:
        """Take the requests of an account; `lock` is closed by `stop`, or passed on to `start`."""
        self._waiting[account.name] = LateAccount(account, lock, domain, self.finish)

    def load(self) -> Iterator[None]:
        """Load the modules part by part, a part for each step, and start the services in the end. A failure is logged."""
        try:
            import_msgspec()
            yield
            for name in PARTS:
                import_module(name)
                yield
            self.finish()
        except Exception as error:  # whatever it is, the server goes on, and a request tries again
            logger.error("jetstream_not_loaded", exc_info=error)

    def finish(self) -> None:
        """Load what is missing and start the services, now. Raises what an import or a start raises; a later call goes on
        with the accounts that are left."""
        from headwater.server.heap_limits import limit_heaps  # here: it imports ctypes

        limit_heaps()  # a request comes before `serve` has done it: now, before the threads that write logs start
        import_msgspec()
        for name, waiting in list(self._waiting.items()):
            waiting.hand_over(self._start(waiting.account, waiting.lock))
            del self._waiting[name]

    def stop(self) -> None:
        """Wait no more: release the stores."""
        for waiting in self._waiting.values():
            waiting.stop()
            waiting.lock.close()
        self._waiting.clear()


class LateAccount:
    """Takes the API requests of one account until `finish` has given it its service."""

    def __init__(self, account: "Account", lock: File, domain: str, finish: Callable[[], None]) -> None:
        self.account = account
        self.lock = lock
        self._finish = finish
        self._service: JetStream | None = None
        router = account.router
        self._subscriptions: list[Subscription] = [
            router.subscribe_internal(API_PREFIX + b">", self._on_api, traced=self._on_traced_api)
        ]
        if domain:
            self._subscriptions.append(subscribe_domain(router, domain, self._on_api))

    def hand_over(self, service: "JetStream") -> None:
        """From now on the service, which has subscribed, takes the requests."""
        self._service = service
        self.stop()

    def stop(self) -> None:
        """Take no more requests."""
        for subscription in self._subscriptions:
            self.account.router.unsubscribe(subscription)
        self._subscriptions.clear()

    def _on_api(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        service = self._loaded(subject, reply)
        if service is not None:
            service.on_api(subject, reply, header_block, payload)

    def _on_traced_api(
        self, trace: "MessageTrace", subject: bytes, reply: bytes, header_block: bytes, payload: bytes
    ) -> bool:
        service = self._loaded(subject, reply)
        return service is not None and service.on_traced_api(trace, subject, reply, header_block, payload)

    def _loaded(self, subject: bytes, reply: bytes) -> "JetStream | None":
        """The service; None where it could not be loaded, which the requester then knows."""
        try:
            self._finish()
        except Exception as error:  # noqa: BLE001  (whatever it is, the requester gets an answer)
            answer_unavailable(self.account.router, subject, reply, error)
        return self._service
