"""What an account may store, from the options to what JetStream goes by. Pure.

The limits of the whole server (`jetstream { max_file, max_mem }`) hold for the global account where it is the only one;
with accounts, each has its own.
"""

from headwater.exchange.access_options import JetStreamLimits
from headwater.jetstream_documents.account import AccountLimits


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
    )
