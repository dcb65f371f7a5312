"""Which modules a running server imports when it has nothing else to do.

Much is imported by the function that needs it, so that a start does without: what a rare request or an error needs. But a
server that is out of descriptors can read no module, and it is then that such a function runs: a request to the system
account had no answer, a client that left was never forgotten. So `headwater serve` imports these after its start, one at a
time; a test holds this list against the imports inside functions of every layer of the server. All of them are 90 ms of CPU
and 4 MB, JetStream and monitoring included.

What only a start, a reload or a connection to another server needs is not here: those open files or sockets themselves.
"""

BROKER = (
    "hashlib",
    "hmac",
    "random",
    "urllib.parse",
    "headwater.exchange.client_info",
    "headwater.exchange.request_info",
    "headwater.exchange.replies",
    "headwater.exchange.tracing",
    "headwater.message_tracing.message_trace",
    "headwater.message_tracing.routing",
    "headwater.model.message_trace",
    "headwater.model.timestamps",
    "headwater.monitoring.connz",
    "headwater.monitoring.interest",
    "headwater.server.system.documents",
    "headwater.server.system.events",
    "headwater.server.system.purging",
    "headwater.server.system.services",
    "headwater.archive.s2_frames",
    "headwater.compression.snappy",
    "cramjam",
    "gzip",
)
STREAMS = (
    "headwater.group_commit.write_stats",
    "headwater.jetstream.traced_publish",
    "headwater.jetstream_backup.building",
    "headwater.jetstream_backup.consumer_states",
    "headwater.jetstream_backup.receiving",
    "headwater.jetstream_backup.saving",
    "headwater.jetstream_backup.sending",
    "headwater.jetstream_documents.backups",
    "headwater.jetstream_documents.direct_gets",
    "headwater.jetstream_documents.given_times",
    "headwater.jetstream_ranges.collecting",
    "headwater.jetstream_sources.copies",
    "headwater.jetstream_sources.republish",
    "headwater.jetstream_state.stored_ids",
    "headwater.jetstream_timing.early_publishes",
    "headwater.model.cron",
    "headwater.model.header_mapping",
    "headwater.model.typed_headers",
    "headwater.streams.salvage",
    "xxhash",
    "zoneinfo",
)
MONITORING = (
    "headwater.monitoring.http",
    "headwater.monitoring.whole",
    "prometheus_client",
    "prometheus_client.core",
    "prometheus_client.samples",
)


def later_modules(stores: bool, monitors: bool) -> tuple[str, ...]:
    """For a server with streams (`stores`) and pages over HTTP (`monitors`), or without."""
    return BROKER + (STREAMS if stores else ()) + (MONITORING if monitors else ())
