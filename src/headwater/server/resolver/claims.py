"""Requests of operators about the JWTs of accounts, in the system account, as `nsc push|pull` and `nats` send them.

    $SYS.REQ.CLAIMS.UPDATE, $SYS.REQ.ACCOUNT.<key>.CLAIMS.UPDATE    a new JWT        {"data": {"account", "code", "message"}}
    $SYS.REQ.CLAIMS.DELETE    an operator's order to forget accounts                 the same
    $SYS.REQ.CLAIMS.LIST      {"data": ["A…", …]}
    $SYS.REQ.CLAIMS.PACK      the digest of a directory: one message `A…|<jwt>` for each account, then an empty one
    $SYS.REQ.ACCOUNT.<key>.CLAIMS.LOOKUP    the JWT, or nothing

Without a directory an UPDATE changes only an account in use, and the other requests have no responder. nats-server
stores every pushed JWT; here it must be signed by a trusted operator.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.errors import EnvironmentProblem, HeadwaterError, RemoteProtocolError
from headwater.server.resolver.resolver import Resolver, issued_about
from headwater.server.system.documents import Document, Speaker, encode
from headwater.wire.jwt import decode_deletion

if TYPE_CHECKING:
    from headwater.authorization.operator import Trust
    from headwater.exchange.router import Router

logger = logging.getLogger(__name__)

_PACK = b"$SYS.REQ.CLAIMS.PACK"
_MAX_LINE = 1 << 21  # of a pack: a JWT is at most half of it


class Claims:
    """Serves the requests of one broker. `speaker()` gives the sender of answers."""

    def __init__(self, resolver: Resolver, trust: "Trust", router: "Router", speaker: Callable[[], Speaker]) -> None:
        self._resolver = resolver
        self._trust = trust
        self._router = router
        self._speaker = speaker
        self._merging: asyncio.TimerHandle | None = None
        self._packs = f"_INBOX.{os.urandom(12).hex()}".encode()

    def start(self) -> None:
        """Start answering; a full directory also compares itself periodically with those of other servers."""
        kind, router = self._resolver.options.kind, self._router
        for pattern in (b"$SYS.REQ.ACCOUNT.*.CLAIMS.UPDATE", b"$SYS.ACCOUNT.*.CLAIMS.UPDATE"):
            router.subscribe_internal(pattern, self._update_one)
        if kind not in ("full", "cache"):
            return
        router.subscribe_internal(b"$SYS.REQ.CLAIMS.UPDATE", self._update)
        router.subscribe_internal(b"$SYS.REQ.CLAIMS.LIST", self._list)
        router.subscribe_internal(b"$SYS.REQ.CLAIMS.DELETE", self._delete)
        self._resolver.ask = self._ask
        if kind == "full":
            router.subscribe_internal(b"$SYS.REQ.ACCOUNT.*.CLAIMS.LOOKUP", self._look_up)
            router.subscribe_internal(_PACK, self._pack, b"responder")
            router.subscribe_internal(self._packs, self._merge)
            self._compare()

    def stop(self) -> None:
        """Stop comparing and looking for accounts."""
        self._resolver.stop()
        if self._merging is not None:
            self._merging.cancel()

    # ── requests ──

    def _update_one(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        words = subject.decode("utf-8", "surrogateescape").split(".")
        self._take(payload, reply, words[-3])
        return True

    def _update(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        self._take(payload, reply, "")
        return True

    def _take(self, payload: bytes, reply: bytes, key: str) -> None:
        """Take a pushed JWT; `key`: the account that it must be for."""
        kind = self._resolver.options.kind
        verb = "jwt update cache" if kind == "cache" else "jwt update"
        about = "n/a"
        try:
            token = payload.decode("ascii", "replace").strip()
            account = issued_about(token).subject
            about = key or account
            if account != about:
                raise RemoteProtocolError("subject does not match jwt content")
            if kind != "full" and account not in self._trust.tokens:
                self._answer(reply, {"data": {"account": about, "code": 200, "message": f"{verb} skipped"}})
                return
            self._resolver.take(account, token)
        except HeadwaterError as error:
            text = f"{verb} resulted in error - {error.message}"
            self._answer(reply, {"error": {"account": about, "code": 500, "description": text}})
            return
        done = "jwt updated cache" if kind == "cache" else "jwt updated"
        self._answer(reply, {"data": {"account": about, "code": 200, "message": done}})

    def _list(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        directory = self._resolver.directory
        self._answer(reply, {"data": list(directory.tokens) if directory is not None else []})
        return True

    def _look_up(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        directory = self._resolver.directory
        if reply and directory is not None:
            key = subject.split(b".")[-3].decode("utf-8", "surrogateescape")
            self._router.publish(reply, b"", b"", directory.get(key).encode("ascii"))
        return True

    def _pack(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        directory = self._resolver.directory
        if reply and directory is not None:
            if bytes(payload) != directory.digest():
                for key, token in directory.tokens.items():
                    self._router.publish(reply, b"", b"", f"{key}|{token}".encode("ascii"))
            self._router.publish(reply, b"", b"", b"")
        return True

    def _delete(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        about_subject = ""
        try:
            about, order = decode_deletion(payload.decode("ascii", "replace"))
            about_subject = about.subject
            if not self._resolver.options.allow_delete:
                raise RemoteProtocolError("delete must be enabled in server config")
            if about.issuer != about.subject:
                raise RemoteProtocolError("not self signed")
            if not self._trust.trusts(about.issuer):
                raise RemoteProtocolError("not trusted")
            if not order.accounts:
                raise RemoteProtocolError("malformed request")
            if self._trust.system_account in order.accounts:
                raise RemoteProtocolError("not allowed to delete system account")
            for key in order.accounts:
                self._resolver.drop(key)
        except HeadwaterError as error:
            text = f"delete accounts request by {about_subject} failed - {error.message}"
            self._answer(reply, {"error": {"code": 500, "description": text}})
            return True
        self._answer(reply, {"data": {"code": 200, "message": f"deleted {len(order.accounts)} accounts"}})
        return True

    def _answer(self, reply: bytes, document: Document) -> None:
        if reply:
            self._router.publish(reply, b"", b"", encode({"server": self._speaker().server(), **document}))

    # ── other servers ──

    async def _ask(self, key: str) -> str:
        """The JWT of an account from the first server that has it."""
        found: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        inbox = f"_INBOX.{os.urandom(12).hex()}".encode()

        def on_answer(subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
            if payload and not found.done() and len(payload) <= _MAX_LINE:
                found.set_result(bytes(payload).decode("ascii", "replace"))
            return True

        subject = f"$SYS.REQ.ACCOUNT.{key}.CLAIMS.LOOKUP".encode()
        forwarding = self._router.forwarding
        if forwarding is None or not forwarding.has_interest(subject):
            return ""
        subscription = self._router.subscribe_internal(inbox, on_answer)
        try:
            self._router.publish(subject, inbox, b"", b"")
            return await found
        finally:
            self._router.unsubscribe(subscription)

    def _compare(self) -> None:
        """Send the digest of this directory: servers with a different one answer with their JWTs."""
        loop, directory = asyncio.get_running_loop(), self._resolver.directory
        self._merging = loop.call_later(self._resolver.options.interval, self._compare)
        forwarding = self._router.forwarding
        if directory is not None and forwarding is not None and forwarding.has_interest(_PACK):
            self._router.publish(_PACK, self._packs, b"", directory.digest())

    def _merge(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        """Take newer JWTs from another server's directory."""
        for line in bytes(payload).decode("ascii", "replace").splitlines():
            key, separator, token = line.partition("|")
            if not separator or key == "":
                continue
            try:
                if issued_about(token).subject == key:
                    self._resolver.take(key, token, synced=False)
            except EnvironmentProblem as error:
                logger.warning("account_jwt_not_kept account=%s error=%s", key, error.message)
            except HeadwaterError:
                continue  # older than the stored one, or invalid here
        return True
