"""Sends requests to callout services, one for each login, on `$SYS.REQ.USER.AUTH`, and waits for the answers.

A login is refused if no answer arrives in time, and at once if no service listens. The reason goes to the log and the
journal, never to the client. Each unauthenticated client waits for one answer, so their number bounds that of waiting
requests.
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from headwater.authorization.callout import SUBJECT, XKEY_HEADER, Question, guarded, read_answer, request_claims
from headwater.authorization.identity import Identity, Refusal
from headwater.authorization.server_keys import ServerKeys
from headwater.errors import RemoteProtocolError
from headwater.model.nkey import NkeyKind, encode_nkey
from headwater.wire.jwt import Token, UserBody

if TYPE_CHECKING:
    from headwater.exchange.accounts import Accounts
    from headwater.exchange.sublist import Subscription

Place = Callable[[Question, Token, UserBody, float], Identity | Refusal]
"""The identity of a user that a service has returned; the last argument is the time, in seconds since 1970."""
Act = Callable[[Identity | Refusal], None]
_MAX_WAITING = 4096


class Callouts:
    """`wall_clock`: seconds since 1970. `place`: see Place."""

    def __init__(self, accounts: "Accounts", keys: ServerKeys, wall_clock: Callable[[], float], place: Place) -> None:
        self._accounts = accounts
        self._keys = keys
        self._wall_clock = wall_clock
        self._place = place
        self._waiting: dict[str, Callable[[], None]] = {}  # by user key: drops the request

    def ask(
        self, question: Question, server: Mapping[str, Any], client: dict[str, Any], seconds: float, act: Act
    ) -> None:
        """Send the request for a login; `act` is called once, within `seconds`, and never from inside this call."""
        loop = asyncio.get_running_loop()
        if len(self._waiting) >= _MAX_WAITING:
            loop.call_soon(act, Refusal("too many logins wait for a callout service"))
            return
        callout, router = question.callout, self._accounts[question.callout.account].router
        user_key = encode_nkey(NkeyKind.USER, os.urandom(32))
        inbox = f"_INBOX.{os.urandom(12).hex()}".encode()

        def end(verdict: Identity | Refusal | None) -> None:
            if self._waiting.pop(user_key, None) is None:
                return
            timer.cancel()
            router.unsubscribe(subscription)
            if verdict is not None:
                loop.call_soon(act, verdict)

        def on_answer(subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
            end(self._verdict(question, user_key, bytes(payload)))
            return True

        now = self._wall_clock()
        about = dict(server, id=self._keys.server_id, xkey=self._keys.xkey if callout.xkey else "")
        claims = {
            **request_claims(question, user_key, about, client),
            "iat": int(now),
            "exp": int(now + seconds) + 1,
            "jti": os.urandom(16).hex().upper(),
        }
        message, header_block = self._keys.sign(claims).encode("ascii"), b""
        if callout.xkey:
            message = self._keys.seal(message, callout.xkey)
            header_block = f"NATS/1.0\r\n{XKEY_HEADER}: {self._keys.xkey}\r\n\r\n".encode()
        subscription: Subscription = router.subscribe_internal(inbox, on_answer)
        timer = loop.call_later(seconds, end, Refusal("the callout service did not answer in time"))
        self._waiting[user_key] = lambda: end(None)
        if not router.has_interest(SUBJECT) or not router.publish(SUBJECT, inbox, header_block, message):
            end(Refusal("no callout service listens"))

    def stop(self) -> None:
        """Drop all waiting requests, without a verdict."""
        for drop in [*self._waiting.values()]:
            drop()

    def _verdict(self, question: Question, user_key: str, payload: bytes) -> Identity | Refusal:
        now = self._wall_clock()
        try:
            user, body = read_answer(payload, question, user_key, self._keys, now)
        except RemoteProtocolError as error:
            return Refusal(error.message)
        found = self._place(question, user, body, now)
        return guarded(found, question.callout) if isinstance(found, Identity) else found
