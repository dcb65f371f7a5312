# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""A publish between its capture and its acknowledgement.

Hot and compiled: one `Item` is made for every message that a stream takes in.
"""

from typing import NamedTuple

import cython


class Particulars(NamedTuple):
    """What has to be done about a message once it is durable, beyond acknowledging it. `rollup`: b"sub", b"all" or b""."""

    rollup: bytes
    header_block: bytes
    payload: bytes
    timestamp_ns: int


class Item:
    """One publish on its way to the disk. `subject` is b"" for the answer to a duplicate; then `sequence` is that of
    the original. `reply` is b"" when nobody wants the ack. `ack`: the answer; b"" for the ordinary PubAck.
    `particulars`: None for a message like any other."""

    reply: bytes
    ack: bytes
    subject: bytes
    sequence: int
    size: int
    message_id: bytes
    particulars: Particulars | None

    def __init__(
        self,
        reply: bytes,
        ack: bytes,
        subject: bytes,
        sequence: cython.longlong,
        size: cython.Py_ssize_t,
        message_id: bytes,
        particulars: Particulars | None = None,
    ) -> None:
        self.reply = reply
        self.ack = ack
        self.subject = subject
        self.sequence = sequence
        self.size = size
        self.message_id = message_id
        self.particulars = particulars
