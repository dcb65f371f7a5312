"""Answers JetStream requests where there are no streams.

    an account without streams, on a broker that has some  ─▶ 10039, where silence would look like a fault (`NotEnabled`)
    a broker of a cluster without streams of its own       ─▶ requests under the domain in its configuration go to
                                                              the brokers that have streams (`pass_on_domain`), as
                                                              nats-server's mappings have it

The subjects are those of jetstream/service.py, `$JS.API.>` and those of the domain. Requests that nats-server refuses before
it checks the account get the same error number here: those that need a cluster, and invalid JSON. An account that imports
the API, or a part of it, from another one gets no answer from here: its requests go there. One that imports INFO gets none
at all, as at nats-server: its streams are the other account's. After "no responders" a client does without.

The first request loads the table of requests and answers (`refusals.py`), so that a start does without.
"""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from headwater.exchange.router import Router
from headwater.exchange.sublist import Subscription
from headwater.jetstream.domain import API_PREFIX, Domain, subscribe_domain
from headwater.model.subject_match import matches
from headwater.wire.message_view import composed

if TYPE_CHECKING:
    from headwater.server.refusals import Refusals

logger = logging.getLogger("headwater.server.broker")

# These are answered with messages, or a status.
_WITHOUT_ANSWER = (b"CONSUMER.MSG.NEXT.", b"DIRECT.GET.")
_WITH_MESSAGES = (*_WITHOUT_ANSWER, b"HEADWATER.RANGE.")
# Of JSON, because what makes the usual answers could not be loaded.
_UNAVAILABLE = (
    b'{"error":{"code":503,"err_code":10008,'
    b'"description":"JetStream system temporarily unavailable: it could not be loaded"}}'
)
_NO_RESPONDERS = b"NATS/1.0 503\r\n\r\n"


class NotEnabled:
    """Answers the requests of one account. `imported`: subjects of the services that it imports."""

    def __init__(self, router: Router, domain: Domain, imported: Iterable[str] = ()) -> None:
        self.router = router
        self._domain = domain
        self._imported = [subject.encode() for subject in imported]
        self._refusals: Refusals | None = None
        self._subscriptions: list[Subscription] = []

    def start(self) -> None:
        """Start answering. The interest is not announced in the cluster: each node does this for its own clients."""
        if self._imports(API_PREFIX + b"INFO"):
            return
        own = self.router.subscribe_between(API_PREFIX + b">", self._on_api, announce=False)
        self._subscriptions.append(own)
        if self._domain.name:
            self._subscriptions.append(subscribe_domain(self.router, self._domain.name, self._on_api, announce=False))

    def stop(self) -> None:
        """Stop answering."""
        for subscription in self._subscriptions:
            self.router.unsubscribe(subscription)
        self._subscriptions.clear()

    def _on_api(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        if self.router.over_route or subject[len(API_PREFIX) :].startswith(_WITHOUT_ANSWER):
            return False
        if self._imports(subject):
            return False
        try:
            answer = self._load().answer(subject, reply, header_block, payload)
        except Exception as error:  # noqa: BLE001  (whatever could not be loaded, the requester gets an answer)
            answer_unavailable(self.router, subject, reply, error)
            return True
        if answer and reply:
            self.router.publish(reply, b"", b"", answer)
        return True

    def _imports(self, subject: bytes) -> bool:
        return any(matches(pattern, subject) for pattern in self._imported)

    def _load(self) -> "Refusals":
        if self._refusals is None:
            from headwater.server.refusals import Refusals

            self._refusals = Refusals()
        return self._refusals


def answer_unavailable(router: Router, subject: bytes, reply: bytes, error: Exception) -> None:
    """Answer a request for which JetStream could not be loaded, and log the reason."""
    logger.error("jetstream_not_loaded subject=%r", subject, exc_info=error)
    if reply and subject[len(API_PREFIX) :].startswith(_WITH_MESSAGES):
        router.publish(reply, b"", _NO_RESPONDERS, b"")
    elif reply:
        router.publish(reply, b"", b"", _UNAVAILABLE)


def pass_on_domain(router: Router, domain: str) -> Subscription:
    """Forward requests of this broker's clients under the domain's name to `$JS.API`, as if they were published there."""

    def pass_on(subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        message = composed(subject, reply, header_block, payload)
        match = router.sublist.find(message.buffer, 0, message.subject_end)
        return not router.over_route and router.route(router.publisher, match, message) > 0

    return subscribe_domain(router, domain, pass_on, announce=False)
