"""Carries messages between accounts: stream and service imports.

    stream    a client of the importer subscribes to "eu.orders.*"
              ─▶ a shadow in the exporter's router, on "orders.*", delivers to that one subscription under its own name

    service   a client of the importer sends a request to "local.price", reply _INBOX.7
              ─▶ the exporter gets it on "price", reply _R_.Ab3dEf.x1, with the header Nats-Request-Info: the client
              ─▶ a reply to _R_.Ab3dEf.x1 goes back to _INBOX.7
              a request from another broker of the cluster was already passed on there

    JetStream delivers to an inbox but shows the subject that a message was stored with (`Router.route_under`): such a
    message crosses by its inbox, and keeps the shown subject and its ack subject.

A shadow lives as long as its subscription and has its queue group, so that interest, "no responders" and clusters work
as in one account. Shadows are not shadowed again: as in nats-server, streams do not cross two accounts in a row. A
request may; `replies` leads its reply back.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.exchange.account import Account
from headwater.exchange.replies import ACK_PREFIX, RESPONSE_SECONDS
from headwater.exchange.router import Router
from headwater.exchange.sublist import Callback, Subscription, TracedCallback
from headwater.model.header_edits import with_header
from headwater.model.message_trace import DESTINATION, DISABLED
from headwater.model.request_info import with_request_info
from headwater.model.subject_rename import SubjectRename, common_pattern
from headwater.wire.message_view import composed

if TYPE_CHECKING:
    from headwater.message_tracing.message_trace import MessageTrace
    from headwater.options.import_rules import CheckedImport


class StreamImports:
    """The stream imports of `account`; `home` is its router, which reports every subscription to this object."""

    def __init__(self, home: Router, account: str) -> None:
        self._home = home
        self._account = account
        self._imports: list[tuple[SubjectRename, Router, bool]] = []
        self._shadows: dict[Subscription, list[tuple[Router, Subscription]]] = {}

    def add(self, rename: SubjectRename, exporter: Router, *, allow_trace: bool = False) -> None:
        """Import from `exporter`, for subscriptions made from now on. `allow_trace`: traces continue in this account."""
        self._imports.append((rename, exporter, allow_trace))

    def subscribed(self, subscription: Subscription) -> None:
        """A client has subscribed: make shadows for the imported part of the subscription."""
        for rename, exporter, allow_trace in self._imports:
            wanted = common_pattern(subscription.subject, rename.local)
            if wanted is not None:
                deliver = self._delivery(subscription, rename, exporter)
                there = rename.to_remote(wanted)
                shadow = exporter.subscribe_between(there, deliver, subscription.queue, announce=True)
                shadow.traced = self._traced_delivery(
                    subscription, rename, shadow, exporter, deliver if not allow_trace else None
                )
                self._shadows.setdefault(subscription, []).append((exporter, shadow))

    def unsubscribed(self, subscription: Subscription) -> None:
        """A subscription has ended: end its shadows."""
        for exporter, shadow in self._shadows.pop(subscription, ()):
            exporter.unsubscribe(shadow)

    def close(self) -> None:
        """End all imports."""
        for subscription in list(self._shadows):
            self.unsubscribed(subscription)
        self._imports.clear()

    def _delivery(
        self, origin: Subscription, rename: SubjectRename, exporter: Router
    ) -> Callable[[bytes, bytes, bytes, bytes], object]:
        home, callback = self._home, origin.callback

        def deliver(subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> object:
            inbox = exporter.inbox
            local = subject if inbox else rename.to_local(subject)
            if callback is not None:  # a mirror, say, which stores the message under the subject that it shows
                before, home.inbox = home.inbox, rename.to_local(inbox) if inbox else b""
                try:
                    return callback(local, reply, header_block, payload)
                finally:
                    home.inbox = before
            return home.deliver_to(origin, local, reply, header_block, payload)

        return deliver

    def _traced_delivery(
        self,
        origin: Subscription,
        rename: SubjectRename,
        shadow: Subscription,
        exporter: Router,
        untraced: Callback | None,
    ) -> TracedCallback:
        """The callback for traced messages; `untraced`: the callback to use if the trace must end here."""
        home, account = self._home, self._account

        def deliver(trace: "MessageTrace", subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> object:
            local = subject if exporter.inbox else rename.to_local(subject)
            trace.exported(account, local)
            if untraced is not None:
                return True if trace.only else untraced(subject, reply, header_block, payload)
            from headwater.message_tracing.routing import TracedRouting  # here: few programs ever trace a message

            message = composed(local, reply, header_block, payload)
            message.trace = trace
            return TracedRouting(home, None, False, message, False).give(origin, shadow.subject)

        return deliver


class ServiceImport:
    """One imported service. Subscribes to its local name in the importing account.

    Ignores messages from a route (`Router.over_route`): the client's own broker has passed them on.
    """

    def __init__(self, importer: Account, exporter: Account, checked: "CheckedImport") -> None:
        self._importer = importer
        self._exporter = exporter
        self._rename = checked.rename
        self._share = checked.options.share
        self._many = checked.export.response != "singleton"
        self._seconds = checked.export.response_threshold or RESPONSE_SECONDS
        self._allows_traces = checked.export.allow_trace
        exporter.replies.announce()
        self._listening = importer.router.subscribe_between(
            checked.rename.local, self._on_request, announce=False, to_leafs=True, traced=self._on_traced
        )

    def close(self) -> None:
        """End the import."""
        self._importer.router.unsubscribe(self._listening)

    def _on_request(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        """Pass a request on. False if the other account has no interest in it."""
        return self._pass_on(None, b"", subject, reply, header_block, payload)

    def _on_traced(
        self, trace: "MessageTrace", subject: bytes, reply: bytes, header_block: bytes, payload: bytes
    ) -> bool:
        """Pass a traced request on. Its trace ends here unless the export allows traces; then other brokers report to a
        subject in the exporter's account that leads back.
        """
        if self._importer.router.over_route:
            return False
        there = self._exporter
        trace.imported(there.name, subject, self._rename.to_remote(subject))
        if not self._allows_traces:
            return not trace.only and self._pass_on(None, DISABLED, subject, reply, header_block, payload)
        back = there.replies.make(
            self._importer.router, trace.destination, self._importer.replies, many=True, seconds=RESPONSE_SECONDS
        )
        with trace.within(there.name, back):
            return self._pass_on(trace, back, subject, reply, header_block, payload)

    def _pass_on(
        self,
        trace: "MessageTrace | None",
        destination: bytes,
        subject: bytes,
        reply: bytes,
        header_block: bytes,
        payload: bytes,
    ) -> bool:
        """Pass a request on. `destination`: the new value of `Nats-Trace-Dest`; b"" to keep the old one."""
        if self._importer.router.over_route:
            return False
        from headwater.exchange.client_info import request_info  # here: a node of a cluster starts without `datetime`

        steering = reply if reply.endswith(b".$FI") else b""  # of a fast-ingest batch; only the stream reads it
        info = request_info(self._importer, self._importer.router.publisher, self._share, steering)
        block = with_request_info(header_block, info)
        if destination:
            block = with_header(block, DESTINATION, destination)
        there, alias = self._exporter, reply
        if reply and not reply.startswith(ACK_PREFIX):
            alias = there.replies.make(
                self._importer.router, reply, self._importer.replies, many=self._many, seconds=self._seconds
            )
        message = composed(self._rename.to_remote(subject), alias, block, payload)
        message.trace = trace
        router = there.router
        reached = router.route(None, router.sublist.find(message.buffer, 0, message.subject_end), message) > 0
        if alias is not reply and not (reached and (trace is None or not trace.only)):
            there.replies.forget(alias)
        return reached
