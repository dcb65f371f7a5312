"""Imports between accounts at work: messages that cross from one subject space into another.

    stream    a client of the importer subscribes to "eu.orders.*"
              ─▶ a shadow in the exporter's router, on "orders.*", delivers to that one subscription under its own name

    service   a client of the importer sends a request to "local.price", reply _INBOX.7
              ─▶ the exporter gets it on "price", reply _R_.Ab3dEf.x1, with the header Nats-Request-Info: who asks
              ─▶ what is sent to _R_.Ab3dEf.x1 goes back to _INBOX.7

A shadow lives as long as its subscription and is in its queue group, so that interest (and no responders, and clusters)
come out as they should; it is not shadowed again: streams do not cross two accounts in a row, as in nats-server. A request
may. Replies are remembered for a time, and no more than REPLIES of them: older ones are forgotten first.
"""

import random
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from headwater.broker.request_info import with_request_info
from headwater.broker.router import Router
from headwater.broker.sublist import Subscription
from headwater.model.subject_rename import SubjectRename, common_pattern

if TYPE_CHECKING:
    from headwater.broker.accounts import Account
    from headwater.broker.import_rules import CheckedImport

REPLIES = 1 << 16  # reply subjects that an account keeps, some 300 bytes each
RESPONSE_SECONDS = 120.0  # for the first reply, where the export does not say


class StreamImports:
    """Those of one importing account; `home` is its router. It hears of every subscription there."""

    def __init__(self, home: Router) -> None:
        self._home = home
        self._imports: list[tuple[SubjectRename, Router]] = []
        self._shadows: dict[Subscription, list[tuple[Router, Subscription]]] = {}

    def add(self, rename: SubjectRename, exporter: Router) -> None:
        """Import from `exporter`, for the subscriptions that are made from now on."""
        self._imports.append((rename, exporter))

    def subscribed(self, subscription: Subscription) -> None:
        """Somebody subscribed here: shadow what of it is imported."""
        for rename, exporter in self._imports:
            wanted = common_pattern(subscription.subject, rename.local)
            if wanted is not None:
                deliver = self._delivery(subscription, rename)
                shadow = exporter.subscribe_between(
                    rename.to_remote(wanted), deliver, subscription.queue, announce=True
                )
                self._shadows.setdefault(subscription, []).append((exporter, shadow))

    def unsubscribed(self, subscription: Subscription) -> None:
        """And went again."""
        for exporter, shadow in self._shadows.pop(subscription, ()):
            exporter.unsubscribe(shadow)

    def close(self) -> None:
        """Import nothing any more."""
        for subscription in list(self._shadows):
            self.unsubscribed(subscription)
        self._imports.clear()

    def _delivery(self, origin: Subscription, rename: SubjectRename) -> Callable[[bytes, bytes, bytes, bytes], object]:
        home, callback = self._home, origin.callback

        def deliver(subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> object:
            local = rename.to_local(subject)
            if callback is not None:
                return callback(local, reply, header_block, payload)
            return home.deliver_to(origin, local, reply, header_block, payload)

        return deliver


class Pending(NamedTuple):
    """A reply that may come: where it goes, whether more than one may, and until when (None: for ever)."""

    home: Router
    reply: bytes
    many: bool
    until: float
    asker: "Replies"


class Replies:
    """The reply subjects that one account has been given in place of those of importers. `clock`: monotonic seconds."""

    def __init__(self, router: Router, clock: Callable[[], float], seed: str | None = None) -> None:
        self._router = router
        self._clock = clock
        self._random = random.Random(seed)
        self._head = b""
        self._waiting: OrderedDict[bytes, Pending] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting)

    def make(self, home: Router, reply: bytes, asker: "Replies", *, many: bool, seconds: float) -> bytes:
        """A subject here that leads to `reply` in `home`."""
        if not self._head:
            self._head = b"_R_." + self._word() + b"."
            self._router.subscribe_between(self._head + b"*", self._on_reply, announce=True)
        now = self._clock()
        while self._waiting:
            oldest = next(iter(self._waiting.values()))
            if oldest.until > now and len(self._waiting) < REPLIES:
                break
            self._waiting.popitem(last=False)
        subject = self._head + self._word() + self._word()
        self._waiting[subject] = Pending(home, reply, many, now + seconds, asker)
        return subject

    def forget(self, subject: bytes) -> None:
        """No reply will come."""
        self._waiting.pop(subject, None)

    def _word(self) -> bytes:
        return b"%09x" % self._random.getrandbits(36)

    def _on_reply(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        pending = self._waiting.get(subject)
        if pending is None:
            return False
        if not pending.many:
            del self._waiting[subject]
        back = b""
        if reply:
            back = pending.asker.make(self._router, reply, self, many=False, seconds=RESPONSE_SECONDS)
        return pending.home.publish(pending.reply, back, header_block, payload) > 0


class ServiceImport:
    """One service that an account imports. Listens under the local name."""

    def __init__(self, importer: "Account", exporter: "Account", checked: "CheckedImport") -> None:
        self._importer = importer
        self._exporter = exporter
        self._rename = checked.rename
        self._share = checked.options.share
        self._many = checked.export.response != "singleton"
        self._seconds = checked.export.response_threshold or RESPONSE_SECONDS
        self._listening = importer.router.subscribe_between(checked.rename.local, self._on_request, announce=False)

    def close(self) -> None:
        """Import it no more."""
        self._importer.router.unsubscribe(self._listening)

    def _on_request(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        """Pass a request on. False when nobody there is interested."""
        info = self._importer.request_info(self._importer.router.publisher, self._share)
        block = with_request_info(header_block, info)
        there, alias = self._exporter, b""
        if reply:
            alias = there.replies.make(
                self._importer.router, reply, self._importer.replies, many=self._many, seconds=self._seconds
            )
        reached = there.router.publish(self._rename.to_remote(subject), alias, block, payload) > 0
        if not reached and alias:
            there.replies.forget(alias)
        return reached
