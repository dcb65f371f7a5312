"""The keyword arguments of `Broker`, for type checkers: a misspelt one is an error where it is written.

They are the fields of `BrokerOptions` (a test compares the two); nothing imports this at run time.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from headwater.iggy.face import IggyOptions
from headwater.model.stream_limits import ServerLimits
from headwater.model.worker_options import WorkerOptions
from headwater.net.limits import Limits
from headwater.net.listener_options import TlsOptions, WebSocketOptions
from headwater.options.access import (
    AccountOptions,
    AuthorizationOptions,
    JetStreamLimits,
    MappingOptions,
    OperatorOptions,
)
from headwater.options.broker import BrokerOptions, SyncPolicy
from headwater.options.cluster import ClusterOptions
from headwater.options.leaf import LeafOptions


class BrokerArguments(TypedDict, total=False):
    """What `Broker` takes beside those that it names itself: `host`, `port`, `store_dir`, `options`, `iggy`, `leaf`,
    `credentials`."""

    reuse_port: bool
    server_name: str
    client_advertise: str
    no_advertise: bool
    authorization: AuthorizationOptions
    accounts: tuple[AccountOptions, ...]
    mappings: tuple[MappingOptions, ...]
    system_account: str
    no_auth_user: str
    operator: OperatorOptions | None
    auth_timeout: float | None
    tls: TlsOptions | None
    websocket: WebSocketOptions | None
    cluster: ClusterOptions | None
    leafnodes: LeafOptions | None
    max_payload: int
    max_control_line: int
    max_connections: int
    connection_limits: Mapping[str, Limits]
    max_subscriptions: int
    max_subscription_tokens: int
    max_pending: int
    write_deadline: float
    ping_interval: float
    ping_max: int
    no_header_support: bool
    no_read_pauses: bool
    lame_duck_duration: float
    lame_duck_grace_period: float
    jetstream: bool
    worker: WorkerOptions | None
    sync: SyncPolicy
    jetstream_domain: str
    default_js_domain: Mapping[str, str]
    scoped_acks: bool
    jetstream_limits: JetStreamLimits
    default_max_consumers: int
    stream_limits: ServerLimits


class AllBrokerArguments(BrokerArguments, total=False):
    """All keyword arguments of `Broker`."""

    host: str
    port: int
    store_dir: str | Path
    options: BrokerOptions | None
    iggy: IggyOptions | None
    leaf: str | Sequence[str]
    credentials: str | Path
