"""`Router.route_here` for a traced message: the same receivers, one at a time, each recorded with the reason if it got
nothing. It is separate from the compiled router so that it can be imported on first use.
"""

import random

from headwater.message_tracing.message_trace import MessageTrace
from headwater.message_tracing.seen import SeenMatch, SeenOutlet, SeenRouter, SeenSubscription
from headwater.model.message_trace import CLIENT_CLOSED, NO_ECHO, SUBSCRIPTION_CLOSED, SUBSCRIPTION_DENIED
from headwater.wire.memory import slice_bytes
from headwater.wire.message_view import MessageView


class TracedRouting:
    """Routes one message to the clients of this broker and to the broker's own subscriptions."""

    def __init__(
        self,
        router: SeenRouter,
        publisher: SeenOutlet | None,
        own_subject: bool,
        message: MessageView,
        over_route: bool,
    ) -> None:
        self._trace: MessageTrace = message.trace
        self._router = router
        self._publisher = publisher
        self._own_subject = own_subject
        self._message = message
        self._over_route = over_route

    def route(self, match: SeenMatch, elsewhere: list[bytes] | None) -> int:
        """See `Router.route_here`."""
        deliveries = sum(map(self.give, match.plain))
        for queue, members in zip(match.queues, match.groups, strict=True):
            if elsewhere is None or queue not in elsewhere:
                first = random.randrange(len(members))
                deliveries += any(map(self.give, [*members[first:], *members[:first]]))
        return deliveries

    def give(self, subscription: SeenSubscription, subject: bytes = b"") -> bool:
        """Deliver to one subscription; False when no receiver was reached. `subject`: see `MessageTrace.delivered`."""
        outlet = subscription.outlet
        if outlet is None:
            return self._call(subscription)
        guard, error = outlet.guard, ""
        if not outlet.echo and outlet is self._publisher:
            error = NO_ECHO
        elif guard is not None and not guard.lets_through(self._message, subscription.queue):
            error = SUBSCRIPTION_DENIED
        elif subscription.closed:
            error = SUBSCRIPTION_CLOSED
        elif outlet.closed:
            error = CLIENT_CLOSED
        self._trace.delivered(subscription, error, subject)
        if error or self._trace.only:
            return not error
        return self._router.deliver_view(subscription, self._publisher, self._own_subject, self._message)

    def _call(self, subscription: SeenSubscription) -> bool:
        """Call one of the broker's own subscriptions, with the trace if it records steps; others are not called when the
        message is only traced.
        """
        message, router = self._message, self._router
        block = slice_bytes(message.buffer, message.headers, message.payload)
        payload = slice_bytes(message.buffer, message.payload, message.end)
        subject, reply = message.subject_bytes(), message.reply_bytes()
        if subscription.closed:
            return False
        if subscription.traced is None:
            if self._trace.only:
                return True
            return router.call_one(subscription, self._publisher, self._over_route, subject, reply, block, payload) == 1
        router.publisher, router.over_route = self._publisher, self._over_route
        try:
            return subscription.traced(self._trace, subject, reply, block, payload) is not False
        finally:
            router.publisher, router.over_route = None, False
