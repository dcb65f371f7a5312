"""What the documents that open a connection decide. Pure: a verdict for each, in nats-server's words.

    a hub reads CONNECT   `refusal_of` says what is wrong with it, before anybody looks at the credentials
    a spoke reads INFO    `is_hub_info` says whether that is a port for leaf nodes at all
    a spoke reads -ERR    `wait_after` says for how long it stays away

The hub alone compares names of clusters: a spoke has no other way to be kept from the hub that it is itself.
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
DUPLICATE_SECONDS = 30.0  # ours: nats-server's two remotes close each other every second, for ever
TOGETHER_SECONDS = 1.0  # two connections that were made within it were made at the same time
_LOOP = "Loop detected for leafnode account="
_OLD = "connection rejected since minimum version required is "
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")
# What a hub says before it closes; after anything else the connection goes on.
_FINAL = (
    "Authorization Violation", "Authentication Timeout", "Authentication Expired", _LOOP, SAME_CLUSTER, SPACES, _OLD,
    DUPLICATE, STALE, "Stale Connection", "Permissions Violation for", "maximum ", "Maximum Payload Violation",
    "Unknown Protocol Operation", NOT_A_LEAF,
)  # fmt: skip


def loop_text(account: str) -> str:
    """What is said to whoever gave us back our own mark."""
    return f'{_LOOP}"{account}". Delaying attempt to reconnect for 30s'


def ours_stays(ours: str, theirs: str, seconds: float) -> bool:
    """Two servers have dialled each other at the same time: whether we go on with our connection, though theirs has been
    joined for so many `seconds`. The smaller id's is kept, on both sides; one that stands for longer is kept anyway.
    """
    return seconds <= TOGETHER_SECONDS and ours < theirs


def old_version_text(minimum: str) -> str:
    return f'{_OLD}"{minimum}"'


def refusal_of(connect: LeafConnect, cluster: str) -> str:
    """Why a hub of this `cluster` does not take a spoke; "" when it does, as far as names go."""
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
    """Whether a spoke of this version may not come; one that says none is too old for any minimum."""
    if not minimum:
        return False
    found, wanted = _VERSION.match(version), _VERSION.match(minimum)
    if found is None or wanted is None:
        return True
    return tuple(map(int, found.groups())) < tuple(map(int, wanted.groups()))


def is_hub_info(info: LeafInfo) -> bool:
    """Whether the port that said this is one for leaf nodes."""
    return info.client_id > 0 and (info.leafnode_urls is not None or info.info_on_connect)


def is_final(text: str) -> bool:
    """Whether the hub closes the connection after an -ERR of this text."""
    return text.startswith(_FINAL)


def wait_after(text: str) -> float | None:
    """How long to stay away after this -ERR, or for this reason of ours, in seconds; None: as after any other loss."""
    if text.startswith(DUPLICATE) and text != DUPLICATE:
        return DUPLICATE_SECONDS
    if text.startswith(_LOOP):
        return LOOP_SECONDS
    if text.startswith((SAME_CLUSTER, SPACES)):
        return CLUSTER_SECONDS
    if text.startswith(_OLD):
        return VERSION_SECONDS
    return None
