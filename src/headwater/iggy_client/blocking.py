"""An Iggy client without an event loop: requests with answers, and pipelined polls.

Spark plans and reads in processes that run one thing at a time; there the asyncio client would be cost without use. The
bytes are those of `requests` and `command_codec`, the same as the asyncio client's.

    execute            one command, its view
    ask ... answer     send a command and go on; answers come in the order of the questions (others are an error), and lie
                       in `buffer` until `consume`: a reader decodes a poll where it was received, without a copy

There is no reconnect: a lost connection raises TransportError, and the owner, which has the position, connects again. A
refusal is an IggyError with the server's number. One thread at a time.
"""

import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from headwater.errors import ConnectionClosed, IggyError, RequestTimeout
from headwater.iggy_client.requests import Requests, body_of
from headwater.iggy_wire import command_codec, reply_codec, vsr_frames
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.batches import of_messages
from headwater.iggy_wire.classic_codec import write_address
from headwater.iggy_wire.commands import Code, Command, Message
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.identifiers import Identifier, Partitioning
from headwater.iggy_wire.reply_codec import SentView, TopicView
from headwater.iggy_wire.vsr_frames import Reply
from headwater.net.blocking import BlockingConnection, deadline_after

if TYPE_CHECKING:
    import ssl


class BlockingIggy:
    """A connected client that is logged in; make one with `connect`. `requests` counts the requests sent."""

    def __init__(self, connection: BlockingConnection, timeout: float) -> None:
        self.requests = 0
        self._connection = connection
        self._timeout = timeout
        self._out = Requests()
        self._outstanding: deque[tuple[Code, int]] = deque()

    @classmethod
    def connect(
        cls,
        host: str,
        port: int,
        login: c.Login | c.LoginWithToken,
        timeout: float,
        tls: "ssl.SSLContext | None" = None,
    ) -> Self:
        """Raises TransportError when the server cannot be reached, IggyError when it refuses."""
        connection = BlockingConnection.dial(host, port, deadline_after(timeout))
        client = cls(connection, timeout)
        try:
            if tls is not None:
                connection.secure(tls, host, deadline_after(timeout))
            client._out.login = client.execute(login).login
        except BaseException:
            client.close()
            raise
        return client

    @property
    def closed(self) -> bool:
        return self._connection.closed

    @property
    def buffer(self) -> bytearray:
        """The buffer of the answers; it may be another object after each `answer` and `consume`."""
        return self._connection.received.data

    def close(self) -> None:
        self._connection.close()

    def execute(self, command: Command) -> Any:
        """Execute one command; returns its view, None for an empty answer. No request may be outstanding."""
        code, body = command_codec.encode(command, Era.V)
        return reply_codec.decode(code, self._exchange(code, body), Era.V)

    def topic(self, stream: str, topic: str) -> TopicView | None:
        """A topic with its partitions; None when there is none."""
        view: TopicView | None = self.execute(c.GetTopic(Identifier(stream), Identifier(topic)))
        return view

    def send(self, stream: str, topic: str, partition: int, batch: Sequence[Message]) -> SentView:
        """Send messages as one batch, stored on return. Raises IggyError, HeaderError, TransportError."""
        body, count = of_messages(batch, time.time_ns() // 1000)
        where = c.SendMessages(Identifier(stream), Identifier(topic), Partitioning.partition(partition), count)
        answer = self._exchange(Code.SEND_MESSAGES, write_address(where), body)
        sent: list[SentView] = reply_codec.decode(Code.SEND_MESSAGES, answer, Era.V)
        return sent[0]

    def ask(self, command: Command) -> None:
        """Send a request; its answer follows those of earlier ones."""
        self._ask(*command_codec.encode(command, Era.V))

    def answer(self, deadline: float) -> Reply:
        """The answer to the oldest outstanding request: `buffer[reply.start:reply.end]`, until `consume`.

        Raises RequestTimeout, TransportError (the connection is then unusable) and IggyError for a refusal.
        """
        received = self._connection.received
        while True:
            found = vsr_frames.find_reply(received.data, 0, received.filled)
            if not isinstance(found, int):
                break
            received.expect(found)
            if not self._connection.receive(deadline) and time.monotonic() >= deadline:
                raise RequestTimeout(
                    f"no answer to {self._outstanding[0][0].name.lower()}", value=self._connection.address
                )
        code, number = self._outstanding.popleft()
        if found.request != number:  # upstream's server may answer a later one first
            self.close()
            text = f"the server answered request {found.request} where {number}, {code.name.lower()}, was the next one"
            raise ConnectionClosed(text, value=self._connection.address)
        try:
            return body_of(found, received.data)
        except IggyError:
            received.consume(found.end)
            raise

    def consume(self, reply: Reply) -> None:
        """Release the answer."""
        self._connection.received.consume(reply.end)

    def _exchange(self, code: Code, *pieces: bytes | bytearray) -> bytes:
        self._ask(code, *pieces)
        reply = self.answer(deadline_after(self._timeout))
        body = bytes(memoryview(self.buffer)[reply.start : reply.end])
        self.consume(reply)
        return body

    def _ask(self, code: Code, *pieces: bytes | bytearray) -> None:
        head = self._out.write(code, pieces)
        self.requests += 1
        self._outstanding.append((code, self._out.number))
        self._connection.send(b"".join((head, *pieces)), deadline_after(self._timeout))
