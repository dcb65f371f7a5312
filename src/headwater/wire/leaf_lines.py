"""Writers of the ops between a hub and its leaf nodes, and the records of INFO and CONNECT.

    hub   ─▶ INFO            its address, a nonce; a second INFO follows
    spoke ─▶ CONNECT         its identity, its credentials, the subjects it denies
    hub   ─▶ INFO            `connect_info`: its account, and the subjects that may cross
    both  ─▶ LS+ …           then messages

`route_ops` reads these ops in its dialect LEAF. Source: nats-server 2.15.1 at both ends.
"""

from headwater.model.record import Record
from headwater.wire.peer_documents import ConnectForm, InfoForm, SubjectLists

PROTOCOL = 3  # of leaf nodes: `proto` in INFO, `protocol` in CONNECT
LOOP_DETECTION = b"$LDS."


class LeafInfo(Record, frozen=False):
    """INFO between a hub and a spoke. While `compression` is empty, neither side compresses."""

    server_id: str = ""
    server_name: str = ""
    version: str = ""
    proto: int = 0
    git_commit: str = ""
    go: str = ""
    host: str = ""
    port: int = 0
    headers: bool = False
    auth_required: bool = False
    tls_required: bool = False
    tls_verify: bool = False
    max_payload: int = 0
    jetstream: bool = False
    ip: str = ""
    client_id: int = 0
    nonce: str = ""
    cluster: str = ""
    domain: str = ""
    compression: str = ""
    connect_info: bool = False
    remote_account: str = ""
    acc_is_sys: bool = False
    imports: SubjectLists | None = None  # `import` on the wire: subjects that the spoke may receive
    exports: SubjectLists | None = None  # `export` on the wire: subjects that it may send
    api_lvl: int = 0
    info_on_connect: bool = False
    leafnode_urls: tuple[str, ...] | None = None


class LeafConnect(Record, frozen=False, secret=("user", "password", "auth_token", "jwt", "sig")):
    """CONNECT of a spoke. The hub forwards no messages between spokes with the same `cluster`; it must not send
    subjects in `deny_pub`.
    """

    version: str = ""
    nkey: str = ""
    jwt: str = ""
    sig: str = ""
    user: str = ""
    password: str = ""  # `pass` on the wire
    auth_token: str = ""
    server_id: str = ""
    domain: str = ""
    name: str = ""
    is_hub: bool = False
    cluster: str = ""
    headers: bool = False
    jetstream: bool = False
    deny_pub: tuple[str, ...] = ()
    isolate: bool = False
    compress_mode: str = ""
    remote_account: str = ""
    protocol: int = 0
    lang: str = ""
    gateway: str = ""


_INFO = InfoForm(LeafInfo, "leaf node", {"leafnode_urls": ()})
_CONNECT = ConnectForm(LeafConnect, "leaf node")
encode_leaf_info, decode_leaf_info = _INFO.encode, _INFO.decode
encode_leaf_connect, decode_leaf_connect = _CONNECT.encode, _CONNECT.decode


def leaf_interest(subject: bytes, queue: bytes = b"", weight: int = 1) -> bytes:
    """LS+, or LS- for a `weight` of 0. With a queue group it is sent for every change of the weight."""
    if not weight:
        return b"LS- %b %b\r\n" % (subject, queue) if queue else b"LS- %b\r\n" % subject
    return b"LS+ %b %b %d\r\n" % (subject, queue, weight) if queue else b"LS+ %b\r\n" % subject
