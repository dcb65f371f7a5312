"""Documents about an account: its storage limits, and its number of API requests."""

from headwater.jetstream_documents.document import Document, always
from headwater.version import API_LEVEL


class AccountLimits(Document, kw_only=True):
    """How much an account may store, in bytes; -1 is no limit. `tier`: the tier that these limits belong to; `tiers`:
    all of the account's. Neither is ever sent."""

    max_memory: int = always(-1)
    max_storage: int = always(-1)
    max_streams: int = always(-1)
    max_consumers: int = always(-1)
    max_ack_pending: int = always(-1)
    memory_max_stream_bytes: int = always(-1)
    storage_max_stream_bytes: int = always(-1)
    max_bytes_required: bool = always(False)
    tier: str = ""
    tiers: tuple[str, ...] = ()


class ApiStats(Document, kw_only=True):
    """`total` and `errors` count the requests before this one."""

    level: int = always(API_LEVEL)
    total: int = always(0)
    errors: int = always(0)
