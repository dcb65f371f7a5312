"""Header names that nats-server gives a meaning to, spelled exactly as it looks them up.

The look-up is by bytes: `nats-msg-id` or a name with a space before the colon is another header, silently (only
`traceparent` is matched without regard to case). So programs take the names from here. Names of other protocols, such
as `ce-id`, live with those protocols.
"""

from enum import StrEnum


class NatsHeader(StrEnum):
    """A name is a str, usable wherever a header name is; `wire` is the same as bytes, for `header_block.lookup`."""

    # read from publishers
    MSG_ID = "Nats-Msg-Id"
    EXPECTED_STREAM = "Nats-Expected-Stream"
    EXPECTED_LAST_SEQUENCE = "Nats-Expected-Last-Sequence"
    EXPECTED_LAST_SUBJECT_SEQUENCE = "Nats-Expected-Last-Subject-Sequence"
    EXPECTED_LAST_SUBJECT_SEQUENCE_SUBJECT = "Nats-Expected-Last-Subject-Sequence-Subject"
    EXPECTED_LAST_MSG_ID = "Nats-Expected-Last-Msg-Id"
    ROLLUP = "Nats-Rollup"
    TTL = "Nats-TTL"
    INCREMENT = "Nats-Incr"
    BATCH_ID = "Nats-Batch-Id"
    BATCH_SEQUENCE = "Nats-Batch-Sequence"
    BATCH_COMMIT = "Nats-Batch-Commit"
    SCHEDULE = "Nats-Schedule"
    SCHEDULE_TIME_ZONE = "Nats-Schedule-Time-Zone"
    SCHEDULE_TTL = "Nats-Schedule-TTL"
    SCHEDULE_ROLLUP = "Nats-Schedule-Rollup"
    SCHEDULE_TARGET = "Nats-Schedule-Target"
    SCHEDULE_SOURCE = "Nats-Schedule-Source"
    REQUIRED_API_LEVEL = "Nats-Required-Api-Level"
    STREAM_IDENTITY = "Nats-Stream-Identity"
    KV_OPERATION = "KV-Operation"
    TRACE_DEST = "Nats-Trace-Dest"
    TRACE_HOP = "Nats-Trace-Hop"
    TRACE_ORIGIN_ACCOUNT = "Nats-Trace-Origin-Account"
    TRACE_ONLY = "Nats-Trace-Only"
    TRACEPARENT = "traceparent"
    ACCEPT_ENCODING = "Accept-Encoding"
    REQUEST_INFO = "Nats-Request-Info"

    # set by the server
    STREAM = "Nats-Stream"
    SUBJECT = "Nats-Subject"
    SEQUENCE = "Nats-Sequence"
    TIME_STAMP = "Nats-Time-Stamp"
    LAST_SEQUENCE = "Nats-Last-Sequence"
    NUM_PENDING = "Nats-Num-Pending"
    UP_TO_SEQUENCE = "Nats-UpTo-Sequence"
    MSG_SIZE = "Nats-Msg-Size"
    LAST_CONSUMER = "Nats-Last-Consumer"
    LAST_STREAM = "Nats-Last-Stream"
    CONSUMER_STALLED = "Nats-Consumer-Stalled"
    PENDING_MESSAGES = "Nats-Pending-Messages"
    PENDING_BYTES = "Nats-Pending-Bytes"
    PIN_ID = "Nats-Pin-Id"
    MARKER_REASON = "Nats-Marker-Reason"
    COUNTER_SOURCES = "Nats-Counter-Sources"
    STREAM_SOURCE = "Nats-Stream-Source"
    SCHEDULER = "Nats-Scheduler"
    SCHEDULE_NEXT = "Nats-Schedule-Next"
    RESPONSE_TYPE = "Nats-Response-Type"
    SERVER_XKEY = "Nats-Server-Xkey"

    @property
    def wire(self) -> bytes:
        return self.encode()
