"""The spoke's side of a login: answers a hub's INFO with CONNECT, and joins the account that its second INFO names.

    INFO ─▶ is it a leaf node port? ─▶ TLS, if either side requires it ─▶ CONNECT
    INFO with `connect_info`: the hub's account, and the subjects that may cross ─▶ joined
    any later INFO: other addresses of the hub, other permissions

A hub without `info_on_connect` (an old one) sends no second INFO: we have joined once CONNECT is sent.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from headwater.errors import HeadwaterError, RemoteProtocolError
from headwater.leaf import handshake
from headwater.leaf.connection import LeafConnection
from headwater.leaf.dialling import secured
from headwater.leaf.forwarding import LeafTarget
from headwater.leaf.interest import Neighbour
from headwater.leaf.own_info import OwnInfo
from headwater.leaf.permissions import Crossing, never, rules_of
from headwater.leaf.remote import Address, Remote
from headwater.model.subject import encode_subjects
from headwater.options.leaf import LeafOptions
from headwater.wire.leaf_lines import PROTOCOL, LeafConnect, LeafInfo, decode_leaf_info, encode_leaf_connect

if TYPE_CHECKING:
    from headwater.exchange.account import Account
    from headwater.exchange.accounts import Accounts

INFO_SECONDS = 2.0  # for the hub's second INFO


class Nodes(Protocol):
    """What `Introducing` needs from `service.LeafNodes`."""

    options: LeafOptions
    own: OwnInfo
    accounts: "Accounts"
    clock: Callable[[], float]

    def joined(self) -> list[LeafConnection]: ...
    def is_open(self, leaf: LeafConnection) -> bool: ...
    def fail(self, leaf: LeafConnection, text: str, reason: str) -> None: ...
    def repeat(self, leaf: LeafConnection, *, all_of_it: bool) -> None: ...
    def expect(self, leaf: LeafConnection, seconds: float, text: str) -> None: ...
    def address_of(self, leaf: LeafConnection) -> Address: ...
    def join(
        self, leaf: LeafConnection, account: "Account", neighbour: Neighbour, target: LeafTarget, *, headers: bool
    ) -> None: ...


class Introducing:
    """Serves all hubs that we dial. `stores(account)`: whether the account has JetStream."""

    def __init__(self, nodes: Nodes, stores: "Callable[[Account], bool]") -> None:
        self._nodes = nodes
        self._stores = stores

    def on_info(self, leaf: LeafConnection, json: bytes) -> None:
        remote = leaf.remote
        if remote is None:
            return  # a spoke's INFO only requests compression
        try:
            info = decode_leaf_info(json)
        except RemoteProtocolError as error:
            self._nodes.fail(leaf, "", str(error))
            return
        first, leaf.far_end.info = leaf.far_end.info is None, info
        if first:
            if not handshake.is_hub_info(info):
                leaf.close("", handshake.WRONG_PORT)
                return
            self._nodes.expect(leaf, INFO_SECONDS + (remote.options.tls.timeout if remote.options.tls else 2.0), "")
            leaf.far_end.name, leaf.far_end.server_id = info.server_name, info.server_id
            asyncio.get_running_loop().call_soon(self._introduce, leaf, remote, info)  # TLS must not begin in a read
            return
        if info.leafnode_urls is not None:
            remote.announced(info.leafnode_urls, self._nodes.address_of(leaf))
        if leaf.joined:
            self._renew(leaf, info)
        elif info.connect_info:
            self._join_hub(leaf, remote, info)

    def _introduce(self, leaf: LeafConnection, remote: Remote, info: LeafInfo) -> None:
        """Send CONNECT, inside TLS if either side requires it."""
        if leaf.link is None or not self._nodes.is_open(leaf):
            return
        address = self._nodes.address_of(leaf)
        try:
            secured(leaf.link, remote, address, info)
            connect = self._introduction(remote, address, info)
        except HeadwaterError as error:
            leaf.close("", str(error))
            return
        leaf.send(encode_leaf_connect(connect))
        if info.info_on_connect:
            self._nodes.expect(leaf, INFO_SECONDS + remote.options.first_info_timeout, handshake.STALE)
        else:
            self._join_hub(leaf, remote, info)

    def _introduction(self, remote: Remote, address: Address, info: LeafInfo) -> LeafConnect:
        from headwater.leaf.credentials import prove

        self._nodes.own.look()  # before CONNECT: a later change of the name would close this connection
        ours, options = self._nodes.own.info, remote.options
        connect = LeafConnect(
            version=ours.version,
            server_id=ours.server_id,
            domain=ours.domain,
            name=ours.server_name,
            is_hub=options.hub,
            cluster=ours.cluster or ours.server_name,
            headers=ours.headers and info.headers,
            jetstream=self._stores(self._nodes.accounts[options.account]),
            deny_pub=options.deny_imports,
            isolate=options.request_isolation,
            compress_mode="off" if info.compression and info.compression != "not supported" else "not supported",
            remote_account=options.account,
            protocol=PROTOCOL,
        )
        prove(connect, options, address, info.nonce)
        return connect

    def _join_hub(self, leaf: LeafConnection, remote: Remote, info: LeafInfo) -> None:
        account = self._nodes.accounts[remote.options.account]
        leaf.far_end.cluster, leaf.far_end.remote_account, leaf.account = info.cluster, info.remote_account, account
        for other in self._nodes.joined():
            if not other.joins_same_accounts(leaf):
                continue
            if other.remote is not None:
                leaf.close("", f"{handshake.DUPLICATE}: another remote leads to the same account of {info.server_name}")
                return
            age = self._nodes.clock() - other.opened
            if not handshake.ours_stays(self._nodes.own.info.server_id, info.server_id, age):
                leaf.close("", f"{handshake.loop_text(account.name)}: it is our leaf node already")
                return
        outgoing, incoming = self._crossings(remote, info, account)
        leaf.allow(incoming, None)
        isolated = remote.options.isolate or self._nodes.options.isolate
        origin = info.cluster or info.server_name  # used if `hub` makes the dialled side a spoke
        neighbour = Neighbour(is_hub=not remote.options.hub, origin=origin, isolated=isolated, may_announce=incoming)
        target = LeafTarget(leaf.standing(), outgoing, is_hub=not remote.options.hub)
        headers = info.headers and self._nodes.own.info.headers
        remote.joined(self._nodes.address_of(leaf))
        self._nodes.join(leaf, account, neighbour, target, headers=headers)

    def _crossings(self, remote: Remote, info: LeafInfo, account: "Account") -> tuple[Crossing, Crossing]:
        """The permissions for messages to the hub, and from it."""
        options, system = remote.options, account.is_system
        denied = (*never(self._nodes.own.info.domain, system=system), *encode_subjects(options.deny_exports))
        outgoing = Crossing(denied, [rules_of(info.exports)])
        incoming = Crossing(
            (*never("", system=system), *encode_subjects(options.deny_imports)),
            [rules_of(info.imports)],
        )
        return outgoing, incoming

    def _renew(self, leaf: LeafConnection, info: LeafInfo) -> None:
        """Apply a later INFO, which may change the permissions."""
        target, neighbour = leaf.target, leaf.neighbour
        if leaf.remote is None or leaf.account is None or target is None or neighbour is None:
            return
        outgoing, incoming = self._crossings(leaf.remote, info, leaf.account)
        target.allow(outgoing)
        leaf.allow(incoming, None)
        neighbour.may_announce = incoming
        self._nodes.repeat(leaf, all_of_it=False)
