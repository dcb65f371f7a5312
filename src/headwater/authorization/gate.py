"""Decides on every login: from credentials to an identity or a refusal. Denies by default. Pure: the time is an
argument.

    BrokerOptions ──▶ Gate ──decide(Credentials, now)──▶ Identity | Refusal | PasswordCheck

All listeners share one gate; a WebSocket listener with its own users has its own gate. In operator mode
`operator.Trust` decides.
"""

from typing import TYPE_CHECKING, NamedTuple

from headwater.authorization.identity import Credentials, Identity, PasswordCheck, Refusal, Verdict
from headwater.authorization.permissions import Rules, rules_of
from headwater.model.nkey import NkeyKind, decode_nkey
from headwater.model.passwords import is_correct, is_hashed, require_bcrypt
from headwater.model.signatures import decode_base64, is_signed, require_nacl
from headwater.options.access import (
    GLOBAL_ACCOUNT,
    AccountOptions,
    AuthorizationOptions,
    Permissions,
    UserOptions,
)
from headwater.options.broker import BrokerOptions

if TYPE_CHECKING:
    from headwater.authorization.callout import Callout, Question
    from headwater.authorization.operator import Trust
    from headwater.wire.handshake import ConnectOptions
    from headwater.wire.jwt import Token, UserBody


class User(NamedTuple):
    """A configured user, and the identity that its clients get."""

    options: UserOptions
    identity: Identity


