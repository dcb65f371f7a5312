"""A layer between the bytes of the wire and the bytes of NATS: TLS or WebSocket.

    wire ──feed──▶ layer ──read_into──▶ owner              a layer does no I/O and keeps no clock:
    wire ◀──take── layer ◀────write──── owner              the link moves the bytes

A layer raises TransportError for bytes that violate its protocol; `take` then returns its final bytes.
"""

from typing import Protocol

_SCRATCH = 1 << 16  # bytes handed from one layer to the next at a time


class Layer(Protocol):
    """The state of one connection in one layer."""

    @property
    def ready(self) -> bool:
        """Whether `write` may be called; until then the owner's output waits."""

    @property
    def ended(self) -> bool:
        """Whether the peer has ended its side in order."""

    def feed(self, data: memoryview) -> None:
        """Bytes from the wire. Raises TransportError when they violate the protocol."""

    def read_into(self, space: memoryview) -> int:
        """Write decoded bytes to `space`; returns their number, 0 if there are none."""

    def write(self, data: memoryview) -> None:
        """Encode bytes for the peer. All of `data` is taken."""

    def take(self) -> bytes:
        """Remove and return the encoded bytes to send; b"" if there are none."""

    def finish(self) -> None:
        """End our side of the connection. `write` must not be called afterwards."""


class Stack:
    """Two layers as one: WebSocket (`upper`) in TLS (`lower`)."""

    def __init__(self, lower: Layer, upper: Layer) -> None:
        self.lower = lower
        self.upper = upper
        self._scratch = memoryview(bytearray(_SCRATCH))

    @property
    def ready(self) -> bool:
        return self.lower.ready and self.upper.ready

    @property
    def ended(self) -> bool:
        return self.lower.ended or self.upper.ended

    def feed(self, data: memoryview) -> None:
        self.lower.feed(data)
        while size := self.lower.read_into(self._scratch):
            self.upper.feed(self._scratch[:size])

    def read_into(self, space: memoryview) -> int:
        return self.upper.read_into(space)

    def write(self, data: memoryview) -> None:
        self.upper.write(data)

    def take(self) -> bytes:
        if self.lower.ready and (encoded := self.upper.take()):
            self.lower.write(memoryview(encoded))
        return self.lower.take()

    def finish(self) -> None:
        if self.lower.ready:
            self.upper.finish()
            if encoded := self.upper.take():
                self.lower.write(memoryview(encoded))
        self.lower.finish()
