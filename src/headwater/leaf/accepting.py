"""The hub's side of a login: judges a spoke's CONNECT, and answers it with a second INFO.

    CONNECT ─▶ handshake: is it a spoke, and not ourselves?
    ─▶ the gate: the user, and the account to join
            ─▶ INFO with `connect_info`: the account, and the subjects that may cross ─▶ joined

A callout service that decides on clients also decides on spokes (`ask`), except for users in `leafnodes.authorization`.
A refused spoke gets nats-server's error texts; the reason is only in our log and journal.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from headwater.authorization.guard import Guard
from headwater.authorization.identity import (
    LEAFNODE,
    LEAFNODE_WS,
    Credentials,
    Identity,
    Lookup,
    PasswordCheck,
    Refusal,
)
from headwater.errors import RemoteProtocolError
from headwater.leaf import handshake
from headwater.leaf.connection import LeafConnection
from headwater.leaf.forwarding import LeafTarget
from headwater.leaf.interest import Neighbour
from headwater.leaf.own_info import OwnInfo
from headwater.leaf.permissions import Crossing, lists_of, never, without_queues
from headwater.model.subject import encode_subjects
from headwater.net.certificate_names import names_on
from headwater.net.websocket_doors import Doors
from headwater.options.leaf import LeafOptions
from headwater.wire import error_texts
from headwater.wire.handshake import ConnectOptions
from headwater.wire.leaf_lines import LeafConnect, decode_leaf_connect, encode_leaf_info

if TYPE_CHECKING:
    from headwater.authorization.callout import Question
    from headwater.authorization.gate import Gate
    from headwater.exchange.account import Account
    from headwater.exchange.accounts import Accounts

Ask = Callable[["Question", dict[str, Any], float, Callable[[Identity | Refusal], None]], None]
"""Sends a question to a callout service, with facts about the connection; the last argument is called with the verdict,
within the given seconds.
"""


class Nodes(Protocol):
    """What `Accepting` needs from `service.LeafNodes`."""

    options: LeafOptions
    own: OwnInfo
    accounts: "Accounts"
    clock: Callable[[], float]

    def make(self) -> LeafConnection: ...
    def joined(self) -> list[LeafConnection]: ...
    def is_open(self, leaf: LeafConnection) -> bool: ...
    def refuse(self, leaf: LeafConnection, text: str, reason: str) -> None: ...
    def fail(self, leaf: LeafConnection, text: str, reason: str) -> None: ...
    def repeat(self, leaf: LeafConnection, *, all_of_it: bool) -> None: ...
    def expect(self, leaf: LeafConnection, seconds: float, text: str) -> None: ...
    def join(
        self, leaf: LeafConnection, account: "Account", neighbour: Neighbour, target: LeafTarget, *, headers: bool
    ) -> None: ...


class Accepting:
    """`gate`: that of the leaf node port. `ask`: for a callout service, which has `seconds`. `wall_clock`: seconds
    since 1970.
    """

    def __init__(
        self, nodes: Nodes, gate: "Gate", ask: Ask | None, seconds: float, wall_clock: Callable[[], float]
    ) -> None:
        self._nodes = nodes
        self._ask = ask
        self._seconds = seconds
        self.gate = gate
        self._wall_clock = wall_clock
        self.doors = Doors(self._make_websocket)

    def _make_websocket(self) -> LeafConnection:
        leaf = self._nodes.make()
        leaf.websocket = True
        return leaf

    def on_connect(self, leaf: LeafConnection, json: bytes) -> bool:
        """Handle CONNECT. True if the verdict arrives later: nothing more may be parsed until then."""
        if leaf.remote is not None:
            self._nodes.fail(leaf, error_texts.UNKNOWN_OPERATION, "a hub does not send CONNECT")
            return False
        try:
            connect = decode_leaf_connect(json)
        except RemoteProtocolError as error:
            self._nodes.fail(leaf, "", str(error))
            return False
        if leaf.joined:  # a repeated CONNECT: repeat the answer
            self._answer(leaf)
            self._nodes.repeat(leaf, all_of_it=True)
            return False
        leaf.far_end.connect = connect
        refusal = handshake.refusal_of(connect, self._nodes.own.info.cluster)
        if refusal:
            self._nodes.refuse(leaf, refusal, refusal)
            return False
        verdict = self._judge(leaf, connect)
        if isinstance(verdict, Identity | Refusal):
            self._apply_verdict(leaf, verdict)
            return False
        if leaf.link is not None:
            leaf.link.pause_reading()
        if not isinstance(verdict, PasswordCheck):
            self._ask_service(leaf, verdict)
            return True
        outcome = asyncio.get_running_loop().run_in_executor(None, verdict.decide)
        outcome.add_done_callback(partial(self._on_password_checked, leaf))
        return True

    def _judge(self, leaf: LeafConnection, connect: LeafConnect) -> "Identity | Refusal | PasswordCheck | Question":
        if self._nodes.options.account and not self.gate.required:
            return Identity(account=self._nodes.options.account)
        verdict = self.gate.decide(self._credentials(leaf, connect), self._wall_clock())
        if isinstance(verdict, Lookup):  # when the spoke dials again, its account is known
            verdict.find(verdict.account, lambda: None)
            return Refusal("the account of the user's JWT is not known yet")
        return verdict if isinstance(verdict, PasswordCheck) else self._verdict_or_question(leaf, connect, verdict)

    def _credentials(self, leaf: LeafConnection, connect: LeafConnect) -> Credentials:
        layer = leaf.link.layer if leaf.link is not None else None
        return Credentials(
            user=connect.user,
            password=connect.password,
            token=connect.auth_token,
            nkey=connect.nkey,
            jwt=connect.jwt,
            signature=connect.sig,
            nonce=leaf.nonce,
            certificate_names=names_on(layer),
            connection_type=LEAFNODE_WS if leaf.websocket else LEAFNODE,
            address=leaf.link.host if leaf.link is not None else "",
        )

    def _verdict_or_question(
        self, leaf: LeafConnection, connect: LeafConnect, verdict: Identity | Refusal
    ) -> "Identity | Refusal | Question":
        options = ConnectOptions(name=connect.name, version=connect.version, protocol=connect.protocol)
        return self.gate.verdict_or_question(self._credentials(leaf, connect), verdict, options)

    def _ask_service(self, leaf: LeafConnection, question: "Question") -> None:
        if self._ask is None:
            self._on_answer(leaf, Refusal("an auth_callout decides on this user, and cannot be asked"))
            return
        self._nodes.expect(leaf, self._seconds + 1.0, error_texts.AUTHORIZATION)
        about = {"id": leaf.number, "kind": "Leafnode"}
        self._ask(question, about, self._seconds, partial(self._on_answer, leaf))

    def _on_answer(self, leaf: LeafConnection, verdict: Identity | Refusal) -> None:
        if self._nodes.is_open(leaf):
            self._apply_verdict(leaf, verdict)
            leaf.go_on()

    def expired(self, leaf: LeafConnection) -> str:
        """The error for a spoke whose credentials have expired; "" while they are valid."""
        now, identity = self._wall_clock(), leaf.far_end.identity
        if identity.expires is not None and identity.expires <= now:
            return error_texts.USER_EXPIRED
        if identity.account_expires is not None and identity.account_expires <= now:
            return error_texts.ACCOUNT_EXPIRED
        return ""

    def judge_again(self, renewed: Callable[[Identity], Identity | str]) -> None:
        """Users have changed. `renewed`: what a spoke is now, or the error for one that may not stay. One with other
        permissions ends too, and has them when it comes back."""
        for leaf in self._nodes.joined():
            if leaf.remote is not None:
                continue
            found = renewed(leaf.far_end.identity)
            if isinstance(found, str):
                leaf.close(found)
            elif found.permissions != leaf.far_end.identity.permissions:
                leaf.close("", "the permissions of its user have changed")
            else:
                leaf.far_end.identity = found

    def _on_password_checked(self, leaf: LeafConnection, outcome: "asyncio.Future[Identity | Refusal]") -> None:
        """A hashed password has been compared; that takes 0.1 s, so it ran in another thread."""
        if outcome.cancelled() or not self._nodes.is_open(leaf):
            return
        failed = outcome.exception() is not None
        verdict = Refusal("the check failed") if failed or leaf.far_end.connect is None else outcome.result()
        found = (
            verdict if leaf.far_end.connect is None else self._verdict_or_question(leaf, leaf.far_end.connect, verdict)
        )
        if not isinstance(found, Identity | Refusal):
            self._ask_service(leaf, found)
            return
        self._apply_verdict(leaf, found)
        leaf.go_on()

    def _apply_verdict(self, leaf: LeafConnection, verdict: Identity | Refusal) -> None:
        connect = leaf.far_end.connect
        if connect is None or not self._nodes.is_open(leaf):
            return
        if isinstance(verdict, Refusal):
            self._nodes.refuse(leaf, error_texts.AUTHORIZATION, verdict.reason)
            return
        try:
            account = self._nodes.accounts[verdict.account]
        except KeyError:
            self._nodes.refuse(leaf, error_texts.AUTHORIZATION, f"there is no account {verdict.account}")
            return
        if account.options is not None and 0 <= account.options.max_leafnodes <= account.leafnodes:
            self._nodes.refuse(leaf, error_texts.MAXIMUM_ACCOUNT_CONNECTIONS, "the account has no room for leaf nodes")
            return
        far_end, leaf.account = leaf.far_end, account
        far_end.identity, far_end.remote_account = verdict, connect.remote_account
        far_end.name, far_end.server_id, far_end.cluster = connect.name, connect.server_id, connect.cluster
        self._answer(leaf)
        if handshake.is_too_old(connect.version, self._nodes.options.min_version):
            text = handshake.old_version_text(self._nodes.options.min_version)
            self._nodes.refuse(leaf, text, text)
            return
        if self._is_loop(leaf):
            self._nodes.refuse(leaf, handshake.loop_text(account.name), "we are a leaf node of it ourselves")
            return
        self._end_twin(leaf)
        permissions = verdict.permissions
        system = account.is_system
        may_announce = Crossing(never("", system=system), [without_queues(permissions.publish)])
        sends = Crossing(
            (*never(self._nodes.own.info.domain, system=system), *encode_subjects(connect.deny_pub)),
            [without_queues(permissions.subscribe)],
        )
        guard = Guard(verdict.rules, self._nodes.clock) if verdict.rules is not None else None
        leaf.allow(Crossing(never("", system=system)), guard)
        isolated = connect.isolate or self._nodes.options.isolate
        origin = connect.cluster or connect.name or f"leaf-{leaf.number}"
        neighbour = Neighbour(
            is_hub=connect.is_hub, cluster=connect.cluster, origin=origin, isolated=isolated, may_announce=may_announce
        )
        cluster = b"" if connect.is_hub else connect.cluster.encode()
        target = LeafTarget(leaf.standing(), sends, cluster, is_hub=connect.is_hub)
        target.guard = guard if guard is not None and guard.tracks else None
        self._nodes.join(leaf, account, neighbour, target, headers=connect.headers and self._nodes.own.info.headers)

    def send_info(self, leaf: LeafConnection) -> None:
        """Send a joined spoke our INFO, which has changed."""
        self._answer(leaf)

    def _answer(self, leaf: LeafConnection) -> None:
        """Send the second INFO: the account here, and which subjects may cross."""
        if leaf.account is None:
            return
        permissions = leaf.far_end.identity.permissions
        leaf.send(
            encode_leaf_info(
                handshake.info_for(self._nodes.own.info, leaf.number, websocket=leaf.websocket).replace(
                    connect_info=True,
                    remote_account=leaf.account.name,
                    acc_is_sys=leaf.account.is_system,
                    imports=lists_of(without_queues(permissions.subscribe)),
                    exports=lists_of(permissions.publish),
                )
            )
        )

    def _is_loop(self, leaf: LeafConnection) -> bool:
        """Whether a connection that we dialled already joins us to the spoke's account, so that messages would loop.
        The first connection stays.
        """
        return any(other.remote is not None and other.joins_same_accounts(leaf) for other in self._nodes.joined())

    def _end_twin(self, leaf: LeafConnection) -> None:
        """Close the older connection of the same spoke between the same accounts: it is dead, or two remotes of one
        server lead to us. As in nats-server, the new one stays.
        """
        twin = leaf.far_end
        if not twin.remote_account:
            return
        for other in self._nodes.joined():
            far_end = other.far_end
            if (
                other.remote is None
                and (far_end.name, far_end.cluster) == (twin.name, twin.cluster)
                and far_end.remote_account == twin.remote_account
                and other.account is leaf.account
            ):
                self._nodes.refuse(
                    other, handshake.DUPLICATE, "another connection of the same leaf node took its place"
                )
