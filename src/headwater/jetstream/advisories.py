"""What a stream publishes on `$JS.EVENT.ADVISORY.>`: documents with nats-server's names and fields.

Nothing is made without a subscriber: that is one look into the router.
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
    """22 random characters, as nats-server's ids have."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(ID_LENGTH))


class Advisories:
    """Of one account. `clock_ns`: time of day."""

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

    def pinned(self, stream: str, consumer: str, group: str, pin: str) -> None:
        """A client of a priority group has the messages for itself from now on."""
        fields: dict[str, object] = {"account": self._domain.account, "stream": stream, "consumer": consumer}
        fields |= {"group": group, "pinned_id": pin}
        self.send(f"CONSUMER.PINNED.{stream}.{consumer}", "consumer_group_pinned", fields)

    def unpinned(self, stream: str, consumer: str, group: str, reason: str) -> None:
        """It has lost them. `reason`: admin, timeout."""
        fields: dict[str, object] = {"account": self._domain.account, "stream": stream, "consumer": consumer}
        fields |= {"group": group, "reason": reason}
        self.send(f"CONSUMER.UNPINNED.{stream}.{consumer}", "consumer_group_unpinned", fields)

    def batch_abandoned(self, stream: str, batch_id: bytes, reason: str) -> None:
        """An atomic batch has ended without being stored."""
        batch = batch_id.decode("utf-8", "replace")
        fields: dict[str, object] = {"stream": stream, "batch": batch, "reason": reason}
        self.send(f"STREAM.BATCH_ABANDONED.{stream}", "stream_batch_abandoned", fields)
