"""The configured limits for the streams of all accounts."""

from typing import NamedTuple


class ServerLimits(NamedTuple):
    """`jetstream { limits }` of a configuration: for all accounts, 0 is no limit. Durations in ns. The last four are of
    atomic batches: messages of one, open ones of a stream and of an account, the time without a message that ends one."""

    max_ack_pending: int = 0
    max_request_batch: int = 0
    duplicate_window: int = 0
    batch_messages: int = 1000
    batches_of_stream: int = 50
    batches_of_account: int = 1000
    batch_timeout: int = 10_000_000_000