class Gate:
    """The gate of one kind of listener. `trust`: to share that of another gate of this broker. Raises
    EnvironmentProblem if a package that its users need is missing.
    """

    def __init__(self, options: BrokerOptions, trust: "Trust | None" = None) -> None:
        self._users: dict[str, User] = {}
        self._nkeys: dict[str, User] = {}
        self._options = options
        self._map_certificates = options.tls is not None and options.tls.verify_and_map
        self.username = options.authorization.username
        self._password = options.authorization.password
        self._token = options.authorization.token
        self.no_auth_user = options.no_auth_user
        self._simple = Identity(
            user=self.username, rules=rules_of(options.authorization.default_permissions) if self.username else None
        )
        self._add(options.authorization.users, GLOBAL_ACCOUNT, options.authorization.default_permissions)
        for account in options.accounts:
            defaults = account.default_permissions or options.authorization.default_permissions
            self._add(account.users, account.name, defaults)
        if any(
            map(is_hashed, (self._password, self._token, *(user.options.password for user in self._users.values())))
        ):
            require_bcrypt()
        if self._nkeys:
            require_nacl()
        self._callout: Callout | None = None
        if options.authorization.callout is not None:
            from headwater.authorization.callout import configured

            require_nacl()
            self._callout = configured(options.authorization.callout)
        # As in nats-server, the global account needs no login if only the system account has users.
        known = [*self._users.values(), *self._nkeys.values()]
        self._open_beside_system = (
            bool(known)
            and not self.no_auth_user
            and all(user.identity.account == options.system_account for user in known)
            and {account.name for account in options.accounts} <= {options.system_account}
        )
        self.trust = trust
        if options.operator is not None and trust is None:
            from headwater.authorization.operator import Trust

            require_nacl()
            self.trust = Trust(options.operator)

    def verdict_or_question(
        self, shown: Credentials, verdict: Identity | Refusal, connect: "ConnectOptions"
    ) -> "Identity | Refusal | Question":
        """This gate's `verdict` on `shown`, or the question for the callout service that decides instead."""
        callout = self._callout_for(shown, verdict)
        if callout is None:
            return self.without_callout_requests(verdict) if isinstance(verdict, Identity) else verdict
        from headwater.authorization.callout import Question

        return Question(callout, shown, connect)

    def _callout_for(self, shown: Credentials, verdict: Verdict) -> "Callout | None":
        """The callout that decides on `shown` instead of this gate, whose verdict is `verdict`; None if that stands."""
        if self.trust is not None:
            return self.trust.callout_for(shown)
        callout = self._callout
        if callout is None or self.named(shown) in callout.auth_users:
            return None
        if callout.allowed_accounts and isinstance(verdict, Identity):
            if verdict.account != GLOBAL_ACCOUNT and verdict.account not in callout.allowed_accounts:
                return None
        return callout

    def without_callout_requests(self, identity: Identity) -> Identity:
        """`identity`, without the right to publish requests to the callout service of its account: only the broker may."""
        callout = self._callout if self.trust is None else self.trust.callout_of(identity.account)
        if callout is None:
            return identity
        from headwater.authorization.callout import guarded

        return guarded(identity, callout)

    def named(self, shown: Credentials) -> str:
        """The configured user that `shown` names, authenticated or not; "" for none."""
        if shown.nkey in self._nkeys:
            return shown.nkey
        if shown.empty and self.no_auth_user:
            return self.no_auth_user
        if self._map_certificates:
            return next((name for name in shown.certificate_names if name in self._users), "")
        return shown.user if shown.user in self._users or shown.user == self.username else ""

    def place(self, question: "Question", user: "Token", body: "UserBody", now: float) -> Identity | Refusal:
        """The identity of a user that a callout service has returned."""
        if self.trust is not None:
            return self.trust.place(question, user, body, now)
        from headwater.authorization.callout import place

        options = self._options
        defaults: dict[str, Rules | None] = {GLOBAL_ACCOUNT: None, options.system_account: None}
        defaults |= {account.name: rules_of(account.default_permissions) for account in options.accounts}
        return place(question, user, body, now, defaults)

    @property
    def required(self) -> bool:
        """Whether clients have to authenticate."""
        return bool(self._users or self._nkeys or self.username or self._token or self.trust)

    @property
    def announced(self) -> bool:
        """Whether INFO requires authentication, which it does not if there is a default user."""
        return self.required and not self.no_auth_user

    @property
    def asks_for_signature(self) -> bool:
        """Whether INFO must contain a nonce."""
        return bool(self._nkeys or self.trust)

    @property
    def more_accounts(self) -> list[AccountOptions]:
        """The accounts of operator mode, which are not in the configuration."""
        return self.trust.options() if self.trust is not None else []

    @property
    def system_account(self) -> str:
        """The name of the account whose users may query the server."""
        return (self.trust.system_account if self.trust is not None else "") or self._options.system_account

    def for_websocket(self) -> "Gate":
        """The gate of the WebSocket listener: this one, unless the listener's options name other users."""
        websocket = self._options.websocket
        if websocket is None:
            return self
        own = Gate(self._options.replace(websocket=None, tls=websocket.tls), self.trust)
        if websocket.username or websocket.token or websocket.no_auth_user:
            own.username = websocket.username
            own._password = websocket.password
            own._token = websocket.token
            own._simple = Identity(user=websocket.username)
            own.no_auth_user = websocket.no_auth_user
        return own

    def for_leafnodes(self) -> "Gate":
        """The gate of the leaf node listener: this one, unless the listener's options name other users."""
        leafs = self._options.leafnodes
        if leafs is None:
            return self
        options = self._options.replace(leafnodes=None, websocket=None, tls=leafs.tls)
        if leafs.users:
            by_account: dict[str, list[UserOptions]] = {}
            for each in leafs.users:
                by_account.setdefault(each.account, []).append(each.user)
            own = tuple(by_account.pop(GLOBAL_ACCOUNT, ()))
            options = options.replace(
                authorization=AuthorizationOptions(users=own),
                accounts=tuple(AccountOptions(name=name, users=tuple(users)) for name, users in by_account.items()),
                no_auth_user="",
                mappings=(),
                default_js_domain={},
            )
        return Gate(options, self.trust)

    def unasked(self, connection_type: str) -> Identity | None:
        """The identity of a client before its CONNECT; None if it must authenticate first."""
        callout = self._options.authorization.callout
        if callout is not None and self.no_auth_user not in callout.auth_users:
            return None
        if not self.required:
            return Identity()
        if self._open_beside_system:
            return Identity()
        user = self._users.get(self.no_auth_user) if self.no_auth_user else None
        return user.identity if user is not None and _may_come_by(user.options, connection_type) else None

    def decide(self, shown: Credentials, now: float) -> Verdict:
        """The verdict on `shown`; `now` in seconds since 1970."""
        if not self.required:
            return Identity()
        if self.trust is not None:
            return self.trust.decide(shown, now)
        if shown.empty and not self._map_certificates:
            if self._open_beside_system:
                return Identity()
            if self.no_auth_user:
                return self._default_user(shown)
        if shown.nkey and self._nkeys:
            return self._by_nkey(shown)
        if self._map_certificates and self._users:
            return self._by_certificate(shown)
        if shown.user and self._users:
            return self._by_name(shown)
        if self._token:
            return self._compare(self._token, shown.token, self._simple)
        if self.username:
            if shown.user != self.username:
                return Refusal("an unknown user" if shown.user else "no user was named")
            return self._compare(self._password, shown.password, self._simple)
        return Refusal("nothing that could be checked was shown")

    # ── the ways to prove it ──

    def _default_user(self, shown: Credentials) -> Verdict:
        user = self._users.get(self.no_auth_user) or self._nkeys.get(self.no_auth_user)
        if user is None or not _may_come_by(user.options, shown.connection_type):
            return Refusal("the default user may not connect this way")
        return user.identity

    def _by_nkey(self, shown: Credentials) -> Verdict:
        user = self._nkeys.get(shown.nkey)
        if user is None or not _may_come_by(user.options, shown.connection_type):
            return Refusal("an unknown nkey, or not by this way")
        key = decode_nkey(shown.nkey, NkeyKind.USER)
        signature = decode_base64(shown.signature)
        if key is None or not signature or not is_signed(key, shown.nonce.encode(), signature):
            return Refusal("the nonce is not signed with this nkey")
        return user.identity

    def _by_certificate(self, shown: Credentials) -> Verdict:
        for name in shown.certificate_names:
            user = self._users.get(name)
            if user is not None and _may_come_by(user.options, shown.connection_type):
                return user.identity
        return Refusal("no name in the certificate is that of a user")

    def _by_name(self, shown: Credentials) -> Verdict:
        user = self._users.get(shown.user)
        if user is None or not _may_come_by(user.options, shown.connection_type):
            return Refusal("an unknown user, or not by this way")
        return self._compare(user.options.password, shown.password, user.identity)

    def _compare(self, stored: str, shown: str, identity: Identity) -> Verdict:
        def decide() -> Identity | Refusal:
            return identity if is_correct(stored, shown) else Refusal("a wrong password or token")

        return PasswordCheck(decide) if is_hashed(stored) else decide()

    def _add(self, users: tuple[UserOptions, ...], account: str, defaults: Permissions | None) -> None:
        for user in users:
            rules = rules_of(user.permissions or defaults)
            known = User(user, Identity(account=account, user=user.username or user.nkey, rules=rules))
            if user.nkey:
                self._nkeys[user.nkey] = known
            else:
                self._users[user.username] = known


def _may_come_by(user: UserOptions, connection_type: str) -> bool:
    return user.connection_types is None or connection_type in user.connection_types
