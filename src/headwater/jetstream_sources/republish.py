"""Republishing: sends stored messages out again under another subject, with their sequence in headers.

Subscribers get a republished message as one published by the broker; a stream never republishes into itself.
"""

import random
from typing import Self

from headwater.exchange.router import Router
from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_state.items import Item
from headwater.model.header_edits import with_lines
from headwater.model.subject_transform import SubjectTransform
from headwater.model.timestamps import format_time


class Republisher:
    """Applies a stream's `republish` setting."""

    def __init__(self, stream: str, transform: SubjectTransform, *, headers_only: bool) -> None:
        self._stream = stream.encode()
        self._transform = transform
        self._headers_only = headers_only

    @classmethod
    def of(cls, config: StreamConfig) -> Self | None:
        if config.republish is None:
            return None
        setting = config.republish
        transform = SubjectTransform(setting.src, setting.dest)
        return cls(config.name, transform, headers_only=setting.headers_only)

    def republish(self, router: Router, item: Item, last_sequence: int) -> None:
        """Republish a durable message. `last_sequence`: of the previous message on its subject, 0 for none."""
        assert item.particulars is not None
        target = self._transform.apply(item.subject, random.randrange)
        if target is None:
            return
        payload = item.particulars.payload
        lines = [
            b"Nats-Stream: " + self._stream,
            b"Nats-Subject: " + item.subject,
            b"Nats-Sequence: %d" % item.sequence,
            b"Nats-Time-Stamp: " + format_time(item.particulars.timestamp_ns).encode(),
            b"Nats-Last-Sequence: %d" % last_sequence,
        ]
        if self._headers_only:
            lines.append(b"Nats-Msg-Size: %d" % len(payload))
            payload = b""
        router.publish(target, b"", with_lines(item.particulars.header_block, *lines), payload)
