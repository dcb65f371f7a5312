"""The advisories of a stream on `$JS.EVENT.ADVISORY.>`: documents with nats-server's names and fields.

No document is built without a subscriber; checking costs one look-up in the router.
"""

import secrets
from collections.abc import Callable

import msgspec

from headwater.exchange.router import Router
from headwater.jetstream.domain import Domain
from headwater.model.timestamps import format_time

PREFIX = "$JS.EVENT.ADVISORY."
TYPE_PREFIX = "io.nats.jetstream.advisory.v1."
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ID_LENGTH = 22  # characters


def made_up_id() -> str:
    """A random id of 22 characters, like nats-server's."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(ID_LENGTH))


class Advisories:
    """The advisories of one account. `clock_ns`: time of day."""

    def __init__(self, router: Router, clock_ns: Callable[[], int], domain: Domain) -> None:
        self._router = router
        self._clock_ns = clock_ns
        self._domain = domain

    def send(self, about: str, kind: str, fields: dict[str, object]) -> None:
        """Publish to `$JS.EVENT.ADVISORY.<about>`, if it has a subscriber. `kind`: the end of the document's type."""
        subject = (PREFIX + about).encode()
        if not self._router.has_interest(subject):
            return
        document: dict[str, object] = {
            "type": TYPE_PREFIX + kind,
            "id": made_up_id(),
            "timestamp": format_time(self._clock_ns()),
            **fields,
        }
        if self._domain.name:
            document["domain"] = self._domain.name
        self._router.publish(subject, b"", b"", msgspec.json.encode(document))

    def stream(self, name: str, action: str) -> None:
        """A stream was made, changed or deleted. `action`: create, modify or delete."""
        about = {"create": "CREATED", "modify": "UPDATED", "delete": "DELETED"}[action]
        self.send(f"STREAM.{about}.{name}", "stream_action", {"stream": name, "action": action})

    def consumer(self, stream: str, name: str, action: str) -> None:
        """A consumer was made or deleted. `action`: create or delete."""
        about = {"create": "CREATED", "delete": "DELETED"}[action]
        fields: dict[str, object] = {"stream": stream, "consumer": name, "action": action}
        self.send(f"CONSUMER.{about}.{stream}.{name}", "consumer_action", fields)

    def refused(self, stream: str, consumer: str, delivery: tuple[int, int, int], reason: str | None = None) -> None:
        """A worker gave a message back, or with a `reason`, which may be empty, for good. `delivery`: sequences of consumer
        and stream, and how often it was delivered."""
        about, kind = ("MSG_NAKED", "nak") if reason is None else ("MSG_TERMINATED", "terminated")
        consumer_sequence, stream_sequence, deliveries = delivery
        fields: dict[str, object] = {"stream": stream, "consumer": consumer, "consumer_seq": consumer_sequence}
        fields |= {"stream_seq": stream_sequence, "deliveries": deliveries}
        if reason:
            fields["reason"] = reason
        self.send(f"CONSUMER.{about}.{stream}.{consumer}", kind, fields)

    def pinned(self, stream: str, consumer: str, group: str, pin: str) -> None:
        """A client was pinned in a priority group: it alone gets the group's messages."""
        fields: dict[str, object] = {"account": self._domain.account, "stream": stream, "consumer": consumer}
        fields |= {"group": group, "pinned_id": pin}
        self.send(f"CONSUMER.PINNED.{stream}.{consumer}", "consumer_group_pinned", fields)

    def unpinned(self, stream: str, consumer: str, group: str, reason: str) -> None:
        """The pinned client was unpinned. `reason`: admin or timeout."""
        fields: dict[str, object] = {"account": self._domain.account, "stream": stream, "consumer": consumer}
        fields |= {"group": group, "reason": reason}
        self.send(f"CONSUMER.UNPINNED.{stream}.{consumer}", "consumer_group_unpinned", fields)

    def batch_abandoned(self, stream: str, batch_id: bytes, reason: str) -> None:
        """An atomic batch has ended without being stored."""
        batch = batch_id.decode("utf-8", "replace")
        fields: dict[str, object] = {"stream": stream, "batch": batch, "reason": reason}
        self.send(f"STREAM.BATCH_ABANDONED.{stream}", "stream_batch_abandoned", fields)
