"""The system account's place in a broker: subscriptions to `$SYS.REQ.>`, and the moments of events.

Cheap to load: the first request imports the services. Events are observed only if there can be a subscriber (the system
account has users or exports, or there is a cluster), and the first one with a subscriber imports their code.

    any account      $SYS.REQ.USER.INFO, …ACCOUNT.PING.STATZ, …   as a service: asks, for itself, the system account
    system account   $SYS.REQ.SERVER.…, $SYS.REQ.ACCOUNT.…        services.py
                     $SYS.ACCOUNT.…, $SYS.SERVER.…                events.py
                     $JS.API.ACCOUNT.PURGE.<account>              purging.py
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.authorization.operator import Trust
    from headwater.exchange.account import Account
    from headwater.exchange.accounts import Accounts
    from headwater.exchange.sessions import Sessions
    from headwater.message_tracing.message_trace import MessageTrace
    from headwater.monitoring.view import ObservableBroker
    from headwater.server.resolver.claims import Claims
    from headwater.server.resolver.resolver import Resolver
    from headwater.server.system.documents import Speaker
    from headwater.server.system.events import Events
    from headwater.server.system.purging import Purging
    from headwater.server.system.services import Services

_USER_INFO = b"$SYS.REQ.USER.INFO"
_OF_ACCOUNTS = {
    _USER_INFO: "$SYS.REQ.USER.{}.INFO",
    b"$SYS.REQ.ACCOUNT.PING.STATZ": "$SYS.REQ.ACCOUNT.{}.STATZ",
    b"$SYS.REQ.ACCOUNT.PING.CONNZ": "$SYS.REQ.ACCOUNT.{}.CONNZ",
    b"$SYS.REQ.SERVER.PING.CONNZ": "$SYS.REQ.ACCOUNT.{}.CONNZ",
}
"""The requests that every account may send about itself, and their subjects in the system account."""
_REPLY_SECONDS = 10.0  # several servers may answer


class SystemAccount:
    """The system account of one broker. `reload` reads its configuration again; its future returns the errors in it."""

    def __init__(
        self, broker: "ObservableBroker", accounts: "Accounts", sessions: "Sessions", system: "Account"
    ) -> None:
        self.reload: Callable[[], asyncio.Future[str]] | None = None
        self._broker = broker
        self._sessions = sessions
        self._account = system
        self._speaker: Speaker | None = None
        self._services: Services | None = None
        self._claims: Claims | None = None
        self._purging: Purging | None = None
        self._events = self._make_events()
        me = f"$SYS.REQ.SERVER.{broker.server_id}.*".encode()
        for subject in (
            b"$SYS.REQ.SERVER.PING",
            b"$SYS.REQ.SERVER.PING.*",
            me,
            b"$SYS.REQ.ACCOUNT.>",
            b"$SYS.REQ.USER.>",
        ):
            system.router.subscribe_internal(subject, self._answer)
        if broker.options.jetstream:
            system.router.subscribe_internal(b"$JS.API.ACCOUNT.PURGE.*", self._purge)
        for account in accounts:
            self.add(account)

    def add(self, account: "Account") -> None:
        """Let the users of an account send requests about themselves."""
        if account is not self._account:
            account.router.subscribe_between(
                b"$SYS.REQ.>",
                partial(self._ask_for, account),
                announce=False,
                traced=partial(self._ask_traced, account),
            )

    def serve_claims(self, resolver: "Resolver", trust: "Trust") -> None:
        """Answer requests about the JWTs of accounts."""
        from headwater.server.resolver.claims import Claims

        self._claims = Claims(resolver, trust, self._account.router, self._speak)
        self._claims.start()

    def lame_duck(self) -> None:
        """The broker enters lame duck mode."""
        if self._events is not None:
            self._events.lame_duck()

    def stop(self) -> None:
        """The broker stops."""
        if self._claims is not None:
            self._claims.stop()
        if self._purging is not None:
            self._purging.stop()
        if self._events is not None:
            self._events.stop()

    def _make_events(self) -> "Events | None":
        if self._account.options is None and self._broker.options.cluster is None:
            return None
        from headwater.server.system.events import Events

        events = Events(self._broker.server_id, self._speak, self._account.router)
        self._sessions.observers.append(events)
        return events

    def describe(self) -> dict[str, object]:
        """The description of this server in events."""
        return self._speak().server()

    def _speak(self) -> "Speaker":
        if self._speaker is None:
            from headwater.server.system.documents import Speaker

            self._broker.observe()
            self._speaker = Speaker(self._broker)
        return self._speaker

    def _answer(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        if self._services is None:
            from headwater.server.system.services import Services

            self._services = Services(self._speak(), self._account.router, lambda: self.reload)
        if subject == _USER_INFO:  # a request in the system account itself
            from headwater.exchange.client_info import request_info
            from headwater.model.request_info import with_request_info

            info = request_info(self._account, self._account.router.publisher, share=True)
            return self._services.answer(b"$SYS.REQ.USER.-.INFO", reply, with_request_info(b"", info), payload)
        return self._services.answer(subject, reply, header_block, payload)

    def _purge(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        if self._purging is None:
            from headwater.server.system.purging import Purging

            self._purging = Purging(self._broker, self._account.router)
        return self._purging.answer(subject, reply, header_block, payload)

    def _ask_traced(
        self,
        account: "Account",
        trace: "MessageTrace",
        subject: bytes,
        reply: bytes,
        header_block: bytes,
        payload: bytes,
    ) -> bool:
        pattern = _OF_ACCOUNTS.get(subject)
        if pattern is None or not trace.asks_system(subject, pattern.format(account.name).encode("utf-8", "replace")):
            return False
        return self._ask_for(account, subject, reply, header_block, payload)

    def _ask_for(self, account: "Account", subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        """A request in another account: pass it on to the system account in that account's name."""
        pattern = _OF_ACCOUNTS.get(subject)
        if pattern is None:
            return False
        from headwater.exchange.client_info import request_info
        from headwater.model.request_info import with_request_info

        info = request_info(account, account.router.publisher, share=subject == _USER_INFO)
        system = self._account
        alias = b""
        if reply:
            alias = system.replies.make(account.router, reply, account.replies, many=True, seconds=_REPLY_SECONDS)
        target = pattern.format(account.name).encode("utf-8", "surrogateescape")
        return system.router.publish(target, alias, with_request_info(header_block, info), payload) > 0
