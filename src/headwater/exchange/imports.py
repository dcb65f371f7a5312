"""Imports between accounts at work: messages that cross from one subject space into another.

    stream    a client of the importer subscribes to "eu.orders.*"
              ─▶ a shadow in the exporter's router, on "orders.*", delivers to that one subscription under its own name

    service   a client of the importer sends a request to "local.price", reply _INBOX.7
              ─▶ the exporter gets it on "price", reply _R_.Ab3dEf.x1, with the header Nats-Request-Info: the client
              ─▶ what is sent to _R_.Ab3dEf.x1 goes back to _INBOX.7
              a request that came from another broker of the cluster was passed on there

    JetStream delivers to an inbox under the subject that a message was stored with (`Router.route_under`): what crosses
    follows the inbox and keeps that subject, and the reply by which it is acknowledged.

A shadow lives as long as its subscription and is in its queue group, so that interest, "no responders" and clusters work
as in one account; it is not shadowed again: streams do not cross two accounts in a row, as in nats-server. A request may;
its reply comes by `replies`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.exchange.account import Account
from headwater.exchange.replies import ACK_PREFIX, RESPONSE_SECONDS
from headwater.exchange.request_info import with_request_info
from headwater.exchange.router import Router
from headwater.exchange.sublist import Subscription
from headwater.model.subject_rename import SubjectRename, common_pattern

if TYPE_CHECKING:
    from headwater.exchange.import_rules import CheckedImport


class StreamImports:
    """Those of one importing account; `home` is its router, which reports every subscription to it."""

    def __init__(self, home: Router) -> None:
        self._home = home
        self._imports: list[tuple[SubjectRename, Router]] = []
        self._shadows: dict[Subscription, list[tuple[Router, Subscription]]] = {}

    def add(self, rename: SubjectRename, exporter: Router) -> None:
        """Import from `exporter`, for the subscriptions that are made from now on."""
        self._imports.append((rename, exporter))

    def subscribed(self, subscription: Subscription) -> None:
        """A client subscribed here: make shadows for the imported part of the subscription."""
        for rename, exporter in self._imports:
            wanted = common_pattern(subscription.subject, rename.local)
            if wanted is not None:
                deliver = self._delivery(subscription, rename, exporter)
                shadow = exporter.subscribe_between(
                    rename.to_remote(wanted), deliver, subscription.queue, announce=True
                )
                self._shadows.setdefault(subscription, []).append((exporter, shadow))

    def unsubscribed(self, subscription: Subscription) -> None:
        """The subscription ended: end its shadows."""
        for exporter, shadow in self._shadows.pop(subscription, ()):
            exporter.unsubscribe(shadow)

    def close(self) -> None:
        """Import nothing any more."""
        for subscription in list(self._shadows):
            self.unsubscribed(subscription)
        self._imports.clear()

    def _delivery(
        self, origin: Subscription, rename: SubjectRename, exporter: Router
    ) -> Callable[[bytes, bytes, bytes, bytes], object]:
        home, callback = self._home, origin.callback

        def deliver(subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> object:
            if callback is not None:
                return callback(rename.to_local(exporter.inbox or subject), reply, header_block, payload)
            local = subject if exporter.inbox else rename.to_local(subject)
            return home.deliver_to(origin, local, reply, header_block, payload)

        return deliver


class ServiceImport:
    """One service that an account imports. Listens under the local name.

    What came over a route is left alone (`Router.over_route`): the broker that its client is at has passed it on.
    """

    def __init__(self, importer: Account, exporter: Account, checked: "CheckedImport") -> None:
        self._importer = importer
        self._exporter = exporter
        self._rename = checked.rename
        self._share = checked.options.share
        self._many = checked.export.response != "singleton"
        self._seconds = checked.export.response_threshold or RESPONSE_SECONDS
        exporter.replies.announce()
        self._listening = importer.router.subscribe_between(
            checked.rename.local, self._on_request, announce=False, to_leafs=True
        )

    def close(self) -> None:
        """Import it no more."""
        self._importer.router.unsubscribe(self._listening)

    def _on_request(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        """Pass a request on. False when the other account has no interest in it."""
        if self._importer.router.over_route:
            return False
        from headwater.exchange.client_info import request_info  # here: a node of a cluster starts without `datetime`

        info = request_info(self._importer, self._importer.router.publisher, self._share)
        block = with_request_info(header_block, info)
        there, alias = self._exporter, b""
        if reply.startswith(ACK_PREFIX):
            return there.router.publish(self._rename.to_remote(subject), reply, block, payload) > 0
        if reply:
            alias = there.replies.make(
                self._importer.router, reply, self._importer.replies, many=self._many, seconds=self._seconds
            )
        reached = there.router.publish(self._rename.to_remote(subject), alias, block, payload) > 0
        if not reached and alias:
            there.replies.forget(alias)
        return reached
