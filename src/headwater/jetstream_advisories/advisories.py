"""The advisories of an account's streams on `$JS.EVENT.ADVISORY.>`, and the metrics on `$JS.EVENT.METRIC.>`: documents with
nats-server's names and fields.

No document is built without a subscriber; checking costs one look-up in the router. The system account gets a copy of
only one advisory, that of an abandoned atomic batch, as with nats-server.
"""

import os
from collections.abc import Callable
from typing import Protocol

import msgspec

from headwater.exchange.router import Router
from headwater.model.short_hash import short_name
from headwater.model.timestamps import format_time

PREFIX = "$JS.EVENT.ADVISORY."
METRIC_PREFIX = "$JS.EVENT.METRIC."
TYPE_PREFIX = "io.nats.jetstream.advisory.v1."
METRIC_TYPE_PREFIX = "io.nats.jetstream.metric.v1."
ID_LENGTH = 22  # characters


def random_id() -> str:
    """A random id of 22 characters, like nats-server's."""
    return short_name(os.urandom(ID_LENGTH))


Document = dict[str, object]


class Place(Protocol):
    """Where the streams are: the JetStream domain (`name`, "" for none), the account, and the router of the system account,
    if that is another one."""

    @property
    def name(self) -> str: ...
    @property
    def account(self) -> str: ...
    @property
    def system(self) -> Router | None: ...


class Advisories:
    """The advisories of one account. `clock_ns`: time of day."""

    def __init__(self, router: Router, clock_ns: Callable[[], int], place: Place) -> None:
        self._router = router
        self._clock_ns = clock_ns
        self._place = place

    def is_wanted(self, about: str) -> bool:
        """Whether `$JS.EVENT.ADVISORY.<about>` has a subscriber."""
        return self._router.has_interest((PREFIX + about).encode())

    def send(self, about: str, kind: str, fields: Document) -> None:
        """Publish to `$JS.EVENT.ADVISORY.<about>`, if it has a subscriber. `kind`: the end of the document's type."""
        self._send(self._router, PREFIX + about, TYPE_PREFIX + kind, fields)

    def _send(self, router: Router, to: str, kind: str, fields: Document) -> None:
        subject = to.encode()
        if not router.has_interest(subject):
            return
        document: Document = {
            "type": kind,
            "id": random_id(),
            "timestamp": format_time(self._clock_ns()),
            **fields,
        }
        if self._place.name:
            document["domain"] = self._place.name
        router.publish(subject, b"", b"", msgspec.json.encode(document))

    def request(self, server: str, client: Document, call: tuple[str, bytes], answer: bytes) -> None:
        """An API request was answered. `call`: its subject and body."""
        subject, body = call
        fields: Document = {"server": server, "client": client, "subject": subject}
        if body:
            fields["request"] = body.decode("utf-8", "replace")
        self.send("API", "api_audit", {**fields, "response": answer.decode("utf-8", "replace")})

    def stream(self, name: str, action: str) -> None:
        """A stream was created, changed or deleted. `action`: create, modify or delete."""
        about = {"create": "CREATED", "modify": "UPDATED", "delete": "DELETED"}[action]
        self.send(f"STREAM.{about}.{name}", "stream_action", {"stream": name, "action": action})

    def consumer(self, stream: str, name: str, action: str) -> None:
        """A consumer was created or deleted. `action`: create or delete."""
        about = {"create": "CREATED", "delete": "DELETED"}[action]
        fields: Document = {"stream": stream, "consumer": name, "action": action}
        self.send(f"CONSUMER.{about}.{stream}.{name}", "consumer_action", fields)

    def refused(self, stream: str, consumer: str, delivery: tuple[int, int, int], reason: str | None = None) -> None:
        """A client sent -NAK (`reason` None) or +TERM with this reason, which may be empty. `delivery`: sequences of
        consumer and stream, and how often the message was delivered."""
        about, kind = ("MSG_NAKED", "nak") if reason is None else ("MSG_TERMINATED", "terminated")
        consumer_sequence, stream_sequence, deliveries = delivery
        fields: Document = {"stream": stream, "consumer": consumer, "consumer_seq": consumer_sequence}
        fields |= {"stream_seq": stream_sequence, "deliveries": deliveries}
        if reason:
            fields["reason"] = reason
        self.send(f"CONSUMER.{about}.{stream}.{consumer}", kind, fields)

    def given_up(self, stream: str, consumer: str, sequence: int, deliveries: int) -> None:
        """A message was delivered max_deliver times and is not delivered again."""
        fields: Document = {"stream": stream, "consumer": consumer, "stream_seq": sequence, "deliveries": deliveries}
        self.send(f"CONSUMER.MAX_DELIVERIES.{stream}.{consumer}", "max_deliver", fields)

    def acknowledged(self, stream: str, consumer: str, delivery: tuple[int, int, int], waited: int) -> None:
        """The metric of a sampled acknowledgement. `delivery`: as for `refused`; `waited`: ns since the delivery."""
        consumer_sequence, stream_sequence, deliveries = delivery
        fields: Document = {"stream": stream, "consumer": consumer, "consumer_seq": consumer_sequence}
        fields |= {"stream_seq": stream_sequence, "ack_time": waited, "deliveries": deliveries}
        to = f"{METRIC_PREFIX}CONSUMER.ACK.{stream}.{consumer}"
        self._send(self._router, to, METRIC_TYPE_PREFIX + "consumer_ack", fields)

    def paused(self, stream: str, consumer: str, paused: bool, until: str) -> None:
        """A consumer was paused or resumed. `until`: the time in its configuration."""
        fields: Document = {"stream": stream, "consumer": consumer, "paused": paused, "pause_until": until}
        self.send(f"CONSUMER.PAUSE.{stream}.{consumer}", "consumer_pause", fields)

    def backup(self, stream: str, step: str, fields: Document) -> None:
        """A snapshot or a restore has begun or ended. `step`: snapshot_create, snapshot_complete, restore_create or
        restore_complete."""
        self.send(f"STREAM.{step.upper()}.{stream}", step, {"stream": stream, **fields})

    def pinned(self, stream: str, consumer: str, group: str, pin: str) -> None:
        """A client was pinned in a priority group: it alone gets the group's messages."""
        fields: Document = {"account": self._place.account, "stream": stream, "consumer": consumer}
        fields |= {"group": group, "pinned_id": pin}
        self.send(f"CONSUMER.PINNED.{stream}.{consumer}", "consumer_group_pinned", fields)

    def unpinned(self, stream: str, consumer: str, group: str, reason: str) -> None:
        """The pinned client was unpinned. `reason`: admin or timeout."""
        fields: Document = {"account": self._place.account, "stream": stream, "consumer": consumer}
        fields |= {"group": group, "reason": reason}
        self.send(f"CONSUMER.UNPINNED.{stream}.{consumer}", "consumer_group_unpinned", fields)

    def batch_abandoned(self, stream: str, batch_id: bytes, reason: str) -> None:
        """An atomic batch has ended without being stored."""
        batch = batch_id.decode("utf-8", "replace")
        fields: Document = {"stream": stream, "batch": batch, "reason": reason}
        about, kind = f"STREAM.BATCH_ABANDONED.{stream}", "stream_batch_abandoned"
        self.send(about, kind, fields)
        if self._place.system is not None:
            fields = {"account": self._place.account, **fields}
            self._send(self._place.system, PREFIX + about, TYPE_PREFIX + kind, fields)
