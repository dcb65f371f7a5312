"""Converts the configured storage limits of an account into those that JetStream applies. Pure.

The server-wide limits (`jetstream { max_file, max_mem }`) apply to the global account when it is the only one; with
accounts, each has its own.
"""

from headwater.jetstream_documents.account import AccountLimits
from headwater.options.access import JetStreamLimits


def storage_limits(options: JetStreamLimits) -> AccountLimits:
    """The limits as `$JS.API.INFO` shows them."""
    return AccountLimits(
        max_memory=options.max_memory,
        max_storage=options.max_file,
        max_streams=options.max_streams,
        max_consumers=options.max_consumers,
        max_ack_pending=options.max_ack_pending,
        memory_max_stream_bytes=options.memory_max_stream_bytes,
        storage_max_stream_bytes=options.store_max_stream_bytes,
        max_bytes_required=options.max_bytes_required,
        tier=options.tier,
        tiers=options.tiers,
    )
