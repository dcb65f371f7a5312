"""Documents about an account: what it may store, and how many API requests it made."""

from typing import NamedTuple

from headwater.jetstream_documents.document import Document, always
from headwater.model.timestamps import SECOND
from headwater.version import API_LEVEL


class ServerLimits(NamedTuple):
    """`jetstream { limits }` of a configuration: for all accounts, 0 is no limit. Durations in ns. The last four are of
    atomic batches: messages of one, open ones of a stream and of an account, the time without a message that ends one."""

    max_ack_pending: int = 0
    max_request_batch: int = 0
    duplicate_window: int = 0
    batch_messages: int = 1000
    batches_of_stream: int = 50
    batches_of_account: int = 1000
    batch_timeout: int = 10 * SECOND


class AccountLimits(Document, kw_only=True):
    """How much an account may store, in bytes; -1 is no limit."""

    max_memory: int = always(-1)
    max_storage: int = always(-1)
    max_streams: int = always(-1)
    max_consumers: int = always(-1)
    max_ack_pending: int = always(-1)
    memory_max_stream_bytes: int = always(-1)
    storage_max_stream_bytes: int = always(-1)
    max_bytes_required: bool = always(False)


class ApiStats(Document, kw_only=True):
    """`total` and `errors` count the requests before this one."""

    level: int = always(API_LEVEL)
    total: int = always(0)
    errors: int = always(0)
