"""A link without a socket: what the router and a session need of one, with the knobs that a test turns."""

import asyncio

from headwater.exchange.sublist import Outlet
from headwater.wire.memory import OutputBuffer


class FakeLink:
    """Keeps everything that was flushed in `flushed`; `waiting` is added to what counts as pending."""

    def __init__(self, peer: str = "127.0.0.1:9") -> None:
        self.output = OutputBuffer()
        self.flushed = b""
        self.waiting = 0
        self.peer = peer
        self.sent = 0
        self.closed = False
        self.aborted = False
        self.reading = True
        self.read_again = 0
        self.reads_large = self.reads_unheard = False
        self.op_size = 0
        self.layer = None
        self.closing = False
        self._draining: asyncio.Future[None] | None = None

    @property
    def pending(self) -> int:
        return self.output.size + self.waiting

    def read_large(self, large: bool, op_size: int, unheard: bool = False) -> None:
        self.reads_large, self.op_size, self.reads_unheard = large, op_size, unheard

    def flush(self) -> None:
        if not self.closed:
            self.flushed += self.output.take()

    def flush_soon(self) -> None:
        self.flush()

    def close(self) -> None:
        self.flush()
        self.closed = True

    def abort(self) -> None:
        self.aborted = True

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def read_on(self) -> None:
        self.read_again += 1

    def draining(self) -> asyncio.Future[None]:
        self._draining = self._draining or asyncio.get_running_loop().create_future()
        return self._draining

    def drained(self) -> None:
        """Little waits for the peer now."""
        assert self._draining is not None
        self._draining.set_result(None)

    def fail(self, error: Exception) -> None:
        """The connection is lost."""
        assert self._draining is not None
        self._draining.set_exception(error)

    def take_flushed(self) -> bytes:
        """What was flushed since the last call."""
        flushed, self.flushed = self.flushed, b""
        return flushed


def make_outlet(*, headers: bool = True, echo: bool = True) -> tuple[FakeLink, Outlet]:
    """A link and the outlet of a client on it."""
    link = FakeLink()
    outlet = Outlet(link, link.output)
    outlet.headers = headers
    outlet.echo = echo
    return link, outlet
