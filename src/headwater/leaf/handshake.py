"""Verdicts on the documents that open a connection, with nats-server's error texts. Pure.

    a hub reads CONNECT   `refusal_of`: the reason to refuse it, checked before the credentials
    a spoke reads INFO    `is_hub_info`: whether it comes from a leaf node port
    a spoke reads -ERR    `wait_after`: how long it waits before it dials again

Only the hub compares cluster names, which keeps a server from joining itself.
"""

import re

from headwater.wire.leaf_lines import LeafConnect, LeafInfo

NOT_A_LEAF = "attempted to connect to leaf node port"
SAME_CLUSTER = "remote leafnode has same cluster name"
SPACES = "cluster name cannot contain spaces"
DUPLICATE = "Duplicate Remote LeafNode Connection"
STALE = "Stale Leaf Node Connection - Closing"
INVALID_SUBSCRIPTION = "Invalid Subscription"
WRONG_PORT = "attempted to connect to wrong port"
LOOP_SECONDS = 30.0
CLUSTER_SECONDS = 30.0
VERSION_SECONDS = 5.0
DUPLICATE_SECONDS = 30.0  # our choice: in nats-server, two such remotes close each other every second without end
TOGETHER_SECONDS = 1.0  # two connections made within this time count as simultaneous
_LOOP = "Loop detected for leafnode account="
_OLD = "connection rejected since minimum version required is "
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")
# The errors after which a hub closes the connection; it stays open after any other.
_FINAL = (
    "Authorization Violation", "Authentication Timeout", "Authentication Expired", _LOOP, SAME_CLUSTER, SPACES, _OLD,
    DUPLICATE, STALE, "Stale Connection", "Permissions Violation for", "maximum ", "Maximum Payload Violation",
    "Unknown Protocol Operation", NOT_A_LEAF,
)  # fmt: skip


def loop_text(account: str) -> str:
    """The error for a neighbour that has announced our own loop subject to us."""
    return f'{_LOOP}"{account}". Delaying attempt to reconnect for 30s'


def ours_stays(ours: str, theirs: str, seconds: float) -> bool:
    """Whether to keep our connection, when two servers have dialled each other and theirs joined `seconds` ago. Of two
    simultaneous ones both sides keep the smaller id's; otherwise the older one stays.
    """
    return seconds <= TOGETHER_SECONDS and ours < theirs


def old_version_text(minimum: str) -> str:
    return f'{_OLD}"{minimum}"'


def info_for(info: LeafInfo, number: int, *, websocket: bool) -> LeafInfo:
    """Our INFO for one spoke. It announces no TLS on a WebSocket, whose TLS is below it."""
    clear = {"tls_required": False, "tls_verify": False} if websocket else {}
    return info.replace(client_id=number, **clear)


def refusal_of(connect: LeafConnect, cluster: str) -> str:
    """Why a hub of this `cluster` refuses a spoke; "" when its names are acceptable."""
    if connect.lang:
        return NOT_A_LEAF
    if connect.gateway:
        return f'Rejecting connection from gateway "{connect.gateway}" on the leafnode port'
    if " " in connect.cluster:
        return SPACES
    if connect.cluster and connect.cluster == cluster:
        return SAME_CLUSTER
    return ""


def is_too_old(version: str, minimum: str) -> bool:
    """Whether a spoke's version is below the minimum; a spoke without a version is too old for any minimum."""
    if not minimum:
        return False
    found, wanted = _VERSION.match(version), _VERSION.match(minimum)
    if found is None or wanted is None:
        return True
    return tuple(map(int, found.groups())) < tuple(map(int, wanted.groups()))


def is_hub_info(info: LeafInfo) -> bool:
    """Whether this INFO comes from a leaf node port."""
    return info.client_id > 0 and (info.leafnode_urls is not None or info.info_on_connect)


def is_final(text: str) -> bool:
    """Whether the hub closes the connection after an -ERR of this text."""
    return text.startswith(_FINAL)


def wait_after(text: str) -> float | None:
    """Seconds to wait before dialling again, after this -ERR or our own reason; None for the usual wait."""
    if text.startswith(DUPLICATE) and text != DUPLICATE:
        return DUPLICATE_SECONDS
    if text.startswith(_LOOP):
        return LOOP_SECONDS
    if text.startswith((SAME_CLUSTER, SPACES)):
        return CLUSTER_SECONDS
    if text.startswith(_OLD):
        return VERSION_SECONDS
    return None
