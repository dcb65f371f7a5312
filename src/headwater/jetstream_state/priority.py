"""Priority groups (ADR-42 of NATS): chooses the waiting pull request that gets the next message.

    overflow        one that named min_pending or min_ack_pending only when so much is pending, or waits for acks
    pinned_client   one client at a time: the first that is served is given an id, sent with each message, and brings it
                    along; it loses its place when priority_timeout passes without a request of its, or by UNPIN
    prioritized     the lowest number first, each request to its end

One client is pinned for all groups of a consumer, as in nats-server. A pin does not survive a restart. No clock and no
randomness: times are ns of a monotonic clock, and the caller supplies ids.
"""

from collections.abc import Callable
from typing import Final

from headwater.jetstream_documents.consumers import ConsumerConfig, PriorityGroupState
from headwater.jetstream_documents.pull_requests import RequestQueue, Waiting
from headwater.model.header_edits import with_lines
from headwater.model.timestamps import ZERO, format_time

ADMIN: Final = "admin"  # reasons for unpinning: an UNPIN request, or time
TIMEOUT: Final = "timeout"


class PriorityGroups:
    """The groups of one consumer. `make_id()` returns a new pin id. `on_pinned(id)` and `on_unpinned(group, reason)`
    are called on changes; `on_lost(request)` for a queued request whose pin is not valid any more."""

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
        self._until = 0  # the pin is valid until then
        self._pinned_at_ns = 0
        self._make_id = make_id
        self._on_pinned = on_pinned
        self._on_unpinned = on_unpinned
        self._on_lost = on_lost

    def configure(self, config: ConsumerConfig) -> None:
        """Apply a configuration; a change of policy unpins the client."""
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
        """Whether the next served request gets a pin."""
        return self._policy == "pinned_client" and not self.pin

    def shown(self) -> list[PriorityGroupState] | None:
        """The groups in CONSUMER.INFO: only the first, as in nats-server."""
        if not self.active:
            return None
        since = format_time(self._pinned_at_ns) if self.pin else ZERO
        return [PriorityGroupState(group=name, pinned_client_id=self.pin, pinned_ts=since) for name in self._groups[:1]]

    def has(self, group: str) -> bool:
        """Whether the consumer has this group."""
        return group in self._groups

    def note_request(self, pin: str, now: int) -> bool:
        """A request arrived, with a pin id or "". False if the id is not the pinned client's. Where none is pinned the
        request waits: `choose` ends it when there is a message."""
        if not pin or not self.pin or self._policy != "pinned_client":
            return True
        if pin != self.pin:
            return False
        self._until = now + self._timeout
        return True

    def choose(self, queue: RequestQueue, pending: int, awaiting_acks: int) -> Waiting | None:
        """Move the request that gets the next message to the front of the queue and return it; None if there is none."""
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
        """The request is about to be served: pin its client if none is pinned."""
        if self.needs_pin:
            self.pin = self._make_id()
            self._until, self._pinned_at_ns = now + self._timeout, time_of_day
            request.pin = self.pin
            self._on_pinned(self.pin)

    def unpin(self, group: str, reason: str = ADMIN) -> None:
        """Unpin the client."""
        self.pin, self._until = "", 0
        self._on_unpinned(group, reason)

    def expire(self, now: int) -> None:
        """Unpin the client if its time is over."""
        if 0 < self._until <= now:
            self.unpin(self._groups[0], TIMEOUT)

    def next_end(self) -> int:
        """The time at which `expire` has something to do; 0: never."""
        return self._until


def _overflows(request: Waiting, pending: int, awaiting_acks: int) -> bool:
    if request.min_pending <= 0 and request.min_ack_pending <= 0:
        return True
    return 0 < request.min_pending <= pending or 0 < request.min_ack_pending <= awaiting_acks


def with_pin(block: bytes, pin: str) -> bytes:
    """The header block of a delivery to a pinned client."""
    return with_lines(block, b"Nats-Pin-Id: %b" % pin.encode())
