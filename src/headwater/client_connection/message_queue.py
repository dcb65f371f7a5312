# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The queue of messages of one subscription that wait to be read. Compiled if possible: all of it runs once per message.

    arrived   [ m4 m5 m6 ]   the reader of the connection appends here
    reading   [ m3 m2 m1 ]   the part that is being read, turned round: its end is the oldest message

When `reading` is empty the two are swapped. So taking one message is a pop from the end of a list, and taking
everything returns a whole list.

With `columns` no message objects are made: messages are appended to column buffers.

A full queue drops the next message (or, with `drop_oldest`, the oldest), counts it, and reports it once per overrun:
the reader never waits for the program, or the whole connection would stall and the server would close it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import cython

if cython.compiled:
    from cython.cimports.headwater.model.message import Message
    from cython.cimports.headwater.wire.message_columns import MessageColumns
    from cython.cimports.headwater.wire.message_view import MessageView
else:
    from headwater.model.message import Message
    from headwater.wire.message_columns import MessageColumns
    from headwater.wire.message_view import MessageView

PENDING_MESSAGES: int = 512 * 1024  # limits of nats.go and nats-py for what waits in one subscription
PENDING_BYTES: int = 128 << 20


class MessageQueue:
    """The queue of subscription `sid`. `Subscription` extends it and overrides the hooks below.

    With `direct`, messages are not queued: each is passed to it in the reader's turn. For parts of the client, which
    neither block nor raise (an exception is reported, and ends nothing).
    """

    def __init__(self, sid: int, direct: Callable[[Message], object] | None = None) -> None:
        self.sid = sid
        self.received = 0
        self.dropped = 0
        self.maximum = 0
        self.max_pending = PENDING_MESSAGES
        self.max_pending_bytes = PENDING_BYTES
        self.pending_bytes = 0
        self.touched = False
        self.overrun = False
        self.drop_oldest = False
        self.direct = direct
        self.columns: MessageColumns | None = None
        self.arrived: list[Message] = []
        self.reading: list[Message] = []
        self.last_subject = ""
        self.last_subject_bytes = b""

    def add(self, message: Message, size: cython.Py_ssize_t) -> cython.int:
        """Take a message of `size` bytes off the wire."""
        self.received += 1
        if self.direct is not None:
            try:
                self.direct(message)
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - or it would end the connection
                self.callback_failed(error)
        elif (
            len(self.arrived) + len(self.reading) >= self.max_pending
            or self.pending_bytes + size > self.max_pending_bytes
        ):
            self.full(message, size)
        else:
            self.arrived.append(message)
            self.pending_bytes += size
        if self.maximum > 0 and self.received >= self.maximum:
            self.maximum_reached()
        return 0

    def add_row(self, message: MessageView) -> cython.int:
        """Take a message off the wire into `columns`."""
        size: cython.Py_ssize_t = message.end - message.headers
        columns: MessageColumns | None = self.columns
        if columns is None:
            return 0
        self.received += 1
        if columns.rows >= self.max_pending or self.pending_bytes + size > self.max_pending_bytes:
            self.dropped += 1
            if not self.overrun:
                self.overrun = True
                self.overrun_began()
        else:
            columns.append(message)
            self.pending_bytes += size
        if self.maximum > 0 and self.received >= self.maximum:
            self.maximum_reached()
        return 0

    def full(self, message: Message, size: cython.Py_ssize_t) -> cython.int:
        """There is no room for `message`: drop it, or with `drop_oldest` as many old ones as make room for it."""
        if not self.overrun:
            self.overrun = True
            self.overrun_began()
        if not self.drop_oldest or size > self.max_pending_bytes:
            self.dropped += 1
            return 0
        while len(self.arrived) + len(self.reading) > 0 and (
            len(self.arrived) + len(self.reading) >= self.max_pending
            or self.pending_bytes + size > self.max_pending_bytes
        ):
            self.turn_round()
            oldest: Message = self.reading.pop()
            self.pending_bytes -= len(oldest.data) + len(oldest.header_block)
            self.dropped += 1
        self.arrived.append(message)
        self.pending_bytes += size
        return 0

    @property
    def pending(self) -> int:
        """The number of messages that wait to be read."""
        if self.columns is not None:
            return self.columns.rows
        return len(self.arrived) + len(self.reading)

    def pop(self) -> Message:
        """The oldest message; there must be one."""
        message: Message
        self.turn_round()
        message = self.reading.pop()
        self.pending_bytes -= len(message.data) + len(message.header_block)
        if self.overrun:
            self.end_overrun()
        return message

    def take(self, maximum: cython.Py_ssize_t) -> list[Message]:
        """The oldest messages, at most `maximum`; in one piece when nothing of them was read yet."""
        taken: list[Message]
        if len(self.reading) == 0 and len(self.arrived) <= maximum:
            taken = self.arrived
            self.arrived = []
            self.pending_bytes = 0
            self.overrun = False
            return taken
        taken = []
        while len(taken) < maximum and (len(self.reading) > 0 or len(self.arrived) > 0):
            taken.append(self.pop())
        return taken

    def call(self, callback: Callable[[Message], Any], most: cython.Py_ssize_t) -> Any:
        """Pass at most `most` waiting messages to `callback`.

        Returns the first result of it that is not None, which may have to be awaited before the next message; else None.
        """
        message: Message
        result: Any
        while most > 0 and (len(self.reading) > 0 or len(self.arrived) > 0):
            most -= 1
            message = self.pop()
            try:
                result = callback(message)
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the program's own, and reported to it
                self.callback_failed(error)
                continue
            if result is not None:
                return result
        return None

    def turn_round(self) -> cython.int:
        """Fill `reading`, if any message waits."""
        if len(self.reading) == 0:
            self.reading = self.arrived
            self.reading.reverse()
            self.arrived = []
        return 0

    def end_overrun(self) -> cython.int:
        """End an overrun when half the room is free, so that the next one is reported again."""
        if 2 * self.pending <= self.max_pending and 2 * self.pending_bytes <= self.max_pending_bytes:
            self.overrun = False
        return 0

    # ── iteration ──

    async def __aiter__(self) -> AsyncIterator[Message]:
        """Each message. One generator serves the whole iteration; no coroutine is made for a message that is there."""
        while True:
            while len(self.reading) == 0 and len(self.arrived) == 0:
                if not await self.more():
                    return
            yield self.pop()

    # ── for Subscription to say ──

    async def more(self) -> bool:
        """Wait until a message may have arrived; False when none will."""
        return False

    def maximum_reached(self) -> object:
        """`maximum` messages were received."""

    def overrun_began(self) -> object:
        """The queue was full for the first time since it last had room."""

    def callback_failed(self, error: BaseException) -> object:
        """`direct`, or the program's callback, raised."""

    def wake(self) -> object:
        """Messages have arrived; called once per read of the connection."""
