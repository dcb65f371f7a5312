"""The inline status of a header block: `NATS/1.0 503 No Responders`.

A server (or a service acting as one) sends a status instead of data: idle heartbeat, no responders, end of a batch. It
belongs to the message, never to the header map: clients that merge the two mistake a user header `Status: 503` for a
missing responder.
"""

from typing import NamedTuple


class Status(NamedTuple):
    """`code` is 100-999; `description` is the rest of the line without outer spaces, None when there is none."""

    code: int
    description: str | None = None

    def __str__(self) -> str:
        return f"{self.code} {self.description}" if self.description else str(self.code)


IDLE_HEARTBEAT = 100  # also flow control: the description tells them apart
OK = 200
NO_CONTENT = 204  # also the end of a batch (`204 EOB`)
NOT_FOUND = 404
REQUEST_TIMEOUT = 408
CONFLICT = 409
NO_RESPONDERS = 503
