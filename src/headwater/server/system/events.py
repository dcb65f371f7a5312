"""Events of the system account: clients that connect and disconnect, and periodic server statistics.

    $SYS.ACCOUNT.<account>.CONNECT      $SYS.ACCOUNT.<account>.DISCONNECT      $SYS.SERVER.<id>.CLIENT.AUTH.ERR
    $SYS.ACCOUNT.<account>.SERVER.CONNS, $SYS.SERVER.ACCOUNT.<account>.CONNS   how many clients an account has
    $SYS.SERVER.<id>.STATSZ             every STATSZ_SECONDS
    $SYS.SERVER.<id>.LAMEDUCK           $SYS.SERVER.<id>.SHUTDOWN

An event without a subscriber costs nothing; the first one with a subscriber imports the view of monitoring. Wrong
credentials of a client are in no event.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.exchange.account import Account
    from headwater.exchange.router import Router
    from headwater.exchange.session import Session
    from headwater.server.system.documents import Document, Speaker
    from headwater.wire.handshake import ConnectOptions

STATSZ_SECONDS = 10.0


class Events:
    """Publishes events of a broker's sessions to `router`, the system account's. `speaker()` returns their sender."""

    def __init__(self, server_id: str, speaker: "Callable[[], Speaker]", router: "Router") -> None:
        self._speaker = speaker
        self._router = router
        self._entered: set[int] = set()
        self._id = server_id
        self._timer = asyncio.get_running_loop().call_later(STATSZ_SECONDS, self._tick)

    def stop(self) -> None:
        """Publish the shutdown event, and stop."""
        self._timer.cancel()
        self._publish(f"$SYS.SERVER.{self._id}.SHUTDOWN", lambda: self._speaker().server())

    def lame_duck(self) -> None:
        """Publish the lame duck event."""
        self._publish(f"$SYS.SERVER.{self._id}.LAMEDUCK", lambda: self._speaker().server())

    def _publish(self, subject: str, make: "Callable[[], Document]") -> None:
        name = subject.encode("utf-8", "surrogateescape")
        if self._router.has_interest(name):
            from headwater.server.system.documents import encode

            self._router.publish(name, b"", b"", encode(make()))

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(STATSZ_SECONDS, self._tick)
        self._publish(
            f"$SYS.SERVER.{self._id}.STATSZ",
            lambda: {"server": self._speaker().server(), "statsz": self._speaker().statistics()},
        )

    # ── the sessions' observer ──

    def arrived(self, session: "Session") -> None:
        pass

    def introduced(self, session: "Session", options: "ConnectOptions") -> None:
        pass

    def admitted(self, session: "Session") -> None:
        account = session.membership.account
        if account is None:
            return
        self._entered.add(session.client_id)
        self._count(account, account.connections)
        self._publish(
            f"$SYS.ACCOUNT.{account.name}.CONNECT",
            lambda: self._arrival(session),
        )

    def left(self, session: "Session") -> None:
        entered = session.client_id in self._entered
        self._entered.discard(session.client_id)
        if entered and session.membership.account is not None:
            self._count(session.membership.account, session.membership.account.connections - 1)
        elif not session.login.refused_user and not session.end_reason:
            return  # it never sent CONNECT
        else:
            self._publish(f"$SYS.SERVER.{self._id}.CLIENT.AUTH.ERR", lambda: self._departure(session))
        self._publish(
            f"$SYS.ACCOUNT.{session.membership.identity.account}.DISCONNECT", lambda: self._departure(session)
        )

    def _arrival(self, session: "Session") -> "Document":
        client = self._client(session)
        client.pop("rtt", None)  # an estimate, which nats-server leaves out here
        return {**self._speaker().event("client_connect"), "client": client}

    def _departure(self, session: "Session") -> "Document":
        from headwater.model.timestamps import format_time
        from headwater.monitoring.connz import REASONS

        now = self._speaker().clock_ns()
        client = self._client(session)
        client.setdefault("rtt", max(now - session.since, 1))  # of a refused one: it ended at its CONNECT
        return {
            **self._speaker().event("client_disconnect"),
            "client": {**client, "stop": format_time(now)},
            "sent": {"msgs": session.outlet.out_messages, "bytes": session.outlet.out_bytes},
            "received": {"msgs": session.traffic.messages, "bytes": session.traffic.bytes},
            "reason": REASONS.get(session.end_reason, session.end_reason),
        }

    def _client(self, session: "Session") -> "Document":
        from headwater.exchange.client_info import client_info

        return {**client_info(session), "name_tag": session.membership.identity.account}

    def _count(self, account: "Account", connections: int) -> None:
        for subject in (f"$SYS.SERVER.ACCOUNT.{account.name}.CONNS", f"$SYS.ACCOUNT.{account.name}.SERVER.CONNS"):
            self._publish(
                subject,
                lambda: {
                    **self._speaker().event("account_connections"),
                    **self._speaker().account_statistics(account, connections),
                },
            )
