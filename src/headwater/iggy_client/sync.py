"""The Iggy client without asyncio: the same names, and each call returns when it is done.

    from headwater.iggy_client.sync import connect
    with connect("iggy://iggy:iggy@127.0.0.1:8090") as client:
        client.send("orders", "eu", [Message(b"hello")])
        for message in client.consumer("orders", "eu", group="billing"): ...

An event loop in a thread of its own runs the asyncio client, so heartbeats, reconnecting and everything else are the same
code. A call costs two hops between threads; a consumer takes one for the messages of a whole poll. `sync_types` has the
signatures. Without a second thread: `headwater.iggy_client.blocking`, which sends and polls and nothing more.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Event
from typing import TYPE_CHECKING, Any, cast

from headwater.errors import ConnectionClosed
from headwater.iggy_client import client as asynchronous
from headwater.iggy_client.consumer import LOOK_SECONDS, TopicConsumer
from headwater.iggy_wire.message_codec import ReceivedMessage
from headwater.net.loop_thread import LoopThread, SyncProxy

if TYPE_CHECKING:
    from headwater.iggy_client.sync_types import SyncClient


class BlockingClient(SyncProxy):
    """The client; `close` also ends the thread."""

    def consumer(self, *arguments: Any, **named: Any) -> "BlockingConsumer":
        """As `Client.consumer`."""
        return BlockingConsumer(self._loop, self._loop.call(self.asynchronous.consumer, *arguments, **named))

    def close(self) -> None:
        """Close the connection, and end the thread. Safe to call again."""
        try:
            with suppress(ConnectionClosed):  # the thread has ended
                self._loop.run(self.asynchronous.close())
        finally:
            self._loop.stop()

    def __exit__(self, *error: Any) -> None:
        self.close()


class BlockingConsumer(SyncProxy):
    """A consumer that is iterated with `for`."""

    def __iter__(self) -> Iterator[ReceivedMessage]:
        return self._messages(None)

    def _messages(self, until: Event | None) -> Iterator[ReceivedMessage]:
        consumer: TopicConsumer = self.asynchronous
        while until is None or not until.is_set():
            batch = self._loop.run(consumer.next_batch(None if until is None else LOOK_SECONDS))
            for place, message in enumerate(batch, 1):
                if consumer.hand(message, place == len(batch)):
                    self._loop.run(consumer.settle(message))
                yield message
                if consumer.finish(message, place == len(batch)):
                    self._loop.run(consumer.settle(message))
                if until is not None and until.is_set():
                    break

    def consume(self, callback: Callable[[ReceivedMessage], object], until: Event | None = None) -> None:
        """Call `callback` for one message after the other, until the event is set, which is looked at ten times a second;
        then what is due is stored."""
        for message in self._messages(until or Event()):
            callback(message)
        self._loop.run(self.asynchronous.store_pending())


def connect(url: str, **arguments: Any) -> "SyncClient":
    """As `headwater.iggy_client.client.connect`, blocking."""
    loop = LoopThread()
    try:
        return cast("SyncClient", BlockingClient(loop, loop.run(asynchronous.connect(url, **arguments))))
    except BaseException:
        loop.stop()
        raise
