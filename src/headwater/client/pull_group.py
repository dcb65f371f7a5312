"""A client's place in a priority group of a pull consumer (ADR-42 of NATS): what its requests say, and its pin.

    overflow        a request waits until as much is pending, or unacknowledged, as it says
    prioritized     waiting requests are served by their priority, 0 first
    pinned_client   one client gets everything: its messages carry `Nats-Pin-Id`, which it repeats in its requests.
                    Others wait. Its pin ends when it is silent for priority_timeout, or by `unpin_consumer`; then its
                    requests end with one of

                        423 Nats-Pin-Id mismatch, 423 Nats-Wrong-Pin-Id       ask again, as one of those who wait

The server writes its header behind those that the message was stored with, so the last one is the server's. A publisher may
have written one where no client is pinned: the server refuses that id (400), and ids are no longer followed.
"""

from headwater.errors import LocalProtocolError
from headwater.model.message import Message
from headwater.model.status import Status

_PIN = b"\r\nNats-Pin-Id: "
_PIN_IS_LOST = 423
_NO_PINS_HERE = "Not a Pinned Client Priority consumer"


class PullGroup:
    """One client's place in a group, kept from request to request. `name` "": the consumer has no groups."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.turn = 0  # counts how often a pin came or went: odd while there is one
        self._pin = ""
        self._follows = True

    def wishes(self, *, min_pending: int, min_ack_pending: int, priority: int) -> dict[str, object]:
        """The members that each request of a reader has, beside the pin. Raises LocalProtocolError for a wish without a
        group."""
        wanted = {"min_pending": min_pending, "min_ack_pending": min_ack_pending, "priority": priority}
        wanted = {name: value for name, value in wanted.items() if value}
        if self.name:
            return {"group": self.name, **wanted}
        if wanted:
            hint = "jetstream.pull_consumer(stream, name, group=...)"
            raise LocalProtocolError(
                f"{', '.join(wanted)}: only for members of a priority group", value=wanted, hint=hint
            )
        return {}

    @property
    def pin(self) -> dict[str, object]:
        """The member of a request that has the pin."""
        return {"id": self._pin} if self._pin else {}

    def note(self, message: Message) -> None:
        """A message came: it may bring the pin."""
        if self._pin or not self._follows or not self.name:
            return
        block = message.header_block
        start = block.rfind(_PIN)
        if start >= 0:
            start += len(_PIN)
            self._change(block[start : block.find(b"\r\n", start)].decode("utf-8", "replace"))

    def gives_up(self, status: Status, turn: int) -> bool:
        """Whether a request that was sent in this `turn` ended because its pin does not count: it is to be sent again. A
        request without a pin ends so, too, when it has brought one that was then taken away."""
        its_own = turn | 1
        if its_own > self.turn:
            return False
        if (status.description or "").endswith(_NO_PINS_HERE):
            self._follows = False
        elif status.code != _PIN_IS_LOST:
            return False
        if its_own == self.turn:
            self._change("")
        return True

    def _change(self, pin: str) -> None:
        self._pin = pin
        self.turn += 1
