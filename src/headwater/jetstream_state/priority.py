"""Priority groups (ADR-42 of NATS): which of the pull requests that wait may have the next message.

    overflow        one that named min_pending or min_ack_pending only when so much is pending, or waits for acks
    pinned_client   one client at a time: the first that is served is given an id, sent with each message, and brings it
                    along; it loses its place when priority_timeout passes without a request of its, or by UNPIN
    prioritized     the lowest number first, each request to its end

One client is pinned for all groups of a consumer, as in nats-server. A pin does not outlive the server. Refused here: a
clock of its own and randomness; times are ns of a clock that is never set, ids are made up by the caller.
"""

from collections.abc import Callable
from typing import Final

from headwater.jetstream_documents.consumers import ConsumerConfig, PriorityGroupState
from headwater.jetstream_documents.pull_requests import RequestQueue, Waiting
from headwater.model.timestamps import ZERO, format_time

ADMIN: Final = "admin"  # why a client is pinned no longer: UNPIN, or time
TIMEOUT: Final = "timeout"


class PriorityGroups:
    """Of one consumer. `make_id()` gives a new pin. `on_pinned(id)` and `on_unpinned(group, reason)` are called when that
    changes; `on_lost(request)` for a request in the queue whose pin is not valid any more."""

    def __init__(
        self,
        make_id: Callable[[], str],
        on_pinned: Callable[[str], None],
        on_unpinned: Callable[[str, str], None],
        on_lost: Callable[[Waiting], None],
    ) -> None:
        self.pin = ""
        self._groups: list[str] = []
        self._policy = ""
        self._timeout = 0
        self._until = 0  # the pin holds until then
        self._pinned_at_ns = 0
        self._make_id = make_id
        self._on_pinned = on_pinned
        self._on_unpinned = on_unpinned
        self._on_lost = on_lost

    def configure(self, config: ConsumerConfig) -> None:
        """Follow a configuration; who was pinned by another policy is not."""
        if config.priority_policy != self._policy:
            self.pin, self._until = "", 0
        self._groups, self._policy = config.priority_groups or [], config.priority_policy
        self._timeout = config.priority_timeout

    @property
    def active(self) -> bool:
        """Whether there are groups at all."""
        return bool(self._policy)

    @property
    def needs_pin(self) -> bool:
        """Whether the next request that is served is pinned."""
        return self._policy == "pinned_client" and not self.pin

    def shown(self) -> list[PriorityGroupState] | None:
        """What CONSUMER.INFO says: of the first group only, as nats-server does."""
        if not self.active:
            return None
        since = format_time(self._pinned_at_ns) if self.pin else ZERO
        return [PriorityGroupState(group=name, pinned_client_id=self.pin, pinned_ts=since) for name in self._groups[:1]]

    def has(self, group: str) -> bool:
        """Whether the consumer has this group."""
        return group in self._groups

    def note_request(self, pin: str, now: int) -> bool:
        """A request came, with an id or "". False when that is not the id of who is pinned."""
        if not pin or self._policy != "pinned_client":
            return True
        if pin != self.pin:
            return False
        self._until = now + self._timeout
        return True

    def choose(self, queue: RequestQueue, pending: int, awaiting_acks: int) -> Waiting | None:
        """Bring the request that may have the next message to the front of the queue; None when none of them may."""
        if self._policy == "overflow":
            return queue.bring_first(lambda request: _overflows(request, pending, awaiting_acks))
        if self._policy == "prioritized":
            lowest = queue.lowest_priority()
            return queue.bring_first(lambda request: request.priority == lowest)
        for lost in queue.take(lambda request: bool(request.pin) and request.pin != self.pin):
            self._on_lost(lost)
        if self.pin:
            return queue.bring_first(lambda request: request.pin == self.pin)
        return queue.first()

    def pinned(self, request: Waiting, now: int, time_of_day: int) -> None:
        """The request is about to be served: where no client is pinned, its own is from now on."""
        if self.needs_pin:
            self.pin = self._make_id()
            self._until, self._pinned_at_ns = now + self._timeout, time_of_day
            request.pin = self.pin
            self._on_pinned(self.pin)

    def unpin(self, group: str, reason: str = ADMIN) -> None:
        """Nobody is pinned from now on."""
        self.pin, self._until = "", 0
        self._on_unpinned(group, reason)

    def expire(self, now: int) -> None:
        """Unpin a client whose time is over."""
        if 0 < self._until <= now:
            self.unpin(self._groups[0], TIMEOUT)

    def next_end(self) -> int:
        """When `expire` has something to do; 0: never."""
        return self._until


def _overflows(request: Waiting, pending: int, awaiting_acks: int) -> bool:
    if request.min_pending <= 0 and request.min_ack_pending <= 0:
        return True
    return 0 < request.min_pending <= pending or 0 < request.min_ack_pending <= awaiting_acks


def with_pin(block: bytes, pin: str) -> bytes:
    """The header block of a delivery to a pinned client."""
    line = b"Nats-Pin-Id: %b\r\n\r\n" % pin.encode()
    return block.removesuffix(b"\r\n") + line if block else b"NATS/1.0\r\n" + line
